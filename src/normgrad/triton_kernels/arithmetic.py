"""The formulas, on tiles [ROWS, BLOCK] of a matrix: every kernel computes with these functions and no others."""

from __future__ import annotations

from .interpreter import INTERPRETED, tl, triton

_ROUND_BF16 = tl.constexpr(INTERPRETED)


@triton.jit
def cast(value, DTYPE: tl.constexpr):
    """The nearest number of the dtype; where a GPU rounds to bfloat16 the interpreter cuts off, so round here."""
    if _ROUND_BF16 and DTYPE == tl.bfloat16:
        bits = value.to(tl.float32).to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        value = tl.where(
            value == value, bits.to(tl.float32, bitcast=True), value.to(tl.float32)
        )
    return value.to(DTYPE)


@triton.jit
def head_of(M, heads, AXIS: tl.constexpr, PER_HEAD: tl.constexpr):
    """The head whose rows a program has, and how many heads there are; 0 and 1 where all share a weight."""
    head, share = 0, 1
    if PER_HEAD:
        # In M's own type, as all numbers of rows.
        head, share = tl.program_id(AXIS).to(M.dtype), heads.to(M.dtype)
    return head, share


@triton.jit
def load_tile(
    ptr,
    rows,
    cols,
    M,
    step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    heads=None,
    head_step=None,
    CACHE: tl.constexpr = None,
):
    """The tile of a matrix at rows and cols, zero past its edges; step is the row stride over VECTOR.

    With heads row r is head r % heads of token r // heads: step then leads from token to token, head_step to the next
    head.
    """
    # A stride known as a multiple of VECTOR lets the compiler load 16 bytes at once; int64, since M * N may pass 2**31.
    if heads is None:
        starts = ptr + rows.to(tl.int64)[:, None] * step * VECTOR
    else:
        starts = ptr + (rows // heads).to(tl.int64)[:, None] * step * VECTOR
        starts += (rows % heads).to(tl.int64)[:, None] * head_step * VECTOR
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    return tl.load(starts + cols[None, :], mask=mask, other=0, eviction_policy=CACHE)


@triton.jit
def store_tile(ptr, value, rows, cols, M, N: tl.constexpr):
    """Write a tile into a contiguous matrix (M, N), rounded to its dtype."""
    starts = ptr + rows.to(tl.int64)[:, None] * N
    tl.store(
        starts + cols[None, :],
        cast(value, ptr.dtype.element_ty),
        mask=(rows < M)[:, None] & (cols < N)[None, :],
    )


@triton.jit
def store_partial(ptr, tile, cols, N: tl.constexpr, head=0, share=1):
    """The sums over a tile's rows, as this program's row of the partial sums, of which each head has its own."""
    if ptr is not None:
        program = tl.program_id(0).to(tl.int64) * share + head
        tl.store(ptr + program * N + cols, tl.sum(tile, axis=0), mask=cols < N)


@triton.jit
def load_columns(
    ptr, cols, N: tl.constexpr, ACC: tl.constexpr, head=0, CACHE: tl.constexpr = None
):
    """A vector over the columns, a head's where each has one, as one row of a tile."""
    return tl.load(
        ptr + head * N + cols, mask=cols < N, other=0, eviction_policy=CACHE
    ).to(ACC)[None, :]


@triton.jit
def denominator(s2, EPS: tl.constexpr, PLACEMENT: tl.constexpr):
    """D of s**2, the reduced squares."""
    if PLACEMENT == "inside":
        d = tl.sqrt(s2 + EPS)
    elif PLACEMENT == "outside":
        d = tl.sqrt(s2) + EPS
    else:
        # Not tl.maximum: it would take EPS through float32, also where the kernel computes in float64.
        s = tl.sqrt(s2)
        d = tl.where(s > EPS, s, EPS)
    return d


@triton.jit
def kappa(s2, EPS: tl.constexpr, PLACEMENT: tl.constexpr):
    """D * D'(s) / s, the whole effect of where eps stands; 0 at s = 0 outside, where it has no value."""
    s = tl.sqrt(s2)
    if PLACEMENT == "clamp":
        k = tl.where(s > EPS, 1.0, 0.0)
    else:
        k = tl.where(s == 0, 0.0, (s + EPS) / tl.where(s == 0, 1.0, s))
    return k


@triton.jit
def load_sum(
    x_ptr,
    residual_ptr,
    residual_out_ptr,
    rows,
    cols,
    M,
    x_step,
    residual_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ROUND: tl.constexpr,
    ACC: tl.constexpr,
    heads,
    x_head_step,
    residual_head_step,
):
    """p = x + residual; with ROUND the number that residual_out stores, without it the sum as it is."""
    p = load_tile(x_ptr, rows, cols, M, x_step, N, VECTOR, heads, x_head_step).to(ACC)
    if residual_ptr is not None:
        p = p + load_tile(
            residual_ptr,
            rows,
            cols,
            M,
            residual_step,
            N,
            VECTOR,
            heads,
            residual_head_step,
        ).to(ACC)
        if ROUND:
            p = cast(p, residual_out_ptr.dtype.element_ty).to(ACC)
    return p


@triton.jit
def centred(p, mean, cols, N: tl.constexpr):
    """q = p - mean; the columns past N would hold -mean and enter the sum of squares, so they are zero."""
    return tl.where((cols < N)[None, :], p - mean[:, None], 0)


@triton.jit
def row_mean(p, cols, N: tl.constexpr):
    """mean(p), corrected by mean(p - mean(p)), which rounding leaves: 6e-4 of rows near 1e4, that rstd magnifies."""
    mean = tl.sum(p, axis=1) / N
    return mean + tl.sum(centred(p, mean, cols, N), axis=1) / N


@triton.jit
def load_row(
    dy_ptr,
    p_ptr,
    mean_ptr,
    rows,
    cols,
    M,
    dy_step,
    p_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    ACC: tl.constexpr,
    heads,
    dy_head_step,
    p_head_step,
    CACHE: tl.constexpr = None,
):
    """dy and q of a tile."""
    dy = load_tile(
        dy_ptr, rows, cols, M, dy_step, N, VECTOR, heads, dy_head_step, CACHE
    ).to(ACC)
    q = load_tile(
        p_ptr, rows, cols, M, p_step, N, VECTOR, heads, p_head_step, CACHE
    ).to(ACC)
    if CENTER:
        q = centred(q, tl.load(mean_ptr + rows, mask=rows < M, other=0), cols, N)
    return dy, q


@triton.jit
def mean_square(squares, N: tl.constexpr, MEAN: tl.constexpr):
    """s**2 of each row from q * q: of the centred row, never the difference of two large sums."""
    s2 = tl.sum(squares, axis=1)
    if MEAN:
        s2 = s2 / N
    return s2


@triton.jit
def reciprocal(
    squares,
    rows,
    M,
    N: tl.constexpr,
    MEAN: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
):
    """rstd = 1 / D of each row; NaN where squares left the dtype's range, as a number would be wrong there."""
    # Rows past M are zeros; 1 stands for their size, so that nothing is divided by zero.
    s2 = tl.where(rows < M, mean_square(squares, N, MEAN), 1)
    rstd = 1 / denominator(s2, EPS, PLACEMENT)
    most = 2.0**511 if rstd.dtype == tl.float64 else 2.0**63
    return tl.where((rstd > 0) & (rstd <= most), rstd, float("nan"))


@triton.jit
def load_weight(
    ptr,
    cols,
    N: tl.constexpr,
    OFFSET: tl.constexpr,
    ACC: tl.constexpr,
    head,
    CACHE: tl.constexpr = None,
):
    """weight_offset + weight, added in the dtype of the sums: 1 + w of 16 bits has two values near 1."""
    weight = load_columns(ptr, cols, N, ACC, head, CACHE)
    if OFFSET != 0:
        weight = weight + OFFSET
    return weight


@triton.jit
def affine(
    x_hat,
    weight_ptr,
    bias_ptr,
    cols,
    N: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    ACC: tl.constexpr,
    head,
):
    """y = scale * x_hat * (weight_offset + weight) + bias."""
    y = SCALE * x_hat
    if weight_ptr is not None:
        y = y * load_weight(weight_ptr, cols, N, OFFSET, ACC, head)
    if bias_ptr is not None:
        y = y + load_columns(bias_ptr, cols, N, ACC, head)
    return y


@triton.jit
def scaled_weight(
    weight_ptr,
    cols,
    N: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    ACC: tl.constexpr,
    head,
    CACHE: tl.constexpr = None,
):
    """scale * (weight_offset + weight), which turns dy into wdy, the cotangent of x_hat."""
    # A tile in any case: a plain number would come out of this function as float32.
    weight = tl.full([1, 1], SCALE, ACC)
    if weight_ptr is not None:
        weight = SCALE * load_weight(weight_ptr, cols, N, OFFSET, ACC, head, CACHE)
    return weight


@triton.jit
def row_means(
    products,
    wdy,
    squares,
    N: tl.constexpr,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
):
    """c1 = kappa * sum(x_hat * wdy) / n and c2 = center * mean(wdy) of each row, from products = x_hat * wdy."""
    if CENTER:
        # Side by side, so that the warps of a tile meet once for both.
        c1, c2 = tl.split(tl.sum(tl.join(products, wdy), axis=1))
        c2 = c2 / N
    else:
        c1 = tl.sum(products, axis=1)
        c2 = tl.zeros_like(c1)
    if MEAN:
        c1 = c1 / N
    if PLACEMENT != "inside" and EPS != 0:
        c1 = kappa(mean_square(squares, N, MEAN), EPS, PLACEMENT) * c1
    return c1, c2


@triton.jit
def input_gradient(wdy, x_hat, rstd, c1, c2):
    """dq - center * mean(dq) of each row, from its two sums c1 and c2."""
    return rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None])


@triton.jit
def store_input_gradient(
    dx_ptr,
    dresidual_ptr,
    dresidual_out_ptr,
    dx,
    rows,
    cols,
    M,
    dresidual_out_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ACC: tl.constexpr,
    heads,
    dresidual_out_head_step,
):
    """Add what reached the sum itself, and write dx; dresidual as well where it has another dtype."""
    if dresidual_out_ptr is not None:
        dx = dx + load_tile(
            dresidual_out_ptr,
            rows,
            cols,
            M,
            dresidual_out_step,
            N,
            VECTOR,
            heads,
            dresidual_out_head_step,
        ).to(ACC)
    store_tile(dx_ptr, dx, rows, cols, M, N)
    if dresidual_ptr is not None:
        store_tile(dresidual_ptr, dx, rows, cols, M, N)


@triton.jit
def add_parameter_gradients(dw, db, dw_ptr, db_ptr, dy, x_hat, SCALE: tl.constexpr):
    """dw and db with what this tile adds to each of its elements; the sum over rows comes after the last tile."""
    if dw_ptr is not None:
        dw += dy * (SCALE * x_hat)
    if db_ptr is not None:
        db += dy
    return dw, db
