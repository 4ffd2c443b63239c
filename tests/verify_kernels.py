# ruff: noqa: E501
"""Right kernels in the house styles of published packages, written for the tests: each is proved as it stands.

NAME: (text, binding, grid, definitions), where the text lacks its imports and decorators.
"""

from normgrad.symbolic import Defs, total
from normgrad.symbolic.symbols import j
from normgrad.verify import (
    CHUNK,
    COLUMNS,
    OFFSET,
    ROWS,
    WHOLE,
    InOut,
    M,
    N,
    Norm,
    Out,
    T,
    eps,
    norm,
)
from normgrad.verify.definitions import tensor

HEAD = """import triton
import triton.language as tl
from triton.language.extra.libdevice import rsqrt

LLAMA: tl.constexpr = tl.constexpr(0)

"""
PART = tensor("part", M, N)
SUM = Norm(Defs(), {"sum": tensor("sum", N)[j]})
SUM.defs[SUM.outputs["sum"]] = total(M, lambda r: PART[r, j])

# A program for each row; casts by mode; an offset of the weight.
ROW = """
@triton.jit
def kernel(Y, Y_stride, X, X_stride, W, R, n_cols, eps, offset, mode: tl.constexpr, affine: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, B)
    mask = cols < n_cols
    x_base = X + row * X_stride
    x = tl.load(x_base + cols, mask=mask, other=0)
    dtype = x.dtype
    if affine:
        w = tl.load(W + cols, mask=mask, other=0)
    if mode == LLAMA:
        x = x.to(tl.float32)
    square = tl.sum(x * x, axis=0) / n_cols
    rstd = rsqrt(square + eps)
    tl.store(R + row, rstd)
    x = (x * rstd).to(dtype)
    if affine:
        y = x * (offset + w)
    else:
        y = x
    tl.store(Y + row * Y_stride + cols, y, mask=mask)
"""
# Chunks of rows, min(...) at their end; a row of partial sums for each program.
CHUNKS = """
@triton.jit
def kernel(DY, dy_stride, DX, dx_stride, X, x_stride, W, MEAN, R, DW, DB, dw_stride, n_rows, n_cols, K, B: tl.constexpr):
    block = tl.program_id(0)
    start = block * K
    end = min((block + 1) * K, n_rows)
    cols = tl.arange(0, B)
    mask = cols < n_cols
    dw = tl.zeros((B,), dtype=tl.float32)
    db = tl.zeros((B,), dtype=tl.float32)
    w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32)
    for row in range(start, end):
        x = tl.load(X + row * x_stride + cols, mask=mask, other=0.0)
        dy = tl.load(DY + row * dy_stride + cols, mask=mask, other=0.0)
        rstd = tl.load(R + row)
        x_hat = (x - tl.load(MEAN + row)) * rstd
        wdy = w * dy
        c1 = tl.sum(x_hat * wdy, axis=0) / n_cols
        c2 = tl.sum(wdy, axis=0) / n_cols
        dx = (wdy - (x_hat * c1 + c2)) * rstd
        tl.store(DX + row * dx_stride + cols, dx, mask=mask)
        dw += dy * x_hat
        db += dy
    tl.store(DW + block * dw_stride + cols, dw, mask=mask)
    tl.store(DB + block * dw_stride + cols, db, mask=mask)
"""
# Pointers moved to the row; the body of a row in a function of its own; the weight counted from 1.
MOVED = """
@triton.jit
def backward_row(dY, dY_stride: tl.constexpr, dX, dX_stride: tl.constexpr, X, X_stride: tl.constexpr, W, r, row, cols, mask, n: tl.constexpr, dw, TRAIN: tl.constexpr):
    dY += row * dY_stride
    X += row * X_stride
    r += row
    dX += row * dX_stride
    dy = tl.load(dY + cols, mask = mask, other = 0).to(tl.float32)
    x = tl.load(X + cols, mask = mask, other = 0).to(tl.float32)
    w = tl.load(W + cols, mask = mask, other = 0).to(tl.float32)
    inv = tl.load(r).to(tl.float32)
    normed = x * inv
    if TRAIN:
        dw += dy * normed.to(W.dtype.element_ty).to(tl.float32)
    dy_w = dy * (w + 1.0)
    products = tl.sum(dy_w * normed, axis = 0)
    tl.store(dX + cols, inv / n * (n * dy_w - normed * products), mask = mask)
    return dw


@triton.jit
def kernel(dY, dX, X, W, r, dW, n_rows, K, dY_stride: tl.constexpr, dX_stride: tl.constexpr, X_stride: tl.constexpr, n: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    acc = tl.zeros((B,), dtype = tl.float32)
    start = pid * K
    for row in range(start, tl.minimum(start + K, n_rows)):
        acc = backward_row(dY, dY_stride, dX, dX_stride, X, X_stride, W, r, row, cols, mask, n, acc, True)
    tl.store(dW + pid * n + cols, acc, mask = mask)
"""
# Two sweeps over a row; x + residual is written over x, and read again.
SWEEPS = """
@triton.jit
def kernel(x_ptr, h_ptr, r_ptr, w_ptr, eps, stride, N_COLS: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    r_ptr += row * stride
    h_ptr += row * stride
    mean = tl.zeros([B], dtype=tl.float32)
    for offset in range(0, N_COLS, B):
        cols = offset + tl.arange(0, B)
        mask = cols < N_COLS
        a = tl.load(x_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        b = tl.load(r_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        a += b
        tl.store(x_ptr + cols, a, mask=mask)
        mean += a * a
    rstd = rsqrt((tl.sum(mean, axis=0) / N_COLS) + eps)
    for offset in range(0, N_COLS, B):
        cols = offset + tl.arange(0, B)
        mask = cols < N_COLS
        a = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask)
        tl.store(h_ptr + cols, a * rstd * w, mask=mask)
"""
# Tiles of rows by block pointers; a centred row masked before its squares.
BLOCKS = """
@triton.jit
def kernel(x, y, w, b, mean, rstd, eps, T, D, BT: tl.constexpr, BD: tl.constexpr, HAS_BIAS: tl.constexpr):
    i_t = tl.program_id(0)
    o_d = tl.arange(0, BD)
    m_d = o_d < D
    p_x = tl.make_block_ptr(x, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    b_mean = tl.sum(b_x, axis=1) / D
    p_mean = tl.make_block_ptr(mean, (T,), (1,), (i_t * BT,), (BT,), (0,))
    tl.store(p_mean, b_mean.to(p_mean.dtype.element_ty), boundary_check=(0,))
    b_xbar = tl.where(m_d[None, :], b_x - b_mean[:, None], 0.0)
    b_var = tl.sum(b_xbar * b_xbar, axis=1) / D
    b_rstd = 1 / tl.sqrt(b_var + eps)
    p_rstd = tl.make_block_ptr(rstd, (T,), (1,), (i_t * BT,), (BT,), (0,))
    tl.store(p_rstd, b_rstd.to(p_rstd.dtype.element_ty), boundary_check=(0,))
    b_w = tl.load(w + o_d, mask=m_d).to(tl.float32)
    b_y = (b_x - b_mean[:, None]) * b_rstd[:, None] * b_w[None, :]
    if HAS_BIAS:
        b_y = b_y + tl.load(b + o_d, mask=m_d).to(tl.float32)[None, :]
    p_y = tl.make_block_ptr(y, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))
"""
# Every P-th tile of rows, and a sum over the tile's rows at each turn.
STRIDED = """
@triton.jit
def kernel(DY, dy_s, DX, dx_s, X, x_s, W, R, DW, dw_s, n_rows, n_cols, B: tl.constexpr, BR: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    sms = tl.num_programs(0)
    cols = tl.arange(0, B)
    col_mask = cols < n_cols
    dw = tl.zeros((B,), dtype=tl.float32)
    w = tl.load(W + cols, mask=col_mask, other=0.0)
    for start in range(pid * BR, n_rows, sms * BR):
        rows = start + tl.arange(0, BR)
        row_mask = rows < n_rows
        mask = row_mask[:, None] & col_mask[None, :]
        dy = tl.load(DY + rows[:, None] * dy_s + cols[None, :], mask=mask, other=0.0)
        x = tl.load(X + rows[:, None] * x_s + cols[None, :], mask=mask, other=0.0)
        rstd = tl.load(R + rows, mask=row_mask, other=0.0)
        m = dy * w[None, :]
        dx = rstd[:, None] * m
        dx += rstd[:, None] * (-(1 / n_cols) * (rstd * rstd * tl.sum(m * x, axis=1))[:, None] * x)
        dw += tl.sum(dy * (x * rstd[:, None]), 0)
        tl.store(DX + rows[:, None] * dx_s + cols[None, :], dx, mask=mask)
    tl.store(DW + pid * dw_s + cols, dw, mask=col_mask)
"""
# All tiles of columns but the last one without a mask, the last one with it; the last sweep goes backwards.
LAST = """
@triton.jit
def last_tile(n, b):
    return tl.cdiv(n, b) * b - b


@triton.jit
def kernel(in_ptr, out_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, M, N, eps, B: tl.constexpr):
    pid = tl.program_id(0)
    base = in_ptr + pid * N
    end = last_tile(N, B)
    total = tl.zeros((B,), dtype=tl.float32)
    square = tl.zeros((B,), dtype=tl.float32)
    for start in range(0, end, B):
        cols = start + tl.arange(0, B)
        x = tl.load(base + cols).to(tl.float32)
        total += x
        square += x * x
    for start in range(end, N, B):
        cols = start + tl.arange(0, B)
        x = tl.load(base + cols, mask=cols < N, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total) / N
    rstd = tl.math.rsqrt(tl.sum(square) / N - mean * mean + eps)
    tl.store(mean_ptr + pid, mean)
    tl.store(rstd_ptr + pid, rstd)
    for off in range(0, N, B):
        cols = end - off + tl.arange(0, B)
        mask = cols < N
        x = tl.load(base + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        tl.store(out_ptr + pid * N + cols, (x - mean) * rstd * w + b, mask=mask)
"""
# The partial sums of all programs added up, tile by tile.
REDUCTION = """
@triton.jit
def kernel(partials, DW, n_programs, n_cols, BR: tl.constexpr, BC: tl.constexpr):
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    col_mask = cols < n_cols
    acc = tl.zeros((BR, BC), dtype=tl.float32)
    for start in tl.range(0, n_programs, BR, num_stages=3):
        rows = start + tl.arange(0, BR)
        mask = (rows < n_programs)[:, None] & col_mask[None, :]
        acc += tl.load(partials + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0)
    tl.store(DW + cols, tl.sum(acc, axis=0).to(DW.dtype.element_ty), mask=col_mask)
"""
# Each program adds its row to dw.
ATOMIC = """
@triton.jit
def kernel(x, dy, dw, rstd, s, n, B: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    a = tl.load(x + pid * s + cols, mask=mask, other=0.0)
    g = tl.load(dy + pid * s + cols, mask=mask, other=0.0)
    tl.atomic_add(dw + cols, g * a * tl.load(rstd + pid), mask=mask)
"""
# K rows for each program, those past the last one skipped.
COUNTED = """
@triton.jit
def kernel(x, y, w, m, n, eps, s, K, B: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    for k in range(K):
        row = pid * K + k
        if row < m:
            a = tl.load(x + row * s + cols, mask=mask, other=0.0)
            r = 1 / (tl.sqrt(tl.sum(a * a, axis=0) / n) + eps)
            tl.store(y + row * s + cols, a * r * tl.load(w + cols, mask=mask), mask=mask)
"""
# A while loop; a pointer that moves by a block at each turn; squares summed, not averaged.
WHILE = """
@triton.jit
def kernel(x, y, rstd, n, eps, s, B: tl.constexpr):
    pid = tl.program_id(0)
    at = x + pid * s + tl.arange(0, B)
    total = 0.0
    off = 0
    while off < n:
        mask = off + tl.arange(0, B) < n
        a = tl.load(at, mask=mask, other=0.0)
        total += tl.sum(a * a)
        at += B
        off += B
    r = tl.rsqrt(total + eps)
    tl.store(rstd + pid, r)
    for t in range(tl.cdiv(n, B)):
        cols = t * B + tl.arange(0, B)
        a = tl.load(x + pid * s + cols, mask=cols < n, other=0.0)
        tl.store(y + pid * s + cols, a * r, mask=cols < n)
"""
# A program for each tile of columns, which goes down all rows.
DOWN = """
@triton.jit
def kernel(x, dy, dw, db, rstd, mean, m, n, s, B: tl.constexpr, R: tl.constexpr):
    cols = tl.program_id(0) * B + tl.arange(0, B)
    dw_acc = tl.zeros((R, B), tl.float32)
    db_acc = tl.zeros((R, B), tl.float32)
    for start in range(0, m, R):
        rows = start + tl.arange(0, R)
        row_mask = rows < m
        mask = row_mask[:, None] & (cols < n)[None, :]
        at = rows[:, None] * s + cols[None, :]
        x_hat = tl.load(x + at, mask=mask, other=0.0)
        x_hat = (x_hat - tl.load(mean + rows, mask=row_mask, other=0.0)[:, None]) * tl.load(rstd + rows, mask=row_mask, other=0.0)[:, None]
        g = tl.load(dy + at, mask=mask, other=0.0)
        dw_acc += g * x_hat
        db_acc += g
    tl.store(dw + cols, tl.sum(dw_acc, axis=0), mask=cols < n)
    tl.store(db + cols, tl.sum(db_acc, axis=0), mask=cols < n)
"""
# A block pointer that is advanced over the columns; a gate.
ADVANCED = """
@triton.jit
def kernel(x, g, y, w, n, eps, B: tl.constexpr):
    pid = tl.program_id(0)
    p_x = tl.make_block_ptr(x + pid * n, (n,), (1,), (0,), (B,), (0,))
    acc = tl.zeros((B,), dtype=tl.float32)
    for _ in range(tl.cdiv(n, B)):
        a = tl.load(p_x, boundary_check=(0,), padding_option="zero").to(tl.float32)
        acc += a * a
        p_x = tl.advance(p_x, (B,))
    r = tl.rsqrt(tl.sum(acc, axis=0) / n + eps)
    for i_c in range(tl.cdiv(n, B)):
        p_x = tl.make_block_ptr(x + pid * n, (n,), (1,), (i_c * B,), (B,), (0,))
        p_g = tl.make_block_ptr(g + pid * n, (n,), (1,), (i_c * B,), (B,), (0,))
        p_w = tl.make_block_ptr(w, (n,), (1,), (i_c * B,), (B,), (0,))
        p_y = tl.make_block_ptr(y + pid * n, (n,), (1,), (i_c * B,), (B,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,)).to(tl.float32)
        a = tl.load(p_x, boundary_check=(0,)).to(tl.float32)
        b_y = a * r * tl.load(p_w, boundary_check=(0,)).to(tl.float32) * b_g * tl.sigmoid(b_g)
        tl.store(p_y, b_y.to(y.dtype.element_ty), boundary_check=(0,))
"""

