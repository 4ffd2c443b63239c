"""The operator as loops over rows and columns, compiled by Numba: no tiles, no masks, the letters of the text.

A program takes a block of rows. It goes over a row several times, and reads it from memory once: after the first time
the row lies in the processor's cache. All compiled code stands in this one file, by whose date Numba knows whether what
it keeps on disk is still right.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import populate_array

# What a sum adds may be reordered, so that 16 lanes add at once, and a * b + c may be rounded once. Full fastmath is no
# faster here, and would let the compiler take it that there is no NaN.
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}


def compiled(function):
    """Compiled code is kept on disk, where there is a place: an installation and a home may be read-only."""
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        return njit(**OPTIONS)(function)


# A loop over a row is written out where it is called: calls made the backward of (128, 256) take 26 us in place of 15.
inlined = njit(inline="always", **OPTIONS)

# Where eps stands, as numbers: a kernel compares them faster than names.
INSIDE, OUTSIDE, CLAMP = 0, 1, 2


# bfloat16 and float16, which Numba does not know on a CPU: words of 16 bits, unsigned and signed, made float32 and
# rounded back in registers


def load(words, j):
    """The number at j: of an array of floats its own, of words of 16 bits the float32 that they stand for."""
    if words.dtype == np.uint16:
        return (words[j].astype(np.uint32) << np.uint32(16)).view(np.float32)
    return (
        words[j].view(np.float16).astype(np.float32)
        if words.dtype == np.int16
        else words[j]
    )


def store(words, j, value):
    """Write a number at j, rounded to the nearest that the array holds, of two equally near to the even one."""
    if words.dtype == np.uint16:
        value = rounded_to_bfloat16(value.view(np.uint32), value == value)
    words[j] = (
        value.astype(np.float16).view(np.int16) if words.dtype == np.int16 else value
    )


def _cast(result, argument, *steps):
    """An intrinsic that takes one number through LLVM's own conversions."""

    def codegen(_context, builder, _signature, arguments):
        (value,) = arguments
        for name, to in steps:
            value = getattr(builder, name)(value, to)
        return value

    return intrinsic(lambda _context, value: (result(argument), codegen))


float32_of_bits = _cast(types.float32, types.uint32, ("bitcast", ir.FloatType()))
bits_of_float32 = _cast(types.uint32, types.float32, ("bitcast", ir.IntType(32)))
float32_of_half = _cast(
    types.float32, types.int16, ("bitcast", ir.HalfType()), ("fpext", ir.FloatType())
)
half_of_float32 = _cast(
    types.int16, types.float32, ("fptrunc", ir.HalfType()), ("bitcast", ir.IntType(16))
)


@njit
def rounded_to_bfloat16(bits, is_number):
    """The upper 16 of a float32's 32 bits, rounded to nearest even; a NaN stays one."""
    upper = (
        bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    ) >> np.uint32(16)
    return np.uint16(upper) if is_number else np.uint16(0x7FC0)


@overload(load)
def _load(words, j):
    if words.dtype == types.uint16:
        return lambda words, j: float32_of_bits(np.uint32(words[j]) << np.uint32(16))
    if words.dtype == types.int16:
        return lambda words, j: float32_of_half(words[j])
    return lambda words, j: words[j]


@overload(store)
def _store(words, j, value):
    def bfloat16(words, j, value):
        words[j] = rounded_to_bfloat16(bits_of_float32(value), value == value)

    def float16(words, j, value):
        words[j] = half_of_float32(value)

    def same(words, j, value):
        words[j] = value

    return {types.uint16: bfloat16, types.int16: float16}.get(words.dtype, same)


# Where a row lies: its numbers are next to each other, so that a loop over them loads several at once


def row(matrix, i):
    """Row i of a matrix, or of (memory, heads, step, head_step, N) head i % heads of token i // heads."""
    if isinstance(matrix, tuple):
        memory, heads, step, head_step, N = matrix
        start = i // heads * step + i % heads * head_step
        return memory[start : start + N]
    return matrix[i]


def own(vectors, i):
    """The weight, the bias, dw or db of row i: the only one, or that of its head i % heads."""
    return vectors if vectors.ndim == 1 else vectors[i % len(vectors)]


