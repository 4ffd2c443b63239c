"""The operator in Triton: one forward kernel, one backward kernel and one reduction, for every spec.

A row is swept in blocks of columns, so N has no limit. The dtype of statistics and sums is a constexpr, so the very
kernels that run in float32 on a GPU run in float64 in Triton's interpreter and pass gradcheck there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

import torch

if "triton" not in sys.modules and not torch.cuda.is_available():
    # Triton chooses between compiler and interpreter once, when it is first imported.
    os.environ.setdefault("TRITON_INTERPRET", "1")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from .torch_formula import accumulator  # noqa: E402

# Columns a program holds at once: 8192 float32 values over 8 warps are 32 registers a thread for each live row.
MAX_BLOCK = 8192
# Programs of the backward: each owns one partial row of dw and db. 4 a multiprocessor hide the latency of loads; the
# interpreter runs programs one after another, so there one partial row more only costs time.
PROGRAMS_PER_MULTIPROCESSOR = 4
INTERPRETED_PROGRAMS = 2
REDUCE_BLOCK = 128

INTERPRETED = not isinstance(tl.sum, triton.JITFunction)
_ROUND_BF16 = tl.constexpr(INTERPRETED)
# The interpreter keeps the running program's place in one global.
_LAUNCHES = threading.RLock() if INTERPRETED else contextlib.nullcontext()


def check_device(device):
    """An error, with the remedy, where the kernels cannot run on the device as Triton was imported."""
    if device.type not in ("cuda", "cpu"):
        raise ValueError(f"backend: 'triton' got a {device.type} tensor, needs one on a CUDA device or the CPU")
    if device.type != "cuda" and not INTERPRETED:
        raise RuntimeError(
            f"backend: 'triton' on a {device.type} tensor needs Triton's interpreter, but triton was imported to "
            "compile; set the environment variable TRITON_INTERPRET=1 before the process first imports triton"
        )


@triton.jit
def _cast(value, DTYPE: tl.constexpr):
    """The nearest number of the dtype; where a GPU rounds to bfloat16 the interpreter cuts off, so round here."""
    if _ROUND_BF16 and DTYPE == tl.bfloat16:
        bits = value.to(tl.float32).to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        value = tl.where(value == value, bits.to(tl.float32, bitcast=True), value.to(tl.float32))
    return value.to(DTYPE)


@triton.jit
def _denominator(s2, EPS: tl.constexpr, PLACEMENT: tl.constexpr):
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
def _kappa(s2, EPS: tl.constexpr, PLACEMENT: tl.constexpr):
    """D * D'(s) / s, the whole effect of where eps stands; 0 at s = 0 outside, where it has no value."""
    s = tl.sqrt(s2)
    if PLACEMENT == "clamp":
        kappa = tl.where(s > EPS, 1.0, 0.0)
    else:
        kappa = tl.where(s == 0, 0.0, (s + EPS) / tl.where(s == 0, 1.0, s))
    return kappa


