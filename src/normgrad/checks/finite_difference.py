"""Central differences, with the step and the error that theory gives them; the complex step; directional checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tolerance import unit_roundoff


@dataclass(frozen=True)
class Difference:
    """A directional derivative by finite differences and a bound on its error."""

    value: float
    tolerance: float


def best_step(dtype: str = "float64") -> float:
    """u**(1/3): where a central difference's truncation error h**2 meets its roundoff u / h.  {eq}`fd-best-step`"""
    return unit_roundoff(dtype) ** (1 / 3)


def central(f: Callable[[Any], Any], x: Any, h: Any) -> Any:
    """(f(x + h) - f(x - h)) / (2 h), divided by the step as it was rounded.  {eq}`fd-central`

    Args:  f: a function of one array or number; x where; h the step, of x's shape or one number
    """
    up, down = x + h, x - h
    return (f(up) - f(down)) / (up - down)


def complex_step(f: Callable[[Any], Any], x: Any, h: float = 1e-200) -> Any:
    """Im f(x + i h) / h: no difference is taken, so no digit is lost at any h.  {eq}`fd-complex-step`

    Args:  f: a function that is analytic and computed in complex arithmetic; x real; h the step
    """
    return np.imag(f(x + 1j * h)) / h


def directional(
    f: Callable[..., tuple[Any, Any]],
    inputs: Sequence[np.ndarray],
    direction: Sequence[np.ndarray],
    dtype: str = "float64",
) -> Difference:
    """The derivative of a scalar function along a direction, and how far off it can be.

    Two central differences, with steps h and h / 2, give Richardson's extrapolation; their distance measures the
    truncation error, and the roundoff is u times the size of the terms of f over h.

    Args:     f: takes the inputs, returns (value, size), size the sum of the absolute values of all numbers that make
              the value: of its terms, and of what f itself subtracts, as a mean from x, in units of the value;
              inputs, direction: sequences of float64 arrays of equal shapes
    """
    h = best_step(dtype)

    def moved(step):
        return f(*(x + step * v for x, v in zip(inputs, direction, strict=True)))

    def slope(step):
        (up, size_up), (down, size_down) = moved(step), moved(-step)
        return (up - down) / (2 * step), (size_up + size_down) / (2 * step)

    (coarse, _), (fine, terms_over_h) = slope(h), slope(h / 2)
    terms = max(2, sum(np.size(x) for x in inputs))
    roundoff = unit_roundoff(dtype) * terms * terms_over_h
    return Difference((4 * fine - coarse) / 3, abs(fine - coarse) + 2 * roundoff)


def inner(a: np.ndarray | None, b: np.ndarray | None) -> float:
    """The sum of products of two arrays, in float64; 0 where either is absent."""
    if a is None or b is None:
        return 0.0
    return float(np.sum(np.asarray(a, np.float64) * np.asarray(b, np.float64)))
