"""Wrong handling of memory: what is written where, at which distance rows lie, and how many there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import numpy_ref
from .operators import parts, right, right_forward


def gradients(x, weight, dy):
    """(dx, dw) of LayerNorm for rows x, into new arrays."""
    grads = numpy_ref.backward(dy, numpy_ref.forward(x, weight))
    return grads.dx, grads.dweight


def over_dy(x, weight, dy):
    """dx takes the place of dy, which saves a buffer."""
    dx, dw = gradients(x, weight, dy)
    dy[...] = dx
    return dy, dw


def twice_over_dy(x, weight, dy):
    """As over_dy, and wrong by a factor of 2."""
    dx, dw = gradients(x, weight, dy)
    dy[...] = 2 * dx
    return dy, dw


def dw_too_late(given, saved):
    """dw from the memory that held dy, after dx was written there."""
    grads = right(given, saved)
    dy = grads.dx
    return replace(grads, dweight=(dy * parts(given, saved).x_hat).sum(0))


def buffer_dropped(given):
    """The caller's buffer for the sum is forgotten; x is saved."""
    saved, residual_out = right_forward(given), None
    if residual_out is None:
        residual_out = given.x
    return replace(saved, residual_out=residual_out)


def stride_of_x(x, weight, dy):
    """Row i of dy is looked for at i times the stride of x."""
    dy = as_strided(dy, dy.shape, x.strides)
    return gradients(x, weight, dy)


def heads_end_to_end(x, weight):
    """Row r of all tokens' heads is looked for r * N numbers behind the first one."""
    tokens, heads, columns = x.shape
    rows = as_strided(x, (tokens * heads, columns), (columns * x.itemsize, x.itemsize))
    return numpy_ref.forward(rows, weight).y.reshape(x.shape)


def heads_with_two_strides(x, weight):
    """The heads of a token follow one another; the next token begins where its stride says."""
    return numpy_ref.forward(x, weight).y


def offset_in_32_bits(rows, stride):
    """Where rows begin, by 32-bit row numbers."""
    return rows.astype(np.int32) * np.int32(stride)


def offset_in_64_bits(rows, stride):
    """The row number is widened before it is multiplied."""
    return rows.astype(np.int64) * stride


WARPS = 4


def one_row_too_many(x, y, rows, columns):
    """Blocks of four warps, a row each; spare warps should return."""
    for row in range(WARPS * -(-rows // WARPS)):
        if row > rows:
            continue
        here = slice(row * columns, (row + 1) * columns)
        y[here] = numpy_ref.forward(x[here]).y


def rows_as_many_as_there_are(x, y, rows, columns):
    """The same with the guard that was meant."""
    for row in range(WARPS * -(-rows // WARPS)):
        if row >= rows:
            continue
        here = slice(row * columns, (row + 1) * columns)
        y[here] = numpy_ref.forward(x[here]).y


MULTIPROCESSORS = 132


def no_rows(given, saved):
    """A program a multiprocessor; each sums its share of dw."""
    rows = len(given.dy)
    programs = min(rows, MULTIPROCESSORS)
    share = -(-rows // programs)
    dw = _shares(given, saved, programs, share)
    return replace(right(given, saved), dweight=dw)


def at_least_one_program(given, saved):
    """The same, with a program that has nothing to do where there are no rows."""
    rows = len(given.dy)
    programs = max(1, min(rows, MULTIPROCESSORS))
    share = -(-rows // programs)
    dw = _shares(given, saved, programs, share)
    return replace(right(given, saved), dweight=dw)


def _shares(given, saved, programs, share):
    terms = given.dy * parts(given, saved).x_hat
    partial = [terms[k * share : (k + 1) * share].sum(0) for k in range(programs)]
    return np.sum(partial, 0)