@triton.jit
def _row_sum(x_ptr, residual_ptr, p_ptr, N, HAS_RESIDUAL: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of a row of p; with a residual, p is written on the way."""
    total = tl.zeros([BLOCK], ACC)
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        p = tl.load(x_ptr + col, mask=col < N, other=0).to(ACC)
        if HAS_RESIDUAL:
            # The rounded sum is what is stored, so it is what is normalized.
            p = p + tl.load(residual_ptr + col, mask=col < N, other=0).to(ACC)
            rounded = _cast(p, p_ptr.dtype.element_ty)
            tl.store(p_ptr + col, rounded, mask=col < N)
            p = rounded.to(ACC)
        total += p
    return tl.sum(total, axis=0)


@triton.jit
def _row_squares(p_ptr, mean, N, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of squares of a row of q: centred first, never the difference of two large sums."""
    squares = tl.zeros([BLOCK], ACC)
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        q = tl.load(p_ptr + col, mask=col < N, other=0).to(ACC) - mean
        # The columns past N hold -mean now; left so, they would enter the sum.
        q = tl.where(col < N, q, 0)
        squares += q * q
    return tl.sum(squares, axis=0)


@triton.jit
def _forward_kernel(
    x_ptr,  # (M, N)
    residual_ptr,  # (M, N)
    weight_ptr,  # (N,)
    bias_ptr,  # (N,)
    y_ptr,  # (M, N)
    p_ptr,  # (M, N), written with a residual; x itself without
    mean_ptr,  # (M,)
    rstd_ptr,  # (M,)
    x_stride,
    residual_stride,
    p_stride,
    N,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    p_row, y_row = p_ptr + row * p_stride, y_ptr + row * N
    mean = 0.0
    if CENTER or HAS_RESIDUAL:
        x_row, residual_row = x_ptr + row * x_stride, residual_ptr + row * residual_stride
        total = _row_sum(x_row, residual_row, p_row, N, HAS_RESIDUAL, ACC, BLOCK)
        if CENTER:
            mean = total / N
            tl.store(mean_ptr + row, mean)
    s2 = _row_squares(p_row, mean, N, ACC, BLOCK)
    if MEAN:
        s2 = s2 / N
    rstd = 1 / _denominator(s2, EPS, PLACEMENT)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x_hat = (tl.load(p_row + col, mask=col < N, other=0).to(ACC) - mean) * rstd
        y = SCALE * x_hat
        if HAS_WEIGHT:
            y = y * tl.load(weight_ptr + col, mask=col < N, other=0).to(ACC)
        if HAS_BIAS:
            y = y + tl.load(bias_ptr + col, mask=col < N, other=0).to(ACC)
        tl.store(y_row + col, _cast(y, y_ptr.dtype.element_ty), mask=col < N)


@triton.jit
def _wdy(dy, weight_ptr, col, N, SCALE: tl.constexpr, HAS_WEIGHT: tl.constexpr, ACC: tl.constexpr):
    wdy = SCALE * dy
    if HAS_WEIGHT:
        wdy = wdy * tl.load(weight_ptr + col, mask=col < N, other=0).to(ACC)
    return wdy


@triton.jit
def _backward_kernel(
    dy_ptr,  # (M, N)
    dresidual_ptr,  # (M, N)
    p_ptr,  # (M, N)
    weight_ptr,  # (N,)
    mean_ptr,  # (M,)
    rstd_ptr,  # (M,)
    dx_ptr,  # (M, N)
    dw_ptr,  # (programs, N), zeros on entry: each program adds to its own row
    db_ptr,  # (programs, N), likewise
    dy_stride,
    dresidual_stride,
    p_stride,
    M,
    N,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    HAS_DRESIDUAL: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    NEED_DX: tl.constexpr,
    NEED_DW: tl.constexpr,
    NEED_DB: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    dw_row, db_row = dw_ptr + program * N, db_ptr + program * N
    for r in range(tl.program_id(0), M, tl.num_programs(0)):
        row = tl.cast(r, tl.int64)
        dy_row, p_row, dx_row = dy_ptr + row * dy_stride, p_ptr + row * p_stride, dx_ptr + row * N
        rstd = tl.load(rstd_ptr + row)
        mean = 0.0
        if CENTER:
            mean = tl.load(mean_ptr + row)
        c1, c2 = _row_products(dy_row, p_row, weight_ptr, mean, rstd, N, CENTER, MEAN, SCALE, HAS_WEIGHT, ACC, BLOCK)
        if PLACEMENT != "inside" and EPS != 0:
            s2 = _row_squares(p_row, mean, N, ACC, BLOCK)
            if MEAN:
                s2 = s2 / N
            c1 = _kappa(s2, EPS, PLACEMENT) * c1
        for start in range(0, N, BLOCK):
            col = start + tl.arange(0, BLOCK)
            dy = tl.load(dy_row + col, mask=col < N, other=0).to(ACC)
            x_hat = (tl.load(p_row + col, mask=col < N, other=0).to(ACC) - mean) * rstd
            if NEED_DX:
                wdy = _wdy(dy, weight_ptr, col, N, SCALE, HAS_WEIGHT, ACC)
                dx = rstd * (wdy - c2 - x_hat * c1)
                if HAS_DRESIDUAL:
                    dx = dx + tl.load(dresidual_ptr + row * dresidual_stride + col, mask=col < N, other=0).to(ACC)
                tl.store(dx_row + col, _cast(dx, dx_ptr.dtype.element_ty), mask=col < N)
            if NEED_DW:
                dw = tl.load(dw_row + col, mask=col < N, other=0) + dy * (SCALE * x_hat)
                tl.store(dw_row + col, dw, mask=col < N)
            if NEED_DB:
                db = tl.load(db_row + col, mask=col < N, other=0) + dy
                tl.store(db_row + col, db, mask=col < N)


@triton.jit
def _row_products(
    dy_row,
    p_row,
    weight_ptr,
    mean,
    rstd,
    N,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """c1 = sum(x_hat * wdy) / n and c2 = center * mean(wdy) of a row."""
    products = tl.zeros([BLOCK], ACC)
    total = tl.zeros([BLOCK], ACC)
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        wdy = _wdy(tl.load(dy_row + col, mask=col < N, other=0).to(ACC), weight_ptr, col, N, SCALE, HAS_WEIGHT, ACC)
        products += (tl.load(p_row + col, mask=col < N, other=0).to(ACC) - mean) * rstd * wdy
        total += wdy
    c1 = tl.sum(products, axis=0)
    if MEAN:
        c1 = c1 / N
    c2 = 0.0
    if CENTER:
        c2 = tl.sum(total, axis=0) / N
    return c1, c2


@triton.jit
def _reduce_kernel(
    dw_partial_ptr,  # (programs, N)
    db_partial_ptr,  # (programs, N)
    dw_ptr,  # (N,)
    db_ptr,  # (N,)
    programs,
    N,
    NEED_DW: tl.constexpr,
    NEED_DB: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dw = tl.zeros([BLOCK], ACC)
    db = tl.zeros([BLOCK], ACC)
    # In the order of the programs, so that the sums are the same bits at every run.
    for program in range(0, programs):
        if NEED_DW:
            dw += tl.load(dw_partial_ptr + program * N + col, mask=col < N, other=0)
        if NEED_DB:
            db += tl.load(db_partial_ptr + program * N + col, mask=col < N, other=0).to(ACC)
    if NEED_DW:
        tl.store(dw_ptr + col, dw, mask=col < N)
    if NEED_DB:
        tl.store(db_ptr + col, db, mask=col < N)


def _rows(t):
    """Adjacent columns; rows may lie any distance apart. A kernel sees memory, not torch's lazy negation."""
    if t is None:
        return None
    t = t.resolve_neg()
    return t if t.stride(-1) == 1 or t.shape[-1] == 1 else t.contiguous()


def _options(n, acc, spec):
    block = min(triton.next_power_of_2(n), MAX_BLOCK)
    return {
        "CENTER": spec.center,
        "MEAN": spec.reduce == "mean",
        "SCALE": spec.scale,
        "EPS": spec.eps,
        "PLACEMENT": spec.placement,
        "ACC": tl.float64 if acc == torch.float64 else tl.float32,
        "BLOCK": block,
        "num_warps": max(1, min(8, block // 256)),
    }


def forward(x, weight, bias, residual, spec):
    """(y, residual_out, mean, rstd) for rows x (M, N), by one kernel launch.

    Args, Returns: as torch_rows.forward
    Numerics: sums in float32, in float64 for float64; residual_out is rounded before it is normalized
    """
    m, n = x.shape
    p_dtype = x.dtype if residual is None else torch.promote_types(x.dtype, residual.dtype)
    acc = accumulator(p_dtype)
    x, residual, weight, bias = _rows(x), _rows(residual), _rows(weight), _rows(bias)
    y = x.new_empty(m, n)
    residual_out = None if residual is None else x.new_empty(m, n, dtype=p_dtype)
    mean = x.new_empty(m, dtype=acc) if spec.center else None
    rstd = x.new_empty(m, dtype=acc)
    if m > 0:
        p = x if residual is None else residual_out
        _launch(
            _forward_kernel, (m,),
            x, p if residual is None else residual, _or(weight, x), _or(bias, x), y, p, _or(mean, rstd), rstd,
            x.stride(0), 0 if residual is None else residual.stride(0), p.stride(0), n,
            HAS_RESIDUAL=residual is not None, HAS_WEIGHT=weight is not None, HAS_BIAS=bias is not None,
            **_options(n, acc, spec),
        )  # fmt: skip
    return y, residual_out, mean, rstd


def _launch(kernel, grid, *arguments, **options):
    with _LAUNCHES:
        kernel[grid](*arguments, **options)


def _or(tensor, unused):
    """A kernel wants a pointer for each argument, also for one that its constexprs say it never reads."""
    return unused if tensor is None else tensor


def _programs(m, device):
    if INTERPRETED:
        return min(m, INTERPRETED_PROGRAMS)
    return min(m, PROGRAMS_PER_MULTIPROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count)


def backward(dy, dresidual_out, p, weight, mean, rstd, spec, need_dx=True, need_dw=True, need_db=True):
    """(dx, dw, db) for rows p = x + residual, by two kernel launches.

    Args, Returns: as torch_rows.backward
    Numerics: as forward; dw and db are summed in the same order at every run, without locks or atomics
    """
    m, n = p.shape
    acc = rstd.dtype
    dy, dresidual_out, p = _rows(dy), _rows(dresidual_out), _rows(p)
    weight = _rows(weight)
    dx = p.new_empty(m, n) if need_dx else None
    dw = p.new_zeros(n, dtype=acc) if need_dw else None
    db = p.new_zeros(n, dtype=acc) if need_db else None
    if m == 0:
        return dx, dw, db
    programs = _programs(m, p.device)
    dw_partial = p.new_zeros(programs, n, dtype=acc) if need_dw else None
    db_partial = p.new_zeros(programs, n, dtype=acc) if need_db else None
    options = _options(n, acc, spec)
    _launch(
        _backward_kernel, (programs,),
        dy, _or(dresidual_out, dy), p, _or(weight, p), _or(mean, rstd), rstd,
        _or(dx, p), _or(dw_partial, rstd), _or(db_partial, rstd),
        dy.stride(0), 0 if dresidual_out is None else dresidual_out.stride(0), p.stride(0), m, n,
        HAS_DRESIDUAL=dresidual_out is not None, HAS_WEIGHT=weight is not None,
        NEED_DX=need_dx, NEED_DW=need_dw, NEED_DB=need_db, **options,
    )  # fmt: skip
    if need_dw or need_db:
        _launch(
            _reduce_kernel, (triton.cdiv(n, REDUCE_BLOCK),),
            _or(dw_partial, rstd), _or(db_partial, rstd), _or(dw, rstd), _or(db, rstd), programs, n,
            NEED_DW=need_dw, NEED_DB=need_db, ACC=options["ACC"], BLOCK=REDUCE_BLOCK,
        )  # fmt: skip
    return dx, dw, db
