"""The operator in NumPy, forward and backward as the equations read: the oracle of every other backend.

Rows are the last axis; any leading axes are kept. Everything is computed in the dtype of x + residual, in float32 where
that is narrower, and rounded once at the end. Complex numbers let the complex step differentiate: where one array is
complex, so is what is computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dtypes import LEAST
from .spec import LAYER_NORM, NormSpec, check_shapes, check_spec, check_weight_offset


@dataclass(frozen=True)
class Forward:
    """What the forward returns and the backward needs.

    Args:  y (..., N) in x's dtype; residual_out (..., N), the sum x + residual (x itself without a residual)
           mean (...) or None where the spec does not centre; rstd (...), always the reciprocal 1 / D
           weight, bias (N,), with heads (H, N), or None and spec, as given (eps resolved)
    """

    y: np.ndarray
    residual_out: np.ndarray
    mean: np.ndarray | None
    rstd: np.ndarray
    weight: np.ndarray | None
    bias: np.ndarray | None
    spec: NormSpec


@dataclass(frozen=True)
class Grads:
    """The gradients: dx (..., N), which is also dresidual; dweight and dbias, None where there was no argument.

    dweight and dbias are (N,), with heads (H, N).
    """

    dx: np.ndarray
    dweight: np.ndarray | None
    dbias: np.ndarray | None


def _check_array(name, array):
    # A matrix multiplies otherwise, a masked array has other means.
    if type(array) not in (np.ndarray, np.memmap):
        itself = " itself, no subclass of it" if isinstance(array, np.ndarray) else ""
        raise TypeError(
            f"{name}: got {type(array).__name__}, needs a numpy.ndarray{itself}"
        )
    if array.dtype.kind not in "fc":
        raise TypeError(
            f"{name}: got dtype {array.dtype}, needs a floating-point dtype"
        )


def _accumulator(dtype):
    return np.result_type(dtype, LEAST)


def _complex(dtype, *arrays):
    """The dtype, complex where one of the arrays is."""
    return (
        np.result_type(dtype, np.complex64)
        if any(map(np.iscomplexobj, arrays))
        else np.dtype(dtype)
    )


def _rows(p, spec, mean=None):
    """Centred rows q, their size s and the mean, for rows p in the accumulator's dtype."""
    if spec.center:
        if mean is None:
            # The sum is rounded, and rstd magnifies that: the mean of what is left corrects the mean.
            mean = p.mean(-1, keepdims=True)
            mean = mean + (p - mean).mean(-1, keepdims=True)
        q = p - mean
    else:
        q = p
    s2 = (q * q).sum(-1, keepdims=True) / spec.count(p.shape[-1])
    return q, s2, mean


def _denominator(s2, spec):
    if spec.place.kappa is None:
        return np.sqrt(s2 + spec.eps)
    return spec.place.denominator(np.sqrt(s2), spec.eps, np)


def _reciprocal(s2, spec):
    """1 / D; NaN where the squares of a row leave the dtype's range, as a number would be wrong there."""
    d = _denominator(s2, spec)
    lost = ~np.isfinite(s2) | (np.abs(d) < np.sqrt(np.finfo(d.dtype).tiny))
    return np.where(lost, np.nan, 1 / np.where(lost, 1, d)).astype(d.dtype, copy=False)


def _kappa(s2, spec):
    """D * D'(s) / s, the whole effect of where eps stands; outside it has no value at s = 0, where 0 is right."""
    if spec.place.kappa is None or spec.eps == 0:
        return np.ones_like(s2)
    s = np.sqrt(s2)
    positive = np.where(s == 0, 1, s)
    if (
        spec.placement == "outside"
    ):  # (s + eps) / s in another order, which rounds otherwise
        kappa = 1 + spec.eps / positive
    else:
        kappa = spec.place.kappa(positive, spec.eps, np)
    return np.where(s == 0, 0, kappa).astype(s.dtype, copy=False)


def _weight(weight, dtype, spec):
    """weight_offset + weight, added in a dtype that is wide enough: 1 + w of 16 bits has two values near 1."""
    return weight.astype(dtype, copy=False) + spec.weight_offset


