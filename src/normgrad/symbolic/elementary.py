"""Elementary functions in the kernel's own terms: |a| is the root of a squared, a maximum is made of |a - b|.

A sigmoid and a hyperbolic tangent are quotients of exponentials. A proof that does not succeed with these functions as
they stand, known by their derivatives alone, is tried once more with them rewritten. A kink such as that of a maximum
has no derivative; the rules hold on either side of it.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import (
    Abs,
    Expr,
    Function,
    Heaviside,
    Max,
    Min,
    S,
    evaluate,
    exp,
    sign,
    tanh,
)

from .normal_form import Reciprocal, Root, exponential, nf
from .notation import with_parts
from .signs import is_nonnegative


class sigmoid(Function):
    """1 / (1 + exp(-t)); its derivative is a polynomial in itself, where exp would overflow."""

    nargs = 1
    is_real = True
    is_positive = True
    smooth = True

    @classmethod
    def eval(cls, t):
        """SymPy's hook for values that are known at once."""
        return S.Half if t.is_zero else None

    def fdiff(self, argindex=1):
        """The derivative with respect to the only argument; SymPy's chain rule asks for it."""
        return self * (1 - self)

    def _latex(self, printer, exp=None):
        text = rf"\operatorname{{sigmoid}}({printer._print(self.args[0])})"
        return text if exp is None else rf"{text}^{{{exp}}}"

    def _eval_evalf(self, prec):
        with evaluate(True):  # also where expressions are kept as they are typed
            return (1 / (1 + exp(-self.args[0])))._eval_evalf(prec)


def _absolute(a):
    if is_nonnegative(a):
        return a
    return -a if is_nonnegative(-a) else Root(a**2)


def _sign(a):
    return a * Reciprocal(_absolute(a))


def _largest(*parts):
    first, *parts = sorted(parts, key=str)
    for part in parts:
        first = (first + part + _absolute(nf(first - part))) / 2
    return first


RULES: dict[type, Callable[..., Expr]] = {
    Abs: _absolute,
    sign: _sign,
    Heaviside: lambda a, *at_zero: (1 + _sign(a)) / 2,
    Max: _largest,
    Min: lambda *parts: -_largest(*[-part for part in parts]),
    sigmoid: lambda a: Reciprocal(exponential(-a) + 1),
    tanh: lambda a: 1 - 2 * Reciprocal(exponential(2 * a) + 1),
}


def in_basic_terms(e: Expr) -> Expr:
    """The expression with every function that has a rule rewritten, innermost first; equal where both are defined."""
    e = with_parts(e, in_basic_terms)
    rule = RULES.get(type(e))
    return rule(*map(nf, e.args)) if rule else e
