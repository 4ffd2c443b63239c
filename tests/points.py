"""What a program returns at a Point, and whether it is what it is to be."""

import numpy as np

from normgrad.symbolic.symbols import i, j
from normgrad.verify.interpreter import flat
from normgrad.verify.point import Point

__all__ = ["Point", "apart", "results", "set_maxima"]
# relative to the largest entry: rounding is smaller, and an error of a formula at random values is larger
APART = 1e-7


def results(target, library, arguments):
    """What a function returns, one after the other; arguments: arrays and numbers."""
    if library == "numpy":
        return [np.asarray(value, float) for value in flat(target(*arguments))]
    import torch

    values = [
        torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for value in arguments
    ]
    return [value.detach().numpy() for value in flat(target(*values))]


def apart(value, right):
    """Whether an array differs from the right one by more than rounding, or has another shape."""
    if value.shape != right.shape:
        return True
    scale = 1 + np.max(np.abs(right), initial=0)
    return not bool(np.all(np.abs(value - right) <= APART * scale))


def set_maxima(point, maxima):
    """Gives a Point the largest numbers of rows and columns, which it would draw."""
    for head, maximum in maxima.items():
        if maximum.e is not None:
            numbers = point.value(maximum.e, [i, j])
            axis = int(maximum.over == j)
            largest = numbers.take(0, axis) if maximum.is_first else numbers.max(axis)
            point.values[str(head.base)] = largest
