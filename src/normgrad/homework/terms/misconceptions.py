"""The catalogue of misconceptions: what was believed, a hint, the equation it violates, and how it looks.

How it looks is a change of the right recipe (recipes.py), one or several an output: {"k1": 0} is a dx in which the
coefficient of x_hat * c1 is 0. Two changes that name different fields make a double mistake.
"""

from __future__ import annotations

from functools import cache

from . import (
    mistakes_of_dx,
    mistakes_of_forward,
    mistakes_of_parameters,
    mistakes_of_powers,
    mistakes_of_programs,
    mistakes_of_statistics,
)
from .entry import Misconception

UNKNOWN, REFUSED = "unknown", "hidden-by-rounding"

_OPEN = (
    Misconception(
        "coefficient-u",
        "The first term has a wrong factor",
        "wdy reaches dx with a factor of its own",
        "The part of dx that carries wdy itself is wrong.",
    ),
    Misconception(
        "coefficient-c1",
        "x_hat * c1 has a wrong factor",
        "the derivative of rstd is another multiple of x_hat * c1",
        "The part of dx along x_hat is wrong.",
    ),
    Misconception(
        "coefficient-c2",
        "c2 has a wrong factor",
        "the derivative of the mean is another multiple of c2",
        "The part of dx that is the same in a whole row is wrong.",
    ),
    Misconception(
        "coefficient-g",
        "dresidual_out has a wrong factor",
        "the stream's gradient is scaled on its way past the norm",
        "Look at what dresidual_out adds to dx.",
        "res-dx",
    ),
    Misconception(
        "constant-factor",
        "The whole gradient is multiplied by a constant",
        "a constant factor does not matter",
        "The direction is right, the length is not.",
    ),
    Misconception(
        "coefficient-bias", "The bias has a wrong factor", "the bias is scaled", "Look at what the bias adds to y."
    ),
    Misconception(
        "rstd-value",
        "rstd has another value",
        "the statistics of the row are others",
        "The rows have the right direction and the wrong length: look at rstd.",
    ),
    Misconception(
        "one-pass-variance",
        "The variance is the mean of the squares less the square of the mean",
        "mean(x**2) - mean**2 is the variance and costs one pass",
        "Nothing is wrong with the formula. Look at rows whose mean is large beside their deviations.",
        "fp-one-pass",
    ),
    Misconception(
        "rough-mean",
        "The squares are taken about a number that is not the mean",
        "a mean that is nearly right is right enough",
        "Look at how far the mean itself is off.",
        "fp-wrong-mean",
    ),
    Misconception(
        "merge-between",
        "The distance between the blocks' means enters the squares wrongly",
        "the squares of two blocks add up",
        "Try two blocks without any spread of their own.",
        "fp-merge",
    ),
    Misconception(
        "merge-weights",
        "The blocks' means have wrong weights",
        "each block counts alike",
        "Try a long block and a short one.",
        "fp-merge",
    ),
    Misconception(
        "narrow-arithmetic",
        "Computed in float32, where float64 is asked for",
        "the dtype of the intermediate results does not matter",
        "Look at the dtype of each intermediate result.",
    ),
    Misconception(
        "division-by-zero",
        "A row without spread is divided by zero",
        "s is never 0",
        "Look at rows that are constant, or zero.",
        "norm-forward",
    ),
    Misconception(
        "not-finite",
        "The result is not finite",
        "no row leads to an infinity or to 0 / 0",
        "Some results are infinite or not a number.",
    ),
)
CATALOGUE = (
    *mistakes_of_dx.TERMS,
    *mistakes_of_forward.SHAPES,
    *mistakes_of_powers.POWERS,
    *mistakes_of_parameters.PARAMETERS,
    *mistakes_of_statistics.STATISTICS,
    *mistakes_of_forward.OUTPUT,
    *mistakes_of_programs.PROGRAMS,
    *_OPEN,
)


def keys() -> list[str]:
    """The keys of the catalogue, in its order: an earlier one wins where two cannot be told apart."""
    return [each.key for each in CATALOGUE]


@cache
def _by_key():
    return {each.key: each for each in CATALOGUE}


def find(key: str) -> Misconception:
    """The misconception of a key; ValueError for a key that is not in the catalogue."""
    if key not in _by_key():
        raise ValueError(f"key: got {key!r}, needs one of {', '.join(map(repr, keys()))}")
    return _by_key()[key]
