"""Mistakes of an operator of the student's own that show before a gradient's numbers are looked at, and their names."""

from __future__ import annotations

from itertools import product

import numpy as np

from ...checks.finite_difference import best_step, directional
from ..diagnosis.named import Diagnosis, named
from ..diagnosis.table import find
from ..words import Wrong
from .accuracy import WIDE

STEP = "Which step of a derivation could go wrong here?"
# {key: (title, hint)}; a hint asks, and leaves the answer to the reader.
NOTED = {
    "equal-entries": ("All entries of an input are equal", "Which wrong gradients look right on such an input?"),
    "input-not-drawn": ("An input is the same in every draw", "What does a second draw show that the first did not?"),
    "not-repeatable": ("The same generator gives other inputs", "Where does each of your random numbers come from?"),
    "returns-an-input": ("Forward returns one of its inputs", STEP),
    "constant-output": ("Forward gives the same y for all inputs", STEP),
    "affine-forward": ("Forward is affine in its inputs", STEP),
    "entry-by-entry": ("Each entry of y depends on one entry of the inputs alone", STEP),
    "gradient-missing": ("An input gets no gradient", "Which inputs move y? How many gradients does backward return?"),
    "wrong-axis": ("A gradient is summed over the wrong axes", "Which entries of y does one entry of the input reach?"),
    "not-linear": ("Backward is not linear in dy", "What must happen to a gradient when dy is twice as large?"),
    "nothing-degenerate": ("No degenerate inputs are declared", "On which inputs might a result not be finite?"),
    "zero-unguarded": (
        "On a degenerate input something is 0 that must not be 0",
        "What does forward compute on that input, step by step, and which of the steps has no answer?",
    ),
}
CATALOGUED = ("input-overwritten", "wide-arithmetic", "narrow-intermediate", "results-swapped")
MISCONCEPTIONS = {key: title for key, (title, _) in NOTED.items()} | {key: find(key).title for key in CATALOGUED}
ARRAYS, MOST_AXES, MOVES = ("ndarray", "tensor"), 8, 3
NARROW = {"float16", "bfloat16"}


def noted(key) -> tuple:
    """The Diagnosis of a key, alone in a tuple."""
    if key in CATALOGUED:
        return (named(key),)
    return (Diagnosis(key, *NOTED[key]),)


def misfit(operator, dy, inputs, loss) -> tuple:
    """What is wrong with gradients whose number or shapes do not fit the inputs, where that can be told.

    Args:  loss: takes (operator, inputs, dy, gradients), returns the loss with the size of its terms
    """
    try:
        values = operator.asked(dy, inputs).values
    except Wrong:
        return ()
    arrays = [value for value in values if value.facts.get("kind") in ARRAYS]
    none = sum(value.facts.get("type") == "NoneType" for value in values)
    if arrays and len(arrays) < len(inputs.arrays) and len(arrays) + none == len(values) <= len(inputs.arrays):
        return noted("gradient-missing")
    if len(arrays) != len(values) or len(values) != len(inputs.arrays):
        return ()
    got = {name: value.numbers for name, value in zip(inputs.arrays, values, strict=True)}
    return next((noted("wrong-axis") for name in got if _other_axes(operator, dy, inputs, got, name, loss)), ())


def _other_axes(operator, dy, inputs, got, name, loss) -> bool:
    """Whether a gradient has the shape of dy summed over other axes than the input's, and all that it must add up to.

    The sum over all entries is the slope in the direction of ones, whichever axes were summed before.
    """
    shape, needed = got[name].shape, inputs.arrays[name].shape
    if _without_ones(shape) == _without_ones(needed) or dy.ndim > MOST_AXES or not np.isfinite(got[name]).all():
        return False
    axes = product((0, 1), repeat=dy.ndim)
    left = {tuple(n for n, keep in zip(dy.shape, kept, strict=True) if keep and n != 1) for kept in axes}
    if _without_ones(shape) not in left:
        return False
    sized = {each: np.full(a.shape, np.abs(got[each]).max(initial=0)) for each, a in inputs.arrays.items()}
    ways = [np.full(a.shape, float(each == name)) for each, a in inputs.arrays.items()]
    slope = directional(loss(operator, inputs, dy, sized), list(inputs.arrays.values()), ways)
    return bool(abs(got[name].sum() - slope.value) <= slope.tolerance)


def _without_ones(shape):
    return tuple(n for n in shape if n != 1)


def unguarded(operator, inputs) -> tuple:
    """Whether all is finite next to inputs on which it is not: what overflows does so there, too."""
    for _ in range(MOVES):
        ways = {name: operator.rng.standard_normal(a.shape) for name, a in inputs.arrays.items()}
        near = {name: a + best_step() * max(1, np.abs(a).max(initial=0)) * ways[name]
                for name, a in inputs.arrays.items()}  # fmt: skip
        try:
            y = operator.forward(inputs.moved(**near))
            results = [y, *operator.backward(operator.dy(y), inputs.moved(**near)).values()]
        except Wrong:
            return ()
        if not all(np.isfinite(numbers).all() for numbers in results):
            return ()
    return noted("zero-unguarded")


def formats(operator, dy, inputs, dtype) -> tuple:
    """What the formats of the arithmetic say about results that are wrong in a dtype."""
    try:
        asked = [operator.asked(dy, inputs, dtype, watched=method) for method in ("forward", "backward")]
    except Wrong:
        return ()
    computed, converted = ({each for outcome in asked for each in outcome.facts[how]}
                           for how in ("computed", "converted"))  # fmt: skip
    returned = {value.facts.get("dtype") for outcome in asked for value in outcome.values}
    wide = noted("wide-arithmetic") if returned & computed & set(WIDE) else ()
    return (*wide, *(noted("narrow-intermediate") if (computed | converted) & NARROW else ()))
