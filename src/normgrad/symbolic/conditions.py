"""Side conditions: which bases must not vanish for the two sides of a claim to mean something."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Ge,
    Gt,
    Heaviside,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Max,
    Min,
    Mul,
    Ne,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    exp,
    log,
    postorder_traversal,
    preorder_traversal,
    sign,
    sympify,
    tanh,
)
from sympy.core.function import Application

from .calculus import free_letters, resolve
from .definitions import Defs
from .domains import EVERYWHERE, domain_of, slope_needs
from .elementary import sigmoid
from .normal_form import Root, nf, split_content
from .notation import Partial, indices_of, name_of
from .opaque import Opaque
from .patience import OutOfPatience
from .signs import is_nonnegative, is_positive
from .witness import Explicit

# how many choices of branches are looked at, at how many points
PIECES, POINTS = 64, 8
# functions of the whole line that are 0 on an open set only where they are 0 everywhere
SMOOTH = Add | Mul | Sum | exp | tanh | sigmoid | Indexed | IndexedBase | Symbol
# what a function with branches may be, in a piece of its domain
BRANCHES = {
    Abs: lambda inside: (inside, -inside),
    sign: lambda _: (S.One, S.NegativeOne),
    Heaviside: lambda *_: (S.Zero, S.One),
    KroneckerDelta: lambda *_: (S.Zero, S.One),
    Max: lambda *values: values,
    Min: lambda *values: values,
}


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
            value = nf(defs.unfold(head)).xreplace(dict(zip(own, letters, strict=True)))
            # "r >= 0" would say nothing of r := sqrt(t), which needs t >= 0 itself
            if _core(value) == core and not _needs_of(head, defs):
                return head
    if isinstance(base, Opaque):
        form = nf(base.args[0])
        for head, _ in defs:
            if head.is_Symbol and nf(defs.unfold(head)) == form:
                return base.func(head)
    return base


def is_zero_on_an_open_set(e: Expr, sizes: Mapping[Symbol, int] | None = None) -> bool:
    """Whether e may be 0 on more than single points; what is not seen counts as that.

    Without branches a function of the line is 0 on an open set only where it is 0 everywhere, so that one point at
    which it is not 0 decides. Of branches, such as those of Max(x, 0), each is looked at.

    Args:  e: in the symbols of tensors, without definitions; sizes: of dimensions, 2 or 3 for those that it has not
    """
    e = sympify(e)
    if isinstance(e, Mul):
        return any(is_zero_on_an_open_set(factor, sizes) for factor in e.args)
    if isinstance(e, Pow) and e.exp.is_Rational:
        return e.exp.is_positive and is_zero_on_an_open_set(e.base, sizes)
    if isinstance(e, Add) and is_nonnegative(e):
        return all(is_zero_on_an_open_set(term, sizes) for term in e.args)
    try:
        if isinstance(e, Sum) and is_nonnegative(e):
            # an entry may be 0 for every input, as that of x - mean(x) is in a row of one
            numbers = dict(sizes or {})
            return is_zero_on_an_open_set(e.function, _sizes(e) | numbers)
        return not all(_is_somewhere(*piece, sizes or {}) for piece in _pieces(e))
    except (KeyError, NotImplementedError, OutOfPatience, TypeError, ValueError):
        return True


def _sizes(e):
    """A number for each dimension of an expression."""
    sizes = {last for part in e.atoms(Sum) for _, _, last in part.limits}
    for part in e.atoms(Indexed):
        sizes.update(part.base.shape or ())
    return {size: 2 + n for n, size in enumerate(sorted(sizes, key=str))}


def _pieces(e) -> Iterator:
    """(e without branches, {a letter in it: the root that it is, or its negative}) for every choice of branches."""
    waiting = [(resolve(e), {})]
    for count, (piece, roots) in enumerate(waiting):
        part = next(filter(_branched, postorder_traversal(piece)), None)
        if part is None:
            yield piece, roots
            continue
        if count > PIECES or part.free_symbols - piece.free_symbols:
            raise NotImplementedError("many branches, or one for each term of a sum")
        if isinstance(part, Pow):
            letter = Dummy("root")
            roots = roots | {letter: part}
            choices = letter, -letter
        else:
            choices = BRANCHES[part.func](*part.args)
        waiting += [(piece.xreplace({part: choice}), roots) for choice in choices]


def _branched(part):
    """Whether a part has branches; refuses what is known neither to have some nor to have none."""
    if type(part) in BRANCHES:
        return True
    if isinstance(part, Pow) and part.exp.is_Rational:
        rooted = not part.exp.is_Integer and not is_positive(part.base)
        if rooted and part.exp.q != 2:
            raise NotImplementedError(part)
        return rooted
    known = part.is_number or not isinstance(part, Expr) or isinstance(part, SMOOTH)
    if not (known or isinstance(part, log) and is_positive(part.args[0])):
        raise NotImplementedError(part)
    return False


def _is_somewhere(e, roots, sizes):
    """Whether an expression without branches is seen to be other than 0 at a point.

    Args:  roots: {a letter in it: the root that it is}; sizes: {dimension: number}
    """
    draw = random.Random(0)
    whole = Add(e, *roots.values())
    explicit = Explicit(Defs(), _sizes(whole) | dict(sizes))
    values: dict = {}
    indices = dict.fromkeys(free_letters(whole), 1)
    for _ in range(POINTS):
        values.clear()
        number = S.Zero
        for letter, part in {**roots, None: e}.items():
            scalar = explicit.entry(part, indices)
            for symbol in sorted(scalar.free_symbols - set(values), key=str):
                size = Rational(draw.randint(1, 97), 31)
                values[symbol] = (
                    size if symbol.is_positive else draw.choice((-1, 1)) * size
                )
            number = scalar.xreplace(values).evalf()
            values[letter] = number
        if number.is_real:
            return abs(number) > 1e-9
    return False


def _core(e):
    """A normal form without positive factors and without its root."""
    if isinstance(e, Mul):
        e = Mul(*[factor for factor in e.args if not is_positive(factor)])
    if isinstance(e, Root):
        return e.args[0]
    return split_content(e)[1] if isinstance(e, Add) else e
