"""Side conditions: which bases must not vanish for the two sides of a claim to mean something."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Add, Expr, Ge, Gt, KroneckerDelta, Mul, Ne, Pow, Sum, evaluate

from .calculus import free_letters, resolve
from .notation import Defs
from .render import latex
from .sums import Root, nf, split_content


def is_nonnegative(e: Expr) -> bool:
    """True where e is seen to be at least 0: squares, roots, and sums and products of such."""
    if isinstance(e, KroneckerDelta):
        return True
    if isinstance(e, Sum):
        return is_nonnegative(e.function)
    if isinstance(e, Pow) and (e.exp.is_even or e.exp.is_Rational and e.exp.q == 2):
        return True
    if isinstance(e, Add | Mul | Pow):
        return all(is_nonnegative(part) for part in (e.args if not isinstance(e, Pow) else e.args[:1]))
    return bool(e.is_nonnegative)


def is_positive(e: Expr) -> bool:
    """True where e is seen to be greater than 0."""
    if isinstance(e, Sum):
        return is_positive(e.function)
    if isinstance(e, Add):
        return all(map(is_nonnegative, e.args)) and any(map(is_positive, e.args))
    if isinstance(e, Mul):
        return all(map(is_positive, e.args))
    if isinstance(e, Pow):
        return is_positive(e.base)
    return bool(e.is_positive)


def side_conditions(sides: Iterable[Expr], defs: Defs) -> tuple[Expr, ...]:
    """What must hold for the sides to be defined, in the definitions' names where one fits.

    Args:     sides: expressions as they are written; defs: what their names stand for
    Returns:  relations such as sigma > 0; empty when the sides are defined for all inputs
    """
    conditions = {}
    with evaluate(True):
        for side in sides:
            for part in sorted(resolve(defs.unfold(side)).atoms(Pow), key=str):
                condition = _condition(part, defs)
                if condition is not None:
                    conditions.setdefault(latex(condition), condition)
    return tuple(conditions.values())


def _condition(part, defs):
    base, exponent = part.as_base_exp()
    if base.is_number or is_positive(base) or (exponent.is_Integer and exponent > 0):
        return None
    known = is_nonnegative(base)
    if exponent.is_Rational and exponent > 0:
        return None if known else Ge(base, 0)
    named = _fold(base, defs)
    return Gt(named, 0) if known or not exponent.is_integer else Ne(named, 0)


def _fold(base, defs):
    """The defined name that vanishes exactly where base does, if there is one."""
    wanted = _core(nf(base))
    letters = sorted(free_letters(base), key=str)
    for head, _ in defs:
        own = getattr(head, "indices", ())
        if len(own) == len(letters) <= 1:
            value = nf(defs.unfold(head)).xreplace(dict(zip(own, letters, strict=True)))
            if _core(value) == wanted:
                return head
    return base


def _core(e):
    """A normal form without positive factors and without its root."""
    if isinstance(e, Mul):
        rest = [factor for factor in e.args if not is_positive(factor)]
        e = rest[0] if len(rest) == 1 else Mul(*rest)
    if isinstance(e, Root):
        return e.args[0]
    return split_content(e)[1] if isinstance(e, Add) else e
