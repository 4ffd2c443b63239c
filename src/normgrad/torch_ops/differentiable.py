"""The operator and its adjoint in differentiable torch operations.

Both backends fall back on these wherever a derivative may itself be differentiated (create_graph, torch.func): every
statistic is recomputed from the inputs inside the graph, so that derivatives of any order are right.
"""

from __future__ import annotations

import torch

from ..dtypes import LEAST, NAMES

DTYPES = tuple(getattr(torch, name) for name in NAMES)


def accumulator(dtype):
    """The dtype of statistics and sums, by the rule of numpy_ref; torch promotes no dtype of 8 bits."""
    least = getattr(torch, LEAST)
    return dtype if dtype.itemsize > least.itemsize else least


def promoted(x, residual):
    """The dtype in which torch would hold x + residual; x's own without a residual."""
    return x.dtype if residual is None else torch.promote_types(x.dtype, residual.dtype)


def cast(t, dtype):
    """The tensor in a dtype; what torch does to see that it has it already takes ten times as long as to look."""
    return t if t.dtype == dtype else t.to(dtype)


def lost(rstd):
    """Where the squares of a row left the dtype's range: a number for rstd would be wrong there."""
    return (rstd == 0) | (rstd > torch.finfo(rstd.dtype).tiny ** -0.5)


def _loud(rstd):
    return torch.where(lost(rstd), torch.nan, rstd)


def statistics(p, spec):
    """(q, rstd, kappa) of rows p (..., N): centred rows, 1 / D and D * D'(s) / s, each differentiable.

    The square root of 0 has no derivative; where a row has s = 0 it is taken of 1 instead and its result not used.
    """
    q = p
    if spec.center:
        # As in rows: the mean of what is left corrects the mean.
        mean = p.mean(-1, keepdim=True)
        mean = mean + (p - mean).mean(-1, keepdim=True)
        q = p - mean
    s2 = (q * q).sum(-1, keepdim=True) / spec.count(p.shape[-1])
    # Not rsqrt, whose derivative torch takes by the third power of it, which float32 may not hold.
    if spec.place.kappa is None or spec.eps == 0:
        return q, _loud(1 / (s2 + spec.eps).sqrt()), torch.ones_like(s2)
    zero = s2 == 0
    s = torch.where(zero, 1, s2).sqrt()
    d = spec.place.denominator(torch.where(zero, 0, s), spec.eps, torch)
    kappa = torch.where(zero, 0, spec.place.kappa(s, spec.eps, torch))
    return q, _loud(1 / d), kappa.to(p.dtype)


def total(x, residual, residual_dtype, round_residual):
    """(p, residual_out): the rows that are normalized and the sum as it is stored; x and None without a residual."""
    if residual is None:
        return x, None
    acc = accumulator(promoted(x, residual))
    p = x.to(acc) + residual.to(acc)
    residual_out = p.to(residual_dtype or promoted(x, residual))
    if round_residual and residual_out.dtype != acc:
        # The number that is stored, with the derivative of the sum: that of a cast would be rounded once more.
        p = p + (residual_out.detach().to(acc) - p.detach())
    return p, residual_out


def full_weight(weight, dtype, spec):
    """weight_offset + weight, added in the accumulator's dtype: 1 + w of 16 bits has two values near 1."""
    weight = cast(weight, dtype)
    return weight if spec.weight_offset == 0 else weight + spec.weight_offset


def forward(
    x,
    residual,
    weight,
    bias,
    spec,
    *,
    out_dtype=None,
    residual_dtype=None,
    round_residual=True,
):
    """(y, residual_out) of the operator; residual_out is None without a residual. Keywords as torch_rows.forward."""
    p, residual_out = total(x, residual, residual_dtype, round_residual)
    acc = accumulator(promoted(x, residual))
    q, rstd, _ = statistics(p.to(acc), spec)
    y = _scaled(q * rstd, spec)
    if weight is not None:
        y = y * full_weight(weight, acc, spec)
    if bias is not None:
        y = y + bias.to(acc)
    return y.to(out_dtype or x.dtype), residual_out


def vjp(dy, p, weight, spec, per_head=False):
    """(dp, dw, db) for the cotangent dy of y, at the rows p = x + residual; dw and db in the accumulator's dtype.

    With per_head p is (..., H, N), and dw and db are (H, N), each row summed over its own head's rows.

    dp = rstd * (wdy - c2 - x_hat * c1),  c1 = kappa * sum(x_hat * wdy) / n,  c2 = center * mean(wdy)
    """
    acc = accumulator(p.dtype)
    dy = dy.to(acc)
    q, rstd, kappa = statistics(p.to(acc), spec)
    x_hat = q * rstd
    wdy = _scaled(dy, spec)
    if weight is not None:
        wdy = wdy * full_weight(weight, acc, spec)
    c1 = kappa * (x_hat * wdy).sum(-1, keepdim=True) / spec.count(p.shape[-1])
    centred = wdy - wdy.mean(-1, keepdim=True) if spec.center else wdy
    rows = tuple(range(p.dim() - 1 - per_head))
    return (
        rstd * (centred - x_hat * c1),
        _over(dy * _scaled(x_hat, spec), rows),
        _over(dy, rows),
    )


def _scaled(t, spec):
    # a product with 1 would read and write the whole matrix for nothing
    return t if spec.scale == 1 else spec.scale * t


def _over(t, rows):
    # torch takes an empty tuple of axes for all of them.
    return t.sum(rows) if rows else t
