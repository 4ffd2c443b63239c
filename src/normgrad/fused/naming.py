"""Names for what a reader has typed within a line: numbers of the rows, and functions of whole matrices."""

from __future__ import annotations

from itertools import count

from sympy import Add, Expr, Indexed, Mul, S, Sum, evaluate, exp, log, tanh

from ..symbolic.calculus import free_letters
from ..symbolic.elementary import sigmoid
from ..symbolic.notation import tensor
from ..symbolic.signs import is_positive
from ..symbolic.symbols import M, i, j
from .layer import ROW, SHAPES, TILE, Layer, names_in

FUNCTIONS = (exp, log, sigmoid, tanh)


def in_steps(layer: Layer, lines: dict[str, Expr]) -> dict[str, Expr]:
    """The lines of a forward with a line for each number of a row, and each centred matrix, that a line is made of.

    A layer that is typed as one expression comes out as a person would write it, x - mean before it is squared.
    """
    steps = _Steps(layer)
    with evaluate(True):
        for name, e in lines.items():
            steps.found[name] = (
                steps.of_tile(e, whole=True)
                if layer.kind(name) == TILE
                else steps.of_row(e)
            )
    return steps.found


class _Steps:
    def __init__(self, layer):
        self.layer, self.found = layer, {}

    def of_tile(self, e, whole=False):
        """An expression with columns; whole: whether it is a line of its own."""
        if not e.args or isinstance(e, Indexed):
            return e
        if free_letters(e) <= {i} and e.has(Sum):
            return self.named(e, "row")
        if not isinstance(e, Add | Mul):
            return e.func(*[self.of_tile(part) for part in e.args])
        number, rest = e.as_coeff_Mul() if e.is_Mul else (S.One, e)
        parts = e.func.make_args(rest)
        rows = [one for one in parts if free_letters(one) <= {i} and not one.is_number]
        if any(one.has(Sum) for one in rows):
            parts = [*[one for one in parts if one not in rows], e.func(*rows)]
        new = number * e.func(*map(self.of_tile, parts))
        centred = (
            isinstance(e, Add)
            and rows
            and any(free_letters(one) == {i} for one in rows)
        )
        return self.named(new, "tile") if centred and not whole else new

    def of_row(self, e):
        """A number of a row, in whose sums the matrices are treated as everywhere."""
        if isinstance(e, Sum):
            letter = e.limits[0][0]
            return Sum(
                self.of_tile(e.function.xreplace({letter: j})).xreplace({j: letter}),
                *e.limits,
            )
        if not e.args or isinstance(e, Indexed):
            return e
        return e.func(*map(self.of_row, e.args))

    def named(self, e, kind):
        """The name of an expression, a new one unless a line has it already."""
        # x - mean for mean - x, and the mean for the mean taken away
        leading = [
            one for one in Add.make_args(e) if kind == "row" or j in free_letters(one)
        ]
        sign = -1 if all(one.could_extract_minus_sign() for one in leading) else 1
        e = self.of_row(sign * e) if kind == "row" else sign * e
        for name, known in self.found.items():
            if known.as_dummy() == e.as_dummy():
                return sign * self.layer.at(name)
        place = next(
            place for place in count(1) if f"{kind}{place}" not in self.layer.tensors
        )
        shape, letters = (
            (SHAPES[ROW], (i,)) if kind == "row" else (SHAPES[TILE], (i, j))
        )
        name = self.layer.add(
            tensor(f"{kind}{place}", *shape, positive=is_positive(e))[letters]
        )
        self.found[name] = e
        return sign * self.layer.at(name)


class Functions:
    """Names for what a function makes of a whole matrix, so that each is computed once: sigmoid_g for sigmoid(g[i, j]).

    Args:  layer: takes up the new names
    """

    def __init__(self, layer: Layer):
        self.layer, self.known = layer, {}

    def named(self, lines: dict[str, Expr]) -> dict[str, Expr]:
        """The lines with each function in a line of its own, before the first one that uses it."""
        found: dict[str, Expr] = {}
        for name, e in lines.items():
            with evaluate(True):
                if isinstance(e, FUNCTIONS) and e not in self.known and self._whole(e):
                    inner = e.func(self._walk(e.args[0], {}, found))
                    self.known[e] = self.known[inner] = name
                    found[name] = inner
                else:
                    found[name] = self._walk(e, {}, found)
        return found

    def _whole(self, e):
        return free_letters(e) == {i, j}

    def _walk(self, e, bound, found):
        if isinstance(e, Sum):
            bound = bound | {limit[0]: i if limit[2] == M else j for limit in e.limits}
            return Sum(self._walk(e.function, bound, found), *e.limits)
        if not e.args or isinstance(e, Indexed):
            return e
        e = e.func(*[self._walk(part, bound, found) for part in e.args])
        opened = e.xreplace(bound)
        if not (isinstance(e, FUNCTIONS) and self._whole(opened)):
            return e
        if opened not in self.known:
            self.known[opened] = self._new(opened)
            found[self.known[opened]] = opened
        return self.layer.at(
            self.known[opened], {own: letter for letter, own in bound.items()}
        )

    def _new(self, e):
        name = "_".join([type(e).__name__, *sorted(names_in(e))])
        while name in self.layer.tensors:
            name += "_"
        return self.layer.add(
            tensor(name, *SHAPES[TILE], positive=bool(e.is_positive))[i, j]
        )
