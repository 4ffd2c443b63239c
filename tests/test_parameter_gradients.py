"""Chapter "Parameter gradients and reductions": which results repeat bit for bit, and how parts of a batch add up."""

from dataclasses import replace

import numpy as np
import pytest

from normgrad import LAYER_NORM, numpy_ref
from normgrad.checks import backends, cases
from normgrad.checks.tolerance import bounds, unit_roundoff
from normgrad.symbolic import dim, equation, index, tensor
from normgrad.symbolic.codegen import compile
from normgrad.symbolic.symbols import M, N, i, j

ROWS, COLUMNS = 150, 48
RUNS = [
    (name, dtype)
    for name in ("numpy", "torch", "triton", "numba")
    for dtype in ("float32", "bfloat16")
]
RUNS.remove(("numpy", "bfloat16"))


def _run(name, case, dtype):
    return backends.get(name).run(case, LAYER_NORM, dtype)


def _some(case, rows):
    """The case with some of its rows, in the order given."""
    names = ("x", "residual", "dy", "dresidual_out")
    return replace(case, **{name: getattr(case, name)[rows] for name in names})


@pytest.fixture
def case(rng):
    """Rows of different scale and offset; more than one of Triton's tiles, and no multiple of one."""
    return cases.cases(rng, ROWS, COLUMNS)[1]


@pytest.mark.parametrize(("name", "dtype"), RUNS)
def test_two_runs_give_the_same_bits(case, name, dtype):
    case = case.rounded(dtype)
    first, again = _run(name, case, dtype), _run(name, case, dtype)
    for output in ("y", "residual_out", "dx", "dw", "db"):
        assert np.array_equal(getattr(first, output), getattr(again, output)), output


@pytest.mark.parametrize(("name", "dtype"), RUNS)
def test_a_row_is_the_same_bits_in_every_batch(case, name, dtype, rng):
    """Refuses a tile, or an order of a row's sum, that follows from the number of rows or from the row's place.

    The torch backend's c1 and c2 are matrix-vector products of a library, which promises that of y alone.
    """
    case, order = case.rounded(dtype), rng.permutation(ROWS)
    whole = _run(name, case, dtype)
    for rows in (order, order[:5], order[:1], slice(70, None)):
        part = _run(name, _some(case, rows), dtype)
        assert np.array_equal(part.y, whole.y[rows])
        assert name == "torch" or np.array_equal(part.dx, whole.dx[rows])


@pytest.mark.parametrize("splits", [(1,), (16, 32), (10, 10)], ids=str)
@pytest.mark.parametrize("name", ["numpy", "torch", "triton", "numba"])
def test_parts_of_a_batch_add_up(case, name, splits):
    """Refuses a mean over rows and rows that nobody takes, also where a part is empty."""
    edges = (0, *splits, ROWS)
    whole = _run(name, case, "float64")
    parts = [
        _run(name, _some(case, slice(*edge)), "float64")
        for edge in zip(edges, edges[1:], strict=False)
    ]
    saved = numpy_ref.forward(case.x + case.residual, case.weight, case.bias)
    allowed = bounds(case.dy, None, saved, "float64")
    for output in ("dw", "db"):
        added = sum(getattr(part, output) for part in parts)
        assert (
            np.abs(added - getattr(whole, output)) <= 2 * getattr(allowed, output)
        ).all(), output


@pytest.mark.parametrize(("rows", "programs"), [(12, 4), (11, 4), (3, 5), (7, 1)])
def test_every_schedule_is_a_corrected_matrix(rows, programs, rng):
    """The definition that is proved, as array code: schedules come out unchanged, any other matrix corrected."""
    P, g = dim("P"), index("g")
    shares = [tensor("A", P, M)[g, i], tensor("part", P, N)[g, j]]
    run = compile(equation("pg-split").defs, shares)
    x_hat, dy = rng.standard_normal((2, rows, COLUMNS))
    taken = (np.arange(rows) % programs == np.arange(programs)[:, None]).astype(float)
    sums = (dy * x_hat).sum(0)
    for a in (taken, rng.standard_normal((programs, rows))):
        A, parts = run(E=a, c=1.0, dy=dy, x_hat=x_hat)
        rounding = (
            8 * unit_roundoff("float64") * programs * (1 + np.abs(a).sum(0).max())
        )
        assert np.abs(A.sum(0) - 1).max() <= rounding
        assert a is not taken or np.abs(A - a).max() <= rounding
        assert (
            np.abs(parts.sum(0) - sums).max()
            <= rows * rounding * np.abs(dy * x_hat).sum(0).max()
        )
