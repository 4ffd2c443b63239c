"""Checks that the contract does not have: on memory, on layouts, on repeatability, on a gate and on the cache."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import numpy_ref
from ...checks.cases import draw
from ...checks.contract import GRADCHECK_STEP, check_gradcheck
from ...checks.finite_difference import directional, inner
from ...checks.tolerance import bounds, round_to
from ...spec import LAYER_NORM, RMS_NORM
from .formulas import gated_forward, projected_forward

PLAIN = ("residual", "dresidual_out")


def _limits(x, weight, dy):
    """The oracle's (dx, dw) of LayerNorm and the errors they may have, in float64."""
    saved = numpy_ref.forward(x, weight)
    grads, allowed = numpy_ref.backward(dy, saved), bounds(dy, None, saved, "float64")
    return (("dx", grads.dx, allowed.dx), ("dw", grads.dweight, allowed.dw))


def _compare(found, x, weight, dy, where):
    for got, (name, wanted, allowed) in zip(found, _limits(x, weight, dy), strict=True):
        error = np.abs(got - wanted)
        if not (error <= allowed).all():
            raise AssertionError(f"{where}: {name} is off by up to {error.max():.1e}, allowed is {allowed.max():.1e}")


def check_cotangent(gradients, rng):
    """dy is what it was, nothing returned lies in its memory, and a second call with it returns the same.

    Args:    gradients: of (x, weight, dy), returns (dx, dw) of LayerNorm
    Raises:  AssertionError
    """
    case = draw(rng, 4, 8)
    dy = case.dy.copy()
    dx, dw = gradients(case.x, case.weight, dy)
    if not np.array_equal(dy, case.dy):
        raise AssertionError("dy was overwritten")
    if np.shares_memory(dx, dy):
        raise AssertionError("dx lies in the memory of dy")
    _compare((dx, dw), case.x, case.weight, case.dy, "first call")
    _compare(gradients(case.x, case.weight, dy), case.x, case.weight, case.dy, "second call")


def layouts(dy):
    """Arrays that hold rows at other distances than dy does, each within the memory it was made in."""
    m, n = dy.shape
    columns_first = np.ascontiguousarray(dy.T).T
    every_second = np.repeat(dy, 2, 0)[::2]
    one_row = as_strided(dy.copy(), (m, n), (0, dy.itemsize))
    return {"columns first": columns_first, "every second row": every_second, "one row, expanded": one_row}


def check_layouts(gradients, rng, layouts=layouts):
    """The layout of dy does not matter, nor does that of x.

    Args:    gradients: of (x, weight, dy), returns (dx, dw) of LayerNorm; layouts: makes them, {name: array}
    Raises:  AssertionError that names the layout
    """
    case = draw(rng, 4, 8)
    for name, dy in layouts(case.dy).items():
        _compare(gradients(case.x, case.weight, dy), case.x, case.weight, dy, f"dy: {name}")
    for name, x in layouts(case.x).items():
        _compare(gradients(x, case.weight, case.dy), x, case.weight, case.dy, f"x: {name}")


def check_offsets(offset, rng, stride=65536):
    """Rows begin where they begin, past the 2**31st element too; no memory is needed to ask."""
    rows = np.sort(rng.integers(0, 100_000, 64))
    found = [int(start) for start in offset(rows, stride)]
    exact = [int(row) * stride for row in rows]
    for row, start, wanted in zip(rows, found, exact, strict=True):
        if start != wanted:
            raise AssertionError(f"row {row} begins at {start}, needs {wanted}")


def check_stays_inside(kernel, rng, counts=range(9)):
    """The rows are normalized, and the memory past the last one is as it was.

    Args:    kernel: of flat arrays x and y and the numbers of rows and columns; writes into y
    Raises:  AssertionError
    """
    columns, mark = 5, -12345.0
    for rows in counts:
        x, y = rng.standard_normal((rows + 4) * columns), np.full((rows + 4) * columns, mark)
        kernel(x, y, rows, columns)
        end = rows * columns
        if (y[end:] != mark).any():
            raise AssertionError(f"{rows} rows: {int((y[end:] != mark).sum())} numbers past the last row were written")
        if not np.array_equal(y[:end].reshape(rows, columns), numpy_ref.forward(x[:end].reshape(rows, columns)).y):
            raise AssertionError(f"{rows} rows: y is wrong")


