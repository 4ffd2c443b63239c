"""Definitions, and what a program was read as, evaluated by NumPy at one size, with a bound of what rounding does.

The bound is a running one: every operation adds its own roundings to what its operands may be off by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from sympy import Add, Dummy, Expr, Indexed, KroneckerDelta, Sum, Symbol, lambdify

from ..dtypes import unit_roundoff
from ..symbolic.calculus import free_letters, resolve
from ..symbolic.definitions import Defs
from ..symbolic.notation import Local, Partial
from ..symbolic.symbols import M, N, i, j, p
from ..tolerance import ELEMENTWISE

FUNCTIONS = {
    "sigmoid": lambda t: 1 / (1 + np.exp(-t)),
    "cdiv": lambda a, b: -(-a // b),
    "floordiv": lambda a, b: a // b,
    "next_power_of_2": lambda n: 2.0 ** np.ceil(np.log2(n)),
}


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

    def shape(self, sizes: Iterable[Expr]) -> tuple[int, ...]:
        """A shape in 1, M, N and their product as numbers."""
        numbers = {M * N: self.sizes.get(M, 1) * self.sizes.get(N, 1), **self.sizes}
        return tuple(int(numbers.get(size, 1)) for size in sizes)

    def tensor(self, head: Expr) -> np.ndarray | float:
        """The entries of a tensor or an expression, or the value of a scalar; what is defined is worked out."""
        if not isinstance(head, Indexed) and not head.is_Symbol:
            return self.value(head, [letter for letter in (i, j) if head.has(letter)])
        name = str(getattr(head, "base", head))
        if name not in self.values:
            self.errors[name] = 0.0
            if head in self.defs:
                head, formula = self.defs.line(head)
                pair = self.bounded(formula, getattr(head, "indices", ()))
                self.values[name], self.errors[name] = pair
            elif isinstance(head, Indexed):
                shape = self.shape(head.base.shape)
                self.values[name] = self.draw.standard_normal(shape)
            else:
                self.values[name] = self.draw.uniform(0.2, 1)
        return self.values[name]

    def value(self, e: Expr, letters: Iterable[Symbol]) -> np.ndarray:
        """An expression's values, with an axis for each of the letters, of which i and p run over the rows."""
        return self.bounded(e, letters)[0]

    def defines(self, e: Expr) -> bool:
        """Whether an expression has a value in every place, and not one that rounding makes of none."""
        value, error = self.bounded(e, free_letters(e))
        return bool(np.all(np.isfinite(value) & (error < np.abs(value) + self.unit)))

    def largest(self, e: Expr) -> float:
        """The largest value of an expression in any place, and at least 1; infinite where it has none."""
        value = np.abs(self.value(e, free_letters(e)))
        return float(np.max(np.where(np.isnan(value), np.inf, value), initial=1))

    def bounded(
        self, e: Expr, letters: Iterable[Symbol]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(an expression's values as `value` has them, what rounding may do to each)."""
        e = _resolved(self.defs, e)
        sizes = {letter: self.sizes[M if letter in (i, p) else N] for letter in letters}
        for part in e.atoms(Indexed):
            for letter, size in zip(part.indices, part.base.shape, strict=True):
                if letter in sizes:
                    sizes[letter] = self.sizes[size]
        places = {}
        for letter, size in reversed(sizes.items()):
            places[letter] = _along(size, len(places))
        with np.errstate(all="ignore"):
            pair = self._pair(e, places)
        value, error = (np.broadcast_to(a, [*sizes.values()]) + 0.0 for a in pair)
        return value, error

    def _pair(self, e, places):
        """(value, error) of an expression; places: {letter: its places from 1 on, along an axis of its own}."""
        if e.is_number:
            return float(e), 0.0 if e.is_Integer else self.unit * abs(float(e))
        if e in places or e in self.sizes:
            # a power of NumPy's number is no error at 0
            return np.float64(1) * places.get(e, self.sizes.get(e)), 0.0
        if isinstance(e, KroneckerDelta):
            return np.equal(*map(places.get, e.indices)) * 1.0, 0.0
        if isinstance(e, Sum):
            return self._sum(e, places)
        if isinstance(e, Indexed) or e.is_Symbol:
            at = tuple(places[index] - 1 for index in getattr(e, "indices", ()))
            entries = np.asarray(self.tensor(e))
            error = self.errors.get(str(getattr(e, "base", e)), 0.0)
            return entries[at], np.broadcast_to(error, entries.shape)[at]
        values, errors = zip(*[self._pair(a, places) for a in e.args], strict=True)
        run = _function(e.func, len(values))
        value = run(*values)
        size = sum(map(np.abs, values)) if isinstance(e, Add) else np.abs(value)
        error = ELEMENTWISE * len(values) * self.unit * size
        for k, off in enumerate(errors):
            moved = run(*values[:k], values[k] + off, *values[k + 1 :])
            error = error + np.abs(moved - value)
        return value, error

    def _sum(self, e, places):
        """(value, error) of a sum."""
        body, *limits = e.args
        places, depth = dict(places), len(places)
        for letter, _, last in limits:
            places[letter] = _along(self.sizes[last], len(places))
        shape = np.broadcast_shapes(*[a.shape for a in places.values()])
        pair = self._pair(body, places)
        value, error = (np.broadcast_to(a, shape) for a in pair)
        axes = tuple(range(len(places) - depth))
        count = np.prod(shape[: len(axes)])
        return value.sum(axes), (error + self.unit * count * np.abs(value)).sum(axes)


def _along(size, depth):
    """The places 1 to size along a new first axis, before so many others."""
    return np.arange(1, size + 1).reshape(-1, *[1] * depth)


@lru_cache(maxsize=256)
def _resolved(defs, e):
    """An expression with its derivatives carried out."""
    return resolve(defs.unfold(e)) if e.has(Partial, Local) else e


@lru_cache(maxsize=256)
def _function(function, count) -> Callable:
    """A function of SymPy's as NumPy has it."""
    arguments = [Dummy() for _ in range(count)]
    return lambdify(arguments, function(*arguments), [FUNCTIONS, "numpy"])
