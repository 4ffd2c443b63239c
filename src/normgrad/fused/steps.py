"""Names for what a reader has typed within a line: numbers of the rows, centred matrices, functions of matrices."""

from __future__ import annotations

from itertools import count

from sympy import Add, Expr, Indexed, Mul, Pow, Sum, evaluate

from ..symbolic.calculus import free_letters
from ..symbolic.measured import Largest
from ..symbolic.signs import is_positive
from ..symbolic.symbols import M, i, j
from .layer import FUNCTIONS, ROW, TILE, Layer, entry, names_in


class Steps:
    """Lines with a name for each part that is to be computed once; both directions share the names.

    A layer that is typed as one expression comes out as a person would write it: x - mean before it is squared.

    Args:  layer: takes up the new names
    """

    def __init__(self, layer: Layer):
        self.layer, self.centred = layer, False
        self.lines: dict[str, Expr] = {}
        self.names: dict[Expr, str] = {}

    def apart(self, lines: dict[str, Expr], centred: bool = False) -> dict[str, Expr]:
        """The lines, each after those that its parts have got; centred: whether x - mean gets one."""
        self.lines, self.centred = {}, centred
        with evaluate(True):
            for name, e in lines.items():
                e = self._inside(e, {}, self.layer.kind(name) == TILE)
                self.lines[name] = e
                self.names.setdefault(e.as_dummy(), name)
        return self.lines

    def _inside(self, e, bound, in_tile):
        """The expression with names for its parts.

        Args:  bound: {letter of a sum around it: i or j}; in_tile: whether it has columns
        """
        if isinstance(e, Sum):
            bound = {limit[0]: i if limit[2] == M else j for limit in e.limits}
            return Sum(self._part(e.function, bound, True), *e.limits)
        if not e.args or isinstance(e, Indexed | Largest):
            return e
        parts = [self._part(part, bound, in_tile) for part in e.args]
        if self.centred and isinstance(e, Mul | Pow):
            parts = [self._centred(part, bound) for part in parts]
        return e.func(*parts)

    def _part(self, e, bound, in_tile):
        """A part of an expression: its name where it gets one, or with names for its own parts."""
        opened = e.xreplace(bound)
        of_row = free_letters(opened) <= {i} and opened.has(Sum)
        if in_tile and of_row and not isinstance(e, Sum):
            return self._named("row", ROW, opened, bound)
        e = self._inside(e, bound, in_tile)
        opened = e.xreplace(bound)
        if isinstance(e, FUNCTIONS) and free_letters(opened) == {i, j}:
            stem = "_".join([type(e).__name__, *sorted(names_in(e))])
            return self._named(stem, TILE, opened, bound)
        return e

    def _centred(self, e, bound):
        """A factor, by a name where it is a matrix less a number of each row."""
        opened = e.xreplace(bound)
        letters = [free_letters(term) for term in Add.make_args(opened)]
        if {i} in letters and {i, j} in letters:
            return self._named("centred", TILE, opened, bound)
        return e

    def _named(self, stem, kind, e, bound):
        """The name of an expression in i and j, a new one unless a line has it already."""
        # x - mean for mean - x, and the mean for the mean taken away
        leading = [t for t in Add.make_args(e) if kind == ROW or j in free_letters(t)]
        if all(term.could_extract_minus_sign() for term in leading):
            return -self._named(stem, kind, -e, bound)
        if kind == ROW:
            e = self._inside(e, {}, False)
        key = e.as_dummy()
        if key not in self.names:
            tries = (f"{stem}{n or ''}" for n in count())
            name = next(text for text in tries if text not in self.layer.tensors)
            self.layer.add(entry(name, kind, is_positive(e)))
            self.names[key] = name
            self.lines[name] = e
        letters = {own: letter for letter, own in bound.items()}
        return self.layer.at(self.names[key], letters)