def check_order(reduction, rng, rows=256, columns=64):
    """A sum of bfloat16 terms over rows has the same bits in whatever order the rows arrive.

    Args:    reduction: of (terms, arrival, store)
    Raises:  AssertionError that counts the entries that changed
    """
    terms = round_to(rng.standard_normal((rows, columns)), "bfloat16")
    store = lambda array: round_to(array, "bfloat16")  # noqa: E731
    first = reduction(terms, np.arange(rows), store)
    for _ in range(8):
        again = reduction(terms, rng.permutation(rows), store)
        if not np.array_equal(first, again):
            changed = int((first != again).sum())
            raise AssertionError(f"{changed} of {columns} entries have other bits in another order of arrival")


def check_gate(backward, rng, stream=1.0):
    """The gradients of a gated RMSNorm that returns x: the slope along a random line, against central differences.

    Args:    backward: of (x, gate, weight, dy, dresidual_out, spec), returns (dx, dgate, dw)
             stream: scales the cotangent of the returned x; with 0 the loss does not depend on it
    Raises:  AssertionError with both slopes
    """
    case, spec = draw(rng, 4, 8), RMS_NORM.replace(eps=GRADCHECK_STEP)
    case = replace(case, dresidual_out=stream * case.dresidual_out)
    inputs = (case.x, case.residual, case.weight)
    line = [rng.standard_normal(a.shape) for a in inputs]

    def loss(x, gate, weight):
        saved, residual_out = gated_forward(x, gate, weight, spec)
        terms = (case.dy * saved.y, case.dresidual_out * residual_out)
        return sum(t.sum() for t in terms), sum(np.abs(t).sum() for t in terms)

    _compare_slopes(backward(*inputs, case.dy, case.dresidual_out, spec), line, directional(loss, inputs, line))


def check_projected(backward, rng, moved=1.0):
    """The gradients of a gated RMSNorm and the matrix behind it: the slope along a random line, against differences.

    Args:    backward: of (x, gate, weight, matrix, dout, spec), returns (dx, dgate, dw, dmatrix)
             moved: scales the line of the matrix; with 0 it stays where it is
    Raises:  AssertionError with both slopes
    """
    case, spec = draw(rng, 4, 8), RMS_NORM.replace(eps=GRADCHECK_STEP)
    inputs, dout = (case.x, case.residual, case.weight, rng.standard_normal((8, 3))), rng.standard_normal((4, 3))
    line = [rng.standard_normal(a.shape) * scale for a, scale in zip(inputs, (1, 1, 1, moved), strict=True)]

    def loss(*inputs):
        terms = dout * projected_forward(*inputs, spec)[1]
        return terms.sum(), np.abs(terms).sum()

    _compare_slopes(backward(*inputs, dout, spec), line, directional(loss, inputs, line))


def _compare_slopes(grads, line, slope):
    claimed = sum(inner(grad, way) for grad, way in zip(grads, line, strict=True))
    if not abs(claimed - slope.value) <= slope.tolerance:
        raise AssertionError(f"the gradients give the slope {claimed:.6e}, central differences {slope.value:.6e}")


def fused_heads(rng, tokens=5, heads=4, columns=8):
    """The queries of a fused tensor of queries, keys and values: the next token is three times as far."""
    return rng.standard_normal((tokens, 3 * heads, columns))[:, :heads]


def check_heads(forward, rng, drawn=fused_heads):
    """Each head of each token is normalized, wherever it lies.

    Args:    forward: of (x (tokens, heads, N), weight (N,)), returns y of LayerNorm; drawn: makes x
    Raises:  AssertionError with the error of y
    """
    x, weight = drawn(rng), rng.standard_normal(8)
    rows = x.reshape(-1, 8)
    saved = numpy_ref.forward(rows, weight)
    error, allowed = np.abs(forward(x, weight).reshape(rows.shape) - saved.y), bounds(rows, None, saved, "float64").y
    if not (error <= allowed).all():
        raise AssertionError(f"a slice of heads: y is off by up to {error.max():.1e}, allowed is {allowed.max():.1e}")


def check_second(backend, rng):
    """gradcheck and gradgradcheck on a plain LayerNorm."""
    return check_gradcheck(backend, draw(rng, 2, 3).without(*PLAIN), LAYER_NORM, second=True)


def check_one_variant(key, rng):
    """Twenty numbers of rows ask for one compiled kernel."""
    variants = {tuple(key(int(rows)).items()) for rows in rng.integers(1, 16384, 20)}
    if len(variants) != 1:
        raise AssertionError(f"20 numbers of rows ask for {len(variants)} compiled kernels, needs 1")
