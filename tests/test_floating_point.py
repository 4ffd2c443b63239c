"""Variances and sums in every format: each way is right, within its bound, and fails where it is said to fail."""

import dataclasses
import math

import numpy as np
import pytest

from normgrad import LAYER_NORM
from normgrad.checks import backends, cases, contract, variance
from normgrad.checks.tolerance import bounds, unit_roundoff
from normgrad.mistakes import mutants

FORMATS = ("float64", "float32", "float16", "bfloat16")
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


@pytest.mark.parametrize("block", [1, 2, 5, 64, 100])
def test_chan_merges_blocks_of_every_length(block, rng):
    x = rows(rng, "float64", 77, 3.0)
    mean, found = variance.chan(x, "float64", block)
    allowed = variance.bound("Welford", x, "float64") + variance.bound(
        "two passes", x, "float64"
    )
    assert (np.abs(found / x.var(-1) - 1) <= allowed).all()
    assert (
        np.abs(mean - x.mean(-1))
        <= 2 * 77 * unit_roundoff("float64") * np.abs(x).max(-1)
    ).all()


def test_one_pass_falls_below_zero_and_no_other_way_does(rng):
    x = rows(rng, "float32", 512, 1e4, count=64)
    found = {way: method(x)[1] for way, method in variance.METHODS.items()}
    assert (found.pop("one pass") < 0).any()
    assert all((v > 0.5).all() for v in found.values())


def test_the_ways_rank_as_their_bounds_do(rng):
    """One pass loses digits with the square of the mean, Welford with the mean, a corrected mean with neither."""
    x = rows(rng, "float32", 256, 1e4)
    one_pass, welford, corrected = (
        error(way, x, "float32").max() for way in ("one pass", "Welford", "corrected")
    )
    assert one_pass > 1000 * welford > 1000 * 10 * corrected
    assert (
        error("two passes", x + 9e4, "float32").max()
        > 100 * error("corrected", x + 9e4, "float32").max()
    )


def test_the_correction_reaches_the_mean(rng):
    """A mean of 512 numbers is off by many roundings, the corrected one by its last."""
    x = rows(rng, "float32", 512, 1e4)
    last = (1 + 0.5) * unit_roundoff("float32") * 1e4
    plain, corrected = (
        np.abs(variance.METHODS[way](x)[0] - x.mean(-1)).max()
        for way in ("two passes", "corrected")
    )
    assert corrected <= last < plain


@pytest.mark.parametrize(
    "way, power", [("one pass", 2), ("shifted", 0), ("Welford", 1), ("Chan", 1)]
)
def test_bounds_grow_with_the_mean(way, power, rng):
    near, far = (
        variance.bound(way, rows(rng, "float64", 64, r), "float32").max()
        for r in (1e3, 1e5)
    )
    assert abs(np.log10(far / near) / 2 - power) < 0.2


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide])
def test_operations_are_the_formats_own(operation, dtype, rng):
    fl = variance.rounding(dtype)
    a, b = fl(rng.uniform(-2, 2, (2, 4096)) * 2.0 ** rng.integers(-4, 4, (2, 4096)))
    own = operation(a.astype(dtype), b.astype(dtype)).astype(np.float64)
    np.testing.assert_array_equal(fl(operation(a, b)), own)


@pytest.mark.parametrize("operation", ["add", "mul", "div"])
def test_operations_in_bfloat16_are_torchs(operation, rng):
    torch = pytest.importorskip("torch")
    a, b = (torch.tensor(array).bfloat16() for array in rng.standard_normal((2, 4096)))
    own = getattr(torch, operation)(a, b).double().numpy()
    exact = getattr(torch, operation)(a.double(), b.double()).numpy()
    np.testing.assert_array_equal(variance.rounding("bfloat16")(exact), own)


SUMS = (variance.in_order, variance.in_pairs, variance.in_blocks)


@pytest.mark.parametrize("add", SUMS)
@pytest.mark.parametrize("count", [0, 1, 2, 5, 8, 100])
def test_sums_of_small_integers_are_exact(add, count, rng):
    terms = rng.integers(-9, 9, (3, count)).astype(float)
    np.testing.assert_array_equal(
        add(terms, variance.rounding("float32")), terms.sum(-1)
    )


@pytest.mark.parametrize("dtype, end", [("bfloat16", 256), ("float16", 2048)])
def test_a_sum_in_16_bits_stops_growing(dtype, end):
    fl, ones = variance.rounding(dtype), np.ones(4096)
    assert variance.in_order(ones, fl) == end
    assert variance.in_pairs(ones, fl) == 4096
    assert variance.in_blocks(ones, fl, blocks=32) == 4096


def test_past_the_largest_number_is_infinity():
    assert (
        np.isinf(variance.rounding("float16")(256.0**2))
        and variance.rounding("bfloat16")(256.0**2) == 256.0**2
    )


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda x: variance.bound("two pass", x, "float32"), "two passes"),
        (lambda x: variance.rounding("fp8"), "fp8"),
    ],
)
def test_unknown_names_are_refused(call, named):
    with pytest.raises(ValueError, match=named):
        call(np.ones((1, 2)))


# -- rows a hundred deviations from 0: the statistics are kept in float32 between forward and backward


def at_100(rng, columns):
    case = cases.draw(rng, 6, columns).without("residual", "dresidual_out")
    return dataclasses.replace(case, x=100 + case.x, name="mean 100")


class BuiltIn(backends.TorchBackend):
    """torch's own layer, whose statistics have the dtype of its weight."""

    def normalize(self, x, residual, weight, bias, spec):
        import torch

        return torch.layer_norm(x, x.shape[-1:], weight, bias), x


@pytest.mark.parametrize("columns", [5, 64])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["torch", "triton", "numba"])
def test_half_precision_gradients_at_mean_100(name, dtype, columns, rng):
    contract.check_values(name, at_100(rng, columns), LAYER_NORM, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_statistics_in_half_precision_are_rejected_at_mean_100(dtype, rng):
    with pytest.raises(AssertionError, match="mean 100.*(dx|dw)"):
        contract.check_values(BuiltIn("torch"), at_100(rng, 64), LAYER_NORM, dtype)


@pytest.mark.parametrize("name", ["torch", "triton", "numba"])
def test_the_mutant_with_rounded_statistics_is_rejected_at_mean_100(name, rng):
    wrong = mutants.mutated(mutants.find("statistics in bfloat16"), name)
    with pytest.raises(AssertionError, match="mean 100"):
        contract.check_values(wrong, at_100(rng, 64), LAYER_NORM, "bfloat16")


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
