"""Where eps stands: rows without variance, on the mean or on the sum, and the comparison of source 001."""

import functools

import numpy as np
import piecewise_rules
import pytest
import torch

import normgrad
from normgrad import LAYER_NORM_STD, NormSpec, numpy_ref
from normgrad.checks import cases
from normgrad.checks.tolerance import bounds, unit_roundoff

u = unit_roundoff("float64")
EPS = 0.3
RULES = [piecewise_rules.closed, piecewise_rules.pieces, piecewise_rules.matrix]
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)


# -- rows without variance


def _flat(rng, columns=7):
    case = cases.draw(rng, 3, columns)
    return np.tile([[1.5], [0.0], [-2.25]], columns), case.weight, case.dy


def _flux(x, eps):
    """The layer of source 001 as one writes it in torch."""
    q = x - x.mean(-1, keepdim=True)
    return q / (torch.sqrt((q * q).mean(-1, keepdim=True)) + eps)


def test_plain_autograd_gives_nan_at_a_constant_row(rng):
    x, weight, dy = _flat(rng)
    leaf = torch.tensor(x, requires_grad=True)
    y = _flux(leaf, EPS) * torch.tensor(weight)
    y.backward(torch.tensor(dy))
    assert y.isfinite().all() and leaf.grad.isnan().all()


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_a_row_counts_down_to_the_smallest_normal_mean_square(backend):
    edge = torch.full((2, 4), torch.finfo(torch.float32).tiny ** 0.5)
    norm = functools.partial(normgrad.rms_norm, eps=0, backend=backend)
    assert torch.equal(norm(edge, 4), torch.ones(2, 4))
    assert norm(edge * (1 - 2.0**-23), 4).isnan().all()


# -- on the mean or on the sum; scale and sign


@pytest.mark.parametrize(
    "placement, factor", [("inside", 1), ("outside", 0.5), ("clamp", 0.5)]
)
def test_eps_on_the_sum_is_larger_by_a_power_of_the_columns(placement, factor, rng):
    case = cases.cases(rng)[1].without("residual", "dresidual_out")
    columns = case.x.shape[-1]
    on_mean = NormSpec(eps=EPS, placement=placement)
    on_sum = NormSpec(
        reduce="sum", scale=columns**0.5, eps=EPS * columns**factor, placement=placement
    )
    outputs = [
        numpy_ref.forward(case.x, case.weight, case.bias, spec=spec)
        for spec in (on_mean, on_sum)
    ]
    grads = [numpy_ref.backward(case.dy, saved) for saved in outputs]
    allowed = bounds(case.dy, None, outputs[0], "float64")
    for of_mean, of_sum, limit in (
        (outputs[0].y, outputs[1].y, allowed.y),
        (grads[0].dx, grads[1].dx, allowed.dx),
    ):
        assert (np.abs(of_mean - of_sum) <= 2 * limit).all()


# -- source 001


@by_rule
@pytest.mark.parametrize("shape", [(1, 2), (5, 16), (3, 129)])
def test_the_closed_rule_equals_the_pieces_and_the_matrix(rule, shape, rng):
    case = cases.draw(rng, *shape)
    saved = numpy_ref.forward(case.x, spec=LAYER_NORM_STD)
    allowed = bounds(case.dy, None, saved, "float64").dx
    _, mean, sigma = piecewise_rules.forward(case.x, LAYER_NORM_STD.eps)
    dx = rule(case.dy, case.x, mean, sigma, LAYER_NORM_STD.eps)
    assert (np.abs(dx - numpy_ref.backward(case.dy, saved).dx) <= allowed).all()


@by_rule
def test_operations_per_row(rule, rng):
    formula = {
        "closed": lambda n: 8 * n + 5,
        "pieces": lambda n: 12 * n + 7,
        "matrix": lambda n: 4 * n * n + 3 * n,
    }
    for columns in (2, 10, 65):
        assert piecewise_rules.operations(rule, 1, columns, rng) == formula[
            rule.__name__
        ](columns)


def test_sigma_is_the_biased_standard_deviation(rng):
    x = cases.draw(rng, 4, 3).x
    _, mean, sigma = piecewise_rules.forward(x, EPS)
    assert np.abs(sigma - x.std(-1, keepdims=True)).max() <= 16 * u * np.abs(x).max()
    assert (
        np.abs(sigma / x.std(-1, ddof=1, keepdims=True) - (2 / 3) ** 0.5).max()
        <= 64 * u
    )
    assert mean.shape == (4, 1)


def test_the_printed_matrix_is_the_transpose_and_a_vector_weight_tells(rng):
    case = cases.draw(rng, 1, 6)
    x, dz, weight = case.x[0], case.dy[0], case.weight
    _, mean, sigma = piecewise_rules.forward(case.x, EPS)
    printed = piecewise_rules.jacobian(x, mean[0, 0], sigma[0, 0], EPS)
    weighted = printed * weight[None, :]
    spec = LAYER_NORM_STD.replace(eps=EPS)
    saved = numpy_ref.forward(case.x, weight, spec=spec)
    dx = numpy_ref.backward(case.dy, saved).dx[0]
    allowed = bounds(case.dy, None, saved, "float64").dx[0]
    assert (np.abs(weighted @ dz - dx) <= allowed).all()
    assert (np.abs(printed - printed.T) <= 16 * u * np.abs(printed).max()).all()
    for wrong in (weighted.T @ dz, weight * (printed @ dz)):
        assert (np.abs(wrong - dx) > allowed).any()
