"""The one table of functions: where each has a value, and where it has a derivative.

A function that is not in the table has no form in a proof. A jump is left out of the domain, since the rules of a
proof hold on either side of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sympy
from sympy import Expr, Ge, Gt, Max, Min, Ne, cos, sin

from .signs import is_nonnegative

Needs = Iterable[tuple[Expr, type]]


def _nothing(*arguments):
    return ()


@dataclass(frozen=True)
class Domain:
    """Where a function has a value and a derivative.

    Args:  value: from the arguments to (base, relation), with base > 0, >= 0 or != 0 wherever there is a value
           slope: the same for a derivative, whose second argument tells what varies; None where it is not known
    """

    value: Callable[..., Needs] = _nothing
    slope: Callable[[tuple[Expr, ...], Callable], Needs] | None = _nothing


def _at(base, relation, inner=None):
    """The domain of a function of one number t: base(t) in its relation to 0, and `inner` under a derivative."""

    def value(t, *more):
        return [(base(t), relation)]

    def slope(arguments, varies):
        return [(base(arguments[0]), inner)] if inner else ()

    return Domain(value, slope)


def _power(base, exponent):
    if exponent.is_integer:
        return () if exponent.is_nonnegative else [(base, Ne)]
    return [(base, Ge if exponent.is_Rational and exponent > 0 else Gt)]


def _slope_of_power(arguments, varies):
    base, exponent = arguments
    # (s**2 + t**2)**(3/2) has a derivative at 0 too
    smooth = exponent.is_Rational and exponent > 1 and is_nonnegative(base)
    return () if exponent.is_integer or smooth else [(base, Gt)]


def _slope_of_absolute(arguments, varies):
    (inside,) = arguments
    smooth = is_nonnegative(inside) or is_nonnegative(-inside)
    return () if smooth else [(inside, Ne)]


def _slope_of(largest):
    def slope(arguments, varies):
        for position, value in enumerate(arguments):
            if varies(value):
                others = arguments[:position] + arguments[position + 1 :]
                yield value - largest(*others), Ne

    return slope


def _inverse_of_sech(t):
    return [(t, Gt), (1 - t, Ge)]


EVERYWHERE = Domain()
# the names of SymPy's functions by their domain
NAMES = {
    EVERYWHERE: "KroneckerDelta exp sin cos sinh cosh tanh sech atan asinh erf erfc",
    _at(lambda t: t, Gt): "log",
    _at(cos, Ne): "tan sec",
    _at(sin, Ne): "cot csc",
    # SymPy's acot(t) is atan(1/t), which jumps at 0
    _at(lambda t: t, Ne): "coth csch acsch acot sign Heaviside",
    _at(lambda t: 1 - t**2, Ge, Gt): "asin acos",
    _at(lambda t: 1 - t**2, Gt): "atanh",
    _at(lambda t: t - 1, Ge, Gt): "acosh",
    _at(lambda t: t**2 - 1, Ge, Gt): "asec acsc",
    _at(lambda t: t**2 - 1, Gt): "acoth",
    Domain(_inverse_of_sech, lambda arguments, _: [(1 - arguments[0], Gt)]): "asech",
    Domain(slope=_slope_of_absolute): "Abs",
    Domain(slope=_slope_of(Max)): "Max",
    Domain(slope=_slope_of(Min)): "Min",
    Domain(slope=None): "floor ceiling frac",
    Domain(_power, _slope_of_power): "Pow",
}
DOMAINS: dict[type, Domain] = {
    getattr(sympy, name): domain
    for domain, names in NAMES.items()
    for name in names.split()
}


def domain_of(e: Expr) -> Domain:
    """The domain of the function that an expression is: one of the table, or a smooth one of this package.

    Raises:  NotImplementedError for any other, by name
    """
    kind = type(e)
    domain = EVERYWHERE if getattr(kind, "smooth", False) else DOMAINS.get(kind)
    if domain is None:
        raise NotImplementedError(
            f"{e}: where {kind.__name__} has a value and a derivative is not known here; write it by functions such "
            f'as exp, log, Abs or Max, or take an unknown function: opaque("f"), in a derivation Function("f")'
        )
    return domain


def slope_needs(e: Expr, varies: Callable[[Expr], bool]) -> Needs:
    """(base, relation) for a derivative of the function that an expression is, besides what its value needs.

    Raises:  NotImplementedError where that is not known, as for floor
    """
    slope = domain_of(e).slope
    if slope is None:
        raise NotImplementedError(
            f"{e}: {type(e).__name__} jumps, and where is not known here, so that it has no derivative here"
        )
    return slope(e.args, varies)
