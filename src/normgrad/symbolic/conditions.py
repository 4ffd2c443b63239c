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
    Max,
    Min,
    Mul,
    Ne,
    Pow,
    S,
    Symbol,
    Tuple,
    evaluate,
    preorder_traversal,
    sympify,
)
from sympy.core.function import Application

from .calculus import free_letters, resolve
from .definitions import Defs
from .domains import EVERYWHERE, domain_of, slope_needs
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
        needs = _needs_of(side, defs)
        with evaluate(True):
            for base, relation in needs:
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


def _needs_of(side, defs):
    """(base, relation) for all that a side needs, the shortest first; remembered, since steps share their lines."""
    if side in defs.needs:
        return defs.needs[side]
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
    needs = [need for need in needs if need[1] is not None]
    needs.sort(key=lambda need: (len(str(need[0])), str(need)))
    defs.needs[side] = needs
    return needs


def _defined(e):
    """(base, relation) for everything in e that has no value where the base is not so."""
    for part in e.atoms(Pow, Application):
        if domain_of(part) is EVERYWHERE:
            continue
        arguments = list(map(resolve, part.args))
        yield from _needs(part, arguments)
        for inner in Tuple(*arguments).atoms(Pow, Application):
            yield from _needs(inner, inner.args)


def _needs(part, arguments):
    for base, relation in domain_of(part).value(*arguments):
        yield base, _needed(base, relation)


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


def _needed(base, relation):
    """The relation to 0 that is left to say of a base whose sign may be seen, or None."""
    if is_positive(base):
        return None
    if is_nonnegative(base):
        return None if relation == Ge else Gt
    return relation


def _boundaries(e, name):
    """(base, relation) for every place where e may have no derivative by the name."""
    # SymPy may have cancelled a root, whose domain ends all the same
    ends = {part for part in e.atoms(Pow, Application) if not _has_kinks(part)}
    # a kink that cancels, as that of Abs(s)**2, is none
    for part in ends | resolve(e).atoms(Pow, Application):
        if part.has(name):
            for base, relation in slope_needs(part, lambda value: value.has(name)):
                yield base, _needed(base, relation)


def _has_kinks(part):
    root = isinstance(part, Pow) and is_nonnegative(part.base)
    return root or isinstance(part, Abs | Max | Min)


def _fold(base, defs):
    """The defined name that vanishes exactly where base does, if there is one; D(s) by the name of its size."""
    core = _core(nf(base))
    letters = sorted(free_letters(base), key=str)
    for head, _ in defs:
        own = indices_of(head)
        if len(own) == len(letters) <= 1:
            value = _form(head, defs)
            value = value.xreplace(dict(zip(own, letters, strict=True)))
            # "r >= 0" would say nothing of r := sqrt(t), which needs t >= 0 itself
            if _core(value) == core and not _needs_of(head, defs):
                return head
    if isinstance(base, Opaque):
        form = nf(base.args[0])
        for head, _ in defs:
            if head.is_Symbol and _form(head, defs) == form:
                return base.func(head)
    return base


def _form(head, defs):
    """The normal form of what a defined name stands for; remembered, since each condition asks all of them."""
    if head not in defs.forms:
        defs.forms[head] = nf(defs.unfold(head))
    return defs.forms[head]


def _core(e):
    """A normal form without positive factors and without its root."""
    if isinstance(e, Mul):
        e = Mul(*[factor for factor in e.args if not is_positive(factor)])
    if isinstance(e, Root):
        return e.args[0]
    return split_content(e)[1] if isinstance(e, Add) else e
