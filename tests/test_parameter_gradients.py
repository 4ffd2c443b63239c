"""Chapter "Parameter gradients and reductions": a row has the same bits in every batch and at every place of it."""

from dataclasses import replace

import numpy as np
import pytest

from normgrad import LAYER_NORM
from normgrad.checks import backends, cases

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
