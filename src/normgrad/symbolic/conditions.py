"""Side conditions: which bases must not vanish for the two sides of a claim to mean something."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Ge,
    Gt,
    Heaviside,
    Max,
    Min,
    Mul,
    Ne,
    Pow,
    S,
    Symbol,
    evaluate,
    log,
    preorder_traversal,
    sign,
    sympify,
)

from .calculus import free_letters, resolve
from .definitions import Defs
from .normal_form import Root, nf, split_content
from .notation import Partial, indices_of, name_of
from .opaque import Opaque
from .signs import is_nonnegative, is_positive


def side_conditions(sides: Iterable[Expr], defs: Defs) -> tuple[Expr, ...]:
    """What must hold for the sides to be defined, in the definitions' names where one fits.

    A derivative needs that what is differentiated has no kink, no jump and no end of its domain at the point.

    Args:     sides: expressions as they are written; defs: what their names stand for
    Returns:  relations such as sigma > 0; empty when the sides are defined for all inputs, and S.false among them
              when they are for none
    """
    conditions = {}
    for side in sides:
        derivatives = []
        # as it is written, since SymPy cancels x / x, and once more with the derivatives that are taken in it
        with evaluate(False):
            written = defs.unfold(side, formulas=derivatives)
            typed = [written, *[defs.unfold(formula) for formula, _ in derivatives]]
        derivatives += [part.args for part in written.atoms(Partial)]
        with evaluate(True):
            needs = set().union(*map(_defined, [resolve(written), *typed]))
            for formula, v in derivatives:
                needs |= {
                    (defs.unfold(base), relation)
                    for base, relation in _boundaries(formula, name_of(v))
                }
            for base, relation in sorted(
                needs, key=lambda need: (len(str(need[0])), str(need))
            ):
                if relation is not None:
                    _add(conditions, base, relation, defs)
    implied = {
        (base, weaker)
        for base, relation in conditions
        if relation == Gt
        for weaker in (Ge, Ne)
    }
    # a name that is positive by its definition makes a condition that holds anyhow
    needed = (
        condition
        for key, condition in conditions.items()
        if key not in implied and condition is not S.true
    )
    return tuple(dict.fromkeys(needed))


def _defined(e):
    """(base, relation) for everything in e that has no value, or no rule, where a base is 0 or negative."""
    for part in e.atoms(Pow, log, sign, Heaviside):
        base = resolve(part.args[0])
        # a jump needs what a reciprocal needs, and a logarithm the same as a reciprocal square root
        exponent = -S.One
        if isinstance(part, Pow):
            exponent = part.exp
        elif isinstance(part, log):
            exponent = -S.Half
        yield base, _needed(base, exponent)
        for inner in base.atoms(Pow):
            yield inner.base, _needed(inner.base, inner.exp)


def _add(conditions, base, relation, defs):
    """Note a condition under what it says, so that it is said once."""
    # a power vanishes where its base does
    power = Mul(*[factor for factor in Mul.make_args(base) if not is_positive(factor)])
    if isinstance(power, Pow) and power.exp.is_Rational and power.exp > 0:
        base = power.base
        if power.exp.is_even and not is_nonnegative(base):
            relation = Ne
        elif not power.exp.is_Integer:
            relation = Gt
    if is_positive(base):
        return
    form = nf(base)
    if form.is_number:
        holds = form.is_real and relation(form, 0)
        conditions[form, relation] = sympify(holds)
        return
    core = _core(form)
    if relation == Ne and core.could_extract_minus_sign():
        core = nf(-core)
    # letters are fresh ones whenever a derivative is taken, those of a part of a sum as well
    letters = [part for part in preorder_traversal(core) if isinstance(part, Dummy)]
    names = {letter: Symbol(f"_{n}") for n, letter in enumerate(dict.fromkeys(letters))}
    key = core.xreplace(names), relation
    conditions.setdefault(key, relation(_fold(base, defs), 0))


def _needed(base, exponent):
    """The relation to 0 that a power's base must have, or None."""
    if is_positive(base) or (exponent.is_Integer and exponent >= 0):
        return None
    nonnegative = is_nonnegative(base)
    if exponent.is_Rational and exponent > 0:
        return None if nonnegative else Ge
    return Gt if nonnegative or not exponent.is_integer else Ne


def _boundaries(e, name):
    """(base, relation) for every place where e may have no derivative by the name."""
    # SymPy may have cancelled a root, whose domain ends all the same
    ends = {part for part in e.atoms(Pow) if not is_nonnegative(part.base)}
    # a kink that cancels, as that of Abs(s)**2, is none
    for part in ends | resolve(e).atoms(Abs, sign, Heaviside, Max, Min, Pow):
        if not part.has(name):
            continue
        if isinstance(part, Max | Min):
            for position, value in enumerate(part.args):
                if value.has(name):
                    remaining = part.args[:position] + part.args[position + 1 :]
                    yield value - part.func(*remaining), Ne
        elif isinstance(part, Pow):
            # (s**2 + t**2)**(3/2) has a derivative at 0 too
            smooth = part.exp.is_Rational and part.exp > 1 and is_nonnegative(part.base)
            if not (part.exp.is_integer or smooth):
                yield part.base, _needed(part.base, -S.Half)
        else:
            inside = part.args[0]
            smooth = is_nonnegative(inside) or is_nonnegative(-inside)
            if not (isinstance(part, Abs) and smooth):
                yield inside, _needed(inside, -S.One)


def _fold(base, defs):
    """The defined name that vanishes exactly where base does, if there is one; D(s) by the name of its size."""
    core = _core(nf(base))
    letters = sorted(free_letters(base), key=str)
    for head, _ in defs:
        own = indices_of(head)
        if len(own) == len(letters) <= 1:
            value = nf(defs.unfold(head)).xreplace(dict(zip(own, letters, strict=True)))
            if _core(value) == core:
                return head
    if isinstance(base, Opaque):
        form = nf(base.args[0])
        for head, _ in defs:
            if head.is_Symbol and nf(defs.unfold(head)) == form:
                return base.func(head)
    return base


def _core(e):
    """A normal form without positive factors and without its root."""
    if isinstance(e, Mul):
        e = Mul(*[factor for factor in e.args if not is_positive(factor)])
    if isinstance(e, Root):
        return e.args[0]
    return split_content(e)[1] if isinstance(e, Add) else e