SIZES = dict(n_cols=N, B=WHOLE)
KERNELS = {
    "a program for each row": (
        ROW,
        SIZES
        | dict(
            Y=Out("y", stride="Y_stride"), X=T("x", stride="X_stride"), W=T("weight"),
            R=Out("rstd"), eps=eps, offset=OFFSET, mode=0, affine=True,
        ),
        "rows",
        norm(weight_offset=OFFSET),
    ),
    "chunks of rows": (
        CHUNKS,
        SIZES
        | dict(
            DY=T("dy", stride="dy_stride"), DX=Out("dx", stride="dx_stride"),
            X=T("x", stride="x_stride"), W=T("weight"), MEAN=T("mean"), R=T("rstd"),
            DW=Out("dw", "p, j", stride="dw_stride"),
            DB=Out("db", "p, j", stride="dw_stride"), n_rows=M, K=CHUNK,
        ),
        "programs",
        norm(center=True, bias=True),
    ),
    "pointers moved to the row": (
        MOVED,
        dict(
            dY=T("dy", stride="dY_stride"), dX=Out("dx", stride="dX_stride"),
            X=T("x", stride="X_stride"), W=T("weight"), r=T("rstd"),
            dW=Out("dw", "p, j"), n_rows=M, n=N, K=CHUNK, B=WHOLE,
        ),
        "programs",
        norm(weight_offset=1),
    ),
    "two sweeps over a row": (
        SWEEPS,
        dict(
            x_ptr=InOut("x", stride="stride", then="residual_out"),
            h_ptr=Out("y", stride="stride"), r_ptr=T("residual", stride="stride"),
            w_ptr=T("weight"), eps=eps, N_COLS=N, B=COLUMNS,
        ),
        "rows",
        norm(residual=True),
    ),
    "tiles by block pointers": (
        BLOCKS,
        dict(
            x=T("x"), y=Out("y"), w=T("weight"), b=T("bias"), mean=Out("mean"),
            rstd=Out("rstd"), eps=eps, T=M, D=N, BT=ROWS, BD=WHOLE, HAS_BIAS=True,
        ),
        "row tiles",
        norm(center=True, bias=True),
    ),
    "every P-th tile of rows": (
        STRIDED,
        SIZES
        | dict(
            DY=T("dy", stride="dy_s"), DX=Out("dx", stride="dx_s"),
            X=T("x", stride="x_s"), W=T("weight"), R=T("rstd"),
            DW=Out("dw", "p, j", stride="dw_s"), n_rows=M, BR=ROWS,
        ),
        "programs",
        norm(),
    ),
    "the last tile with a mask": (
        LAST,
        dict(
            in_ptr=T("x"), out_ptr=Out("y"), w_ptr=T("weight"), b_ptr=T("bias"),
            mean_ptr=Out("mean"), rstd_ptr=Out("rstd"), M=M, N=N, eps=eps, B=COLUMNS,
        ),
        "rows",
        norm(center=True, bias=True),
    ),
    "a reduction of partial sums": (
        REDUCTION,
        dict(
            partials=T("part", "i, j"), DW=Out("sum", "j"), n_programs=M, n_cols=N,
            BR=ROWS, BC=COLUMNS,
        ),
        "column tiles",
        SUM,
    ),
    "atomic additions": (
        ATOMIC,
        dict(
            x=T("x", stride="s"), dy=T("dy", stride="s"), dw=Out("dw"),
            rstd=T("rstd"), n=N, B=WHOLE,
        ),
        "rows",
        norm(),
    ),
    "a guard of the rows": (
        COUNTED,
        dict(
            x=T("x", stride="s"), y=Out("y", stride="s"), w=T("weight"), m=M, n=N,
            eps=eps, K=CHUNK, B=WHOLE,
        ),
        "programs",
        norm(placement="outside"),
    ),
    "a while loop": (
        WHILE,
        dict(
            x=T("x", stride="s"), y=Out("y", stride="s"), rstd=Out("rstd"), n=N,
            eps=eps, B=COLUMNS,
        ),
        "rows",
        norm(reduce="sum", weight=False),
    ),
    "a tile of columns down all rows": (
        DOWN,
        dict(
            x=T("x", stride="s"), dy=T("dy", stride="s"), dw=Out("dw"), db=Out("db"),
            rstd=T("rstd"), mean=T("mean"), m=M, n=N, B=COLUMNS, R=ROWS,
        ),
        "column tiles",
        norm(center=True, bias=True),
    ),
    "an advanced block pointer": (
        ADVANCED,
        dict(
            x=T("x"), g=T("gate"), y=Out("y"), w=T("weight"), n=N, eps=eps, B=COLUMNS,
        ),
        "rows",
        norm(gate="swish"),
    ),
}  # fmt: skip