def _memory(context, builder, kind, value):
    """Where an array begins, and its shape."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape)


def _row_type(dtype):
    return types.Array(dtype, 1, "C")


def _row_at(context, builder, dtype, data, n):
    """The array of n numbers that begin there, without an owner: who called the kernel holds the memory.

    Numba counts who holds a slice: 10 to 30 ns a row, and 100 where stores are on their way past the caches.
    """
    made = context.make_array(_row_type(dtype))(context, builder)
    itemsize = context.get_constant(types.intp, dtype.bitwidth // 8)
    populate_array(made, data, [n], [itemsize], itemsize, meminfo=None)
    return made._getvalue()


def _place(context, builder, kind, matrix, i):
    """Where row i of an array (M, N) without gaps begins, and N."""
    data, (_, n) = _memory(context, builder, kind, matrix)
    return builder.gep(data, [builder.mul(i, n)]), n


@intrinsic
def row_of_matrix(_context, matrix, i):
    """row of an array (M, N) without gaps."""

    def codegen(context, builder, _signature, arguments):
        place, n = _place(context, builder, matrix, *arguments)
        return _row_at(context, builder, matrix.dtype, place, n)

    return (
        (_row_type(matrix.dtype)(matrix, types.intp), codegen)
        if matrix.layout == "C"
        else None
    )


@intrinsic
def row_of_heads(_context, matrix, i):
    """row of (memory, heads, step, head_step, N)."""

    def codegen(context, builder, _signature, arguments):
        memory, heads, step, head_step, n = cgutils.unpack_tuple(builder, arguments[0])
        token, head = (
            builder.sdiv(arguments[1], heads),
            builder.srem(arguments[1], heads),
        )
        start = builder.add(builder.mul(token, step), builder.mul(head, head_step))
        data, _ = _memory(context, builder, matrix[0], memory)
        return _row_at(context, builder, matrix[0].dtype, builder.gep(data, [start]), n)

    return _row_type(matrix[0].dtype)(matrix, types.intp), codegen


@overload(row)
def _row(matrix, i):
    if isinstance(matrix, types.BaseTuple):
        return lambda matrix, i: row_of_heads(matrix, i)
    return lambda matrix, i: row_of_matrix(matrix, i)


@overload(own)
def _own(vectors, i):
    if vectors.ndim == 1:
        return lambda vectors, i: vectors
    return lambda vectors, i: row_of_matrix(vectors, i % len(vectors))


# Where a row of a result is made. A store reads 64 bytes of memory first, since it may change a few of them alone. 64
# that are written at once, past the caches, are not read: at (16384, 768) a forward takes 2.5 ms in place of 4.7 on two
# cores, and so much is gained also where the next operation reads y again. So a row is made in a line, which stays in
# the nearest cache, and sent to memory from there.

# Bytes that are written at once, and of how many on a result is streamed: a smaller one stays in the caches.
AT_ONCE, STREAMED = 64, 2**22


@compiled
def line_for(rows):
    """(1, N) where rows (M, N) are streamed, else (0, N)."""
    N = rows.shape[1]
    whole = rows.ctypes.data % AT_ONCE == 0 and N * rows.itemsize % AT_ONCE == 0
    return np.empty(
        (int(whole and rows.size * rows.itemsize >= STREAMED), N), rows.dtype
    )


def held(line, rows, i):
    """Where row i is made: the line, or its own place if there is none."""
    return line[0] if len(line) > 0 else rows[i]


def send(line, rows, i):
    """Write the line, if there is one, to row i."""
    if len(line) > 0:
        rows[i] = line[0]


def arrived():
    """What was sent stands in memory before anything that is written from now on."""


@intrinsic
def held_in_line_or_rows(_context, line, rows, i):
    """held."""

    def codegen(context, builder, _signature, arguments):
        data, (lines, _) = _memory(context, builder, line, arguments[0])
        place, n = _place(context, builder, rows, *arguments[1:])
        there = builder.icmp_signed(">", lines, context.get_constant(types.intp, 0))
        return _row_at(
            context, builder, rows.dtype, builder.select(there, data, place), n
        )

    return (
        (_row_type(rows.dtype)(line, rows, types.intp), codegen)
        if rows.layout == "C"
        else None
    )


@intrinsic
def stream(_context, line, rows, i):
    """send."""

    def codegen(context, builder, _signature, arguments):
        data, (lines, n) = _memory(context, builder, line, arguments[0])
        place, _ = _place(context, builder, rows, *arguments[1:])
        lanes = 8 * AT_ONCE // rows.dtype.bitwidth
        pointer = ir.VectorType(context.get_data_type(rows.dtype), lanes).as_pointer()
        start, step = (
            context.get_constant(types.intp, number) for number in (0, lanes)
        )
        with cgutils.for_range_slice(builder, start, builder.mul(lines, n), step) as (
            j,
            _,
        ):
            numbers = builder.load(
                builder.bitcast(builder.gep(data, [j]), pointer),
                align=rows.dtype.bitwidth // 8,
            )
            store = builder.store(
                numbers,
                builder.bitcast(builder.gep(place, [j]), pointer),
                align=AT_ONCE,
            )
            store.set_metadata(
                "nontemporal", builder.module.add_metadata([ir.IntType(32)(1)])
            )
        return context.get_dummy_value()

    return types.void(line, rows, types.intp), codegen


@intrinsic
def fence(_context):
    """arrived."""

    def codegen(context, builder, _signature, _arguments):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@overload(held)
def _held(line, rows, i):
    return lambda line, rows, i: held_in_line_or_rows(line, rows, i)


@overload(send)
def _send(line, rows, i):
    return lambda line, rows, i: stream(line, rows, i)


@overload(arrived)
def _arrived():
    return lambda: fence()


# A row: what is absent has no columns, and a loop over it does nothing. A sum has the dtype of the zero that it starts
# from. A number that is typed here is a float32, which gives way to a float64 and makes none of a float32, as a plain 0
# would: a backward in float64 takes a fifth longer.


@inlined
def row_mean(p, N, zero):
    """mean(p), and added to it the mean of p - mean(p).

    A sum of equal numbers is rounded, and rstd of a row of them is large. The mean of what is left corrects the mean.
    """
    total = zero
    for j in range(len(p)):
        total += load(p, j)
    mean = total / N
    total = zero
    for j in range(len(p)):
        total += load(p, j) - mean
    return mean + total / N


@inlined
def row_size(p, mean, n, zero):
    """s**2 = sum(q**2) / n of the centred row, never the difference of two large sums."""
    total = zero
    for j in range(len(p)):
        q = load(p, j) - mean
        total += q * q
    return total / n


@compiled
def denominator(s2, eps, placement):
    """D of s**2."""
    if placement == INSIDE:
        return np.sqrt(s2 + eps)
    s = np.sqrt(s2)
    if placement == OUTSIDE:
        return s + eps
    return s if s > eps else eps


@compiled
def reciprocal(s2, eps, placement, most):
    """rstd = 1 / D; NaN where squares left the dtype's range, as a number would be wrong there."""
    rstd = 1 / denominator(s2, eps, placement)
    return rstd if 0 < rstd <= most else np.nan * most


