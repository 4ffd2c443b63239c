"""Checks that the contract does not have: on memory, on layouts, on offsets, on heads and on second derivatives."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import numpy_ref
from ...checks.cases import draw
from ...tolerance import bounds


def within(words, output, expected, bound):
    """AssertionError that says how far the output is off, where that is more than the bound."""
    error = np.abs(output - expected)
    if not (error <= bound).all():
        raise AssertionError(
            f"{words} is off by up to {error.max():.1e}, allowed is {bound.max():.1e}"
        )


def compare(computed, x, weight, dy, where):
    """Compare (dx, dw) of LayerNorm with the oracle's, in float64; AssertionError that says where and how far."""
    saved = numpy_ref.forward(x, weight)
    expected = numpy_ref.backward(dy, saved)
    allowed = bounds(dy, None, saved, "float64")
    within(f"{where}: dx", computed[0], expected.dx, allowed.dx)
    within(f"{where}: dw", computed[1], expected.dweight, allowed.dw)


def check_cotangent(gradients, rng):
    """dy is what it was, nothing returned lies in its memory, and a second call with it returns the same.

    Args:    gradients: of (x, weight, dy), returns (dx, dw) of LayerNorm
    Raises:  AssertionError
    """
    case = draw(rng, 4, 8)
    dy = case.dy.copy()
    for call in ("first call", "second call"):
        computed = gradients(case.x, case.weight, dy)
        if not np.array_equal(dy, case.dy):
            raise AssertionError("dy was overwritten")
        if np.shares_memory(computed[0], dy):
            raise AssertionError("dx lies in the memory of dy")
        compare(computed, case.x, case.weight, dy, call)


def layouts(dy):
    """Arrays that hold rows at other distances than dy does, each within the memory it was made in."""
    m, n = dy.shape
    columns_first = np.ascontiguousarray(dy.T).T
    every_second = np.repeat(dy, 2, 0)[::2]
    one_row = as_strided(dy.copy(), (m, n), (0, dy.itemsize))
    return {
        "columns first": columns_first,
        "every second row": every_second,
        "one row, expanded": one_row,
    }


def check_layouts(gradients, rng, layouts=layouts):
    """The layout of dy does not matter, nor does that of x.

    Args:    gradients: of (x, weight, dy), returns (dx, dw) of LayerNorm; layouts: makes them, {name: array}
    Raises:  AssertionError that names the layout
    """
    case = draw(rng, 4, 8)
    for name, dy in layouts(case.dy).items():
        computed = gradients(case.x, case.weight, dy)
        compare(computed, case.x, case.weight, dy, f"dy: {name}")
    for name, x in layouts(case.x).items():
        computed = gradients(x, case.weight, case.dy)
        compare(computed, x, case.weight, case.dy, f"x: {name}")


def check_offsets(offset, rng, stride=65536):
    """Rows begin where they begin, past the 2**31st element too; no memory is needed to ask."""
    rows = np.sort(rng.integers(0, 100_000, 64))
    for row, start in zip(rows, offset(rows, stride), strict=True):
        if int(start) != int(row) * stride:
            raise AssertionError(
                f"row {row} begins at {start}, needs {int(row) * stride}"
            )


def check_stays_inside(kernel, rng, counts=range(9)):
    """The rows are normalized, and the memory past the last one is as it was.

    Args:    kernel: of flat arrays x and y and the numbers of rows and columns; writes into y
    Raises:  AssertionError
    """
    columns, mark = 5, -12345.0
    for rows in counts:
        x = rng.standard_normal((rows + 4) * columns)
        y = np.full_like(x, mark)
        kernel(x, y, rows, columns)
        end = rows * columns
        written = int((y[end:] != mark).sum())
        if written:
            raise AssertionError(
                f"{rows} rows: {written} numbers past the last row were written"
            )
        check_rows(f"{rows} rows: y", y[:end], x[:end].reshape(rows, columns))


def check_rows(words, y, x, weight=None):
    """y, of any shape, is LayerNorm of the rows x; AssertionError that says how far it is off."""
    saved = numpy_ref.forward(x, weight)
    within(words, y.reshape(x.shape), saved.y, bounds(x, None, saved, "float64").y)


def fused_heads(rng, tokens=5, heads=4, columns=8):
    """The queries of a fused tensor of queries, keys and values: the next token is three times as far."""
    return rng.standard_normal((tokens, 3 * heads, columns))[:, :heads]


def check_heads(forward, rng, drawn=fused_heads):
    """Each head of each token is normalized, wherever it lies.

    Args:    forward: of (x (tokens, heads, N), weight (N,)), returns y of LayerNorm; drawn: makes x
    Raises:  AssertionError with the error of y
    """
    x, weight = drawn(rng), rng.standard_normal(8)
    y = forward(x, weight)
    check_rows("a slice of heads: y", y, x.reshape(-1, 8), weight)


def check_second(layer, rng, second=True):
    """gradcheck and, with `second`, gradgradcheck.

    Args:    layer: of tensors (x, weight, bias), returns y
    Raises:  AssertionError with torch's complaint
    """
    import torch
    from torch.autograd.gradcheck import GradcheckError

    inputs = [
        torch.tensor(rng.standard_normal(shape), requires_grad=True)
        for shape in ((2, 3), 3, 3)
    ]
    try:
        torch.autograd.gradcheck(layer, inputs)
        if second:
            torch.autograd.gradgradcheck(layer, inputs)
    except GradcheckError as error:
        raise AssertionError(" ".join(str(error).split())) from None
