"""Where eps stands: the theorem with an opaque denominator, rows without variance, and source 001's comparison."""

import numpy as np
import piecewise_rules
import pytest
import torch
from sympy import Symbol, sqrt

import normgrad
from normgrad import LAYER_NORM, LAYER_NORM_STD, NormSpec, numpy_ref
from normgrad.checks import cases
from normgrad.checks.tolerance import bounds, unit_roundoff
from normgrad.symbolic import (
    NotProved,
    Partial,
    check_fixed,
    counterexample,
    delta,
    latex,
    prove,
)
from normgrad.symbolic.derivations import eps_placement
from normgrad.symbolic.opaque import concrete, derivative, opaque
from normgrad.symbolic.symbols import j, k

u = unit_roundoff("float64")
EPS = 0.3
PLACED = [
    NormSpec(eps=EPS, placement=place) for place in ("inside", "outside", "clamp")
]
by_placement = pytest.mark.parametrize("spec", PLACED, ids=lambda spec: spec.placement)
RULES = [piecewise_rules.closed, piecewise_rules.pieces, piecewise_rules.matrix]
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)


# -- opaque functions


@pytest.mark.parametrize(
    "wrong",
    [
        lambda D, slope, s: 1,
        lambda D, slope, s: slope,
        lambda D, slope, s: D * slope,
        lambda D, slope, s: D * slope / s**2,
        lambda D, slope, s: D * derivative(derivative(eps_placement.D))(s) / s,
    ],
    ids=["kappa dropped", "D' alone", "s forgotten", "s^2 for s", "D'' for D'"],
)
def test_a_wrong_kappa_is_refuted_for_an_opaque_denominator(wrong):
    s, rstd, q, r = (getattr(eps_placement, name) for name in ("s", "rstd", "q", "r"))
    right = eps_placement.D(s) * eps_placement.slope(s) / s
    for kappa, holds in (
        (right, True),
        (wrong(eps_placement.D(s), eps_placement.slope(s), s), False),
    ):
        defs = eps_placement.divided_row()
        claim = (
            Partial(r[k], q[j]),
            rstd * (delta(k, j) - kappa / eps_placement.n * r[k] * r[j]),
        )
        if holds:
            assert prove(*claim, defs) and check_fixed(*claim, (2,), defs)
            continue
        with pytest.raises(NotProved, match="refuted at"):
            prove(*claim, defs)
        with pytest.raises(AssertionError, match="fails for rows of length 2"):
            check_fixed(*claim, (2,), defs)


def test_the_denominator_must_not_vanish_and_says_so_by_the_name_of_its_size():
    row = eps_placement.divided_row()
    proof = prove(
        Partial(eps_placement.r[k], eps_placement.q[j]),
        Partial(eps_placement.r[k], eps_placement.q[j]),
        row,
    )
    assert list(map(latex, proof.side_conditions)) == ["s > 0", r"D(s) \neq 0"]


def test_two_opaque_functions_are_two():
    t = Symbol("t", positive=True)
    f, g = opaque("f"), opaque("g", lambda t: t**3 + 1)
    assert derivative(f) is derivative(f) is not derivative(g)
    prove(Partial(f(t) * g(t), t), derivative(f)(t) * g(t) + f(t) * derivative(g)(t))
    for wrong in (f(t) + 1, f(t) * f(t), f(2 * t), derivative(f)(t), g(t)):
        assert counterexample(f(t), wrong) is not None
    assert (
        counterexample(f(t), opaque("f")(t)) is None
    )  # one stand-in: undecided, and not proved
    with pytest.raises(NotProved, match="undecided"):
        prove(f(t), opaque("f")(t))


def test_the_stand_in_comes_with_its_own_derivatives():
    t = Symbol("t", positive=True)
    f = opaque("f", lambda t: t**3 + 2 * t)
    slope = f(sqrt(t)).diff(t)
    assert (
        concrete(slope.xreplace({t: t**2})).expand()
        == ((3 * t**2 + 2) / (2 * t)).expand()
    )
    assert latex(derivative(derivative(f))(t) * f(t) ** 2) == "f(t)^{2} f''(t)"


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


@pytest.mark.parametrize("backend", ["torch", "triton", "numba"])
@by_placement
def test_the_gradient_at_a_constant_row_is_centred_and_over_the_denominator_at_0(
    spec, backend, rng
):
    x, weight, dy = _flat(rng)
    leaf = torch.tensor(x, requires_grad=True)
    normgrad.normalize(leaf, torch.tensor(weight), spec=spec, backend=backend).backward(
        torch.tensor(dy)
    )
    wdy = dy * weight
    want = (wdy - wdy.mean(-1, keepdims=True)) / (
        EPS**0.5 if spec.placement == "inside" else EPS
    )
    assert (
        np.abs(leaf.grad.numpy() - want).max()
        <= 16 * x.shape[-1] * u * np.abs(wdy).max() / EPS
    )