@compiled
def kappa(s2, eps, placement):
    """D * D'(s) / s, the whole effect of where eps stands; 0 at s = 0 outside, where it has no value."""
    s = np.sqrt(s2)
    if placement == CLAMP:
        return np.float32(s > eps)
    return (s + eps) / s if s > 0 else np.float32(0)


@compiled
def normalized(p, mean, rstd, j):
    """x_hat."""
    return (load(p, j) - mean) * rstd


@compiled
def weighted(dy, weight, scale, j):
    """wdy, the cotangent of x_hat."""
    return scale * weight[j] * load(dy, j)


@compiled
def of_weight(dy, p, mean, rstd, scale, j):
    """What a row adds to dw."""
    return load(dy, j) * scale * normalized(p, mean, rstd, j)


@inlined
def row_sums(dy, p, weight, mean, rstd, scale, zero):
    """sum(x_hat * wdy) and sum(wdy)."""
    products = zero
    total = zero
    for j in range(len(p)):
        wdy = weighted(dy, weight, scale, j)
        products += normalized(p, mean, rstd, j) * wdy
        total += wdy
    return products, total


@inlined
def all_sums(dy, p, weight, mean, rstd, scale, zero, dw, db):
    """row_sums, and on the way what this row adds to dw and db.

    One loop for the four: arithmetic hides behind the only read of dy and p that comes from memory.
    """
    products = zero
    total = zero
    for j in range(len(p)):
        wdy = weighted(dy, weight, scale, j)
        products += normalized(p, mean, rstd, j) * wdy
        total += wdy
        dw[j] += of_weight(dy, p, mean, rstd, scale, j)
        db[j] += load(dy, j)
    return products, total


@inlined
def add(x, residual, residual_out):
    """p = x + residual, as residual_out holds it."""
    for j in range(len(residual)):
        store(residual_out, j, load(x, j) + load(residual, j))


@inlined
def affine(p, mean, rstd, scale, weight, bias, y):
    """y = scale * x_hat * weight + bias."""
    for j in range(len(p)):
        x_hat = normalized(p, mean, rstd, j)
        store(y, j, scale * weight[j] * x_hat + bias[j])


