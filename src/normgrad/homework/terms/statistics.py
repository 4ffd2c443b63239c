"""The row statistics as they are, and as a student may have computed them: each variant is one denominator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...checks.tolerance import round_to
from ...spec import NormSpec
from .numbers import block


@dataclass(frozen=True)
class Rows:
    """The rows that are normalized, in float64: p = x + residual and x itself, both (M, N), and the resolved spec."""

    p: np.ndarray
    x: np.ndarray
    spec: NormSpec


@dataclass(frozen=True)
class Statistics:
    """Centred rows q (M, N), rstd and kappa (M, 1); shapes that broadcast to these where an axis is wrong."""

    q: np.ndarray
    rstd: np.ndarray
    kappa: np.ndarray


def denominator(s2, eps, placement):
    """D for the mean or sum of squares s2."""
    if placement == "inside":
        return np.sqrt(s2 + eps)
    return np.sqrt(s2) + eps if placement == "outside" else np.maximum(np.sqrt(s2), eps)


def kappa(s2, eps, placement):
    """D * D'(s) / s, with 0 for 0 / 0 at s = 0."""
    s = np.sqrt(s2)
    if placement == "inside" or eps == 0:
        return np.ones_like(s)
    if placement == "clamp":
        return np.where(s > eps, 1.0, 0.0)
    return np.where(s == 0, 0, (s + eps) / np.where(s == 0, 1, s))


def _statistics(rows, **changes) -> Statistics:
    """The statistics with some of p, center, axis, s2's factor, eps, placement, own_kappa and the root changed."""
    spec, options = rows.spec, {"p": rows.p, "axis": -1, "factor": 1.0, "own_kappa": False, "uncentred": False}
    options |= {"center": spec.center, "eps": spec.eps, "placement": spec.placement, "root": True, "padding": 0}
    options |= {"mean": 1.0} | changes
    p, axis = options["p"], options["axis"]
    q = p - options["mean"] * p.mean(axis, keepdims=True) if options["center"] else p
    squares = p if options["uncentred"] else q
    s2 = (squares * squares).mean(axis, keepdims=True) * options["factor"]
    s2 = s2 + options["padding"] * p.mean(axis, keepdims=True) ** 2
    if spec.reduce == "sum":
        s2 = s2 * (p.size if axis is None else p.shape[axis])
    D = denominator(s2, options["eps"], options["placement"]) if options["root"] else s2 + options["eps"]
    # A student who changes the denominator may or may not differentiate the changed one.
    own = options["own_kappa"]
    k = kappa(s2, *((options["eps"], options["placement"]) if own else (spec.eps, spec.placement)))
    return Statistics(q, 1 / D, k)


def _count(rows):
    return rows.p.shape[-1]


def _bessel(rows):
    n = _count(rows)
    return {"factor": n / (n - 1) if n > 1 else np.inf}


def _on_sum(rows):
    """eps beside the sum where it belongs to the mean, or beside the mean where it belongs to the sum."""
    n = _count(rows)
    return {"eps": rows.spec.eps / n if rows.spec.reduce == "mean" else rows.spec.eps * n}


def _other_reduce(rows):
    n = _count(rows)
    return {"factor": float(n) if rows.spec.reduce == "mean" else 1 / n}


def _padded(rows):
    """Columns past N, up to a power of two, that hold -mean and are counted."""
    n = _count(rows)
    return {"padding": (block(n) - n) / n}


def _share(rows):
    """The share of its block that a row fills."""
    return _count(rows) / block(_count(rows))


def _truncated(rstd):
    return (rstd.astype("f4").view("u4") >> 16 << 16).view("f4").astype(float)


# What each variant changes, as a function of the rows.
CHANGES = {
    "right": lambda rows: {},
    "eps missing": lambda rows: {"eps": 0.0, "own_kappa": True},
    "eps on sum": _on_sum,
    "eps squared": lambda rows: {"eps": rows.spec.eps**2},
    "eps inside": lambda rows: {"placement": "inside"},
    "eps inside, its kappa": lambda rows: {"placement": "inside", "own_kappa": True},
    "eps outside": lambda rows: {"placement": "outside"},
    "eps outside, its kappa": lambda rows: {"placement": "outside", "own_kappa": True},
    "eps clamp": lambda rows: {"placement": "clamp"},
    "eps clamp, its kappa": lambda rows: {"placement": "clamp", "own_kappa": True},
    "bessel": _bessel,
    "other reduce": _other_reduce,
    "variance for mean square": lambda rows: {"padding": -1},
    "centring": lambda rows: {"center": not rows.spec.center},
    "uncentred variance": lambda rows: {"uncentred": True},
    "padding counted": _padded,
    "mean of the block": lambda rows: {"mean": _share(rows)},
    "variance of the block": lambda rows: {"factor": _share(rows)},
    "statistics of the block": lambda rows: {"mean": _share(rows), "factor": _share(rows)},
    "x alone": lambda rows: {"p": rows.x},
    "axis 0": lambda rows: {"axis": 0},
    "no axis": lambda rows: {"axis": None},
    "no root": lambda rows: {"root": False},
}
ROUNDED = {
    "bfloat16 rstd": lambda rstd: round_to(rstd, "bfloat16"),
    "truncated rstd": _truncated,
    "float16 rstd": lambda rstd: round_to(rstd, "float16"),
}
# Followed by a number, the variant with another eps; after a name, the variant of the leading factor only.
EPS_IS, ALONE = "eps = ", ", rstd alone"


def variant(name: str, rows: Rows) -> tuple[Statistics, Statistics]:
    """(statistics of the leading rstd, statistics of x_hat) of a variant.

    Args:  name: a key of CHANGES or ROUNDED, or "eps = 1e-3"; followed by ", rstd alone" where x_hat is right
    """
    base, right = name.removesuffix(ALONE), _statistics(rows)
    if base in ROUNDED:
        changed = Statistics(right.q, ROUNDED[base](right.rstd), right.kappa)
    elif base.startswith(EPS_IS):
        changed = _statistics(rows, eps=float(base.removeprefix(EPS_IS)), own_kappa=True)
    else:
        changed = _statistics(rows, **CHANGES[base](rows))
    return changed, (right if name.endswith(ALONE) else changed)
