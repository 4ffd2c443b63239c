"""Checks that the contract does not have: on memory, on layouts, on offsets, on heads and on second derivatives."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import numpy_ref
from ...checks.cases import draw
from ...checks.tolerance import bounds


def compare(found, x, weight, dy, where):
    """Compare (dx, dw) of LayerNorm with the oracle's, in float64; AssertionError that says where and how far."""
    saved = numpy_ref.forward(x, weight)
    grads = numpy_ref.backward(dy, saved)
    allowed = bounds(dy, None, saved, "float64")
    pairs = (("dx", grads.dx, allowed.dx), ("dw", grads.dweight, allowed.dw))
    for got, (name, expected, bound) in zip(found, pairs, strict=True):
        error = np.abs(got - expected)
        if not (error <= bound).all():
            raise AssertionError(
                f"{where}: {name} is off by up to {error.max():.1e}, allowed is {bound.max():.1e}"
            )


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
    compare((dx, dw), case.x, case.weight, case.dy, "first call")
    compare(
        gradients(case.x, case.weight, dy), case.x, case.weight, case.dy, "second call"
    )


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
        compare(
            gradients(case.x, case.weight, dy), case.x, case.weight, dy, f"dy: {name}"
        )
    for name, x in layouts(case.x).items():
        compare(
            gradients(x, case.weight, case.dy), x, case.weight, case.dy, f"x: {name}"
        )


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
        x, y = (
            rng.standard_normal((rows + 4) * columns),
            np.full((rows + 4) * columns, mark),
        )
        kernel(x, y, rows, columns)
        end = rows * columns
        if (y[end:] != mark).any():
            raise AssertionError(
                f"{rows} rows: {int((y[end:] != mark).sum())} numbers past the last row were written"
            )
        x_rows = x[:end].reshape(rows, columns)
        saved = numpy_ref.forward(x_rows)
        if not (
            np.abs(y[:end].reshape(x_rows.shape) - saved.y)
            <= bounds(x_rows, None, saved, "float64").y
        ).all():
            raise AssertionError(f"{rows} rows: y is wrong")


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
    error, allowed = (
        np.abs(forward(x, weight).reshape(rows.shape) - saved.y),
        bounds(rows, None, saved, "float64").y,
    )
    if not (error <= allowed).all():
        raise AssertionError(
            f"a slice of heads: y is off by up to {error.max():.1e}, allowed is {allowed.max():.1e}"
        )


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