@inlined
def input_gradient(dy, dresidual_out, p, weight, mean, rstd, scale, c1, c2, dx):
    """dx = rstd * (wdy - c2 - x_hat * c1) + dresidual_out."""
    for j in range(len(dx)):
        wdy = weighted(dy, weight, scale, j)
        x_hat = normalized(p, mean, rstd, j)
        dp = rstd * (wdy - c2 - x_hat * c1)
        if len(dresidual_out) > 0:
            dp += load(dresidual_out, j)
        store(dx, j, dp)


@inlined
def add_weight_gradient(dy, p, mean, rstd, scale, dw):
    """What this row adds to dw."""
    for j in range(len(dw)):
        dw[j] += of_weight(dy, p, mean, rstd, scale, j)


@inlined
def add_bias_gradient(dy, db):
    """What this row adds to db."""
    for j in range(len(db)):
        db[j] += load(dy, j)


# The kernels. N and n are numbers of the dtype of the sums, as scale, eps and most.


@compiled
def forward(
    program,
    programs,
    x,
    residual,
    weight,
    bias,
    y,
    residual_out,
    mean,
    rstd,
    N,
    n,
    zero,
    center,
    scale,
    eps,
    placement,
    most,
):
    """y, residual_out and the statistics of this program's rows.

    Args:  x, residual, y, residual_out (M, N), residual and residual_out (M, 0) where there is none, x and residual
           also as `row` takes them; weight, bias (N,) or (heads, N); mean, rstd (M,); most: the largest rstd of a row
           whose squares are not lost; the rest from the spec
    """
    M, line, sums = len(rstd), line_for(y), line_for(residual_out)
    for i in range(M * program // programs, M * (program + 1) // programs):
        p = row(x, i)
        if len(row(residual, i)) > 0:
            p = held(sums, residual_out, i)
            add(row(x, i), row(residual, i), p)
            send(sums, residual_out, i)
        mean[i] = row_mean(p, N, zero) if center else 0
        rstd[i] = reciprocal(row_size(p, mean[i], n, zero), eps, placement, most)
        affine(
            p, mean[i], rstd[i], scale, own(weight, i), own(bias, i), held(line, y, i)
        )
        send(line, y, i)
    arrived()


@compiled
def backward(
    program,
    programs,
    dy,
    dresidual_out,
    p,
    weight,
    mean,
    rstd,
    dx,
    dw,
    db,
    N,
    n,
    zero,
    center,
    scale,
    eps,
    placement,
):
    """dx of this program's rows, and its own row of the partial sums of dw and db.

    Args:  dy, p (M, N); dresidual_out, dx (M, N) or (M, 0), all but dx also as `row` takes them; weight (N,) or
           (heads, N); mean, rstd (M,); dw, db (programs, N), (programs, heads, N) or (programs, 0), zeros at first; the
           rest from the spec
    """
    M, line, dw, db = len(rstd), line_for(dx), dw[program], db[program]
    for i in range(M * program // programs, M * (program + 1) // programs):
        together = len(row(dx, i)) > 0 and len(own(dw, i)) > 0 and len(own(db, i)) > 0
        if together:
            c1, c2 = all_sums(
                row(dy, i),
                row(p, i),
                own(weight, i),
                mean[i],
                rstd[i],
                scale,
                zero,
                own(dw, i),
                own(db, i),
            )
        elif len(row(dx, i)) > 0:
            c1, c2 = row_sums(
                row(dy, i), row(p, i), own(weight, i), mean[i], rstd[i], scale, zero
            )
        if len(row(dx, i)) > 0:
            c1, c2 = c1 / n, c2 / N if center else np.float32(0)
            if placement != INSIDE:
                c1 = kappa(row_size(row(p, i), mean[i], n, zero), eps, placement) * c1
            c1, c2 = rstd.dtype.type(c1), rstd.dtype.type(c2)
            added, w, place = row(dresidual_out, i), own(weight, i), held(line, dx, i)
            input_gradient(
                row(dy, i), added, row(p, i), w, mean[i], rstd[i], scale, c1, c2, place
            )
            send(line, dx, i)
        if not together:
            add_weight_gradient(
                row(dy, i), row(p, i), mean[i], rstd[i], scale, own(dw, i)
            )
            add_bias_gradient(row(dy, i), own(db, i))
    arrived()


@compiled
def reduce_partials(partial, total):
    """The sum of all programs' rows, added up in their order."""
    for program in range(len(partial)):
        for j in range(len(total)):
            total[j] += partial[program, j]
