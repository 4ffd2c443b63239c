"""Six ways to a variance, three orders of a sum, and error bounds for all of them, in any of the four formats.

Every operation is carried out in float64 and then rounded to the format. For one addition, multiplication or division
of numbers that the format holds this gives the nearest number of the format, as its own hardware would. Rows are
handled side by side, columns one after the other: the order of the operations is the order of the code.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..tolerance import round_to, unit_roundoff

Rounding = Callable[[np.ndarray], np.ndarray]
Statistics = tuple[np.ndarray, np.ndarray]


def rounding(dtype: str) -> Rounding:
    """fl: the nearest number of the dtype, an infinity past its largest one.

    Raises:  ValueError, here and below, for a dtype that is not one of the four names
    """
    unit_roundoff(dtype)

    def fl(value):
        with np.errstate(over="ignore"):
            return round_to(np.asarray(value, np.float64), dtype)

    return fl


# -- three orders of a sum


def in_order(terms: np.ndarray, fl: Rounding) -> np.ndarray:
    """The sum along the last axis, from left to right: n - 1 roundings of ever larger sums."""
    result = np.zeros(terms.shape[:-1])
    for term in np.moveaxis(terms, -1, 0):
        result = fl(result + term)
    return result


def in_pairs(terms: np.ndarray, fl: Rounding) -> np.ndarray:
    """The sum along the last axis, as a tree: neighbours, then neighbours of the sums, log2(n) levels."""
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            terms = np.concatenate([terms, np.zeros_like(terms[..., :1])], -1)
        terms = fl(terms[..., ::2] + terms[..., 1::2])
    return terms.sum(-1)  # of the one term that is left, or of none


def in_blocks(terms: np.ndarray, fl: Rounding, blocks: int = 8) -> np.ndarray:
    """The sum along the last axis as a fused backward makes it: each program its own rows, then one sum of partials.

    Args:  blocks: how many partial sums; program k adds the terms k, k + blocks, k + 2 blocks, ...
    """
    missing = -terms.shape[-1] % blocks
    terms = np.concatenate([terms, np.zeros((*terms.shape[:-1], missing))], -1)
    own = terms.reshape(*terms.shape[:-1], -1, blocks)
    return in_order(in_order(np.swapaxes(own, -1, -2), fl), fl)


# -- ways to a variance


def one_pass(x: np.ndarray, dtype: str = "float32") -> Statistics:
    """mean(x^2) - mean(x)^2, {eq}`fp-one-pass`: both sums in one pass over the row.

    Args:     x: rows (..., N) that the dtype holds; dtype: computed in
    Returns:  (mean, variance), (...) each, with 1/N; so do the other ways
    """
    fl, n = rounding(dtype), x.shape[-1]
    mean = fl(in_order(x, fl) / n)
    mean_square = fl(in_order(fl(x * x), fl) / n)
    return mean, fl(mean_square - fl(mean * mean))


def shifted(x: np.ndarray, dtype: str = "float32") -> Statistics:
    """One pass over x - m, {eq}`fp-shifted`, with the row's first entry as m."""
    fl, m = rounding(dtype), x[..., 0]
    mean, variance = one_pass(fl(x - m[..., None]), dtype)
    return fl(m + mean), variance


def two_pass(x: np.ndarray, dtype: str = "float32") -> Statistics:
    """The definition, {eq}`fp-statistics`: the mean first, then the squares of what is left."""
    fl, n = rounding(dtype), x.shape[-1]
    mean = fl(in_order(x, fl) / n)
    q = fl(x - mean[..., None])
    return mean, fl(in_order(fl(q * q), fl) / n)


def corrected(x: np.ndarray, dtype: str = "float32") -> Statistics:
    """Two passes, with the deviations' own mean taken out, 0 on paper by {eq}`fp-correction`."""
    fl, n = rounding(dtype), x.shape[-1]
    mean = fl(in_order(x, fl) / n)
    left, variance = one_pass(fl(x - mean[..., None]), dtype)
    return fl(mean + left), variance


def welford(x: np.ndarray, dtype: str = "float32") -> Statistics:
    """One number at a time, {eq}`fp-welford`."""
    fl = rounding(dtype)
    mean = squares = np.zeros(x.shape[:-1])
    for count, z in enumerate(np.moveaxis(x, -1, 0), start=1):
        before = fl(z - mean)
        mean = fl(mean + fl(before / count))
        squares = fl(squares + fl(before * fl(z - mean)))
    return mean, fl(squares / x.shape[-1])


def chan(x: np.ndarray, dtype: str = "float32", block: int = 1) -> Statistics:
    """Halves of the row, each cut in halves itself, merged by {eq}`fp-merge`.

    Args:  block: the length up to which a piece is not cut, but done in two passes
    """
    fl = rounding(dtype)

    def statistics(piece):
        n = piece.shape[-1]
        if n <= block:
            mean, variance = two_pass(piece, dtype)
            return mean, fl(n * variance)
        n1, n2 = n // 2, n - n // 2
        mean1, squares1 = statistics(piece[..., :n1])
        mean2, squares2 = statistics(piece[..., n1:])
        d = fl(mean2 - mean1)
        mean = fl(mean1 + fl(fl(n2 / n) * d))
        between = fl(fl(n1 * n2 / n) * fl(d * d))
        return mean, fl(fl(squares1 + squares2) + between)

    mean, squares = statistics(x)
    return mean, fl(squares / x.shape[-1])


METHODS = {
    "one pass": one_pass,
    "shifted": shifted,
    "two passes": two_pass,
    "corrected": corrected,
    "Welford": welford,
    "Chan": chan,
}


def bound(name: str, x: np.ndarray, dtype: str) -> np.ndarray:
    """The largest relative error that a way's variance can have, to first order in u; {eq}`fp-bounds`.

    Args:     name: a key of METHODS, "Chan" with a block of 1; x: rows (..., N), none of them constant; dtype
    Raises:   ValueError for another name
    """
    if name not in METHODS:
        raise ValueError(
            f"name: got {name!r}, needs one of {', '.join(map(repr, METHODS))}"
        )
    u, n = unit_roundoff(dtype), x.shape[-1]
    deviation = x.std(-1)
    levels = max(1, (n - 1).bit_length())
    far = np.abs(x).max(-1) / deviation
    near = np.abs(x - x[..., :1]).max(-1) / deviation
    # the error of the mean, in deviations
    e = {"Welford": (n + 9) / 2, "Chan": 5 * levels}.get(name, n) * u * far
    sums = (n + 6) * u
    return {
        "one pass": 3 * sums * far**2,
        "shifted": 3 * sums * near**2,
        "two passes": sums + e**2,
        "corrected": sums * (1 + 2 * e) ** 2,
        "Welford": sums + 2.5 * e + e**2,
        "Chan": 2 * (levels + 3) * u + 2 * levels**0.5 * e + levels * e**2,
    }[name]
