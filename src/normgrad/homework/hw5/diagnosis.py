"""Which way a wrong variance was computed, or a wrong merge: exact formulas first, then how the rounding looks."""

from __future__ import annotations

import numpy as np

from ...checks.tolerance import ELEMENTWISE, SIGNIFICAND
from ..diagnosis.table import Diagnosis, named

RIGHT, RECIPROCAL = "var = mean((x - mean)**2)", "rstd = 1 / sqrt(var + eps)"
MERGED = {
    "mean": "mean = mean1 + n2 / n * (mean2 - mean1)",
    "squares": "squares = squares1 + squares2 + n1 * n2 / n * (mean2 - mean1)**2",
}


def _named(*words) -> list[Diagnosis]:
    return [named(*words)]


def spacing(size) -> np.ndarray:
    """The distance between float32 numbers of a size."""
    return 2.0 ** (np.floor(np.log2(np.maximum(size, 1e-30))) + 1 - SIGNIFICAND["float32"])


def diagnose_variance(x, var, mean, mean_error, var_error) -> list[Diagnosis]:
    """[] for a right variance, else one Diagnosis where the way is recognised.

    Args:  x (M, N), var and mean (M,) as they came back, in float64; mean_error, var_error (M,) what is allowed
    """
    n, exact, true_mean = x.shape[-1], x.var(-1), x.mean(-1)
    off = np.abs(var - exact)
    bad = ~(off <= var_error)
    if not bad.any():
        return []
    formulas = {
        "bessel": (exact * n / max(n - 1, 1), "var = sum((x - mean)**2) / (N - 1)"),
        "reduce-exchanged": (exact * n, "var = sum((x - mean)**2)"),
        "variance-uncentred": ((x * x).mean(-1), "var = mean(x**2)"),
        "deviation-for-variance": (np.sqrt(exact), "var = sqrt(mean((x - mean)**2))"),
        "wrong-axis": (np.full(exact.shape, exact.mean()), "var = mean over all rows"),
    }
    for key, (value, words) in formulas.items():
        slack = var_error * np.maximum(1, value / np.maximum(exact, 1e-30))
        if n > 1 and np.all(np.abs(var - value) <= slack):
            return _named(key, words, RIGHT, "fp-statistics")
    if _on_grid(x, var, bad):
        return _named("one-pass-variance", "var = mean(x**2) - mean**2", RIGHT)
    about = exact + (mean - true_mean) ** 2
    if np.all(np.abs(var - about)[bad] <= var_error[bad]) and np.all(np.abs(mean - true_mean)[bad] > 0):
        return _named("rough-mean", "var = mean((x - m)**2), m off the mean", RIGHT)
    return []


def diagnose_rstd(rstd, var, eps) -> list[Diagnosis]:
    """[] for an rstd that belongs to its variance or an unknown formula, else one Diagnosis.

    Args:  rstd, var (M,) as they came back, in float64
    """
    found = {"": ("", lambda v: 1 / np.sqrt(v + eps)),
             "eps-missing": ("1 / sqrt(var)", lambda v: 1 / np.sqrt(v)),
             "eps-placement": ("1 / (sqrt(var) + eps)", lambda v: 1 / (np.sqrt(v) + eps)),
             "root-missing": ("1 / (var + eps)", lambda v: 1 / (v + eps))}  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        for key, (words, formula) in found.items():
            known = formula(var)
            slack = ELEMENTWISE * 2.0 ** -SIGNIFICAND["float32"] * np.where(np.isfinite(known), known, 0)
            if ((rstd == known) | (np.abs(rstd - known) <= slack)).all():
                return _named(key, f"rstd = {words}", RECIPROCAL, "fp-statistics") if key else []
    return []


def _on_grid(x, var, bad) -> bool:
    """Whether wrong variances look like differences of numbers as large as the squared mean.

    A difference of two float32 numbers is a multiple of their spacing. Divided by N first or last, that is the spacing
    of the mean square, or of the sum of squares over N.
    """
    if not np.isfinite(var).all():
        return False
    if (var[bad] < 0).any():
        return True
    n, square = x.shape[-1], (x * x).mean(-1)
    for step in (spacing(square) / 2, spacing(n * square) / 2 / n):
        multiple = var / step
        slack = 2.0 ** -SIGNIFICAND["float32"] * np.maximum(multiple, 1) * 2
        fits = np.abs(multiple - np.round(multiple)) <= slack
        # A variance of a thousand steps is on the grid by chance one time in a thousand at best.
        if fits[bad].all() and (step[bad] > 64 * spacing(x.var(-1)[bad])).all():
            return True
    return False


def diagnose_merge(output, got, parts, known) -> list[Diagnosis]:
    """[] for a right result or an unknown formula, else one Diagnosis. Args: known: (value, bound)"""
    n1, mean1, squares1, n2, mean2, squares2 = parts.values()
    n, d, (exact, bound) = np.maximum(n1 + n2, 1), mean2 - mean1, known
    if output not in MERGED or (np.abs(got - exact) <= bound).all():
        return []
    empty = n1 + n2 == 0
    if not np.isfinite(got[empty]).all() and (np.abs(got - exact) <= bound)[~empty].all():
        return _named("empty-blocks", "n2 / n is 0 / 0 for two empty blocks", MERGED[output])
    own, u = squares1 + squares2, 2.0 ** -SIGNIFICAND["float32"]
    if output == "mean":
        found = [("(mean1 + mean2) / 2", (mean1 + mean2) / 2), ("weights exchanged", mean2 - n2 / n * d)]
        size = np.maximum(np.abs(mean1), np.abs(mean2))
        names = [words for words, value in found if np.all(np.abs(got - value) <= 64 * u * size)]
        return _named("merge-weights", f"mean = {names[0]}", MERGED["mean"]) if names else []
    between = {"": 0, " + d**2": d**2, " + n1 * n2 * d**2": n1 * n2 * d**2, " + n * d**2": n * d**2,
               " - n1 * n2 / n * d**2": -n1 * n2 / n * d**2, " + n1 * n2 / n * d": n1 * n2 / n * d,
               " + (n1 * mean1**2 + n2 * mean2**2)": n1 * mean1**2 + n2 * mean2**2}  # fmt: skip
    for words, value in between.items():
        if np.all(np.abs(got - own - value) <= 64 * u * (own + np.abs(value))):
            return _named("merge-between", f"squares = squares1 + squares2{words}", MERGED["squares"])
    size = squares1 + n1 * mean1**2 + squares2 + n2 * mean2**2
    if np.all(np.abs(got - exact) <= 64 * u * size):
        words = "squares = sum of all x**2 - n * mean**2"
        return _named("one-pass-variance", words, MERGED["squares"], "fp-merge")
    return []
