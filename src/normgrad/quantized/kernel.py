"""The fused kernel: a row is read once, normalized, and written as one byte a number and a scale."""

from __future__ import annotations

from ..triton_kernels.arithmetic import affine, centred, load_sum, reciprocal, store_tile
from ..triton_kernels.interpreter import tl, triton


@triton.jit
def float8_bits(value):
    """The eight bits of the nearest float8_e4m3fn, ties to even, for a GPU that has no instruction for it.

    A float32 with its last 20 bits rounded away has the exponent and the 3 bits of a float8, 120 further up; below
    2**-6 a float8 counts steps of 2**-9, which adding and subtracting 1.5 * 2**14 rounds to.
    """
    value = value.to(tl.float32)
    bits = tl.abs(value).to(tl.uint32, bitcast=True)
    sign = (value.to(tl.uint32, bitcast=True) >> 24) & 0x80
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    steps = ((tl.abs(value) + 24576.0) - 24576.0) * 512
    found = tl.where(tl.abs(value) < 0.015625, tl.where(value == value, steps, 0).to(tl.uint32), normal)
    return tl.where(value == value, found | sign, 0x7F).to(tl.uint8)


@triton.jit
def to_8_bits(value, KIND: tl.constexpr):
    """The nearest number of 8 bits, ties to even: of int8 ("int8"), or of float8_e4m3fn, as such or as its bits."""
    if KIND == "int8":
        # The sum has no place for a fraction, so it is a whole number: 1.5 * 2**23, in float64 1.5 * 2**52.
        whole = 6755399441055744.0 if value.dtype == tl.float64 else 12582912.0
        value = (tl.where(value == value, value, 0.0) + whole) - whole
        value = value.to(tl.int8)
    elif KIND == "bits":
        value = float8_bits(value)
    else:
        value = value.to(tl.float32).to(tl.float8e4nv)
    return value


@triton.jit
def divisors(largest, Q: tl.constexpr):
    """What each row is divided by: largest / Q, 1 for a row of zeros, NaN where that is no normal number."""
    divisor = tl.where(largest == 0, 1.0, largest / Q)
    least = 2.0**-1022 if divisor.dtype == tl.float64 else 2.0**-126
    return tl.where(divisor >= least, divisor, float("nan"))


@triton.jit(do_not_specialize=["M", "x_step", "residual_step"])
def quantized_rows(
    x_ptr,  # (M, N)
    residual_ptr,  # (M, N) or None
    weight_ptr,  # (N,) or None
    bias_ptr,  # (N,) or None
    quantized_ptr,  # (M, N), a byte a number
    scale_ptr,  # (M,)
    residual_out_ptr,  # (M, N), None without a residual
    M,
    x_step,
    residual_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    ROUND: tl.constexpr,
    KIND: tl.constexpr,
    Q: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """quantized, scale and residual_out of ROWS rows, each input read once and each output written once."""
    rows = tl.program_id(0).to(M.dtype) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    p = load_sum(
        x_ptr, residual_ptr, residual_out_ptr, rows, cols, M, x_step, residual_step, N, VECTOR, ROUND, ACC,
        None, None, None,
    )  # fmt: skip
    if residual_ptr is not None:
        store_tile(residual_out_ptr, p, rows, cols, M, N)
    q = p
    if CENTER:
        q = centred(p, tl.sum(p, axis=1) / N, cols, N)
    rstd = reciprocal(q * q, rows, M, N, MEAN, EPS, PLACEMENT)
    y = affine(q * rstd[:, None], weight_ptr, bias_ptr, cols, N, SCALE, OFFSET, ACC, 0)
    # A maximum passes over NaN, a sum does not: 0 * y is NaN for every number that is not finite.
    largest = tl.max(tl.where((cols < N)[None, :], tl.abs(y), float("-inf")), axis=1) + tl.sum(0 * y, axis=1)
    divisor = divisors(largest, Q)
    tl.store(scale_ptr + rows, tl.where(largest == 0, 0.0, divisor), mask=rows < M)
    store_tile(quantized_ptr, to_8_bits(y / divisor[:, None], KIND), rows, cols, M, N)
