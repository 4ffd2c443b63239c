"""Index notation on top of SymPy: dimensions, indices, tensors, sums, deltas, derivatives, definitions.

Indices are plain integer symbols that run from 1 to their dimension. Sums come from `total` alone, and a
derivative stays a node (`Partial`, `Local`) until a proof asks for its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sympy import Basic, Dummy, Expr, Indexed, IndexedBase, KroneckerDelta, Sum, Symbol, Tuple, evaluate, sympify


def as_written():
    """Context in which SymPy keeps an expression as it is typed: no reordering, no distributing.

    What is printed is then what was written, and the proofs evaluate it as it stands.
    """
    return evaluate(False)


def dim(name: str) -> Symbol:
    """A dimension: a positive integer symbol."""
    return Symbol(name, integer=True, positive=True)


def index(*names: str) -> Symbol | tuple[Symbol, ...]:
    """Index letters; one name gives one letter, several names give a tuple."""
    letters = tuple(Symbol(name, integer=True, positive=True) for name in names)
    return letters[0] if len(letters) == 1 else letters


def tensor(name: str, *dims: Symbol, positive: bool = False) -> Symbol | IndexedBase:
    """A real tensor with the given dimensions, or a real scalar when there are none.

    Args:  positive: a promise that a proof may use; a name that is defined must keep it
    """
    assumptions = {"positive": True} if positive else {"real": True}
    return IndexedBase(name, shape=dims, **assumptions) if dims else Symbol(name, **assumptions)


def total(dim: Symbol, f: Callable[[Symbol], Expr]) -> Sum:
    """The sum of f(r) for r from 1 to dim."""
    r = Dummy("r", integer=True, positive=True)
    return Sum(f(r), (r, 1, dim))


def mean(dim: Symbol, f: Callable[[Symbol], Expr]) -> Expr:
    """The mean of f(r) for r from 1 to dim."""
    return 1 / dim * total(dim, f)


def delta(i: Symbol, k: Symbol) -> Expr:
    """The Kronecker delta: 1 where i and k coincide, 0 elsewhere."""
    return KroneckerDelta(i, k)


class Partial(Expr):
    """The derivative of f with respect to the input v, through every definition that f depends on."""

    is_commutative = True

    def __new__(cls, f, v):
        return Basic.__new__(cls, sympify(f), sympify(v))


class Local(Expr):
    """The derivative of f's own defining formula with respect to v, every other quantity in it held fixed.

    Args:  f: a defined name such as y[i, j], or an expression; v: what varies
           held: the intermediates that are held fixed, for display (`Defs.local` fills them in)
    """

    is_commutative = True

    def __new__(cls, f, v, held=()):
        return Basic.__new__(cls, sympify(f), sympify(v), Tuple(*held))


def rename_bound(e: Expr) -> Expr:
    """The expression rebuilt with a fresh letter for every bound index, so that no two letters can clash."""
    if isinstance(e, Sum):
        fresh = {limit[0]: Dummy(limit[0].name, integer=True, positive=True) for limit in e.limits}
        return Sum(rename_bound(e.function).xreplace(fresh), *[(fresh[r], first, last) for r, first, last in e.limits])
    if not e.args or isinstance(e, Indexed):
        return e
    return e.func(*[rename_bound(part) for part in e.args])


def check_expression(name: str, e) -> Expr:
    """e as an expression; TypeError by name for what is none."""
    found = sympify(e)
    if not isinstance(found, Expr):
        raise TypeError(f"{name}: got {type(e).__name__}, needs a SymPy expression")
    return found


def check_defs(defs) -> Defs:
    """The definitions, none for None; TypeError by name for anything else."""
    if defs is None:
        return Defs()
    if not isinstance(defs, Defs):
        raise TypeError(f"defs: got {type(defs).__name__}, needs a normgrad.symbolic.Defs")
    return defs


def name_of(e: Expr) -> Basic:
    """What a definition is filed under: the base of an indexed name, or the symbol itself."""
    return e.base if isinstance(e, Indexed) else e


class Defs:
    """Ordered definitions, name[indices] := expression; an expression may use inputs and earlier names.

    Raises:  ValueError when a name is defined twice or used before, when a definition has a free index that its head
             lacks, or breaks its name's promise to be positive; RangeError when a letter has two ranges
    """

    def __init__(self):
        self._lines: dict[Basic, tuple[Expr, Expr]] = {}

    def __setitem__(self, head: Expr, e: Expr):
        from .calculus import free_letters, index_ranges
        from .conditions import is_positive

        name, e = name_of(head), sympify(e)
        if name in self._lines:
            raise ValueError(f"{head}: defined already as {self._lines[name][1]}")
        if any(name in map(name_of, one.atoms(Indexed, Symbol)) for one in (e, *[line[1] for line in self])):
            raise ValueError(f"{head}: used before it is defined")
        if len(set(getattr(head, "indices", ()))) < len(getattr(head, "indices", ())):
            raise ValueError(f"{head}: a definition needs a letter of its own for every index")
        missing = free_letters(e) - set(getattr(head, "indices", ()))
        if missing:
            raise ValueError(f"{head}: its definition has the free indices {sorted(map(str, missing))} besides its own")
        index_ranges(head, e)
        if head.is_positive and not is_positive(self.unfold(e)):
            raise ValueError(f"{head}: promised to be positive, and its definition is not seen to be: {e}")
        self._lines[name] = (head, e)

    def __contains__(self, e) -> bool:
        return name_of(e) in self._lines

    def __iter__(self) -> Iterator[tuple[Expr, Expr]]:
        return iter(self._lines.values())

    def line(self, e: Expr) -> tuple[Expr, Expr]:
        """The definition of a name, (head, expression), with the indices it was defined with."""
        if e not in self:
            raise ValueError(f"{e}: not defined here; defined are {', '.join(map(str, self._lines))}")
        return self._lines[name_of(e)]

    def body(self, e: Expr) -> Expr:
        """The defining expression of e with e's own indices: one level, capture-free."""
        head, expression = self.line(e)
        letters = getattr(head, "indices", ())
        return rename_bound(expression).xreplace(dict(zip(letters, getattr(e, "indices", ()), strict=True)))

    def local(self, f: Expr, v: Expr) -> Local:
        """`Local(f, v)` for a defined name f, with the intermediates that it holds fixed, read off f's definition."""
        names = {name_of(part) for part in self.line(f)[1].atoms(Indexed, Symbol)} - {name_of(v)}
        return Local(f, v, [getattr(name, "label", name) for name in self._lines if name in names])

    def differing(self, lhs: Expr, rhs: Expr) -> set[Basic]:
        """Names to unfold so that both sides speak of the same quantities: those that only one side reaches."""
        chosen: set[Basic] = set()
        # what stands inside a total derivative is unfolded anyway
        sides = [side.xreplace({part: Dummy() for part in side.atoms(Partial)}) for side in (lhs, rhs)]
        while True:
            used = [{name_of(part) for part in side.atoms(Indexed, Symbol)} for side in sides]
            apart = [name for name in reversed(self._lines) if (name in used[0]) != (name in used[1])]
            if not apart:
                return chosen
            chosen.add(apart[0])
            sides = [self.unfold(side, chosen) for side in sides]
            sides = [side.xreplace({part: Dummy() for part in side.atoms(Partial)}) for side in sides]

    def unfold(self, e: Expr, only: Iterable[Basic] | None = None) -> Expr:
        """The expression with the defined names (or `only` some of them) replaced by what they stand for.

        A `Partial` is a total derivative, so everything inside one is unfolded whatever `only` says.

        Raises:  ValueError for a `Partial` with respect to a defined name
        """
        from .calculus import D

        e = sympify(e)
        if isinstance(e, Sum) and not all(limit[0].is_Dummy for limit in e.limits):
            e = rename_bound(e)  # a definition that is put in may have the letter of this sum free
        if isinstance(e, Partial):
            if e.args[1] in self:
                raise ValueError(f"{e}: {e.args[1]} is defined by other quantities; use Local to hold those fixed")
            return Partial(self.unfold(e.args[0]), e.args[1])
        if isinstance(e, Local):
            formula = self.body(e.args[0]) if e.args[0] in self else e.args[0]
            if formula.has(Partial, Local):
                raise ValueError(f"{e}: its formula holds a derivative, in which nothing can be held fixed")
            return self.unfold(D(formula, e.args[1]), only)
        if isinstance(e, Indexed) or e.is_Symbol:
            chosen = e in self and (only is None or name_of(e) in only)
            return self.unfold(self.body(e), only) if chosen else e
        return e.func(*[self.unfold(part, only) for part in e.args]) if e.args else e
