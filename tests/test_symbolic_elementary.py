"""Absolute values, maxima, exponentials, logarithms and fourth roots in proofs: what is equal is proved."""

import random

import mpmath
import pytest
from sympy import (
    Abs,
    Heaviside,
    Max,
    Min,
    Rational,
    Symbol,
    count_ops,
    evaluate,
    exp,
    log,
    root,
    sign,
    sqrt,
    tanh,
)

from normgrad.symbolic import (
    NotProved,
    Partial,
    dim,
    index,
    prove,
    refute,
    sigmoid,
    tensor,
    total,
)
from normgrad.symbolic.elementary import in_basic_terms
from normgrad.symbolic.normal_form import Reciprocal, Root, nf

N = dim("N")
i, j = index("i", "j")
x, y = tensor("x", N), tensor("y", N)
s, t = tensor("s"), tensor("t")
eps = Symbol("eps", positive=True)
squares = total(N, lambda r: x[r] ** 2)
norm = sqrt(squares)


def exponentials(row, shift):
    """The sum of exp(row[r] - shift)."""
    return total(N, lambda r: exp(row[r] - shift))


TRUE = [
    (Abs(s * x[i] + s * x[j]), Abs(s) * Abs(x[i] + x[j])),
    (Abs(s - t), Abs(t - s)),
    (Abs(squares + eps), squares + eps),
    (sqrt(total(N, lambda r: (s * x[r]) ** 2)), Abs(s) * sqrt(squares)),
    (Max(s, t) + Min(s, t), s + t),
    (Max(s, t) - Min(s, t), Abs(s - t)),
    (Max(s, 0) * Min(s, 0), 0),
    (sign(s) * Abs(s), s),
    (Partial(Max(s, 0) ** 2, s), 2 * Max(s, 0)),
    (Partial(total(N, lambda r: Max(x[r], 0)), x[i]), Heaviside(x[i])),
    (
        exp(x[i] - s) / total(N, lambda r: exp(x[r] - s)),
        exp(x[i]) / total(N, lambda r: exp(x[r])),
    ),
    (log(total(N, lambda r: exp(x[r] - s))), log(total(N, lambda r: exp(x[r]))) - s),
    (log(eps / sqrt(squares + eps)), log(eps) - log(squares + eps) / 2),
    (tanh(s), 2 / (1 + exp(-2 * s)) - 1),
    (squares ** Rational(1, 4) * squares ** Rational(3, 4), squares),
    (
        root(total(N, lambda r: (s * x[r]) ** 4), 4),
        Abs(s) * root(total(N, lambda r: x[r] ** 4), 4),
    ),
    ((s**2 * t**2) ** Rational(1, 4), sqrt(Abs(s)) * sqrt(Abs(t))),
    (root(squares + eps, 8) ** 4, sqrt(squares + eps)),
    (sigmoid(s), 1 / (1 + exp(-s))),
    (sigmoid(-s), 1 - sigmoid(s)),
    (Partial(s * sigmoid(s), s), sigmoid(s) * (1 + s * (1 - sigmoid(s)))),
    (tanh(s), 2 * sigmoid(2 * s) - 1),
    (
        Partial(total(N, lambda r: tanh(s * x[r])), s),
        total(N, lambda r: x[r] * (1 - tanh(s * x[r]) ** 2)),
    ),
    (
        exp(s - t) * exponentials(x, s) + exponentials(y, t),
        exponentials(x, t) + exponentials(y, t),
    ),
    (
        exp(s) * exponentials(x, s) + exp(t) * exponentials(y, t),
        exponentials(x, 0) + exponentials(y, 0),
    ),
    (Partial(exp(x[i] - s) / exponentials(x, s), s), 0),
    (sqrt(exp(s) + exp(s + t)), exp(s / 2) * sqrt(1 + exp(t))),
    (Heaviside(norm - eps) * Max(norm, eps), Heaviside(norm - eps) * norm),
]
FALSE = [
    (Abs(s * x[i] + s * x[j]), s * Abs(x[i] + x[j])),
    (Abs(s + t), Abs(s) + Abs(t)),
    (sqrt(total(N, lambda r: (s * x[r]) ** 2)), s * sqrt(squares)),
    (Max(s, t) + Min(s, t), s - t),
    (Max(s, 0), Abs(s)),
    (sign(s), 1),
    (Partial(Max(s, 0) ** 2, s), 2 * s),
    (exp(x[i] + s), exp(x[i]) + exp(s)),
    (log(total(N, lambda r: exp(x[r]))), total(N, lambda r: x[r])),
    (tanh(s), 1 / (1 + exp(-2 * s))),
    (squares ** Rational(1, 4), sqrt(squares)),
    (
        root(total(N, lambda r: (s * x[r]) ** 4), 4),
        s * root(total(N, lambda r: x[r] ** 4), 4),
    ),
    (sigmoid(-s), -sigmoid(s)),
    (sigmoid(s + t), sigmoid(s) * sigmoid(t)),
    (Partial(sigmoid(s), s), sigmoid(s) ** 2),
    (exp(s - t) * exponentials(x, s), exponentials(x, t - s)),
    (Partial(exp(x[i] - s), s), 0),
    (Heaviside(norm - eps) * Max(norm, eps), Heaviside(norm - eps) * eps),
]


