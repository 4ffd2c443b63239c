"""The setting of a formula, and the row statistics as they are and as a student may have computed them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...checks.cases import Case
from ...checks.tolerance import round_to
from ...spec import NormSpec


@dataclass(frozen=True)
class Setting:
    """What the right formulas depend on: the spec, M rows, N columns, and which arguments there are."""

    spec: NormSpec
    rows: int
    columns: int
    weight: bool
    bias: bool
    residual: bool
    stream: bool

    @classmethod
    def of(cls, case: Case, spec: NormSpec) -> Setting:
        """The setting of a case."""
        optional = case.weight, case.bias, case.residual, case.dresidual_out
        return cls(spec, *case.x.shape, *(array is not None for array in optional))


@dataclass(frozen=True)
class Rows:
    """The rows that are normalized, in float64: p = x + residual and x itself, both (M, N), and the resolved spec."""

    p: np.ndarray
    x: np.ndarray
    spec: NormSpec


@dataclass(frozen=True)
class Statistics:
    """Centred rows q (M, N) and rstd (M, 1); shapes that broadcast to these where an axis is wrong."""

    q: np.ndarray
    rstd: np.ndarray


def block(columns: int) -> int:
    """The least power of two that is no less than the number of columns: how wide a block of a kernel is."""
    return 1 << (columns - 1).bit_length()


def _statistics(rows, **changes) -> Statistics:
    """The statistics with some of p, center, axis, s2's factor and padding, eps, its placement and the root changed."""
    spec = rows.spec
    options = {"p": rows.p, "axis": -1, "factor": 1.0, "uncentred": False, "center": spec.center, "eps": spec.eps,
               "placement": "inside", "padding": 0, "mean": 1.0} | changes  # fmt: skip
    p, axis, eps = options["p"], options["axis"], options["eps"]
    q = p - options["mean"] * p.mean(axis, keepdims=True) if options["center"] else p
    squares = p if options["uncentred"] else q
    s2 = (squares * squares).mean(axis, keepdims=True) * options["factor"]
    s2 = s2 + options["padding"] * p.mean(axis, keepdims=True) ** 2
    denominators = {"inside": lambda: np.sqrt(s2 + eps), "outside": lambda: np.sqrt(s2) + eps,
                    "clamp": lambda: np.maximum(np.sqrt(s2), eps), "no root": lambda: s2 + eps}  # fmt: skip
    return Statistics(q, 1 / denominators[options["placement"]]())


def _count(rows):
    return rows.p.shape[-1]


def _share(rows):
    """The share of its block that a row fills."""
    return _count(rows) / block(_count(rows))


def _truncated(rstd):
    return (rstd.astype("f4").view("u4") >> 16 << 16).view("f4").astype(float)


# What each variant changes, as a function of the rows.
CHANGES = {
    "right": lambda rows: {},
    "eps missing": lambda rows: {"eps": 0.0},
    "eps on sum": lambda rows: {"eps": rows.spec.eps / _count(rows)},
    "eps squared": lambda rows: {"eps": rows.spec.eps**2},
    "eps outside": lambda rows: {"placement": "outside"},
    "eps clamp": lambda rows: {"placement": "clamp"},
    "bessel": lambda rows: {"factor": _count(rows) / (_count(rows) - 1) if _count(rows) > 1 else np.inf},
    "other reduce": lambda rows: {"factor": float(_count(rows))},
    "variance for mean square": lambda rows: {"padding": -1},
    "centring": lambda rows: {"center": not rows.spec.center},
    "uncentred variance": lambda rows: {"uncentred": True},
    # Columns past N, up to a power of two, that hold -mean and are counted.
    "padding counted": lambda rows: {"padding": 1 / _share(rows) - 1},
    "mean of the block": lambda rows: {"mean": _share(rows)},
    "variance of the block": lambda rows: {"factor": _share(rows)},
    "statistics of the block": lambda rows: {"mean": _share(rows), "factor": _share(rows)},
    "x alone": lambda rows: {"p": rows.x},
    "axis 0": lambda rows: {"axis": 0},
    "no axis": lambda rows: {"axis": None},
    "no root": lambda rows: {"placement": "no root"},
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
        changed = Statistics(right.q, ROUNDED[base](right.rstd))
    elif base.startswith(EPS_IS):
        changed = _statistics(rows, eps=float(base.removeprefix(EPS_IS)))
    else:
        changed = _statistics(rows, **CHANGES[base](rows))
    return changed, (right if name.endswith(ALONE) else changed)
