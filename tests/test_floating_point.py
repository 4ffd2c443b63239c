"""Variances and sums in every format: each way is right, within its bound, and fails where it is said to fail."""

import dataclasses
import math

import numpy as np
import pytest

from normgrad import LAYER_NORM
from normgrad.checks import backends, cases, contract, variance
from normgrad.checks.tolerance import bounds, unit_roundoff

WAYS = list(variance.METHODS)
# (dtype, row length, mean over deviation): to first order in u, so N u R stays small.
ROWS = [("float32", n, r) for n in (1, 2, 7, 300) for r in (0, 30, 1e3)]
ROWS += [
    ("float32", 64, 1e4),
    ("float16", 33, 0),
    ("float16", 7, 3),
    ("bfloat16", 8, 0),
]


def rows(rng, dtype, columns, offset, count=16):
    return variance.rounding(dtype)(offset + rng.standard_normal((count, columns)))


def error(way, x, dtype):
    """The relative error of each row's variance, against float64 on the same numbers."""
    return np.abs(variance.METHODS[way](x, dtype)[1] / x.var(-1) - 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "dtype, columns, offset", [row for row in ROWS if row[1] > 1], ids=str
)
def test_a_variance_is_within_its_bound(way, dtype, columns, offset, rng):
    x = rows(rng, dtype, columns, offset)
    assert (error(way, x, dtype) <= variance.bound(way, x, dtype)).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype, columns, offset", ROWS, ids=str)
def test_a_mean_is_off_by_roundings_of_the_largest_entry(
    way, dtype, columns, offset, rng
):
    """Fails for a merge that weighs the wrong block, and for a correction that is not added back."""
    x = rows(rng, dtype, columns, offset)
    mean = variance.METHODS[way](x, dtype)[0]
    allowed = (columns + 9) * unit_roundoff(dtype) * np.abs(x).max(-1) * 2
    assert (np.abs(mean - x.mean(-1)) <= allowed).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide])
def test_operations_are_the_formats_own(operation, dtype, rng):
    fl = variance.rounding(dtype)
    a, b = fl(rng.uniform(-2, 2, (2, 4096)) * 2.0 ** rng.integers(-4, 4, (2, 4096)))
    own = operation(a.astype(dtype), b.astype(dtype)).astype(np.float64)
    np.testing.assert_array_equal(fl(operation(a, b)), own)


# -- long rows and rows far from 0


@pytest.mark.parametrize("offset", [0, 10000.3])
@pytest.mark.parametrize("name", ["torch", "numba"])
def test_a_row_of_a_million_columns_is_as_right_as_pairwise_sums(name, offset, rng):
    """Its squares are equal, so that each addition to a sum of them is rounded in the same direction."""
    columns = 10**6
    case = cases.draw(rng, 1, columns).without("bias", "residual", "dresidual_out")
    signs = np.sign(case.x)
    dy = case.dy + np.sign(signs * case.weight)
    case = dataclasses.replace(case, x=offset + 1.1 * signs, dy=dy).rounded("float32")
    outcome = backends.get(name).run(case, LAYER_NORM, "float32")
    saved, grads = contract.reference(case, LAYER_NORM, "float32")
    additions = math.ceil(math.log2(columns))
    allowed = bounds(case.dy, None, saved, "float32", True, additions)
    exact = {"y": saved.y, "dx": grads.dx, "dw": grads.dweight}
    for output, expected in exact.items():
        computed = getattr(outcome, output)
        error = np.abs(computed - expected)
        contract.check_within(
            output, computed, expected, error, getattr(allowed, output)
        )
