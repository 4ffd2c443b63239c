"""Whether an expression is 0 at single points alone, so that a condition that it is not leaves out no more."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Max,
    Min,
    Mul,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    exp,
    log,
    postorder_traversal,
    sign,
    sympify,
    tanh,
)

from .calculus import free_letters, resolve
from .definitions import Defs
from .elementary import sigmoid
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
