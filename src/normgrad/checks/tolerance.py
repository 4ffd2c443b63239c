"""The only tolerances of the project: error bounds computed from the inputs, never chosen.

Every bound is unit roundoff x reduction length x the size of what is summed. A sum of n terms in any order is off by
at most (n - 1) u sum|terms|; what a statistic's error does to the output follows by first order, and a factor 2 covers
the second order and, in float64, the oracle's own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import numpy_ref

# Bits of the significand, the hidden one counted; the unit roundoff is 2**-bits.
SIGNIFICAND = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
SMALLEST = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
LARGEST = {"float64": 1.797e308, "float32": 3.402e38, "float16": 65504.0, "bfloat16": 3.389e38}
# Roundings that an element meets besides its sums: subtract, scale, weight, bias, multiply by rstd, divide, root.
ELEMENTWISE = 8
SAFETY = 2


def _check_dtype(dtype) -> str:
    if not isinstance(dtype, str) or dtype not in SIGNIFICAND:
        raise ValueError(f"dtype: got {dtype!r}, needs one of {', '.join(map(repr, SIGNIFICAND))}")
    return dtype


def unit_roundoff(dtype: str) -> float:
    """u, half the distance from 1 to the next number of the dtype.

    Raises:  ValueError, here and below, for a dtype that is not one of the four names
    """
    return 2.0 ** -SIGNIFICAND[_check_dtype(dtype)]


def accumulator(dtype: str) -> str:
    """The dtype of statistics and sums: float64 for float64, float32 for the rest."""
    return "float64" if _check_dtype(dtype) == "float64" else "float32"


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest numbers of the dtype, ties to even, held in float64.

    bfloat16, which NumPy lacks, is float32 with the low 16 bits rounded away.
    """
    if _check_dtype(dtype) != "bfloat16":
        return array.astype(dtype).astype(np.float64)
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(np.float64).reshape(array.shape)


@dataclass(frozen=True)
class Bounds:
    """The largest allowed error of each output, elementwise; dw and db None where there is no weight or bias."""

    y: np.ndarray
    residual_out: np.ndarray
    dx: np.ndarray
    dw: np.ndarray | None
    db: np.ndarray | None


def bounds(dy, dresidual_out, saved, dtype: str) -> Bounds:
    """Error bounds of the operator's outputs and gradients in a dtype, from the float64 reference.

    With t = u (N + 8), x_hat is off by e = t (max|p| rstd + |x_hat|): the rounding of the mean grows with the row's
    offset. dx is off by rstd times the errors of wdy, c2 and x_hat c1, dw by the sum over rows of |dy| e.

    Args:     dy, dresidual_out (M, N), the cotangents; saved, what numpy_ref.forward returned for the same rows, in
              float64; dtype, the name of the inputs' dtype
    Returns:  Bounds, one bound an element
    """
    p, spec = saved.residual_out, saved.spec
    u, out = unit_roundoff(accumulator(dtype)), unit_roundoff(dtype)
    weight = spec.scale * (np.ones(p.shape[-1]) if saved.weight is None else saved.weight)
    grads = numpy_ref.backward(dy, saved, dresidual_out)
    rstd, q = saved.rstd[:, None], p if saved.mean is None else p - saved.mean[:, None]
    x_hat, terms = q * rstd, u * (p.shape[-1] + ELEMENTWISE)
    e_x = terms * (np.abs(p).max(-1, keepdims=True, initial=0) * rstd + np.abs(x_hat))
    e_y = np.abs(weight) * e_x + u * ELEMENTWISE * (0 if saved.bias is None else np.abs(saved.bias))
    e_dx = rstd * _input_gradient_error(np.abs(dy * weight), q, x_hat, e_x, terms, spec)
    e_dx = e_dx + (0 if dresidual_out is None else ELEMENTWISE * u * np.abs(dresidual_out))
    rows = u * (len(p) + ELEMENTWISE)
    e_dw = np.abs(spec.scale) * (np.abs(dy) * (e_x + rows * np.abs(x_hat))).sum(0)
    e_db = rows * np.abs(dy).sum(0)

    def stored(error, value):
        if value is None:
            return None
        # The last rounding is to nearest: half a unit of the value that is rounded, error and all.
        return SAFETY * error * (1 + out) + out * (1 + 2 * out) * np.abs(value) + SMALLEST[dtype]

    outputs = ((e_y, saved.y), (0, p), (e_dx, grads.dx), (e_dw, grads.dweight), (e_db, grads.dbias))
    return Bounds(*(stored(error, value) for error, value in outputs))


def _input_gradient_error(wdy, q, x_hat, e_x, terms, spec):
    """The error of wdy - c2 - x_hat * c1, for wdy given by its absolute values.

    With eps outside, kappa * x_hat is the direction q / s, and s is as uncertain as the rounding of the row over s; the
    direction itself is never longer than sqrt(n).
    """
    n, x_hat = spec.count(q.shape[-1]), np.abs(x_hat)
    if spec.placement == "outside" and spec.eps:
        s = np.sqrt((q * q).sum(-1, keepdims=True) / n)
        with np.errstate(divide="ignore", invalid="ignore"):
            along = np.where(s > 0, np.abs(q) / s, 0)
            e_along = np.where(s > 0, e_x * (1 + spec.eps / s), np.inf)
        e_along = np.minimum(e_along, 2 * np.sqrt(n))
    else:
        along, e_along = x_hat, e_x
    c1 = ((along + e_along) * wdy).sum(-1, keepdims=True) / n
    e_c1 = ((terms * along + e_along) * wdy).sum(-1, keepdims=True) / n
    c2 = wdy.mean(-1, keepdims=True) if spec.center else 0
    return terms * (2 * wdy + 2 * c2 + 2 * x_hat * c1) + x_hat * e_c1 + e_x * c1