@by_placement
def test_that_gradient_is_the_limit_of_difference_quotients(spec, rng):
    x, weight, dy = _flat(rng)
    direction = rng.standard_normal(x.shape)
    claimed = (
        numpy_ref.backward(dy, numpy_ref.forward(x, weight, spec=spec)).dx * direction
    ).sum()
    h = u**0.5
    moved = numpy_ref.forward(x + h * direction, weight, spec=spec).y
    # D(h s) is off by at most h s from D(0), and x + h v by a rounding of x.
    longest = np.abs(direction).max()
    off = h * longest / EPS + u / h * np.abs(x).max()
    assert (
        abs((dy * moved).sum() / h - claimed)
        <= 4 * np.abs(dy * weight).sum() * longest / EPS * off
    )


@pytest.mark.parametrize(
    "placement, corner", [("inside", False), ("outside", True), ("clamp", False)]
)
def test_only_outside_does_the_gradient_have_a_corner_at_a_constant_row(
    placement, corner, rng
):
    spec, columns, h = NormSpec(eps=EPS, placement=placement), 7, u**0.25
    direction, dy = rng.standard_normal((2, 1, columns))

    def dx(t):
        return numpy_ref.backward(dy, numpy_ref.forward(t * direction, spec=spec)).dx

    left, right = (dx(0.0) - dx(-h)) / h, (dx(h) - dx(0.0)) / h
    # Where the second derivative exists, the one-sided slopes differ by a term of the order of h.
    assert (np.abs(left - right).max() > 1) == corner
    assert corner or np.abs(left - right).max() <= 100 * h * np.abs(dy).max() / EPS**2


@by_placement
@pytest.mark.parametrize("ratio", [1e-3, 0.5, 0.999, 1.001, 2.0, 1e3])
def test_no_direction_is_stretched_by_more_than_rstd(spec, ratio, rng):
    columns = 9
    q = rng.standard_normal(columns)
    q -= q.mean()
    row = ratio * EPS * q / np.sqrt((q * q).mean())
    saved = numpy_ref.forward(np.tile(row, (columns, 1)), spec=spec)
    J = numpy_ref.backward(np.eye(columns), saved).dx
    gains = np.linalg.svd(J, compute_uv=False)
    assert abs(gains[0] / saved.rstd[0] - 1) <= 64 * columns * u
    assert gains[0] <= (1 + 64 * columns * u) / (
        EPS**0.5 if spec.placement == "inside" else EPS
    )


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
    found = [
        numpy_ref.forward(case.x, case.weight, case.bias, spec=spec)
        for spec in (on_mean, on_sum)
    ]
    grads = [numpy_ref.backward(case.dy, saved) for saved in found]
    allowed = bounds(case.dy, None, found[0], "float64")
    for one, other, limit in (
        (found[0].y, found[1].y, allowed.y),
        (grads[0].dx, grads[1].dx, allowed.dx),
    ):
        assert (np.abs(one - other) <= 2 * limit).all()


def test_a_negative_factor_turns_the_sign_and_eps_breaks_the_positive_one(rng):
    x = cases.draw(rng).x
    y = numpy_ref.forward(x, spec=LAYER_NORM.replace(eps=0.0)).y
    for factor in (-2.0, -1.0, 4.0):  # powers of two: no rounding
        scaled = numpy_ref.forward(factor * x, spec=LAYER_NORM.replace(eps=0.0)).y
        np.testing.assert_array_equal(scaled, np.sign(factor) * y)
    with_eps = [
        numpy_ref.forward(c * x, spec=LAYER_NORM_STD.replace(eps=e)).y
        for c, e in ((4, EPS), (1, EPS / 4))
    ]
    np.testing.assert_array_equal(*with_eps)
    assert np.abs(with_eps[0] - y).max() > EPS / 100


# -- source 001


@by_rule
@pytest.mark.parametrize("shape", [(1, 2), (5, 16), (3, 129)])
def test_the_closed_rule_equals_the_pieces_and_the_matrix(rule, shape, rng):
    case = cases.draw(rng, *shape)
    saved = numpy_ref.forward(case.x, spec=LAYER_NORM_STD)
    allowed = bounds(case.dy, None, saved, "float64").dx
    _, mean, sigma = piecewise_rules.forward(case.x, LAYER_NORM_STD.eps)
    found = rule(case.dy, case.x, mean, sigma, LAYER_NORM_STD.eps)
    assert (np.abs(found - numpy_ref.backward(case.dy, saved).dx) <= allowed).all()


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