@pytest.mark.parametrize("lhs, rhs", TRUE, ids=lambda e: str(e)[:30])
def test_what_is_equal_is_proved(lhs, rhs):
    prove(lhs, rhs)


@pytest.mark.parametrize("lhs, rhs", FALSE, ids=lambda e: str(e)[:30])
def test_what_differs_is_refuted(lhs, rhs):
    with pytest.raises(NotProved, match="refuted"):
        prove(lhs, rhs)


def test_a_sigmoid_has_a_value_also_where_expressions_are_kept_as_typed():
    with evaluate(False):
        refutation = refute(Partial(s * sigmoid(s), s), sigmoid(s))
        assert "left" in str(refutation) and "left = " in str(
            refutation.refusal.counterexample
        )


def test_a_side_whose_terms_cancel_is_shown_as_0():
    softmax = exp(s) / (exp(s) + exp(t))
    refutation = refute(Partial(softmax, s) + Partial(softmax, t), s)
    assert "left = 0, right = " in str(refutation.refusal.counterexample)
    assert "left 0, right " in str(refutation)


def test_a_sign_needs_a_number_that_is_not_0():
    assert list(map(str, prove(sign(s) * Abs(s), s).side_conditions)) == ["Ne(s, 0)"]
    assert prove(Abs(s) * Abs(t), Abs(s * t)).side_conditions == ()


def _random(draw, depth):
    if depth == 0:
        return draw.choice(
            [s, t, x[i], x[j], eps, Rational(draw.randint(-3, 3), draw.randint(1, 2))]
        )
    one = _random(draw, depth - 1)
    kind = draw.randrange(9)
    if kind < 2:
        return draw.choice([Abs, sigmoid, sign, tanh])(one)
    if kind < 4:
        return draw.choice([Max, Min])(one, _random(draw, depth - 1))
    if kind == 4:
        return (one**2 * _random(draw, depth - 1) ** 2) ** Rational(
            draw.choice([1, 3, -1]), draw.choice([2, 4])
        )
    if kind == 5:
        return exp(one / 4)
    if kind == 6:
        return log((one**2 + eps) * exp(_random(draw, depth - 1)))
    return (
        one * _random(draw, depth - 1) if kind == 7 else one + _random(draw, depth - 1)
    )


def test_the_rules_keep_every_value():
    """Random expressions in functions, against SymPy's own numbers of them."""
    draw = random.Random(8)
    compared = 0
    while compared < 100:
        e = _random(draw, 2)
        numbers = {
            symbol: Rational(draw.randint(-30, 30), 7) + Rational(1, 9)
            for symbol in (s, t, x[i], x[j])
        }
        numbers[eps] = Rational(draw.randint(1, 9), 5)
        want = e.xreplace(numbers).evalf(40)
        if not want.is_Float or abs(want) > 10**9 or count_ops(e) > 25:
            continue
        form = nf(in_basic_terms(e)).xreplace(numbers)
        got = (
            form.replace(Root, sqrt)
            .replace(Reciprocal, lambda base: 1 / base)
            .evalf(40)
        )
        assert abs(got - want) < mpmath.mpf(10) ** -20 * (1 + abs(want)), e
        compared += 1
