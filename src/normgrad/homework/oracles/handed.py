"""A backward as a student's test meets it: numbers go in, numbers come out, and nothing else tells which one it is."""

from __future__ import annotations

import secrets
import warnings
from functools import cache

import numpy as np

from .backwards import FLAT, RIGHT, ZEROS, subjects

MOST_NUMBERS, KEPT_NUMBERS = 100_000, 200_000
# Each right way of writing is handed over twice, with its sums in two orders.
REPEATS = 2
NOTHING, WRONG, RUINED = "zeros", "wrong", "ruined"


@cache
def known() -> dict:
    """{what it is: its function} of every backward that a test can be handed."""
    texts = {("right", how): make() for how, make in RIGHT.items()}
    texts |= {(WRONG, n): subject.source() for n, subject in enumerate(subjects(), start=1)}
    texts |= {(RUINED, subject.output): subject.ruined() for subject in subjects()}
    return {which: function(text) for which, text in {**texts, (NOTHING,): ZEROS}.items()}


def function(source: str):
    """The `backward` that a text defines, in a namespace of its own."""
    names = {"__name__": "given"}
    exec(compile(source, "<backward>", "exec"), names)
    return names["backward"]


def turns() -> list[tuple]:
    """(what it is, which time) of all that a test is tried on, a wrong one first and the rest as chance has it.

    Chance is the system's: a seed is known to whoever reads it, and a test that remembers or counts must not know.
    The first one is no backward that gives NaN: a test may wait for finite numbers before it remembers any.
    """
    chance = secrets.SystemRandom()
    wrong = [((WRONG, n), 0) for n in range(1, len(subjects()) + 1)]
    finite = [turn for turn, subject in zip(wrong, subjects(), strict=True) if FLAT not in subject.hidden_by]
    rest = [(("right", how), time) for how in RIGHT for time in range(REPEATS)] + [((NOTHING,), 0)]
    first = chance.choice(finite)
    rest += [turn for turn in wrong if turn != first]
    chance.shuffle(rest)
    return [first, *rest]


class Handed:
    """Answers the calls of one backward, and keeps what went in and came out.

    Every backward is computed on every call, so that the time says nothing. Rows and columns are taken in an order of
    this object's own, so that the last digits are not those of a text that somebody may have.

    Args:  which: a key of known(); rng: where the order comes from
    """

    def __init__(self, which, rng):
        self.which, self.rng, self.calls, self.kept, self.left = which, rng, 0, [], KEPT_NUMBERS

    def __call__(self, facts, arrays):
        """({"dtypes": of the results}, results), or ({"wrong": a sentence}, []) for inputs that do not fit."""
        self.calls += 1
        try:
            if sum(array.size for array in arrays) > MOST_NUMBERS:
                raise ValueError(f"backward takes at most {MOST_NUMBERS} numbers a call")
            inputs = [_cast(array, dtype) for array, dtype in zip(arrays, facts["dtypes"], strict=True)]
            _fit(inputs)
        except (ValueError, TypeError, KeyError) as error:
            return {"wrong": str(error)}, []
        found = self._computed(inputs)
        self.left -= sum(a.size for a in (*inputs, *found))
        if self.left >= 0:
            self.kept.append((inputs, found))
        return {"dtypes": [str(array.dtype) for array in found]}, found

    def _computed(self, inputs):
        rows, columns = (self.rng.permutation(n) for n in inputs[1].shape)
        orders = ((rows, columns), (rows, columns), (columns,), (rows,), (rows,))
        moved = [array[np.ix_(*order)] for array, order in zip(inputs, orders, strict=True)]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {which: each(*(array.copy() for array in moved)) for which, each in known().items()}[self.which]
        back = (np.ix_(np.argsort(rows), np.argsort(columns)), np.argsort(columns), np.argsort(columns))
        return [np.ascontiguousarray(array[order]) for array, order in zip(found, back, strict=True)]


def _cast(array, dtype):
    """An input in the dtype that the test gave it; integers count as float64."""
    kind = np.dtype(dtype)
    return np.array(array, kind if kind.kind == "f" else np.float64)


def _fit(inputs):
    """Whether the shapes fit together.

    Raises:  ValueError that names the argument
    """
    shapes = {name: array.shape for name, array in zip(("dy", "x", "weight", "mean", "rstd"), inputs, strict=True)}
    if len(shapes["x"]) != 2 or not shapes["x"][1]:
        raise ValueError(f"x: got shape {shapes['x']}, needs (M, N) with a column at least")
    rows, columns = shapes["x"]
    for name, needs in (("dy", (rows, columns)), ("weight", (columns,)), ("mean", (rows,)), ("rstd", (rows,))):
        if shapes[name] != needs:
            raise ValueError(f"{name}: got shape {shapes[name]}, needs {needs} for x of shape {shapes['x']}")
