"""Names for what a reader has typed within a line: numbers of the rows, centred matrices, functions of matrices."""

from __future__ import annotations

from itertools import count

from sympy import Add, Expr, Indexed, Mul, Pow, Sum, evaluate

from ..symbolic.calculus import free_letters
from ..symbolic.measured import Largest
from ..symbolic.notation import tensor
from ..symbolic.signs import is_positive
from ..symbolic.symbols import M, i, j
from .layer import FUNCTIONS, LETTERS, ROW, SHAPES, TILE, Layer, names_in


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
                in_tile = self.layer.kind(name) == TILE
                if isinstance(e, Sum):
                    e = self._part(e, {}, False)
                elif e.args and not isinstance(e, Indexed | Largest):
                    parts = [self._part(part, {}, in_tile) for part in e.args]
                    if in_tile and centred and isinstance(e, Mul | Pow):
                        parts = [self._centred(part, {}, {}) for part in parts]
                    e = e.func(*parts)
                self.lines[name] = e
                self.names.setdefault(e.as_dummy(), name)
        return self.lines

    def _part(self, e, bound, in_tile):
        """The expression with names in it; bound: {letter of a sum: i or j}; in_tile: whether it has columns."""
        if isinstance(e, Sum):
            bound = {limit[0]: i if limit[2] == M else j for limit in e.limits}
            return Sum(self._part(e.function, bound, True), *e.limits)
        if not e.args or isinstance(e, Indexed):
            return e
        back = {letter: own for own, letter in bound.items()}
        opened = e.xreplace(bound)
        if in_tile and free_letters(opened) <= {i} and opened.has(Sum):
            return self._named("row", ROW, opened, back)
        parts = [self._part(part, bound, in_tile) for part in e.args]
        if self.centred and isinstance(e, Mul | Pow):
            parts = [self._centred(part, bound, back) for part in parts]
        e = e.func(*parts)
        opened = e.xreplace(bound)
        if isinstance(e, FUNCTIONS) and free_letters(opened) == {i, j}:
            stem = "_".join([type(e).__name__, *sorted(names_in(e))])
            return self._named(stem, TILE, opened, back)
        return e

    def _centred(self, e, bound, back):
        """A factor, by a name where it is a matrix less a number of each row."""
        opened = e.xreplace(bound)
        letters = [free_letters(term) for term in Add.make_args(opened)]
        if {i} in letters and {i, j} in letters:
            return self._named("centred", TILE, opened, back)
        return e

    def _named(self, stem, kind, e, back):
        """The name of an expression, a new one unless a line has it already; back: {i or j: letter of a sum}."""
        # x - mean for mean - x, and the mean for the mean taken away
        leading = [t for t in Add.make_args(e) if kind == ROW or j in free_letters(t)]
        if all(term.could_extract_minus_sign() for term in leading):
            return -self._named(stem, kind, -e, back)
        e = self._in_sums(e) if kind == ROW else e
        key = e.as_dummy()
        if key not in self.names:
            tries = (f"{stem}{n or ''}" for n in count())
            name = next(text for text in tries if text not in self.layer.tensors)
            base = tensor(name, *SHAPES[kind], positive=is_positive(e))
            self.layer.add(base[LETTERS[kind]])
            self.names[key] = name
            self.lines[name] = e
        return self.layer.at(self.names[key], back)

    def _in_sums(self, e):
        """A number of a row, with names in its sums."""
        if isinstance(e, Sum):
            return self._part(e, {}, True)
        if not e.args or isinstance(e, Indexed):
            return e
        return e.func(*map(self._in_sums, e.args))
