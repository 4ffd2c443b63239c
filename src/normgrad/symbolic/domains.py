"""The one table of functions: where each has a value, and where it has a derivative.

A function that is not in the table has no form in a proof. A jump is left out of the domain, since the rules of a
proof hold on either side of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sympy
from sympy import Expr, Ge, Gt, KroneckerDelta, Max, Min, Ne, Pow, cos, sin

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
_WITHIN_ONE = _at(lambda t: 1 - t**2, Ge, Gt)
_OUTSIDE_ONE = _at(lambda t: t**2 - 1, Ge, Gt)
_NOT_AT_0 = _at(lambda t: t, Ne)
_STEPS = Domain(slope=None)

DOMAINS: dict[type, Domain] = {
    KroneckerDelta: EVERYWHERE,
    sympy.exp: EVERYWHERE,
    sympy.sin: EVERYWHERE,
    sympy.cos: EVERYWHERE,
    sympy.sinh: EVERYWHERE,
    sympy.cosh: EVERYWHERE,
    sympy.tanh: EVERYWHERE,
    sympy.sech: EVERYWHERE,
    sympy.atan: EVERYWHERE,
    sympy.asinh: EVERYWHERE,
    sympy.erf: EVERYWHERE,
    sympy.erfc: EVERYWHERE,
    sympy.log: _at(lambda t: t, Gt),
    sympy.tan: _at(cos, Ne),
    sympy.sec: _at(cos, Ne),
    sympy.cot: _at(sin, Ne),
    sympy.csc: _at(sin, Ne),
    sympy.coth: _NOT_AT_0,
    sympy.csch: _NOT_AT_0,
    sympy.acsch: _NOT_AT_0,
    # SymPy's acot(t) is atan(1/t), which jumps at 0
    sympy.acot: _NOT_AT_0,
    sympy.asin: _WITHIN_ONE,
    sympy.acos: _WITHIN_ONE,
    sympy.atanh: _at(lambda t: 1 - t**2, Gt),
    sympy.acosh: _at(lambda t: t - 1, Ge, Gt),
    sympy.asec: _OUTSIDE_ONE,
    sympy.acsc: _OUTSIDE_ONE,
    sympy.acoth: _at(lambda t: t**2 - 1, Gt),
    sympy.asech: Domain(
        _inverse_of_sech, lambda arguments, _: [(1 - arguments[0], Gt)]
    ),
    sympy.sign: _NOT_AT_0,
    sympy.Heaviside: _NOT_AT_0,
    sympy.Abs: Domain(slope=_slope_of_absolute),
    Max: Domain(slope=_slope_of(Max)),
    Min: Domain(slope=_slope_of(Min)),
    sympy.floor: _STEPS,
    sympy.ceiling: _STEPS,
    sympy.frac: _STEPS,
    Pow: Domain(_power, _slope_of_power),
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
