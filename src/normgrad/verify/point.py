"""Definitions, and what a program was read as, evaluated by NumPy at one size, with a bound of what rounding does.

The bound is a running one: every operation adds its own roundings to what its operands may be off by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from sympy import Add, Dummy, Expr, Indexed, KroneckerDelta, Mul, Sum, Symbol, lambdify

from ..dtypes import unit_roundoff
from ..symbolic.calculus import free_letters, resolve
from ..symbolic.definitions import Defs
from ..symbolic.measured import Largest
from ..symbolic.notation import Local, Partial
from ..symbolic.symbols import M, N, i, p
from ..tolerance import ELEMENTWISE

FUNCTIONS = {"sigmoid": lambda t: 1 / (1 + np.exp(-t))}


class Point:
    """Values of tensors at one size.

    Args:  sizes: (M, N); defs: what defined names stand for; draw: a NumPy generator, for the others
           unit: the unit roundoff of whose arithmetic the bound is
           values: {name: array or number}, of those that are not drawn; errors: {name: a bound of its rounding}
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        defs: Defs,
        draw: np.random.Generator,
        unit: float = unit_roundoff("float64"),
    ):
        self.sizes = dict(zip((M, N), sizes, strict=True))
        self.defs, self.draw, self.unit = defs, draw, unit
        self.values, self.errors = {}, {}

    def shape(self, sizes: Sequence[Expr]) -> tuple[int, ...]:
        """A shape in 1, M and N as numbers."""
        return tuple(int(self.sizes.get(size, 1)) for size in sizes)

    def tensor(self, head: Expr) -> np.ndarray | float:
        """A tensor's entries, or a scalar's value: those of a name that is defined are worked out."""
        name = str(getattr(head, "base", head))
        if name not in self.values:
            if head in self.defs:
                sizes = {}
                if isinstance(head, Indexed):
                    shape = self.shape(head.base.shape)
                    sizes = dict(zip(head.indices, shape, strict=True))
                pair = self._bounded(_formula(self.defs, head), sizes)
                self.values[name], self.errors[name] = pair
            elif isinstance(head, Indexed):
                shape = self.shape(head.base.shape)
                self.values[name] = self.draw.standard_normal(shape)
            else:
                self.values[name] = self.draw.uniform(0.2, 1)
        return self.values[name]

    def error(self, head: Expr) -> np.ndarray | float:
        """What rounding may do to a tensor's entries, or to a scalar."""
        self.tensor(head)
        return self.errors.get(str(getattr(head, "base", head)), 0.0)

    def value(self, e: Expr, letters: Sequence[Symbol]) -> np.ndarray:
        """An expression's values, with an axis for each of the letters, of which i and p run over the rows."""
        return self.bounded(e, letters)[0]

    def bounded(
        self, e: Expr, letters: Sequence[Symbol]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(an expression's values as `value` has them, what rounding may do to each)."""
        if e.has(Partial, Local):
            e = resolve(self.defs.unfold(e))
        sizes = {}
        for letter in letters:
            sizes[letter] = self.sizes[M if letter in (i, p) else N]
        return self._bounded(e, sizes)

    def defines(self, e: Expr) -> bool:
        """Whether an expression has a value in every place, and not one that rounding makes of none."""
        sizes, free = {}, free_letters(e)
        for part in e.atoms(Indexed):
            for letter, size in zip(part.indices, part.base.shape, strict=True):
                if letter in free:
                    sizes[letter] = self.sizes[size]
        value, error = self._bounded(e, sizes)
        return bool(np.all(np.isfinite(value) & (error < np.abs(value) + self.unit)))

    def _bounded(self, e, sizes):
        """As `bounded`; sizes: {letter: how far it runs}."""
        places = {}
        for letter, size in reversed(sizes.items()):
            places[letter] = _along(size, len(places))
        with np.errstate(all="ignore"):
            value, error = self._pair(e, places)
        shape = tuple(sizes.values())
        return np.broadcast_to(value, shape) + 0.0, np.broadcast_to(error, shape) + 0.0

    def _pair(self, e, places):
        """(value, error) of an expression; places: {letter: its places from 1 on, along an axis of its own}."""
        if e.is_number:
            value = float(e)
            return value, 0.0 if e.is_Integer else self.unit * abs(value)
        if e in places:
            return places[e], 0.0
        if e in self.sizes:
            return float(self.sizes[e]), 0.0
        if isinstance(e, Sum | Largest):
            return self._over_letters(e, places)
        if isinstance(e, KroneckerDelta):
            first, second = (places[index] for index in e.indices)
            return (first == second) * 1.0, 0.0
        if isinstance(e, Indexed) or e.is_Symbol:
            at = tuple(places[index] - 1 for index in getattr(e, "indices", ()))
            return np.asarray(self.tensor(e))[at], _at(self.error(e), at)
        values, errors = zip(*[self._pair(a, places) for a in e.args], strict=True)
        if isinstance(e, Add):
            size = self.unit * len(values) * sum(map(np.abs, values))
            return sum(values), sum(errors) + size
        if isinstance(e, Mul):
            value, error = values[0], errors[0]
            for factor, off in zip(values[1:], errors[1:], strict=True):
                off = abs(factor) * error + abs(value) * off + error * off
                value = value * factor
                error = off + self.unit * abs(value)
            return value, error
        run = _function(e.func, len(values))
        value = run(*values)
        error = ELEMENTWISE * self.unit * np.abs(value)
        for k, off in enumerate(errors):
            moved = [
                np.abs(
                    run(*values[:k], values[k] + sign * off, *values[k + 1 :]) - value
                )
                for sign in (1, -1)
            ]
            error = error + np.fmax(*moved)
        return value, error

    def _over_letters(self, e, places):
        """(value, error) of a sum, or of the largest, over letters."""
        body, limits = e.args[0], [e.args[1:]]
        if isinstance(e, Sum):
            limits = [(letter, last) for letter, _, last in e.limits]
        count = 1
        for letter, last in limits:
            size = self.sizes[last]
            places = {**places, letter: _along(size, len(places))}
            count *= size
        value, error = self._pair(body, places)
        letters = [places[letter] for letter, _ in limits]
        shape = np.broadcast_shapes(np.shape(value), *map(np.shape, letters))
        value, error = np.broadcast_to(value, shape), np.broadcast_to(error, shape)
        axes = tuple(range(len(limits)))
        if isinstance(e, Largest):
            return value.max(axes), error.max(axes)
        rounding = self.unit * count * np.abs(value).sum(axes)
        return value.sum(axes), error.sum(axes) + rounding


def _along(size, depth):
    """The places 1 to size along a new first axis, before so many others."""
    return np.arange(1, size + 1).reshape(-1, *[1] * depth)


def _at(error, at):
    """The entries of an error, which is one number for an input."""
    return error[at] if np.ndim(error) else error


@lru_cache(maxsize=256)
def _formula(defs, head):
    """What a defined name stands for, its derivatives carried out."""
    formula = defs.body(head)
    return resolve(defs.unfold(formula)) if formula.has(Partial, Local) else formula


@lru_cache(maxsize=256)
def _function(function, count) -> Callable:
    """A function of SymPy's as NumPy has it."""
    arguments = [Dummy() for _ in range(count)]
    return lambdify(arguments, function(*arguments), [FUNCTIONS, "numpy"])
