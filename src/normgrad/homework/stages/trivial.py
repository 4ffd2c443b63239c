"""Operators on which the checks have nothing to say: an input handed back, a constant, an affine map, a function of
each entry alone."""

from __future__ import annotations

import numpy as np

from ...checks.tolerance import ELEMENTWISE, SAFETY, unit_roundoff
from ..words import Wrong
from .noted import noted

MISSING = (
    "What a project needs is a quantity that is computed from the inputs and used more than once, such as a mean or a "
    "root mean square that the inputs are divided by; the rubric asks for its path in the gradient."
)


def worth_it(operator, first, other) -> np.ndarray:
    """y of the first inputs.

    Raises:  Wrong where y is one of the inputs, the same for other inputs, affine in all inputs together, or where
             each entry of y reads one entry of the inputs at most
    """
    y, other = operator.forward(first), _same_shapes(first, other)
    changed = operator.forward(other)
    if any(y.shape == a.shape and np.array_equal(y, a) for a in first.arrays.values()):
        raise Wrong(f"forward returns one of its inputs: there is nothing to differentiate. {MISSING}",
                    diagnoses=noted("returns-an-input"))  # fmt: skip
    if y.shape == changed.shape and np.array_equal(y, changed):
        raise Wrong(f"forward gives the same y for other inputs: there is nothing to differentiate. {MISSING}",
                    diagnoses=noted("constant-output"))  # fmt: skip
    if _affine(operator, first, other, y, changed):
        raise Wrong(
            "forward is affine: halfway between two inputs, y is halfway, too. Its gradient is the same wherever you "
            f"stand, so that right and wrong ways to derive it hardly differ. {MISSING}",
            diagnoses=noted("affine-forward"),
        )
    if _entry_by_entry(operator, first, other, y):
        raise Wrong(f"forward computes each entry of y from one entry of the inputs: there are no two paths. {MISSING}",
                    diagnoses=noted("entry-by-entry"))  # fmt: skip
    return y


def _entry_by_entry(operator, first, other, y) -> bool:
    """Whether no entry of y moves with two entries of the inputs."""
    moved = np.zeros(y.shape, int)
    for name, a in first.arrays.items():
        for index in np.ndindex(a.shape):
            arrays = a.copy()
            arrays[index] = other.arrays[name][index]
            moved = moved + (operator.forward(first.moved(**{name: arrays})) != y)
            if (moved > 1).any():
                return False
    return True


def unused(operator, first, other, y) -> list[str]:
    """The inputs that y does not depend on."""
    other = _same_shapes(first, other)
    moved = ((name, first.moved(**{name: other.arrays[name]})) for name, a in first.arrays.items() if a.size)
    return [name for name, inputs in moved if np.array_equal(operator.forward(inputs), y)]


def _same_shapes(first, other):
    """The other inputs, or where their shapes differ the first ones with their entries in reverse."""
    if all(name in other.arrays and other.arrays[name].shape == a.shape for name, a in first.arrays.items()):
        return other.ordered(first.arrays)
    return first.moved(**{name: a.ravel()[::-1].reshape(a.shape) for name, a in first.arrays.items()})


def _affine(operator, first, other, y, changed) -> bool:
    """Whether y is halfway between two inputs what it is on average, up to rounding."""
    middle = operator.forward(first.moved(**{name: (a + other.arrays[name]) / 2 for name, a in first.arrays.items()}))
    if not y.shape == changed.shape == middle.shape:
        return False
    terms = sum(a.size for a in first.arrays.values()) + ELEMENTWISE
    sizes = [np.abs(a).max(initial=0) for a in (*first.arrays.values(), *other.arrays.values(), y, changed)]
    bound = SAFETY * unit_roundoff("float64") * terms * sum(sizes)
    return bool((np.abs(2 * middle - y - changed) <= bound).all())
