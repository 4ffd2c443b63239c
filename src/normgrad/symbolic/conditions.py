"""Side conditions: which bases must not vanish for the two sides of a claim to mean something."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Add, Expr, Ge, Gt, Heaviside, Mul, Ne, Pow, S, evaluate, log, sign

from .calculus import free_letters, resolve
from .definitions import Defs
from .normal_form import Root, nf, split_content
from .opaque import Opaque
from .signs import is_nonnegative, is_positive


def side_conditions(sides: Iterable[Expr], defs: Defs) -> tuple[Expr, ...]:
    """What must hold for the sides to be defined, in the definitions' names where one fits.

    Args:     sides: expressions as they are written; defs: what their names stand for
    Returns:  relations such as sigma > 0; empty when the sides are defined for all inputs
    """
    conditions = {}
    for side in sides:
        # as it is written, since SymPy cancels x / x, and once more with the derivatives that are taken in it
        with evaluate(False):
            written = defs.unfold(side)
        with evaluate(True):
            carried_out = resolve(written)
            powers = carried_out.atoms(Pow).union(*[resolve(part).atoms(Pow) for part in written.atoms(Pow)])
            # a jump, which is what the derivative of |x| or of a maximum has, needs the same as a reciprocal
            powers |= {1 / jump.args[0] for jump in carried_out.atoms(sign, Heaviside)}
            # what a reciprocal square root needs, a logarithm needs too
            powers |= {Pow(one.args[0], -S.Half) for one in carried_out.atoms(log) | written.atoms(log)}
            for part in sorted(powers, key=lambda part: (len(str(part)), str(part))):
                base, exponent = part.as_base_exp()
                relation = _needed(base, exponent)
                if relation is not None:
                    conditions.setdefault((_core(nf(base)), relation), relation(_fold(base, defs), 0))
    implied = {(base, weaker) for base, relation in conditions if relation == Gt for weaker in (Ge, Ne)}
    # a name that is positive by its definition makes a condition that holds anyhow
    needed = (condition for key, condition in conditions.items() if key not in implied and condition is not S.true)
    return tuple(dict.fromkeys(needed))


def _needed(base, exponent):
    """The relation to 0 that a power's base must have, or None."""
    if base.is_number or is_positive(base) or (exponent.is_Integer and exponent > 0):
        return None
    known = is_nonnegative(base)
    if exponent.is_Rational and exponent > 0:
        return None if known else Ge
    return Gt if known or not exponent.is_integer else Ne


def _fold(base, defs):
    """The defined name that vanishes exactly where base does, if there is one; D(s) by the name of its size."""
    wanted = _core(nf(base))
    letters = sorted(free_letters(base), key=str)
    for head, _ in defs:
        own = getattr(head, "indices", ())
        if len(own) == len(letters) <= 1:
            value = nf(defs.unfold(head)).xreplace(dict(zip(own, letters, strict=True)))
            if _core(value) == wanted:
                return head
    return base.func(_named(base.args[0], defs)) if isinstance(base, Opaque) else base


def _named(e, defs):
    """The defined scalar that is equal to an expression, if there is one; else the expression."""
    found = [head for head, _ in defs if head.is_Symbol and nf(defs.unfold(head)) == nf(e)]
    return found[0] if found else e


def _core(e):
    """A normal form without positive factors and without its root."""
    if isinstance(e, Mul):
        rest = [factor for factor in e.args if not is_positive(factor)]
        e = rest[0] if len(rest) == 1 else Mul(*rest)
    if isinstance(e, Root):
        return e.args[0]
    return split_content(e)[1] if isinstance(e, Add) else e
