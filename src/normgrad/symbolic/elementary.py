"""Elementary functions in the kernel's own terms: |a| is the root of a squared, a maximum is made of |a - b|.

exp of a sum is a product, and log of a product with positive factors is a sum. A proof that does not succeed with
these functions as they stand is tried once more with them rewritten.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Abs, Add, Expr, Heaviside, Indexed, Max, Min, Mul, S, cosh, exp, log, sign, sinh, tanh

from .normal_form import Reciprocal, Root, nf
from .signs import is_nonnegative, is_positive


def _absolute(a):
    if is_nonnegative(a):
        return a
    return -a if is_nonnegative(-a) else Root(a**2)


def _sign(a):
    return a * Reciprocal(_absolute(a))


def _largest(*parts):
    first, *others = sorted(parts, key=str)
    for other in others:
        first = (first + other + _absolute(nf(first - other))) / 2
    return first


def _exponential(a):
    return Mul(*[exp(term) for term in Add.make_args(a)])


def _logarithm(a):
    terms, rest = S.Zero, S.One
    for factor in Mul.make_args(a):
        base, exponent = factor.as_base_exp()
        if isinstance(factor, exp):
            terms += factor.args[0]
        elif isinstance(base, Reciprocal | Root) and is_positive(base.args[0]):
            terms += exponent * log(base.args[0]) * (-S.One if isinstance(base, Reciprocal) else S.Half)
        elif is_positive(base):
            terms += exponent * log(base)
        else:
            rest *= factor
    return terms + (log(rest) if rest != 1 else 0)


def _ratio(a):
    return 1 - 2 * Reciprocal(_exponential(2 * a) + 1)


RULES: dict[type, Callable[..., Expr]] = {
    Abs: _absolute,
    sign: _sign,
    Heaviside: lambda a, *at_zero: (1 + _sign(a)) / 2,
    Max: _largest,
    Min: lambda *parts: -_largest(*[-part for part in parts]),
    exp: _exponential,
    log: _logarithm,
    tanh: _ratio,
    sinh: lambda a: (_exponential(a) - _exponential(-a)) / 2,
    cosh: lambda a: (_exponential(a) + _exponential(-a)) / 2,
}


def in_basic_terms(e: Expr) -> Expr:
    """The expression with every function that has a rule rewritten, innermost first; equal where both are defined."""
    if not e.args or isinstance(e, Indexed):
        return e
    parts = [in_basic_terms(part) for part in e.args]
    rule = RULES.get(type(e))
    return rule(*map(nf, parts)) if rule else e.func(*parts)


def has_rules(e: Expr) -> bool:
    """Whether a function in e has a rule."""
    return e.has(*RULES)
