"""What a wrong gradient of an unknown operator looks like beside the differences: a factor, a sign, a missing mean."""

from __future__ import annotations

import numpy as np

from ...checks.finite_difference import directional
from ..diagnosis.named import Diagnosis
from ..words import Wrong, apart

MISCONCEPTIONS = {
    "gradient-zero": "A gradient is zero",
    "sign": "A gradient has the wrong sign",
    "constant-factor": "A gradient is multiplied by a constant",
    "path-through-a-mean": "In each row a gradient is off by one number",
    "path-through-a-scale": "In each row a gradient is off by a multiple of the input",
    "factor-left-out": "A gradient is what it would be if another input were 1",
    "factor-last": "A gradient is multiplied by another input at the end",
}


def entries(loss, inputs, name):
    """(gradient, bound) of one input, entry by entry, by central differences."""
    arrays = list(inputs.arrays.values())
    at = list(inputs.arrays).index(name)
    known, bound = np.empty(arrays[at].shape), np.empty(arrays[at].shape)
    for index in np.ndindex(arrays[at].shape):
        ways = [np.zeros(a.shape) for a in arrays]
        ways[at][index] = 1
        slope = directional(loss, arrays, ways)
        known[index], bound[index] = slope.value, slope.tolerance
    return known, bound


def named(name, got, known, bound, inputs, without) -> tuple:
    """One Diagnosis where the wrong gradient is the right one times a number, off by a part in each row, or made
    without a factor.

    Args:  name: of the input; got, known, bound: its gradients; inputs: an Inputs
           without: takes the name of another input, returns (gradient, bound) for the case that it is 1 everywhere
    """
    found = _factor(name, got, known, bound) or _row(name, got, known, bound)
    found = found or _left(name, got, inputs.arrays, without) or _scale(name, got, known, bound, inputs.arrays[name])
    if found is None:
        return ()
    key, title, hint = found
    return (Diagnosis(key, title, hint, "index-gradient"),)


def _factor(name, got, known, bound):
    """The whole gradient times a constant."""
    if not np.isfinite(got).all() or not got.any():
        return ("gradient-zero", f"The gradient for {name} is zero", "Does the input reach the output?") \
            if not got.any() else None  # fmt: skip
    factor = float((got * known).sum() / max((known * known).sum(), np.finfo(float).tiny))
    if not factor or (np.abs(got - factor * known) > (1 + abs(factor)) * bound).any():
        return None
    if np.isclose(factor, -1):
        return "sign", f"The gradient for {name} has the wrong sign", "Where does a minus come from in your derivation?"
    sizes = {f"1/{n}" if factor < 1 else str(n) for n in got.shape if np.isclose(factor, 1 / n if factor < 1 else n)}
    words = sorted(sizes)[0] if sizes else apart(factor, 1.0)[0]
    return ("constant-factor", f"The gradient for {name} is {words} times what it must be",
            "A mean where a sum belongs, or the other way round?")  # fmt: skip


def _row(name, got, known, bound):
    """The same number in all entries of a row: a path through a mean is missing."""
    if got.ndim < 2 or got.shape[-1] < 2:
        return None
    off = got - known
    if (np.abs(off - off.mean(-1, keepdims=True)) > 2 * bound.max(-1, keepdims=True)).any():
        return None
    return ("path-through-a-mean", f"In each row the gradient for {name} is off by one number",
            "Is there a statistic whose dependence on the input is left out?")  # fmt: skip


def _scale(name, got, known, bound, array):
    """In every row a multiple of the input and a number: a path through a size is missing, or has a wrong factor."""
    if got.ndim < 2 or got.shape[-1] < 3:
        return None
    rows, off = array.reshape(-1, array.shape[-1]), (got - known).reshape(-1, got.shape[-1])
    limit = bound.reshape(off.shape).max(-1)
    rows, off = rows - rows.mean(-1, keepdims=True), off - off.mean(-1, keepdims=True)
    along = (rows * off).sum(-1) / np.maximum((rows * rows).sum(-1), np.finfo(float).tiny)
    # The projection is no longer than what it is taken of, so that twice the root of N is room enough.
    left = np.abs(off - along[:, None] * rows).max(-1)
    if (left > 2 * np.sqrt(off.shape[-1]) * limit).any():
        return None
    return (
        "path-through-a-scale",
        f"In each row the gradient for {name} is off by a multiple of {name}, and a number",
        "How does a size, such as a root mean square, move when the input does? Check that path and its factor.",
    )


def _left(name, got, arrays, without):
    """The gradient is the one for another input of 1 everywhere, or that one times the other input."""
    for other, array in arrays.items():
        if other == name or not array.size:
            continue
        try:
            known, bound = without(other)
        except Wrong:  # forward refuses ones there
            continue
        if (np.abs(got - known) <= bound).all():
            return ("factor-left-out", f"The gradient for {name} is what it would be if {other} were 1 everywhere",
                    f"Where does {other} stand in the forward? Follow it back to {name}.")  # fmt: skip
        for factor in _along(array, got.shape):
            if (np.abs(got - factor * known) <= np.abs(factor) * bound).all():
                return ("factor-last", f"The gradient for {name} is multiplied by {other} at the end",
                        f"Does the forward multiply by {other} before or after the statistics?")  # fmt: skip
    return None


def _along(array, shape):
    """The array as a factor of the shape: as it is, or along each axis of its length."""
    if array.shape == shape:
        yield array
    if array.ndim == 1:
        for axis in (axis for axis, size in enumerate(shape) if size == array.size):
            yield array.reshape([-1 if k == axis else 1 for k in range(len(shape))])
