"""Rows too long for one program: swept in blocks of columns, so that N has no limit.

The forward sweeps each row three times; the later sweeps find in the cache what is still there of the rows under way,
which at 65536 columns are more than it holds. The backward is two kernels: one finds c1 and c2 of each row, the other,
with a block of columns to each program, dx, dw and db.
"""

from __future__ import annotations

from .arithmetic import (
    add_parameter_gradients,
    affine,
    centred,
    head_of,
    input_gradient,
    load_sum,
    load_tile,
    reciprocal,
    row_means,
    scaled_weight,
    store_input_gradient,
    store_partial,
    store_tile,
)
from .interpreter import tl, triton


@triton.jit(
    do_not_specialize=[
        "M",
        "x_step",
        "residual_step",
        "heads",
        "x_head_step",
        "residual_head_step",
    ]
)
def forward_sweeps(
    x_ptr,  # all arguments as forward_rows
    residual_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    residual_out_ptr,
    mean_ptr,
    rstd_ptr,
    M,
    x_step,
    residual_step,
    heads,
    x_head_step,
    residual_head_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    ROUND: tl.constexpr,
    PER_HEAD: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """y, residual_out and the statistics of a row, swept twice for its mean, for its squares and for y."""
    head, share = head_of(M, heads, 1, PER_HEAD)
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)) * share + head
    mean, total = tl.zeros([ROWS], ACC), tl.zeros([ROWS, BLOCK], ACC)
    if CENTER:
        for start in tl.range(0, N, BLOCK, num_stages=STAGES):
            cols = start + tl.arange(0, BLOCK)
            total += load_sum(
                x_ptr, residual_ptr, residual_out_ptr, rows, cols, M, x_step, residual_step, N, VECTOR, ROUND, ACC,
                heads, x_head_step, residual_head_step,
            )  # fmt: skip
        mean = tl.sum(total, axis=1) / N
        # What rounding left of the mean, as in row_mean.
        rest = tl.zeros([ROWS, BLOCK], ACC)
        for start in tl.range(0, N, BLOCK, num_stages=STAGES):
            cols = start + tl.arange(0, BLOCK)
            p = load_sum(
                x_ptr, residual_ptr, residual_out_ptr, rows, cols, M, x_step, residual_step, N, VECTOR, ROUND, ACC,
                heads, x_head_step, residual_head_step,
            )  # fmt: skip
            rest += centred(p, mean, cols, N)
        mean += tl.sum(rest, axis=1) / N
        tl.store(mean_ptr + rows, mean, mask=rows < M)
    squares = tl.zeros([ROWS, BLOCK], ACC)
    for start in tl.range(0, N, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)
        p = load_sum(
            x_ptr, residual_ptr, residual_out_ptr, rows, cols, M, x_step, residual_step, N, VECTOR, ROUND, ACC,
            heads, x_head_step, residual_head_step,
        )  # fmt: skip
        q = centred(p, mean, cols, N)
        squares += q * q
    rstd = reciprocal(squares, rows, M, N, MEAN, EPS, PLACEMENT)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    for start in tl.range(0, N, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)
        p = load_sum(
            x_ptr, residual_ptr, residual_out_ptr, rows, cols, M, x_step, residual_step, N, VECTOR, ROUND, ACC,
            heads, x_head_step, residual_head_step,
        )  # fmt: skip
        if residual_ptr is not None:
            store_tile(residual_out_ptr, p, rows, cols, M, N)
        x_hat = centred(p, mean, cols, N) * rstd[:, None]
        y = affine(x_hat, weight_ptr, bias_ptr, cols, N, SCALE, OFFSET, ACC, head)
        store_tile(y_ptr, y, rows, cols, M, N)


@triton.jit
def _load_row(
    dy_ptr,
    p_ptr,
    mean,
    rows,
    cols,
    M,
    dy_step,
    p_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ACC: tl.constexpr,
    heads,
    dy_head_step,
    p_head_step,
):
    """dy and q of a tile."""
    dy = load_tile(dy_ptr, rows, cols, M, dy_step, N, VECTOR, heads, dy_head_step).to(
        ACC
    )
    p = load_tile(p_ptr, rows, cols, M, p_step, N, VECTOR, heads, p_head_step).to(ACC)
    return dy, centred(p, mean, cols, N)