def forward(
    x: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    residual: np.ndarray | None = None,
    spec: NormSpec = LAYER_NORM,
    *,
    heads: int | None = None,
) -> Forward:
    """The operator, one row at a time.

    p = x + residual,  q = p - center * mean(p),  s = sqrt(reduce(q**2))                  {eq}`norm-forward`
    y = scale * q / D(s, eps) * (weight_offset + weight) + bias

    Args:     x, residual (..., N); weight, bias (N,), absent means 1 and 0; spec a NormSpec; heads: H where weight and
              bias are (H, N), one row for each head of x (..., H, N)
    Returns:  Forward(y, residual_out, mean, rstd, ...)
    Numerics: sums in the dtype of p, at least float32; to the mean the mean of p - mean is added; the variance is
              centred first (two passes); a row whose squares leave the range of that dtype gives NaN
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    check_spec(spec)
    for name, array in (
        ("x", x),
        ("weight", weight),
        ("bias", bias),
        ("residual", residual),
    ):
        if array is not None or name == "x":
            _check_array(name, array)
    check_shapes(x, weight, bias, residual, heads=heads)
    check_weight_offset(weight, spec.weight_offset)
    residual_out = x if residual is None else x + residual
    acc = _accumulator(residual_out.dtype)
    spec = spec.resolve(np.finfo(acc).eps)
    q, s2, mean = _rows(residual_out.astype(acc, copy=False), spec)
    rstd = _reciprocal(s2, spec)
    y = spec.scale * (q * rstd)
    if weight is not None:
        y = y * _weight(weight, np.result_type(acc, weight), spec)
    if bias is not None:
        y = y + bias
    mean = None if mean is None else mean[..., 0]
    return Forward(
        y.astype(_complex(x.dtype, y), copy=False),
        residual_out,
        mean,
        rstd[..., 0],
        weight,
        bias,
        spec,
    )


def backward(
    dy: np.ndarray, saved: Forward, dresidual_out: np.ndarray | None = None
) -> Grads:
    """Gradients of the operator from the cotangents of its outputs.

    dx = rstd * (wdy - c2 - x_hat * c1) + dresidual_out,  c1 = kappa * sum(x_hat * wdy) / n,  c2 = center * mean(wdy)

    Args:     dy (..., N), the cotangent of y; saved, what forward returned; dresidual_out (..., N) or None, the
              cotangent of residual_out
    Returns:  Grads(dx, dweight, dbias); dx is the gradient of x and of residual alike
    Numerics: as forward
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    if not isinstance(saved, Forward):
        raise TypeError(
            f"saved: got {type(saved).__name__}, needs what forward returned"
        )
    p, weight, spec = saved.residual_out, saved.weight, saved.spec
    for name, array in (("dy", dy), ("dresidual_out", dresidual_out)):
        if array is not None or name == "dy":
            _check_array(name, array)
            if array.shape != p.shape:
                raise ValueError(
                    f"{name}: got shape {array.shape}, needs {p.shape}, the shape of the output"
                )
    acc = _complex(_accumulator(p.dtype), dy, dresidual_out, weight)
    dy = dy.astype(acc, copy=False)
    mean = None if saved.mean is None else saved.mean[..., None]
    rstd = saved.rstd[..., None]
    q, s2, _ = _rows(p.astype(acc, copy=False), spec, mean)
    x_hat = q * rstd
    wdy = spec.scale * dy
    if weight is not None:
        wdy = wdy * _weight(weight, acc, spec)
    kappa = _kappa(s2, spec)
    c1 = kappa * (x_hat * wdy).sum(-1, keepdims=True) / spec.count(p.shape[-1])
    c2 = wdy.mean(-1, keepdims=True) if spec.center else 0
    dx = rstd * (wdy - c2 - x_hat * c1)
    if dresidual_out is not None:
        dx = dx + dresidual_out
    # With heads the rows of each head have a sum of their own.
    axes = max(0 if vector is None else vector.ndim for vector in (weight, saved.bias))
    rows = tuple(range(p.ndim - max(1, axes)))
    dw = (
        None
        if weight is None
        else (dy * (spec.scale * x_hat)).sum(rows).astype(_complex(weight.dtype, dy))
    )
    db = (
        None
        if saved.bias is None
        else dy.sum(rows).astype(_complex(saved.bias.dtype, dy))
    )
    return Grads(dx.astype(_complex(p.dtype, dx), copy=False), dw, db)
