"""Right answers for tasks with SymPy expressions: what an expression is worth at every value of its letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from ...checks.tolerance import ELEMENTWISE, unit_roundoff
from ..diagnosis.named import Diagnosis
from ..sandbox.student import Given, Request

# Rows and columns of the small cases; the last one comes from the draw, as far as writing out sums stays quick.
SIZES = ((2, 3), (3, 2), (2, 1))
MOST_ROWS, MOST_COLUMNS = 3, 4
EIGHTHS = 40


@dataclass(frozen=True)
class Sheet:
    """One small case: the arrays and the lengths, and every value of the letters."""

    arrays: dict
    lengths: dict
    letters: dict

    @property
    def name(self) -> str:
        """The lengths in words."""
        return ", ".join(f"{name} = {value}" for name, value in self.lengths.items())

    def points(self) -> list[dict]:
        """Every combination of the letters, with the lengths."""
        grid = product(*(range(1, length + 1) for length in self.letters.values()))
        return [dict(zip(self.letters, values, strict=True)) | self.lengths for values in grid]


@dataclass(frozen=True)
class Confusion:
    """An answer that a known confusion leads to.

    Args:  key, title, hint; equation: the label of the equation to read; text: the answer, for the report
           answers: {result: a function of (arrays, point) that gives what the confused answer is worth}
    """

    key: str
    title: str
    hint: str
    equation: str
    text: str
    answers: dict[str, Callable]

    def diagnosis(self, right: str) -> Diagnosis:
        """What the report shows."""
        return Diagnosis(self.key, self.title, self.hint, self.equation, self.text, right)


@dataclass(frozen=True)
class LetterOracle:
    """What the tasks with expressions share.

    Args:  kinds: (name, "array", "letter" or "length") of every argument; axes: {array: its lengths}, {letter: its
           length}; results: names; right: {result: function of (arrays, point)}; texts: {result: what it is}
           confusions: known ones; texts lead to an answer and are none, so that no report hands one out
    """

    kinds: tuple[tuple[str, str], ...]
    axes: dict
    results: tuple[str, ...]
    right: dict[str, Callable]
    texts: dict[str, str]
    confusions: tuple[Confusion, ...]
    kind: str = "sympy"
    dtypes: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(name for name, _ in self.kinds)

    def trials(self, rng, draw, kinds=()) -> list[Sheet]:
        """A few small cases with numbers that fractions of two hold, so that nothing is rounded."""
        sizes = (*SIZES, (min(draw.rows, MOST_ROWS), min(draw.columns, MOST_COLUMNS)))
        return [self._sheet(rng, dict(zip("MN", size, strict=True))) for size in sizes]

    def _sheet(self, rng, lengths):
        arrays, letters = {}, {}
        for name, kind in self.kinds:
            if kind == "array":
                shape = tuple(lengths[axis] for axis in self.axes[name])
                signs = np.where(rng.integers(2, size=shape), 1, -1)
                arrays[name] = signs * rng.integers(1, EIGHTHS, shape) / 8
            elif kind == "letter":
                letters[name] = lengths[self.axes[name]]
        used = {name: lengths[name] for name, kind in self.kinds if kind == "length"}
        return Sheet(arrays, used, letters)

    def request(self, trial, dtype="float64", layout="contiguous") -> Request:
        """The call that a case leads to: the arrays' numbers go to the grader's part of the student's process."""
        given = tuple(Given(name, array) for name, array in trial.arrays.items())
        return Request("written", given, {"kinds": self.kinds, "points": trial.points()})

    def values(self, functions, trial) -> dict:
        """{result: numbers at every point} of right or confused answers."""
        return {name: np.array([f(trial.arrays, point) for point in trial.points()], float)
                for name, f in functions.items()}  # fmt: skip

    def expected(self, trial, dtype="float64") -> dict:
        """{result: (value, bound)}; the student's numbers are exact until they become floats."""
        return {name: (value, self.bound(value, trial)) for name, value in self.values(self.right, trial).items()}

    def bound(self, value, trial):
        """How far two floating-point evaluations of the same few sums may be apart."""
        terms = sum(array.size for array in trial.arrays.values()) + ELEMENTWISE
        largest = max((np.abs(array).max(initial=1) for array in trial.arrays.values()), default=1.0)
        return unit_roundoff("float64") * terms * (np.abs(value) + terms * largest**2)
