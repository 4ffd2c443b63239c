"""The only tolerances of the project: error bounds computed from the inputs, never chosen.

Every bound is unit roundoff x reduction length x the size of what is summed. A sum of n terms in any order is off by
at most (n - 1) u sum|terms|; what a statistic's error does to the output follows by first order, and a factor 2 covers
the second order and, in float64, the oracle's own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .dtypes import SIGNIFICAND as SIGNIFICAND
from .dtypes import accumulator, check_dtype, promoted, unit_roundoff
from .dtypes import round_to as round_to
from .spec import NormSpec

if TYPE_CHECKING:
    from . import numpy_ref

__all__ = [
    *("ELEMENTWISE", "LARGEST", "SAFETY", "SIGNIFICAND", "SMALLEST", "SMALLEST_NORMAL"),
    *("Bounds", "Dtypes", "accumulator", "bounds", "factor", "promoted", "round_to"),
    "unit_roundoff",
]

SMALLEST = {
    "float64": 2.0**-1074,
    "float32": 2.0**-149,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
}
SMALLEST_NORMAL = {"float64": 2.0**-1022, "float32": 2.0**-126}
LARGEST = {
    "float64": 1.797e308,
    "float32": 3.402e38,
    "float16": 65504.0,
    "bfloat16": 3.389e38,
}
# Roundings that an element meets besides its sums: subtract, scale, weight and its offset, bias, multiply by rstd,
# divide, root.
ELEMENTWISE = 8
SAFETY = 2


@dataclass(frozen=True)
class Dtypes:
    """The dtype of each array of one run.

    Args:  x; residual, weight, bias and out, the dtype of y: None means x's; residual_out: None means the promoted
           dtype of x and residual; round_residual: whether the sum as residual_out holds it is what is normalized
    """

    x: str
    residual: str | None = None
    weight: str | None = None
    bias: str | None = None
    out: str | None = None
    residual_out: str | None = None
    round_residual: bool = True
    names: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        plain = {
            name: getattr(self, name) or self.x
            for name in ("x", "residual", "weight", "bias")
        }
        stored = self.residual_out or promoted(plain["x"], plain["residual"])
        outputs = {
            "y": self.out or self.x,
            "dy": self.out or self.x,
            "residual_out": stored,
            "dresidual_out": stored,
        }
        gradients = dict(
            zip(("dx", "dresidual", "dw", "db"), plain.values(), strict=True)
        )
        object.__setattr__(self, "names", plain | outputs | gradients)
        for dtype in self.names.values():
            check_dtype(dtype)

    def __getitem__(self, name: str) -> str:
        """The dtype of an input, an output, a cotangent or a gradient."""
        return self.names[name]

    def __str__(self):
        dtypes = [f"{name} {getattr(self, name)}" for name in ("residual", "weight", "bias", "out", "residual_out")
                 if getattr(self, name)]  # fmt: skip
        return ", ".join(
            [self.x, *dtypes, *([] if self.round_residual else ["the sum not rounded"])]
        )

    @property
    def accumulator(self) -> str:
        """The dtype of statistics and sums."""
        return accumulator(promoted(self["x"], self["residual"]))

    @classmethod
    def of(cls, dtype: str | Dtypes) -> Dtypes:
        """The dtypes of a run, given as they are or as one name for all of them."""
        return dtype if isinstance(dtype, Dtypes) else cls(check_dtype(dtype))


@dataclass(frozen=True)
class Bounds:
    """The largest allowed error of each output, elementwise; dw and db None where there is no weight or bias."""

    y: np.ndarray
    residual_out: np.ndarray
    dx: np.ndarray
    dresidual: np.ndarray
    dw: np.ndarray | None
    db: np.ndarray | None


def factor(weight: np.ndarray | None, columns: int, spec: NormSpec) -> np.ndarray:
    """What multiplies x_hat, (columns,): scale * (weight_offset + weight), scale alone without a weight."""
    return spec.scale * (
        np.ones(columns) if weight is None else spec.weight_offset + weight
    )


def _factor_size(weight, columns, spec, dtypes):
    """What a rounding of `factor` is measured by, (columns,): a weight that is wider than the sums is rounded first."""
    wide = unit_roundoff(dtypes["weight"]) < unit_roundoff(dtypes.accumulator)
    if weight is not None and wide:
        return abs(spec.scale) * (abs(spec.weight_offset) + np.abs(weight))
    return np.abs(factor(weight, columns, spec))


def bounds(
    dy: np.ndarray,
    dresidual_out: np.ndarray | None,
    saved: numpy_ref.Forward,
    dtype: str | Dtypes,
    corrected: bool = False,
    additions: int | None = None,
) -> Bounds:
    """Error bounds of the operator's outputs and gradients in a dtype, from the float64 reference.

    With t = u (N + 8), x_hat may be off by e = t (max|p| rstd + |x_hat|): the rounding of the mean grows with the row's
    offset. Where the mean is corrected by the mean of what is left, e = (u |mean| + t mean|q|) rstd + t |x_hat|. The
    square of the mean's error, which {eq}`tolerance-x-hat` has too, is left out: stricter for long rows far from 0. dx
    is off by rstd times the errors of wdy, c2 and x_hat c1, dw by the sum over rows of |dy| e.

    Args:     dy, dresidual_out (M, N), the cotangents; saved, what numpy_ref.forward returned for the same rows, in
              float64; dtype, the name of the dtype of all arrays, or Dtypes; corrected: whether the mean is;
              additions: how many of them a term of a row's sum goes through at most, None means N
    Returns:  Bounds, one bound an element
    """
    p, spec, dtypes = saved.residual_out, saved.spec, Dtypes.of(dtype)
    u = unit_roundoff(dtypes.accumulator)
    weight = _factor_size(saved.weight, p.shape[-1], spec, dtypes)
    # Not above: the process of a homework's solution has this module, and no reference.
    from . import numpy_ref

    grads = numpy_ref.backward(dy, saved, dresidual_out)
    additions = p.shape[-1] if additions is None else additions
    terms = u * (additions + ELEMENTWISE)
    rstd = saved.rstd[:, None]
    q = p if saved.mean is None else p - saved.mean[:, None]
    x_hat = q * rstd
    e_x = rstd * _mean_error(p, q, u, terms, corrected) + terms * np.abs(x_hat)
    e_y = weight * e_x + u * ELEMENTWISE * (
        0 if saved.bias is None else np.abs(saved.bias)
    )
    e_dx = rstd * _input_gradient_error(
        np.abs(dy) * weight, q, x_hat, e_x, terms, spec, dtypes.accumulator
    )
    # What underflows before the multiplication by rstd.
    e_dx = e_dx + rstd * ELEMENTWISE * SMALLEST[dtypes.accumulator]
    e_dx = e_dx + (
        0 if dresidual_out is None else ELEMENTWISE * u * np.abs(dresidual_out)
    )
    rows = u * (len(p) + ELEMENTWISE)
    e_dw = np.abs(spec.scale) * (np.abs(dy) * (e_x + rows * np.abs(x_hat))).sum(0)
    e_db = rows * np.abs(dy).sum(0)

    outputs = {
        "y": (e_y, saved.y),
        "residual_out": (0, p),
        "dx": (e_dx, grads.dx),
        "dresidual": (e_dx, grads.dx),
        "dw": (e_dw, grads.dweight),
        "db": (e_db, grads.dbias),
    }
    return Bounds(*(_stored(dtypes[name], *output) for name, output in outputs.items()))


def _stored(dtype, error, value):
    """The largest error of a value that is off by an error and then rounded to a dtype; None for None."""
    if value is None:
        return None
    out = unit_roundoff(dtype)
    # The last rounding is to nearest: half a unit of the value that is rounded, error and all.
    rounding = out * (1 + 2 * out) * np.abs(value)
    return SAFETY * error * (1 + out) + rounding + SMALLEST[dtype]


def _mean_error(p, q, u, terms, corrected):
    """The error of a row's mean (M, 1), from the rows p and the centred ones q.

    A mean that is corrected is rounded once, after a sum of deviations; p - q is the exact one.
    """
    if not corrected:
        return terms * np.abs(p).max(-1, keepdims=True, initial=0)
    return u * np.abs((p - q)[:, :1]) + terms * np.abs(q).mean(-1, keepdims=True)


def _input_gradient_error(wdy, q, x_hat, e_x, terms, spec, acc):
    """The error of wdy - c2 - x_hat * c1, for wdy given by its absolute values.

    Where D has no derivative at s = 0, with eps outside, kappa * x_hat is the direction q / s, and s is as uncertain as
    the rounding of the row over s; the direction itself is never longer than sqrt(n). Nothing is known of it where the
    squares underflow.
    """
    n, x_hat = spec.count(q.shape[-1]), np.abs(x_hat)
    if spec.eps and not spec.place.differentiable(0.0, spec.eps, 0.0):
        s = np.sqrt((q * q).sum(-1, keepdims=True) / n)
        with np.errstate(divide="ignore", invalid="ignore"):
            along = np.where(s > 0, np.abs(q) / s, 0)
            e_along = np.where(
                s > SMALLEST_NORMAL[acc] ** 0.5, e_x * (1 + spec.eps / s), np.inf
            )
        e_along = np.minimum(e_along, 2 * np.sqrt(n))
    else:
        along, e_along = x_hat, e_x
    c1 = ((along + e_along) * wdy).sum(-1, keepdims=True) / n
    e_c1 = ((terms * along + e_along) * wdy).sum(-1, keepdims=True) / n
    c2 = wdy.mean(-1, keepdims=True) if spec.center else 0
    return terms * (2 * wdy + 2 * c2 + 2 * x_hat * c1) + x_hat * e_c1 + e_x * c1
