"""The stage that runs an unknown operator in float32: how far off may it be, when nobody has analysed it?"""

from __future__ import annotations

import numpy as np

from ...checks.finite_difference import best_step
from ...checks.tolerance import ELEMENTWISE, SAFETY, SMALLEST, unit_roundoff
from ..oracles.described import Operator
from ..words import INPUTS, Wrong, compare, small
from .noted import formats

DRAWS = 16


def reach(rng, f, arrays) -> list[np.ndarray]:
    """For every result an estimate from above of the sum over all input entries of |derivative| times |entry|.

    Rounding the inputs moves a result by at most u times that; a method as good as its problem is off by a few such.
    All entries are moved at once, by h of themselves up or down at random: the mean square over such moves is the sum
    of the squares, and a sum of n terms is at most the root of n times the root of that.
    """
    h, squares = best_step(), None
    for _ in range(DRAWS):
        ways = [a * rng.choice([-1.0, 1.0], a.shape) for a in arrays]
        up, down = (f([a + sign * h * way for a, way in zip(arrays, ways, strict=True)]) for sign in (1, -1))
        slopes = [((a - b) / (2 * h)) ** 2 for a, b in zip(up, down, strict=True)]
        squares = slopes if squares is None else [a + b for a, b in zip(squares, slopes, strict=True)]
    count = sum(a.size for a in arrays)
    return [np.sqrt(count * each / DRAWS) for each in squares]


def float32(exam) -> str:
    """Results come in float32, as close to those in float64 as the problem's own condition allows."""
    operator, dtype = Operator(exam), exam.task.oracle.dtypes[0]
    inputs = operator.usual().rounded(dtype)
    dy = operator.dy(operator.forward(inputs)).astype(np.float32).astype(np.float64)
    try:
        return _close(operator, inputs, dy, dtype)
    except Wrong as wrong:
        raise Wrong(str(wrong), stub=wrong.stub, diagnoses=formats(operator, dy, inputs, dtype)) from None


def _close(operator, inputs, dy, dtype) -> str:
    """Compares the results in a dtype with those in float64."""
    names = list(inputs.arrays)

    def run(arrays, dtype="float64"):
        moved = inputs.moved(**dict(zip(names, arrays[1:], strict=True)))
        return [operator.forward(moved, dtype), *operator.backward(arrays[0], moved, dtype).values()]

    arrays = [dy, *inputs.arrays.values()]
    known, got, sizes, worst = run(arrays), run(arrays, dtype), reach(operator.rng, run, arrays), (0.0, 1.0)
    terms = max(a.size for a in arrays) + ELEMENTWISE
    for name, right, narrow, size in zip(("y", *names), known, got, sizes, strict=True):
        largest = (np.abs(right) + size).max(-1, keepdims=True, initial=0) if right.ndim else np.abs(right) + size
        bound = SAFETY * unit_roundoff(dtype) * terms * largest + SMALLEST[dtype]
        which = "y at " if name == "y" else f"the gradient for {name}, at "
        error, allowed, words = compare(which, narrow, right, np.broadcast_to(bound, right.shape))
        if words:
            raise Wrong(f"{INPUTS}the same numbers in {dtype}. {words[0].upper()}{words[1:]}")
        worst = max(worst, (error, allowed or 1.0), key=lambda pair: pair[0] / pair[1])
    return f"Largest error {small(worst[0])}, allowed {small(worst[1])}."
