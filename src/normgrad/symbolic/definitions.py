"""Definitions: the ordered lines of a computation, unfolded without capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sympy import Basic, Dummy, Expr, Indexed, Sum, Symbol, Tuple, evaluate, sympify

from .admission import check_expression
from .calculus import D, free_letters, index_ranges
from .notation import (
    Local,
    Partial,
    indices_of,
    name_of,
    names_in,
    rename_bound,
    with_parts,
    without_ones,
)
from .signs import is_positive


def numbered(e: Expr, depth: int = 0) -> Expr:
    """The expression with its bound letters numbered from outside in, so that equal lines are equal objects."""
    if isinstance(e, Sum):
        letters = {
            letter: Symbol(str(level), integer=True)
            for level, letter in enumerate(e.variables, start=depth)
        }
        limits = [(letters[letter], first, last) for letter, first, last in e.limits]
        return Sum(
            numbered(without_ones(e.function).xreplace(letters), depth + len(limits)),
            *limits,
        )
    return with_parts(e, lambda part: numbered(part, depth))


class Defs:
    """Ordered definitions, name[indices] := expression; an expression may use inputs and earlier names.

    The same line once more changes nothing, so that a cell of definitions may be run again.

    Raises:  ValueError for a letter or a dimension, when a name is defined differently or used before, when a
             definition has a free index that its head lacks, or breaks its name's promise to be positive; TypeError
             for a head that is no name; RangeError when a letter has two ranges
    """

    def __init__(self):
        self._lines = {}  # name: (head, formula)
        self.needs = {}  # side: what `conditions` found that it needs
        self.forms = {}  # head: the normal form of what it stands for

    def __setitem__(self, head: Expr, e: Expr):
        e = check_expression(str(head), e)
        if not isinstance(head, Indexed | Symbol):
            raise TypeError(
                f"head: got {head!r}, needs a name to define: a scalar, or a tensor with letters, as y[i]"
            )
        if head.is_integer:
            raise ValueError(
                f"{head}: is a letter or a dimension, and only a scalar or a tensor can be defined"
            )
        name = name_of(head)
        if name in self._lines:
            before, formula = self._lines[name]
            if before == head and numbered(formula) == numbered(e):
                return  # a cell that is run again
            raise ValueError(f"{head}: defined already as {formula}")
        if name in names_in(Tuple(e, *[formula for _, formula in self])):
            raise ValueError(f"{head}: used before it is defined")
        letters = set(indices_of(head))
        if len(letters) < len(indices_of(head)):
            raise ValueError(
                f"{head}: a definition needs a letter of its own for every index"
            )
        if missing := free_letters(e) - letters:
            raise ValueError(
                f"{head}: its definition has the free indices {sorted(map(str, missing))} besides its own"
            )
        index_ranges(head, e)
        if head.is_positive and not is_positive(self.unfold(e)):
            raise ValueError(
                f"{head}: promised to be positive, and its definition is not seen to be: {e}"
            )
        self._lines[name] = (head, e)
        self.needs.clear()
        self.forms.clear()

    def __contains__(self, e) -> bool:
        return name_of(e) in self._lines

    def __iter__(self) -> Iterator[tuple[Expr, Expr]]:
        return iter(self._lines.values())

    def copy(self) -> Defs:
        """The same lines, to which others may be added."""
        copied = Defs()
        copied._lines = self._lines.copy()
        return copied

    def without(self, e: Expr) -> Defs:
        """The same lines but that of a name, which is an input then."""
        kept = self.copy()
        kept._lines.pop(name_of(e), None)
        return kept

    def line(self, e: Expr) -> tuple[Expr, Expr]:
        """The definition of a name, (head, expression), with the indices it was defined with."""
        if e not in self:
            raise ValueError(
                f"{e}: not defined here; defined are {', '.join(map(str, self._lines))}"
            )
        return self._lines[name_of(e)]

    def reached(self, *sides: Expr) -> list[tuple[Expr, Expr]]:
        """The lines that expressions need, directly or through other lines, in order."""
        reached, waiting = set(), list(sides)
        while waiting:
            new = names_in(waiting.pop()) & self._lines.keys() - reached
            reached |= new
            waiting += [self._lines[name][1] for name in new]
        return [line for name, line in self._lines.items() if name in reached]

    def body(self, e: Expr) -> Expr:
        """The defining expression of e with e's own indices: one level, capture-free."""
        head, expression = self.line(e)
        letters = zip(indices_of(head), indices_of(e), strict=True)
        return rename_bound(expression).xreplace(dict(letters))

    def opened(self, e: Expr) -> Expr:
        """The body of a defined name; another expression as it is."""
        return self.body(e) if e in self else e

    def opened_for(self, local: Local) -> Expr:
        """The formula that a `Local` differentiates.

        Raises:  ValueError where the formula holds a derivative
        """
        formula = self.opened(local.args[0])
        if formula.has(Partial, Local):
            raise ValueError(
                f"{local}: its formula holds a derivative, in which nothing can be held fixed"
            )
        return formula

    def local(self, f: Expr, v: Expr) -> Local:
        """`Local(f, v)` for a defined name f, with the intermediates that it holds fixed, read off f's definition."""
        return Local(f, v, self._held(self.line(f)[1], v))

    def _held(self, formula, v):
        """The intermediates in a formula besides v, in the order of their lines."""
        names = names_in(formula) - {name_of(v)}
        return [getattr(name, "label", name) for name in self._lines if name in names]

    def shown(self, e: Expr) -> Expr:
        """The expression for display: each `Local` says which intermediates it holds fixed.

        One that holds none is a plain derivative: by an input it is the total one, and by an intermediate, by which
        there is no total one, it can be nothing else.
        """

        def held(local):
            f, v, names = local.args
            formula = self.line(f)[1] if f in self else f
            names = self._held(formula, v) or names
            return Local(f, v, names) if names else Partial(f, v)

        e = sympify(e)
        if not self._lines:
            return e
        with evaluate(False):
            return e.xreplace({local: held(local) for local in e.atoms(Local)})

    def differing(self, lhs: Expr, rhs: Expr) -> set[Basic]:
        """Names to unfold so that both sides speak of the same quantities: those that only one side reaches."""
        chosen, sides = set(), [self._names_outside(side) for side in (lhs, rhs)]
        while True:
            left, right = sides
            apart = [name for name in self._lines if name in left ^ right]
            if not apart:
                return chosen
            name = apart[-1]
            chosen.add(name)
            reached = self._names_outside(self._lines[name][1])
            sides = [
                side - {name} | reached if name in side else side for side in sides
            ]

    def _names_outside(self, e):
        """The names in an expression, without those in total derivatives, which are unfolded anyway."""
        return names_in(e.xreplace({part: Dummy() for part in e.atoms(Partial)}))

    def unfold(
        self, e: Expr, only: Iterable[Basic] | None = None, formulas: list | None = None
    ) -> Expr:
        """The expression with the defined names (or `only` some of them) replaced by what they stand for.

        A `Partial` is a total derivative, so everything inside one is unfolded whatever `only` says. One with respect
        to a defined quantity is carried out with that quantity's own line cut. So is a `Local`, with all lines cut; of
        both, (the formula, what varies) is appended to `formulas`.
        """
        e = sympify(e)
        if isinstance(e, Sum) and not all(letter.is_Dummy for letter in e.variables):
            # a definition that is put in may have the letter of this sum free
            e = rename_bound(e)
        if isinstance(e, Partial | Local):
            f, v = e.args[:2]
            if isinstance(e, Local):
                formula = self.opened_for(e)
            else:
                formula = self.without(v).unfold(f, None, formulas)
                if v not in self:
                    return Partial(formula, v)
            if formulas is not None:
                formulas.append((formula, v))
            return self.unfold(D(formula, v), only, formulas)
        if isinstance(e, Indexed) or e.is_Symbol:
            chosen = e in self and (only is None or name_of(e) in only)
            return self.unfold(self.body(e), only, formulas) if chosen else e
        return with_parts(e, lambda part: self.unfold(part, only, formulas))


def check_defs(defs) -> Defs:
    """The definitions, none for None; TypeError by name for anything else."""
    if defs is None:
        return Defs()
    if not isinstance(defs, Defs):
        raise TypeError(
            f"defs: got {type(defs).__name__}, needs a normgrad.symbolic.Defs"
        )
    return defs


def check_claim(lhs, rhs, defs) -> tuple[Tuple, Defs]:
    """((lhs, rhs), definitions) of a claim, as `check_expression` and `check_defs` leave them."""
    defs = check_defs(defs)
    return Tuple(check_expression("lhs", lhs), check_expression("rhs", rhs)), defs