@triton.jit(
    do_not_specialize=["M", "dy_step", "p_step", "heads", "dy_head_step", "p_head_step"]
)
def row_sums(
    dy_ptr,  # (M, N)
    p_ptr,  # (M, N)
    weight_ptr,  # (N,) or None
    mean_ptr,  # (M,), None unless centred
    rstd_ptr,  # (M,)
    c1_ptr,  # (M,)
    c2_ptr,  # (M,)
    M,
    dy_step,
    p_step,
    heads,  # as forward_rows
    dy_head_step,
    p_head_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    PER_HEAD: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """c1 and c2 of a row, by one sweep."""
    head, share = head_of(M, heads, 1, PER_HEAD)
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)) * share + head
    rstd, mean = tl.load(rstd_ptr + rows, mask=rows < M, other=0), tl.zeros([ROWS], ACC)
    if CENTER:
        mean = tl.load(mean_ptr + rows, mask=rows < M, other=0)
    products, total = tl.zeros([ROWS, BLOCK], ACC), tl.zeros([ROWS, BLOCK], ACC)
    squares = tl.zeros([ROWS, BLOCK], ACC)
    for start in tl.range(0, N, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)
        dy, q = _load_row(
            dy_ptr,
            p_ptr,
            mean,
            rows,
            cols,
            M,
            dy_step,
            p_step,
            N,
            VECTOR,
            ACC,
            heads,
            dy_head_step,
            p_head_step,
        )
        wdy = dy * scaled_weight(weight_ptr, cols, N, SCALE, OFFSET, ACC, head)
        products += q * rstd[:, None] * wdy
        total += wdy
        squares += q * q
    c1, c2 = row_means(products, total, squares, N, CENTER, MEAN, EPS, PLACEMENT)
    tl.store(c1_ptr + rows, c1, mask=rows < M)
    tl.store(c2_ptr + rows, c2, mask=rows < M)


@triton.jit(
    do_not_specialize=[
        "M", "dy_step", "dresidual_out_step", "p_step",
        "heads", "dy_head_step", "dresidual_out_head_step", "p_head_step",
    ]
)  # fmt: skip
def backward_columns(
    dy_ptr,  # all pointers as backward_rows, and
    dresidual_out_ptr,
    p_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    c1_ptr,  # (M,), as row_sums wrote them
    c2_ptr,  # (M,)
    dx_ptr,
    dresidual_ptr,
    dw_ptr,
    db_ptr,
    M,
    dy_step,
    dresidual_out_step,
    p_step,
    heads,
    dy_head_step,
    dresidual_out_head_step,
    p_head_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    PER_HEAD: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """dx of a block of columns, and this program's row of the partial sums of dw and db there."""
    head, share = head_of(M, heads, 2, PER_HEAD)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    dw, db = tl.zeros([ROWS, BLOCK], ACC), tl.zeros([ROWS, BLOCK], ACC)
    weight = scaled_weight(weight_ptr, cols, N, SCALE, OFFSET, ACC, head)
    for tile in tl.range(
        tl.program_id(0),
        (M - 1) // (ROWS * share) + 1,
        tl.num_programs(0),
        num_stages=STAGES,
    ):
        rows = (tile * ROWS + tl.arange(0, ROWS)) * share + head
        rstd, mean = (
            tl.load(rstd_ptr + rows, mask=rows < M, other=0),
            tl.zeros([ROWS], ACC),
        )
        if CENTER:
            mean = tl.load(mean_ptr + rows, mask=rows < M, other=0)
        dy, q = _load_row(
            dy_ptr,
            p_ptr,
            mean,
            rows,
            cols,
            M,
            dy_step,
            p_step,
            N,
            VECTOR,
            ACC,
            heads,
            dy_head_step,
            p_head_step,
        )
        x_hat = q * rstd[:, None]
        if dx_ptr is not None:
            c1 = tl.load(c1_ptr + rows, mask=rows < M, other=0)
            c2 = tl.load(c2_ptr + rows, mask=rows < M, other=0)
            dx = input_gradient(dy * weight, x_hat, rstd, c1, c2)
            store_input_gradient(
                dx_ptr, dresidual_ptr, dresidual_out_ptr, dx, rows, cols, M, dresidual_out_step, N, VECTOR, ACC,
                heads, dresidual_out_head_step,
            )  # fmt: skip
        dw, db = add_parameter_gradients(dw, db, dw_ptr, db_ptr, dy, x_hat, SCALE)
    store_partial(dw_ptr, dw, cols, N, head, share)
    store_partial(db_ptr, db, cols, N, head, share)
