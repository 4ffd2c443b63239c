"""Claims that are false only where branches meet, and what is said of them: a printed condition, a point, or words."""

import pytest
from sympy import (
    Abs,
    Derivative,
    DiracDelta,
    Eq,
    Heaviside,
    Integral,
    Max,
    Min,
    Mod,
    Ne,
    Piecewise,
    Rational,
    S,
    Symbol,
    ceiling,
    exp,
    floor,
    frac,
    log,
    sign,
    sin,
    sqrt,
    tan,
)

from normgrad.symbolic import (
    Defs,
    Local,
    NotProved,
    Partial,
    as_written,
    check_fixed,
    counterexample,
    dim,
    index,
    largest,
    opaque,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.conditions import side_conditions
from normgrad.symbolic.signs import is_nonnegative, is_positive

N = dim("N")
i, k = index("i", "k")
x = tensor("x", N)
s, t, a, p, q = (tensor(name) for name in "stapq")
eps, c = Symbol("eps", positive=True), Symbol("c", positive=True)
f = opaque("f")
row_sum, squares = total(N, lambda r: x[r]), total(N, lambda r: x[r] ** 2)


def one_if(condition):
    return Piecewise((1, condition), (0, True))


def defined(value, of=None):
    """q := value, with p := of before it."""
    defs = Defs()
    if of is not None:
        defs[p] = of
    defs[q] = value
    return defs


identity = Piecewise(
    (0, Eq(t, 0)), (t, True)
)  # t everywhere, with a branch of its own at 0
floored = Piecewise((t, t > 1), (1, True))
bump = Piecewise((t, (t > 0) & (t < 1)), (0, True))

# (lhs, rhs, conditions, more): false, or without a value, at points that the conditions exclude; more is definitions
EXCLUDED = [
    # a branch of its own, a jump, a kink under a derivative
    (Partial(identity, t), Piecewise((0, Eq(t, 0)), (1, True)), ["Ne(t, 0)"]),
    (Partial(one_if(t > 0), t), 0, ["Ne(t, 0)"]),
    (Partial(one_if(t >= 0), t), 0, ["Ne(t, 0)"]),
    (Partial(one_if(t**2 > c), t), 0, ["Ne(c - t**2, 0)"]),
    (Partial(floored, t), one_if(t > 1), ["Ne(t - 1, 0)"]),
    (Partial(bump, t), Piecewise((1, (t > 0) & (t < 1)), (0, True)), ["Ne(t - 1, 0)", "Ne(t, 0)"]),
    (Partial(Piecewise((row_sum, x[i] > 0), (0, True)), x[k]), one_if(x[i] > 0), ["Ne(x[i], 0)"]),
    (Partial(q, t), one_if(t > 1), ["Ne(t - 1, 0)"], defined(floored)),
    (Local(one_if(t > 0), t), 0, ["Ne(t, 0)"]),
    (Local(q, t), 0, ["Ne(t, 0)"], defined(one_if(t > 0))),
    (Local(q, p), Heaviside(p), ["Ne(p, 0)"], defined(Max(p, 0), of=s**3 - t)),
    (Partial(Max(s, t), s), Heaviside(s - t), ["Ne(s - t, 0)"]),
    (Partial(Min(s, t), s), Heaviside(t - s), ["Ne(s - t, 0)"]),
    (Partial(Max(s, t, a), s), Heaviside(s - Max(t, a)), ["Ne(s - Max(a, t), 0)"]),
    (Partial(Max(s, 0), s), (1 + sign(s)) / 2, ["Ne(s, 0)"]),
    (Partial(Max(2 * s, 0), s), 2 * Heaviside(2 * s), ["Ne(2*s, 0)"]),
    (Partial(Max(s, 0) + Min(s, 0) + Max(s, 0), s), 1 + Heaviside(s), ["Ne(s, 0)"]),
    (Partial(Max(f(s), 0), s), Heaviside(f(s)) * Partial(f(s), s), ["Ne(f(s), 0)"]),
    (Partial(total(N, lambda r: Max(x[r], 0)), x[i]), Heaviside(x[i]), ["Ne(x[_r], 0)", "Ne(x[i], 0)"]),
    (Partial(Max(row_sum, 0), x[i]), Heaviside(row_sum), ["Ne(Sum(x[_r], (_r, 1, N)), 0)"]),
    (Partial(Abs(s), s), sign(s), ["Ne(s, 0)"]),
    (Partial(Abs(s), s), Abs(s) / s, ["Ne(s, 0)"]),
    (Partial(Abs(s - t), s), sign(s - t), ["Ne(s - t, 0)"]),
    (Local(Abs(s), s), sign(s), ["Ne(s, 0)"]),
    (Partial(sqrt(squares), x[i]) * sqrt(squares), x[i], ["Sum(x[_r]**2, (_r, 1, N)) > 0"]),
    (Partial(sqrt(s**2 + t**2), s) * sqrt(s**2 + t**2), s, ["s**2 + t**2 > 0"]),
    (Partial(s * sign(s), s), sign(s), ["Ne(s, 0)"]),
    (Partial(s * Heaviside(s), s), Heaviside(s), ["Ne(s, 0)"]),
    (Partial(sign(s), s), 0, ["Ne(s, 0)"]),
    (Partial(Heaviside(s), s), 0, ["Ne(s, 0)"]),
    (Partial(Partial(Max(s, 0), s), s), 0, ["Ne(s, 0)"]),
    (Partial(Partial(Abs(s), s), s), 0, ["Ne(s, 0)"]),
    (Partial(Partial(Max(s, 0) ** 2, s), s), 2 * Heaviside(s), ["Ne(s, 0)"]),
    (Partial(s ** Rational(3, 2), s), Rational(3, 2) * sqrt(s), ["s > 0"]),
    # values where a jump jumps
    (sign(s) ** 2, 1, ["Ne(s, 0)"]),
    (Heaviside(s) ** 2, Heaviside(s), ["Ne(s, 0)"]),
    (Heaviside(2 * s) ** 2, Heaviside(2 * s), ["Ne(2*s, 0)"]),
    (Heaviside(s * t) ** 2, Heaviside(s * t), ["Ne(s*t, 0)"]),
    (Abs(s) / s, sign(s), ["Ne(s, 0)"]),
]  # fmt: skip

with as_written():
    # points that SymPy removes when it evaluates
    EXCLUDED += [
        (s / s, S.One, ["Ne(s, 0)"]),
        (s**2 / s, s, ["Ne(s, 0)"]),
        (1 / (1 / s), s, ["Ne(s, 0)"]),
        (s * t / t, s, ["Ne(t, 0)"]),
        (sqrt(s) * sqrt(s), s, ["s >= 0"]),
        (exp(log(s)), s, ["s > 0"]),
        (log(s) - log(s), S.Zero, ["s > 0"]),
        (Partial(s / s, s), S.Zero, ["Ne(s, 0)"]),
        (Partial(s**2 / s, s), S.One, ["Ne(s, 0)"]),
        (Partial(sqrt(s) * sqrt(s), s), S.One, ["s > 0"]),
        (Partial(Abs(s), s) - Partial(Abs(s), s), S.Zero, ["Ne(s, 0)"]),
        (0 * Partial(Abs(s), s), S.Zero, ["Ne(s, 0)"]),
        (Partial(Max(s, t), s) - Partial(Max(s, t), s), S.Zero, ["Ne(s - t, 0)"]),
        (Local(s / s, s), S.Zero, ["Ne(s, 0)"]),
        (Local(t / t * s, s), S.One, ["Ne(t, 0)"]),
        (Local(sqrt(s) * sqrt(s), s), S.One, ["s > 0"]),
        (
            Partial(Piecewise((s**2 / s, Ne(s, 0)), (0, True)), s),
            one_if(Ne(s, 0)),
            ["Ne(s, 0)"],
        ),
    ]

# false, and a point is found
REFUTED = [
    (sqrt(s**2), s),
    (sqrt(s**6), s**3),
    ((s**2) ** Rational(3, 2), s**3),
    (Abs(s), s),
    (Abs(s**3), s**3),
    (Abs(s + t), Abs(s) + Abs(t)),
    (Max(s, 0), s),
    (Max(s, t), Min(s, t)),
    (sign(s), 1),
    (sign(-s), sign(s)),
    (Heaviside(-s), Heaviside(s)),
    (Partial(Abs(s), s), 1),
    (Partial(sqrt(s**2), s), 1),
    (Partial(Abs(s) ** 3, s), 3 * s**2),
    (Partial(Max(s, 0) ** 2, s), 2 * s),
    (Partial(Max(s, t), s), Heaviside(t - s)),
    (Partial(one_if(t > 0), t), 1),
    (Partial(floored, t), 1),
    # these are false at one point alone
    (one_if(s > 0), Heaviside(s)),
    (one_if(s >= 0), one_if(s > 0)),
    (one_if(Ne(s, 0)), 1),
    (Piecewise((1, s >= 0), (-1, True)), sign(s)),
    (
        Piecewise((s, s > t), (t + 1, s < t), (t + 2, True)),
        Piecewise((s, s > t), (t + 1, True)),
    ),
    (
        Partial(Piecewise((t**2, t > 0), (0, True)), t),
        Piecewise((2 * t, t > 0), (1, Eq(t, 0)), (0, True)),
    ),
    (Max(largest(N, lambda r: x[r]), 0), largest(N, lambda r: x[r])),
    # of a function that nothing is known of
    (Max(f(s), 0), f(s)),
    (Max(f(s), f(t)), f(Max(s, t))),
    (Partial(f(Max(s, 0)), s), Partial(f(s), s)),
    (Partial(f(Abs(s)), s), Partial(f(s), s)),
]

# (lhs, rhs, words, more)
REFUSED = [
    (Partial(floor(s), s), 0, "floor"),
    (Partial(s * ceiling(s), s), ceiling(s), "ceiling"),
    (Partial(frac(s), s), 1, "frac"),
    (Partial(Mod(s, 1), s), 1, "Mod"),
    (Partial(tan(s), s), 1 + tan(s) ** 2, "tan"),
    (Partial(sign(s), s), 2 * DiracDelta(s), "DiracDelta"),
    (Partial(Heaviside(s), s), DiracDelta(s), "DiracDelta"),
    (Derivative(Abs(s), s), Derivative(Abs(s), s), "Derivative"),
    (Partial(Integral(sign(t), (t, 0, s)), s), sign(s), "Integral"),
    (
        0 * Piecewise((s, s > 0), (t, s < 0)) + Piecewise((1, s > 0)),
        Piecewise((1, s > 0)),
        "no value where no branch",
    ),
    (Partial(Piecewise((5, Eq(t, 0)), (t, True)), t), 1, "undecided"),
    (Partial(Piecewise((t, Ne(t, 0)), (5, True)), t), 1, "undecided"),
    (Partial(floored, t), one_if(t >= 1), "undecided"),
    (sign(q) ** 2 + q, 1 + q, "defined for no input", defined(S.Zero)),
]
with as_written():
    REFUSED += [
        (q / q * s + q, s + q, "defined for no input", defined(S.Zero)),
        (sqrt(q) * sqrt(q), q, "defined for no input", defined(-S.One)),
    ]

# true everywhere: proved without a condition
TRUE = [
    (sqrt(s**2), Abs(s)),
    (sqrt(s**4), s**2),
    (sqrt(s**6), Abs(s) ** 3),
    (Abs(s**3), s**2 * Abs(s)),
    (Abs(s) * Abs(t), Abs(s * t)),
    (Abs(s) ** 2, s**2),
    (Max(s, t) + Min(s, t), s + t),
    (Max(s, 0) - Max(-s, 0), s),
    (Max(c * s, 0), c * Max(s, 0)),
    (f(Max(s, t)) - f(Max(t, s)), 0),
    (Max(f(s), 0) + Min(f(s), 0), f(s)),
    (2 * identity, identity + identity),
    (Partial(Abs(s) ** 2, s), 2 * s),
    (Partial(s**3, s), 3 * s**2),
    (Partial(sqrt(s**2 + eps), s), s / sqrt(s**2 + eps)),
    (Partial((s**2 + t**2) ** Rational(3, 2), s), 3 * s * sqrt(s**2 + t**2)),
    (Partial(s * one_if(t > 0), s), one_if(t > 0)),
    (Partial(s * Abs(t), s), Abs(t)),
    (Partial(s * Max(t, a), s), Max(t, a)),
    (Partial(sin(s) * Min(t, 0), s), Min(t, 0) * Partial(sin(s), s)),
    (Partial(s * floor(t), s), floor(t)),
]
with as_written():
    TRUE += [
        (s**0, S.One),
        (Partial(sqrt(squares) ** 2, x[i]), 2 * x[i]),
        (Partial(Max(s, 0) - Max(s, 0), s), S.Zero),
        (Partial(Abs(s**2 + t**2), s), 2 * s),
    ]


def _ids(claims):
    return [f"{lhs} = {rhs}"[:60] for lhs, rhs, *_ in claims]


def _conditions(lhs, rhs, defs=None):
    return sorted(map(str, prove(lhs, rhs, defs).side_conditions))


@pytest.mark.parametrize("claim", EXCLUDED, ids=_ids(EXCLUDED))
def test_a_boundary_is_excluded_in_print(claim):
    lhs, rhs, conditions, *defs = claim
    assert _conditions(lhs, rhs, *defs) == conditions


@pytest.mark.parametrize("claim", REFUTED, ids=_ids(REFUTED))
def test_a_false_claim_is_refuted_by_a_point(claim):
    with pytest.raises(NotProved, match="is refuted at"):
        prove(*claim)
    with pytest.raises(AssertionError, match="fails for rows"):
        check_fixed(*claim, (2,))


@pytest.mark.parametrize("claim", REFUSED, ids=_ids(REFUSED))
def test_what_has_no_value_or_no_known_kinks_is_refused(claim):
    lhs, rhs, words, *defs = claim
    with pytest.raises((NotImplementedError, NotProved), match=words):
        prove(lhs, rhs, *defs)


@pytest.mark.parametrize("claim", TRUE, ids=_ids(TRUE))
def test_what_is_true_at_every_boundary_needs_no_condition(claim):
    assert _conditions(*claim) == []


def test_a_boundary_that_is_never_met_is_no_condition():
    """q = max(p, 0), where p is s squared and 1."""
    assert _conditions(Local(q, p), S.One, defined(Max(p, 0), of=s**2 + 1)) == []


def test_the_point_of_a_refutation_is_where_branches_meet():
    assert counterexample(one_if(s > 0), Heaviside(s)).values == {s: 0}
    found = counterexample(*EXCLUDED[0][:2])
    assert (
        found.values == {t: 0}
        and abs(found.lhs - 1) < Rational(1, 10**15)
        and found.rhs == 0
    )


def test_the_second_witness_differentiates_no_branches(monkeypatch):
    """It agrees, or finds the boundary, without SymPy's derivatives of what has branches."""

    def absent(*parts):
        raise AssertionError("a derivative of branches")

    for kind, method in (
        (Piecewise, "_eval_derivative"),
        (Abs, "_eval_derivative"),
        (sign, "_eval_derivative"),
        (Heaviside, "fdiff"),
        (Max, "fdiff"),
        (Min, "fdiff"),
    ):
        monkeypatch.setattr(kind, method, absent)
    with pytest.raises(AssertionError, match="fails for rows"):
        check_fixed(*EXCLUDED[0][:2], (2,))
    defs = defined(Max(p, 0), of=s**3 - t)
    for lhs, rhs in (
        (Local(q, p), Heaviside(p)),
        (Partial(floored, t), one_if(t > 1)),
        (Partial(one_if(t > 0), t), S.Zero),
        (Partial(Max(s, t), s), Heaviside(s - t)),
        (Partial(Min(s, t) * s, s), s * Heaviside(t - s) + Min(s, t)),
        (Local(Abs(s), s), sign(s)),
        (Partial(s * sign(s), s), sign(s)),
        (Partial(Partial(Max(s, 0) ** 2, s), s), 2 * Heaviside(s)),
        (Partial(total(N, lambda r: Max(x[r], 0)), x[i]), Heaviside(x[i])),
    ):
        assert check_fixed(lhs, rhs, (2,), defs)
        with pytest.raises(AssertionError, match="fails for rows"):
            check_fixed(lhs, rhs + s**2, (2,), defs)
        assert counterexample(lhs, rhs, defs) is None


def test_what_was_compared_nowhere_does_not_pass():
    nowhere = Partial(log(-1 - Abs(s)), s)
    third = Partial(Partial(Partial(Max(s, 0) ** 4, s), s), s)
    for lhs, rhs in ((nowhere, S.Zero), (third, 24 * Max(s, 0)), (third, S.Zero)):
        with pytest.raises(AssertionError, match="fails for rows"):
            check_fixed(lhs, rhs, (2,))
        assert counterexample(lhs, rhs) is None


SIGNS = [
    # (expression, is it seen to be at least 0, is it seen to be greater than 0)
    (s**3, False, False),
    (s**-3, False, False),
    (s**5 * t**2, False, False),
    (s, False, False),
    (s**2, True, False),
    (s**-2, True, False),
    (sqrt(s), True, False),
    (eps**3, True, True),
    (s**2 + eps, True, True),
    (s**3 + eps, False, False),
    (total(N, lambda r: x[r] ** 3), False, False),
    (total(N, lambda r: x[r] ** 2), True, False),
    (total(N, lambda r: exp(x[r])), True, True),
]


@pytest.mark.parametrize("e, nonnegative, positive", SIGNS, ids=str)
def test_odd_powers_have_both_signs(e, nonnegative, positive):
    assert (is_nonnegative(e), is_positive(e)) == (nonnegative, positive)


def test_an_odd_power_needs_its_condition():
    with as_written():
        root, reciprocal = sqrt(s**3) ** 2, sqrt(1 / s**3) ** -2
        cubed = 1 / sqrt(squares) ** 3 + 1 / squares ** Rational(3, 2)
    assert list(map(str, side_conditions([root], Defs()))) == ["s >= 0"]
    assert list(map(str, side_conditions([log(s**3)], Defs()))) == ["s > 0"]
    assert list(
        map(str, side_conditions([Partial(s ** Rational(3, 2), s)], Defs()))
    ) == ["s > 0"]
    assert "Ne(s, 0)" in map(str, side_conditions([reciprocal], Defs()))
    assert list(map(str, side_conditions([cubed], Defs()))) == [
        "Sum(x[_r]**2, (_r, 1, N)) > 0"
    ]
    defs, positive = Defs(), Symbol("P", positive=True)
    with pytest.raises(ValueError, match="promised to be positive"):
        defs[positive] = s**3 + eps
