"""Differentiation of index expressions, and the check that every letter has one range."""

from __future__ import annotations

from sympy import Basic, Expr, Indexed, KroneckerDelta, Sum, Symbol, evaluate, sympify

from .notation import Local, Partial, rename_bound


class RangeError(ValueError):
    """A letter that would have to run over two different dimensions."""


def D(e: Expr, v: Expr) -> Expr:
    """The derivative of e with respect to v; the only differentiation in the package.

    Every bound letter is renamed first: SymPy takes a bound letter that equals an index of v for that index.
    """
    with evaluate(True):
        return rename_bound(resolve(sympify(e))).diff(v)


def resolve(e: Expr) -> Expr:
    """The expression with its derivative nodes carried out."""
    if isinstance(e, Partial | Local):
        return D(e.args[0], e.args[1])
    if not e.args or isinstance(e, Indexed):
        return e
    return e.func(*[resolve(part) for part in e.args])


def free_letters(e: Expr) -> set[Symbol]:
    """The index letters of e that no sum around them binds."""
    if isinstance(e, Sum):
        return free_letters(e.function) - {limit[0] for limit in e.limits}
    if isinstance(e, Indexed | KroneckerDelta):
        letters = e.indices if isinstance(e, Indexed) else e.args[:2]
        return {letter for letter in letters if letter.is_Symbol}
    return set().union(*map(free_letters, e.args))


def index_ranges(*expressions: Expr) -> dict[Symbol, Basic]:
    """The dimension of every letter, read off tensor shapes, sums and deltas.

    Raises:  RangeError when a letter has two ranges, or a delta joins letters of different ranges
    """
    ranges: dict[Symbol, Basic] = {}
    deltas = set()
    for e in map(sympify, expressions):
        _collect(e, ranges)
        deltas |= e.atoms(KroneckerDelta)
    for _ in deltas:
        for pair in deltas:
            _join(pair, ranges)
    return {letter: size for letter, size in ranges.items() if not letter.is_Dummy}


def _collect(e, ranges):
    if isinstance(e, Sum):
        for letter, _, last in e.limits:
            _assign(letter, last, ranges, e)
    if isinstance(e, Indexed):
        for letter, size in zip(e.indices, e.base.shape or (), strict=bool(e.base.shape)):
            _assign(letter, size, ranges, e)
    for part in e.args if not isinstance(e, Indexed) else ():
        _collect(part, ranges)


def _assign(letter, size, ranges, where):
    if letter.is_Symbol and ranges.setdefault(letter, size) != size:
        raise RangeError(f"{letter}: runs to {ranges[letter]} elsewhere and to {size} in {where}")


def _join(pair, ranges):
    i, k = pair.args[:2]
    for one, other in ((i, k), (k, i)):
        if one in ranges and other.is_Symbol:
            _assign(other, ranges[one], ranges, pair)
