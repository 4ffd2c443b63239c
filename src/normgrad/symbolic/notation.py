"""Index notation on top of SymPy: dimensions, indices, tensors, sums, deltas, derivatives, definitions.

Indices are plain integer symbols that run from 1 to their dimension. Sums come from `total` alone, and a
derivative stays a node (`Partial`, `Local`) until a proof asks for its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count

from sympy import (
    Basic,
    Dummy,
    Expr,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    sympify,
)
from sympy.concrete.expr_with_limits import ExprWithLimits

# what SymPy knows of an index and of a dimension
INDEX = {"integer": True, "positive": True}


def as_written():
    """Context in which SymPy keeps an expression as it is typed: no reordering, no distributing.

    What is printed is then what was written, and the proofs evaluate it as it stands.
    """
    return evaluate(False)


def dim(name: str) -> Symbol:
    """A dimension: a positive integer symbol."""
    return Symbol(name, **INDEX)


def index(*names: str) -> Symbol | tuple[Symbol, ...]:
    """Index letters; one name gives one letter, several names give a tuple."""
    letters = tuple(Symbol(name, **INDEX) for name in names)
    return letters[0] if len(letters) == 1 else letters


def tensor(name: str, *dims: Symbol, positive: bool = False) -> Symbol | IndexedBase:
    """A real tensor with the given dimensions, or a real scalar when there are none.

    Args:  positive: a promise that a proof may use; a name that is defined must keep it
    """
    assumptions = {"positive": True} if positive else {"real": True}
    return (
        IndexedBase(name, shape=dims, **assumptions)
        if dims
        else Symbol(name, **assumptions)
    )


def total(dim: Symbol, f: Callable[[Symbol], Expr]) -> Sum:
    """The sum of f(r) for r from 1 to dim."""
    r = Dummy("r", **INDEX)
    return Sum(f(r), (r, 1, dim))


def total_over(sizes: Sequence[Symbol], f: Callable[..., Expr], *indices) -> Expr:
    """The sum of f(r, s, ...) over all entries of a tensor with the given dimensions."""
    if not sizes:
        return f(*indices)
    return total(sizes[0], lambda r: total_over(sizes[1:], f, *indices, r))


def mean(dim: Symbol, f: Callable[[Symbol], Expr]) -> Expr:
    """The mean of f(r) for r from 1 to dim."""
    return 1 / dim * total(dim, f)


def delta(i: Symbol, k: Symbol) -> Expr:
    """The Kronecker delta: 1 where i and k coincide, 0 elsewhere."""
    return KroneckerDelta(i, k)


def no_text(*parts):
    """The parts of a derivative as expressions; TypeError for a text, which SymPy would read as a symbol."""
    for part in parts:
        if isinstance(part, str):
            raise TypeError(
                f"a derivative: got the text {part!r}, needs SymPy expressions; letters come from tensor"
            )
    return map(sympify, parts)


class Partial(Expr):
    """The derivative of f with respect to v, through every definition that f depends on but that of v itself."""

    is_commutative = True

    def __new__(cls, f, v):  # noqa: D102
        return Basic.__new__(cls, *no_text(f, v))


class Local(Expr):
    """The derivative of f's own defining formula with respect to v, every other quantity in it held fixed.

    Args:  f: a defined name such as y[i, j], or an expression; v: what varies
           held: the intermediates that are held fixed, for display (`Defs.local` fills them in)
    """

    is_commutative = True

    def __new__(cls, f, v, held=()):  # noqa: D102
        return Basic.__new__(cls, *no_text(f, v), Tuple(*held))


def with_parts(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression built anew with its parts changed; what has none, and an entry, stays."""
    if not e.args or isinstance(e, Indexed):
        return e
    return e.func(*map(change, e.args))


def rename_bound(e: Expr) -> Expr:
    """The expression rebuilt with a fresh letter for every bound index, so that no two letters can clash."""
    if isinstance(e, Sum):
        fresh = {letter: Dummy(letter.name, **INDEX) for letter in e.variables}
        return Sum(
            rename_bound(e.function).xreplace(fresh),
            *[(fresh[r], first, last) for r, first, last in e.limits],
        )
    return with_parts(e, rename_bound)


def with_letters(e: Expr, avoid: Iterable[str] = (), own: bool = True) -> Expr:
    """The expression with a plain symbol for every bound dummy.

    Args:  avoid: spellings that are taken, besides those in e; own: whether a dummy keeps its own where it is free
    """
    free = {part.name for part in e.atoms(Symbol) if not part.is_Dummy}
    return _lettered(e, free | set(avoid), own)


def _lettered(e, taken, own):
    if not isinstance(e, Sum):
        return with_parts(e, lambda part: _lettered(part, taken, own))
    letters = {}
    for bound in [letter for letter in e.variables if letter.is_Dummy]:
        # r1, r2, ... are the kernel's own
        keeps = own and not bound.name[1:].isdigit()
        spellings = chain([bound.name] * keeps, "rstuv", map("r{}".format, count(1)))
        name = next(name for name in spellings if name not in taken)
        taken = taken | {name}
        letters[bound] = index(name)
    function = _lettered(e.function.xreplace(letters), taken, own)
    limits = [(letters.get(r, r), *ends) for r, *ends in e.limits]
    # Sum itself puts a factor 1 before a body that is not evaluated
    return ExprWithLimits.__new__(Sum, function, *limits)


def without_ones(e: Expr) -> Expr:
    """The body of a sum without the factors 1 that SymPy puts before it when it does not evaluate."""
    while isinstance(e, Mul) and e.args[0] == 1:
        e = Mul(*e.args[1:], evaluate=False)
    return e


def name_of(e: Expr) -> Basic:
    """What a definition is filed under: the base of an indexed name, or the symbol itself."""
    return e.base if isinstance(e, Indexed) else e


def names_in(e: Expr) -> set[Basic]:
    """The names in an expression: scalars, bases of entries, letters and dimensions."""
    return {name_of(part) for part in e.atoms(Indexed, Symbol)}


def indices_of(e: Expr) -> tuple:
    """The indices of an entry, none of a scalar."""
    return getattr(e, "indices", ())


def shape_of(e: Expr) -> tuple:
    """What the indices of an entry run to."""
    return e.base.shape if isinstance(e, Indexed) else ()


def entry_of(name: Basic, indices: Sequence) -> Expr:
    """The entry of a tensor, or the scalar where there are no indices."""
    return name[tuple(indices)] if indices else name