# Wrong edits by hand: {kernel: [(what is there, what stands there instead, why it is wrong)]}.
ATTACKS = {
    "a program for each row": [
        ("x = tl.load(x_base + cols, mask=mask, other=0)", "x = mask * tl.load(x_base + cols, mask=mask)", "0 of what is not known"),
        ("x = tl.load(x_base + cols, mask=mask, other=0)", "x = mask * tl.load(x_base + cols, mask=mask, other=0)", None),
        ("rsqrt(square + eps)", "rsqrt(square + eps) * tl.sum(tl.where(affine, 1.0, x))", "1 for each lane of the block"),
        ("x = x.to(tl.float32)", "x = x.to(tl.int32)", "an integer of a number"),
        ("x = x.to(tl.float32)", "x = x.to(n_cols.dtype)", "a size's dtype"),
        ("x = x.to(tl.float32)", "x = x.to(tl.int1)", "a boolean of a number"),
        ("x = x.to(tl.float32)", "x = tl.cast(x, tl.int32)", "an integer by tl.cast"),
        ("x = x.to(tl.float32)", "x = x.to(tl.float32, bitcast=True)", "a bitcast"),
        ("x = x.to(tl.float32)", "x = x.to(tl.float8e4nv)", "eight bits"),
        ("x = x.to(tl.float32)", "x = x.to(mode)", "a number as a dtype"),
        ("x = x.to(tl.float32)", "x = x.to(unknown)", "a name without a value"),
        ("x * x, axis=0", "x * x, axis=0, dtype=tl.int32", "a sum of integers"),
        ("x * x, axis=0", "x * x, axis=0, keep=True", "an unknown argument"),
        ("x * x, axis=0", "x * x, axis=1", "an axis that there is not"),
        ("x * x, axis=0", "x * x + 0 * tl.load(W + cols, mask=mask), axis=0", "0 of what is not known"),
        ("x * x, axis=0", "x * x * (cols < n_cols - 1), axis=0", "the last column left out"),
        ("x * x, axis=0", "tl.where(x > 0, x * x, 0), axis=0", "a choice by values"),
        ("x * x, axis=0", "tl.maximum(x, 0.0) * x, axis=0", "a maximum"),
        ("x * x, axis=0", "tl.clamp(x, -1.0, 1.0) * x, axis=0", "a clip"),
        ("x * x, axis=0", "tl.where(mask, 0.0, x * x), axis=0", "a choice the other way"),
        ("cols = tl.arange(0, B)", "cols = tl.arange(0, B).to(tl.int8)", "an offset that overflows"),
        ("cols = tl.arange(0, B)", "cols = tl.arange(1, B)", "columns from 1 on"),
        ("cols = tl.arange(0, B)", "cols = B - 1 - tl.arange(0, B)", "columns from the block's end"),
        ("mask = cols < n_cols", "mask = cols < B", "the block's own bound"),
        ("mask = cols < n_cols", "mask = cols < Y_stride", "a stride as a bound"),
        ("mask = cols < n_cols", "mask = cols != n_cols", "a mask that is no bound"),
        ("mask = cols < n_cols", "mask = (cols < n_cols) | (cols < 3)", "`or` of masks"),
        ("other=0)\n    dtype", "other=0, foo=1)\n    dtype", "an unknown argument of load"),
        ("other=0)\n    dtype", "other=cols)\n    dtype", "a tile in masked lanes"),
        ("rstd = rsqrt(", "tl = 3\n    rstd = rsqrt(", "tl is a local name"),
        ("rstd = rsqrt(", "rsqrt = tl.sqrt\n    rstd = rsqrt(", "rsqrt is a local name"),
        ("rstd = rsqrt(", "rstd = sqrt(", "a function that is not imported"),
        ("rstd = rsqrt(", "rstd = tl.rsqrt_approx(", "a function that is not known"),
        ("tl.store(R + row, rstd)", "if row < 3:\n        tl.store(R + row, rstd)", "some programs alone store"),
        ("tl.store(R + row, rstd)", "if row >= 3:\n        return\n    tl.store(R + row, rstd)", "an early return"),
        ("tl.store(R + row, rstd)", "for _ in range(X_stride - 1):\n        tl.store(R + row, rstd)", "a loop of no turns"),
        ("tl.store(R + row, rstd)", "tl.store(R + row, rstd)\n    tl.store(R + row, 2 * rstd)", "a second store"),
        ("tl.store(R + row, rstd)", "alias = R\n    tl.store(R + row, rstd)\n    tl.store(alias + row, 2 * rstd)", "an alias of a pointer"),
        ("tl.store(R + row, rstd)", "tl.store(R + row + 1, rstd)", "another row"),
        ("tl.store(R + row, rstd)", "tl.store(R + row // 2, rstd)", "one entry for two rows"),
        ("tl.store(R + row, rstd)", "tl.store(R, rstd)", "one entry for all rows"),
        ("tl.store(R + row, rstd)", "tl.store(R + row, rstd, mask=row < 7)", "some rows alone"),
        ("tl.store(R + row, rstd)", "tl.store(R + row, rstd + tl.load(R + row))", "read before it is written"),
        ("tl.store(R + row, rstd)", "tl.store(R + row, rstd + 0 * tl.load(R + row))", "0 of what is not known"),
        ("tl.store(R + row, rstd)", "tl.store(R + row, row * rstd)", "a row's number"),
        ("tl.store(R + row, rstd)", "tl.store(X + row * X_stride + cols, x * rstd, mask=mask)\n    tl.store(R + row, rstd)", "an input is written"),
        ("tl.store(R + row, rstd)", "tl.atomic_add(X + row * X_stride + cols, x, mask=mask)\n    tl.store(R + row, rstd)", "an input is added to"),
        ("row * Y_stride + cols, y", "row * X_stride + cols, y", "another's stride"),
        ("row * Y_stride + cols, y", "row * Y_stride + cols, y + cols", "a column's number"),
        ("row * Y_stride + cols, y", "row * Y_stride + cols, y + mask", "a mask as a number"),
        ("tl.program_id(0)", "tl.program_id(1)", "the other axis of the grid"),
        ("tl.program_id(0)", "(tl.program_id(0) % 5)", "rows that repeat"),
        ("mask=mask)\n", "mask=mask & (row < 5))\n", "rows that are left out"),
        ("/ n_cols", "/ B", "the mean over the block"),
        ("/ n_cols", "// n_cols", "an integer quotient"),
        ("/ n_cols", "/ (n_cols - 1)", "N - 1"),
        ("@triton.jit\n", "LLAMA = 1\n\n\n@triton.jit\n", "a constant that is assigned again"),
        ("@triton.jit\n", "def rsqrt(x):\n    return x\n\n\n@triton.jit\n", "a function and an import of one name"),
        ("@triton.jit\n", "def min(a, b):\n    return b\n\n\ndef range(a):\n    return a\n\n\n@triton.jit\n", None),
        ("square = ", "square = (lambda: 0)() + ", "an expression that is not read"),
        ("square = ", "x += tl.load(x_base + cols + 1, mask=mask, other=0)\n    square = ", "a column past the end"),
        ("square = ", "x = x[:, None]\n    square = ", "an axis too many"),
        ("x * x, axis=0", "tl.sqrt(x) * tl.sqrt(x) * x, axis=0", "nan for negative x"),
        ("x * x, axis=0", "tl.where(x > 0, x * x, x * x), axis=0", None),
        ("x * x, axis=0", "tl.where(x > x, 0, 2 * x * x), axis=0", "a choice between equal values"),
        ("x * x, axis=0", "tl.where(x > -1, x * x, 0), axis=0", "a choice by values"),
        ("rstd)\n    x", "tl.where(rstd > 2, rstd, float('nan')))\n    x", "nan below 2"),
        ("rstd)\n    x", "tl.where(rstd > 0, rstd, float('nan')))\n    x", None),
        ("cols, y, mask=mask)", "cols, tl.where(x == 0, 1.0, y), mask=mask)", "another value at 0"),
        ("@triton.jit\n", "tl.sum = tl.max\n\n\n@triton.jit\n", "a library that is changed"),
        ("    cols = ", "    if row < 0:\n        return\n    cols = ", None),
        ("    cols = ", "    if affine == False:\n        return\n    cols = ", None),
        ("    cols = ", "    if row >= n_cols:\n        return\n    cols = ", "rows from N on left out"),
        ("    cols = ", "    if row > 0:\n        return\n    cols = ", "the first row alone"),
        ("    cols = ", "    if offset > 1:\n        return\n    cols = ", "a return that the values decide"),
        ("square = ", "x = tl.flip(x)\n    square = ", "a function that is not known"),
    ],
    "chunks of rows": [
        ("K, B: tl.constexpr):\n    block = tl.program_id(0)", "K, programs_0, B: tl.constexpr):\n    block = tl.program_id(0) % programs_0", "any number, called as the number of programs is"),
        ("DY + row * dy_stride", "DY + row * x_stride", "dy read with the strides of x"),
        ("DX + row * dx_stride", "DX + row * dy_stride", "dx written with the strides of dy"),
        ("min((block + 1) * K, n_rows)", "(block + 1) * K", "rows past the last one"),
        ("min((block + 1) * K, n_rows)", "min((block + 1) * K, n_cols)", "the number of columns"),
        ("min((block + 1) * K, n_rows)", "min((block + 1) * K, n_rows - 1)", "the last row left out"),
        ("min((block + 1) * K, n_rows)", "min(block * K + K + 1, n_rows)", "a row taken twice"),
        ("min((block + 1) * K, n_rows)", "n_rows", "the rows of all later programs"),
        ("start = block * K", "start = block * K + 1", "the first row left out"),
        ("start = block * K", "start = block * n_cols", "another size"),
        ("start = block * K", "K = tl.cdiv(n_rows, n_cols)\n    start = block * K", "its own chunk, too small"),
        ("        dw += dy * x_hat", "        dw += dy * x_hat\n        dw = dw * 1.5", "what is carried is scaled"),
        ("        dw += dy * x_hat", "        dw = dy * x_hat", "the last row alone"),
        ("        dw += dy * x_hat", "        dw = tl.where(mask, dw + dy * x_hat, 0.0)", "what is carried is lost"),
        ("        dw += dy * x_hat", "        dw -= -dy * x_hat", None),
        ("        dw += dy * x_hat", "        dw += dy * x_hat\n        dw += 1", "a constant at each row"),
        ("        dw += dy * x_hat", "        dw += dy * x_hat + db", "another's running sum"),
        ("        dw += dy * x_hat", "        dw += tl.sum(dy * x_hat)", "a number added to all lanes"),
        ("        dw += dy * x_hat", "        dw += c1", "a number added to all lanes"),
        ("    end = ", "    if start >= n_rows:\n        return\n    end = ", "programs that store no sums"),
        ("        x_hat = ", "        if row >= n_rows:\n            return\n        x_hat = ", "a return in a loop"),
        ("        dw += dy * x_hat", "        if row < 5:\n            dw += dy * x_hat", "some rows alone"),
        ("        db += dy", "        db += dy\n        tl.store(DB + block * dw_stride + cols, db, mask=mask)", "a running sum is stored"),
        ("DW + block * dw_stride + cols", "DW + cols", "all programs in one row"),
        ("DW + block * dw_stride + cols", "DW + (block + 1) * dw_stride + cols", "the next program's row"),
        ("tl.store(DB + block", "dw = tl.sqrt(dw)\n    tl.store(DB + block", "the root of a part of a sum"),
        ("cols, dw, mask=mask)", "cols, dw * dw, mask=mask)", "the square of a part of a sum"),
        ("cols, dw, mask=mask)", "cols, dw + 1, mask=mask)", "a constant for each program"),
        ("cols, dw, mask=mask)", "cols, dy * x_hat, mask=mask)", "the last row alone"),
        ("cols, dx, mask=mask)", "cols, dx, mask=cols < n_rows)", "columns below the number of rows"),
        ("tl.load(MEAN + row)", "tl.load(MEAN + block)", "the first row's mean"),
        ("c2 = tl.sum(wdy, axis=0) / n_cols", "c2 = tl.sum(wdy + c1, axis=0) / n_cols", "lanes past N add"),
        ("for row in range(start, end):", "for row in range(start, end, 2):", "every other row"),
        ("for row in range(start, end):", "for row in range(end, start, -1):", "rows that are shifted by one"),
    ],
    "pointers moved to the row": [
        ("    dX += row * dX_stride", "    dX += row * dX_stride\n    dX += 1", "one column too far"),
        ("    X += row * X_stride", "    X += row * dY_stride", "another's stride"),
        ("    return dw\n", "    return dy\n", "the last row alone"),
        ("@triton.jit\ndef kernel", "@triton.jit\ndef backward_row(*a):\n    return 0\n\n\n@triton.jit\ndef kernel", "a function defined twice"),
        ("acc = backward_row(", "acc += backward_row(", "what is carried is doubled"),
        ("acc, True)", "acc, False)", "no sum at all"),
        ("w + 1.0)", "w)", "the weight's offset left out"),
    ],
    "two sweeps over a row": [
        ("mean += a * a", "mean = a * a", "the last tile alone"),
        ("mean += a * a", "mean += a * a * (tl.arange(0, B) < N_COLS)", "the first tile's mask"),
        ("mean += a * a", "mean += a * a + mean", "what is carried is doubled"),
        ("mean += a * a", "mean += tl.sum(a * a)", "each lane gets the whole tile"),
        ("rstd = rsqrt(", "    rstd = rsqrt(", "a sum that is not complete"),
        ("tl.zeros([B], dtype=tl.float32)", "tl.zeros([B], dtype=tl.int32)", "a sum of integers"),
        ("tl.zeros([B], dtype=tl.float32)", "tl.full([B], 1.0, dtype=tl.float32)", "a sum that starts at 1"),
        ("tl.store(x_ptr + cols, a, mask=mask)\n        mean", "tl.store(x_ptr + tl.arange(0, B), a, mask=mask)\n        mean", "another place"),
        ("tl.store(x_ptr + cols, a, mask=mask)\n        mean", "mean", "the sum is not stored"),
        ("a += b\n        tl.store(x_ptr + cols, a, mask=mask)", "tl.store(x_ptr + cols, a, mask=mask)\n        a += b", "x is stored without the residual"),
        ("w = tl.load(w_ptr + cols, mask=mask)", "w = tl.load(w_ptr + tl.arange(0, B), mask=mask)", "the first tile's weight"),
        ("    for offset in range(0, N_COLS, B):\n        cols = offset + tl.arange(0, B)\n        mask = cols < N_COLS\n        a = tl.load(x_ptr + cols, mask=mask, other=0.0).to", "    if True:\n        a = a.to", "the last tile of the loop before"),
        ("    for offset in range(0, N_COLS, B):\n        cols = offset + tl.arange(0, B)\n        mask = cols < N_COLS\n        a = tl.load(x_ptr + cols, mask=mask, other=0.0).to", "    for offset in range(0, N_COLS - B, B):\n        cols = offset + tl.arange(0, B)\n        mask = cols < N_COLS\n        a = tl.load(x_ptr + cols, mask=mask, other=0.0).to", "the last tile is left out"),
        ("    for offset in range(0, N_COLS, B):\n        cols = offset + tl.arange(0, B)\n        mask = cols < N_COLS\n        a = tl.load(x_ptr + cols, mask=mask, other=0.0).to", "    for offset in range(0, N_COLS, 2 * B):\n        cols = offset + tl.arange(0, B)\n        mask = cols < N_COLS\n        a = tl.load(x_ptr + cols, mask=mask, other=0.0).to", "every other tile"),
        ("a = tl.load(x_ptr + cols, mask=mask, other=0.0).to", "a = tl.load(x_ptr + cols + B, mask=mask, other=0.0).to", "the next tile"),
        ("tl.store(h_ptr + cols, a * rstd * w, mask=mask)", "tl.store(h_ptr + cols, a * rstd * w, mask=mask)\n        break", "the first tile alone"),
        ("tl.store(h_ptr + cols, a * rstd * w, mask=mask)", "if offset < 64:\n            tl.store(h_ptr + cols, a * rstd * w, mask=mask)", "the first columns alone"),
        ("tl.store(h_ptr + cols, a * rstd * w, mask=mask)", "tl.store(h_ptr + cols, a * rstd * w, mask=mask)\n        tl.store(x_ptr + cols, a * rstd, mask=mask)", "x is stored again"),
    ],
    "tiles by block pointers": [
        ("b_mean[:, None], 0.0)", "b_mean[None, :], 0.0)", "a row's mean along the columns"),
        ("tl.where(m_d[None, :], b_x - b_mean[:, None], 0.0)", "b_x - b_mean[:, None]", "columns past N in the squares"),
        ("boundary_check=(0, 1), padding_option=\"zero\"", "boundary_check=(0,), padding_option=\"zero\"", "columns past N are read"),
        ("boundary_check=(0, 1), padding_option=\"zero\"", "boundary_check=(1,), padding_option=\"zero\"", "rows past M are read"),
        ("boundary_check=(0, 1), padding_option=\"zero\"", "boundary_check=(0, 1), padding_option=\"nan\"", "nan past the end"),
        ("p_y = tl.make_block_ptr(y, (T, D)", "p_y = tl.make_block_ptr(y, (D, T)", "the sizes the other way"),
        ("p_y = tl.make_block_ptr(y, (T, D), (D, 1), (i_t * BT, 0)", "p_y = tl.make_block_ptr(y, (T, D), (D, 1), (0, i_t * BT)", "the offsets the other way"),
        ("p_y = tl.make_block_ptr(y, (T, D), (D, 1)", "p_y = tl.make_block_ptr(y, (T, D), (T, 1)", "another's stride"),
        ("tl.sum(b_xbar * b_xbar, axis=1)", "tl.sum(b_xbar * b_xbar, axis=0)", "a sum over the rows"),
        ("b_w[None, :]", "b_w[:, None]", "the weight along the rows"),
        ("b_rstd[:, None] * b_w", "b_rstd * b_w", "a broadcast lost"),
    ],
    "every P-th tile of rows": [
        ("rstd[:, None] * m", "rstd[None, :] * m", "a row's number along the columns"),
        ("rstd[:, None] * m", "rstd * m", "a broadcast lost"),
        ("range(pid * BR, n_rows, sms * BR)", "range(0, n_rows, BR)", "all rows in each program"),
        ("range(pid * BR, n_rows, sms * BR)", "range(pid * BR, n_rows, BR)", "tiles taken more than once"),
        ("range(pid * BR, n_rows, sms * BR)", "range(pid, n_rows, sms * BR)", "tiles that overlap"),
        ("range(pid * BR, n_rows, sms * BR)", "range(pid * BR, n_cols, sms * BR)", "the number of columns"),
        ("range(pid * BR, n_rows, sms * BR)", "range(pid * BR, n_rows - BR, sms * BR)", "the last tile left out"),
        ("tl.sum(dy * (x * rstd[:, None]), 0)", "tl.sum(dy * (x * rstd[:, None]), 1)", "a sum over the columns"),
        ("tl.sum(dy * (x * rstd[:, None]), 0)", "tl.sum(tl.broadcast_to(w[None, :], (BR, B)), 0)", "a row broadcast and summed"),
        ("tl.sum(dy * (x * rstd[:, None]), 0)", "tl.sum(dy * (x * rstd[:, None]) + w[None, :], 0)", "rows past the end add"),
        ("row_mask[:, None] & col_mask[None, :]", "col_mask[None, :]", "rows past the end"),
        ("row_mask[:, None] & col_mask[None, :]", "row_mask[:, None]", "columns past the end"),
        ("row_mask[:, None] & col_mask[None, :]", "row_mask[None, :] & col_mask[:, None]", "masks along the wrong axes"),
        ("row_mask = rows < n_rows", "row_mask = rows < n_cols", "rows below the number of columns"),
    ],
    "the last tile with a mask": [
        ("cols = end - off", "cols = end - off + B", "tiles that are shifted"),
        ("cols = end - off", "cols = off - off", "the first tile for all"),
        ("for start in range(0, end, B)", "for start in range(0, N, B)", "the last tile twice, and past the end"),
        ("for start in range(0, end, B)", "for start in range(0, end - B, B)", "a tile left out"),
        ("tl.cdiv(n, b) * b - b", "(n // b) * b", "not the last tile where it is full"),
        ("- mean * mean + eps", "+ eps", "the mean is not subtracted"),
        ("x = tl.load(base + cols).to(tl.float32)\n        total", "x = tl.load(base + start).to(tl.float32)\n        total", "one column for a tile"),
        ("mask=cols < N, other=0.0).to(tl.float32)\n        total", "mask=cols < N, other=1.0).to(tl.float32)\n        total", "1 past the end"),
    ],
    "a reduction of partial sums": [
        ("tl.sum(acc, axis=0)", "tl.sum(acc, axis=1)", "a sum over the columns"),
        ("acc = tl.zeros((BR, BC)", "acc = tl.zeros((BC,)", "a tile added to a row"),
        ("tl.range(0, n_programs, BR, num_stages=3)", "tl.range(0, n_programs, 2 * BR, num_stages=3)", "every other tile"),
        ("tl.range(0, n_programs, BR, num_stages=3)", "tl.range(0, n_cols, BR, num_stages=3)", "another size"),
        ("tl.range(0, n_programs, BR, num_stages=3)", "tl.range(0, n_programs, BR, step=3)", "an unknown argument"),
        ("rows = start + ", "rows = start + 1 + ", "one row too far"),
        ("tl.program_id(0) * BC", "tl.program_id(0)", "tiles that overlap"),
        ("acc += tl", "acc += acc + tl", "what is carried is doubled"),
    ],
    "atomic additions": [
        ("tl.atomic_add(dw + cols, g", "tl.store(dw + cols, g", "each program stores its own"),
        ("rstd + pid), mask=mask", "rstd + pid), mask=mask, scope='cta'", "no other block of threads sees it"),
        ("tl.atomic_add(dw + cols, g", "tl.atomic_xchg(dw + cols, g", "an exchange"),
        ("g * a *", "2 * g * a *", "twice"),
        ("    tl.atomic_add(", "    tl.atomic_add(dw + cols, g, mask=mask)\n    tl.atomic_add(", "added to twice"),
        ("    tl.atomic_add(", "    for _ in range(s):\n        tl.atomic_add(", "added at each turn"),
        ("    tl.atomic_add(", "    if pid < 3:\n        tl.atomic_add(", "some rows alone"),
        ("tl.atomic_add(dw + cols,", "old = tl.atomic_add(dw + cols,", None),
        ("tl.load(rstd + pid), mask=mask)", "tl.load(rstd + pid), mask=mask)\n    tl.store(dw + cols, tl.load(dw + cols, mask=mask), mask=mask)", "read while others add"),
    ],
    "a guard of the rows": [
        ("if row < m:", "if k < 3:", "a guard that is no bound of the row"),
        ("if row < m:", "if row < m - 1:", "the last row left out"),
        ("if row < m:", "if row <= m:", "a row past the end"),
        ("if row < m:", "if pid < m:", "a guard on the program"),
        ("if row < m:", "if row < n:", "the number of columns"),
        ("if row < m:", "if True:", "no guard"),
        ("a * r * tl.load", "tl.where(tl.sum(a * a, axis=0) == 0, 1.0, a * r) * tl.load", "another value for a row of zeros"),
        ("range(K)", "range(K - 1)", "a row of each program left out"),
        ("range(K)", "range(1, K)", "the first row left out"),
        ("pid * K + k", "pid * s + k", "another size"),
        ("pid * K + k", "pid + k", "rows that overlap"),
    ],
    "a while loop": [
        ("at += B", "at += 2 * B", "every other tile"),
        ("at += B", "at += B\n        at += 1", "one column too far"),
        ("        off += B", "        off += B\n        off += B", "every other tile"),
        ("        at += B\n", "        if off < 64:\n            at += B\n", "moved at some turns"),
        ("while off < n", "while off < n - B", "the last tile left out"),
        ("while off < n", "while off <= n", "a tile too many"),
        ("total += tl.sum(a * a)", "total += a * a", "lanes that are not added up"),
        ("total += tl.sum(a * a)", "total = tl.maximum(total, tl.sum(a * a))", "a maximum"),
        ("range(tl.cdiv(n, B))", "range(n // B)", "the last tile left out"),
        ("range(tl.cdiv(n, B))", "range(1, tl.cdiv(n, B))", "the first tile left out"),
    ],
    "a tile of columns down all rows": [
        ("range(0, m, R)", "range(0, m, 2 * R)", "every other tile"),
        ("range(0, m, R)", "range(0, n, R)", "the number of columns"),
        ("rows = start + ", "rows = start + 1 + ", "one row too far"),
        ("tl.sum(dw_acc, axis=0)", "tl.sum(db_acc, axis=0)", "the other sum"),
        ("tl.sum(dw_acc, axis=0)", "tl.sum(g * x_hat, axis=0)", "the last tile alone"),
        ("dw_acc += g * x_hat", "dw_acc += tl.sum(g * x_hat, axis=0)[None, :]", "each lane gets the whole tile"),
    ],
    "an advanced block pointer": [
        ("tl.advance(p_x, (B,))", "tl.advance(p_x, (1,))", "tiles that overlap"),
        ("tl.advance(p_x, (B,))", "tl.advance(p_x, (0,))", "the first tile for all"),
        ("b_g * tl.sigmoid(b_g)", "tl.sigmoid(b_g)", "another gate"),
        ("acc += a * a", "acc += a * a * a", "the third power"),
        ("(i_c * B,), (B,), (0,))\n        b_g", "(B,), (B,), (0,))\n        b_g", "one tile for all"),
    ],
}  # fmt: skip
# Bindings that the kernel does not fit.
# What stands beside the kernel in its module, after a helper `inv` that it calls: each may change a name of the text.
HELPED = """
@triton.jit
def inv(v):
    return 1 / tl.sqrt(v)


@triton.jit
def inv2(v):
    return tl.sqrt(v)

""" + ROW.replace("rsqrt(square + eps)", "inv(square + eps)")
REBOUND = [
    "for inv in [inv2]:\n    pass",
    "globals()['inv'] = inv2",
    "def patch():\n    global inv\n    inv = inv2\n\npatch()",
    "from other import *",
    "class inv:\n    pass",
    "(inv := inv2)",
    "[0 for a in [1] if (inv := inv2)]",
    "def f(a=(inv := inv2)):\n    pass",
    "*inv, z = [inv2, 0]",
    "inv: object = inv2",
    "inv += 1",
    "import other as inv",
    "match inv2:\n    case inv:\n        pass",
    "match [inv2]:\n    case [*inv]:\n        pass",
    "match {}:\n    case {**inv}:\n        pass",
    "try:\n    1 / 0\nexcept ZeroDivisionError as inv:\n    pass",
    "with open('f') as inv:\n    pass",
    "async def inv(v):\n    pass",
    "del inv",
    "exec('inv = inv2')",
    "setattr(tl, 'sqrt', tl.exp)",
    "import sys\nsys.modules[__name__].inv = inv2",
    "tl.sqrt = tl.exp",
    "def patch(library):\n    library.sqrt = library.exp\n\npatch(tl)",
    "def patch(library):\n    setattr(library, 'sqrt', tl.exp)\n\npatch(tl)",
    "def patch(function):\n    function.fn = inv2.fn\n\npatch(inv)",
    "def patch(function):\n    object.__setattr__(function, 'fn', inv2.fn)\n\npatch(inv)",
    "library = tl\nlibrary.sqrt = tl.exp",
    "for library in (tl,):\n    library.sqrt = tl.exp",
    "triton.language.sqrt = triton.language.exp",
    "inv.fn = inv2",
    "inv = jit(inv2)",
    "inv = tuple(inv)",
    "inv = other.replace(inv)",
    "kernel = triton.heuristics({'eps': lambda args: 0.0})(kernel)",
]
UNCHANGED = """
class Options:
    def __init__(self, rows):
        object.__setattr__(self, "rows", rows)
        self.fn = rows


FAST = getattr(tl, "rsqrt", None) is not None
"""
# Decorators above triton.jit that leave another kernel, or contradict the binding.
DECORATORS = [
    "inv2",
    "other.replace",
    "triton.heuristics({'eps': lambda args: 0.0})",
    "triton.heuristics({'affine': lambda args: False})",
    "triton.heuristics({'n_cols': lambda args: args['Y_stride']})",
    "triton.heuristics({'B': lambda args: 64})",
    "triton.autotune(configs=[triton.Config({'B': 64})], key=['n_cols'])",
    "triton.autotune(configs=[triton.Config({'B': b}) for b in (32, 64)], key=['n_cols'])",
]
# Operations that give NaN whatever the data.
UNDEFINED = [
    "eps + tl.sqrt(-eps) * tl.sqrt(-eps)",
    "n_cols + tl.sqrt(-1.0 * n_cols) * tl.sqrt(-1.0 * n_cols)",
    "1.0 + tl.sqrt(-1.0) * tl.sqrt(-1.0)",
    "0.0 * tl.log(-1.0 * n_cols)",
    "0.0 * rsqrt(-eps)",
    "0.0 * tl.sqrt(-eps * (square + eps))",
    "0.0 * tl.log(0.0 * eps)",
]
BINDINGS = [
    ("a program for each row", dict(B=COLUMNS), "rows", "the block may be smaller"),
    ("a program for each row", {}, "row tiles", "a program for each tile of rows"),
    ("a program for each row", {}, "programs", "any number of programs"),
    (
        "a program for each row",
        {},
        ("rows", "programs"),
        "programs that store the same",
    ),
    ("a program for each row", dict(n_cols=M), "rows", "rows taken for columns"),
    ("a program for each row", dict(Y=Out("y")), "rows", "another stride"),
    ("a program for each row", dict(R=Out("rstd", stride=2)), "rows", "another stride"),
    ("a program for each row", dict(W=T("weight", stride=2)), "rows", "another stride"),
    (
        "a program for each row",
        dict(R=Out("rstd", column_stride=2)),
        "rows",
        "a stride from column to column of what has none",
    ),
    ("a program for each row", dict(X=T("y", stride="X_stride")), "rows", "y for x"),
    ("chunks of rows", dict(K=M), "programs", "a chunk that is not promised"),
    ("chunks of rows", dict(DW=Out("dw", "j")), "programs", "no row for each program"),
    ("atomic additions", {}, ("rows", "programs"), "programs that add the same"),
    (
        "atomic additions",
        dict(dw=InOut("dw")),
        "rows",
        "an output that holds something",
    ),
    ("a tile of columns down all rows", {}, "rows", "no tiles of columns"),
    ("a reduction of partial sums", dict(n_programs=N), "column tiles", "other rows"),
]
