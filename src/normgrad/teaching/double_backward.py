"""LayerNorm's second derivatives three ways: what a backward must do so that autograd can differentiate it.

A teaching module. Each way is one layer with the derivatives of LayerNorm to any order; they differ in what they save
and in what they compute. `normgrad.layer_norm` works like the first, and has kernels besides.
"""

from __future__ import annotations

import torch

from ..spec import check_eps, check_shapes
from ..torch_ops.arguments import check_tensors


def row_mean(t):
    """The mean of each row of t (..., N), with a last axis of length 1."""
    return t.mean(-1, keepdim=True)


def centred(t):
    """The rows of t without their means."""
    return t - row_mean(t)


def normalized(x, eps):
    """(mean, rstd, x_hat) of the rows of x (..., N); mean and rstd keep a last axis of length 1.

    rstd = 1 / sqrt(mean(q**2) + eps),  x_hat = q * rstd,  q = x - mean(x)                     {eq}`ln-forward`
    """
    mean = row_mean(x)
    q = x - mean
    rstd = (row_mean(q.square()) + eps).rsqrt()
    return mean, rstd, q * rstd


def affine(x_hat, weight, bias):
    """y = x_hat * weight + bias; an absent weight is 1, an absent bias 0."""
    y = x_hat if weight is None else x_hat * weight
    return y if bias is None else y + bias


def projected(wdy, x_hat, rstd):
    """rstd * (wdy - c2 - x_hat * c1): x_hat's symmetric Jacobian, {eq}`ln-proj-jacobian`, times wdy."""
    c1, c2 = row_mean(x_hat * wdy), row_mean(wdy)
    return rstd * (wdy - c2 - x_hat * c1)


def gradients(dy, x_hat, rstd, weight):
    """(dx, dw, db) of LayerNorm; dw and db sum over the rows.  {eq}`ln-dx`, {eq}`ln-dw`, {eq}`ln-db`"""
    return (
        projected(times(dy, weight), x_hat, rstd),
        over_rows(dy * x_hat),
        over_rows(dy),
    )


def times(t, weight):
    """t * weight, and t itself without a weight."""
    return t if weight is None else t * weight


def over_rows(t):
    """The sum over all axes but the last."""
    return t.reshape(-1, t.shape[-1]).sum(0)


def asked_for(ctx, grads):
    """The gradients of the inputs that need one, and None for the others: autograd insists where an input is None."""
    return tuple(
        grad if need else None
        for grad, need in zip(grads, ctx.needs_input_grad, strict=True)
    )


class RecomputeNorm(torch.autograd.Function):
    """First way: save the inputs; backward computes everything again, in operations that autograd can follow."""

    @staticmethod
    def forward(x, weight, bias, eps):
        return affine(normalized(x, eps)[2], weight, bias)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _, ctx.eps = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        _, rstd, x_hat = normalized(x, ctx.eps)
        return asked_for(ctx, (*gradients(dy, x_hat, rstd, weight), None))


class StatisticsNorm(torch.autograd.Function):
    """Second way: mean and rstd are outputs; where backward uses them, autograd sends them a cotangent."""

    @staticmethod
    def forward(x, weight, bias, eps):
        mean, rstd, x_hat = normalized(x, eps)
        return affine(x_hat, weight, bias), mean, rstd

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _, _ = inputs
        _, mean, rstd = output
        ctx.save_for_backward(x, weight, mean, rstd)

    @staticmethod
    def backward(ctx, dy, dmean, drstd):
        x, weight, mean, rstd = ctx.saved_tensors
        x_hat = (x - mean) * rstd
        dx, dw, db = gradients(dy, x_hat, rstd, weight)
        dx = dx + (dmean - drstd * rstd.square() * x_hat) / x.shape[-1]
        return asked_for(ctx, (dx, dw, db, None))


class ExplicitNorm(torch.autograd.Function):
    """Third way: save the statistics as plain numbers; backward is a Function with a backward of its own."""

    @staticmethod
    def forward(x, weight, bias, eps):
        mean, rstd, x_hat = normalized(x, eps)
        return affine(x_hat, weight, bias), mean, rstd

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _, ctx.eps = inputs
        _, mean, rstd = output
        ctx.mark_non_differentiable(mean, rstd)
        ctx.save_for_backward(x, weight, mean, rstd)

    @staticmethod
    def backward(ctx, dy, _dmean, _drstd):
        x, weight, mean, rstd = ctx.saved_tensors
        return asked_for(
            ctx, (*ExplicitBackward.apply(dy, x, weight, mean, rstd, ctx.eps), None)
        )


class ExplicitBackward(torch.autograd.Function):
    """(dx, dw, db) of LayerNorm, with a backward written by hand.

    A third derivative differentiates that backward: then, and only then, it recomputes the statistics from x.
    """

    @staticmethod
    def forward(dy, x, weight, mean, rstd, eps):
        return gradients(dy, (x - mean) * rstd, rstd, weight)

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tensors, ctx.eps = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx, ddx, ddw, ddb):
        dy, x, weight, mean, rstd = ctx.saved_tensors
        if torch.is_grad_enabled():
            _, rstd, x_hat = normalized(x, ctx.eps)
        else:
            x_hat = (x - mean) * rstd
        grads = second_gradients(ddx, ddw, ddb, dy, x_hat, rstd, weight)
        return asked_for(ctx, (*grads, None, None, None))


def second_gradients(ddx, ddw, ddb, dy, x_hat, rstd, weight):
    """What the cotangents ddx, ddw, ddb of (dx, dw, db) pass to (dy, x, weight).

    Args:     ddx, dy, x_hat (..., N); ddw, ddb, weight (N,); rstd (..., 1);
              weight may be None
    Returns:  {eq}`twice-dy`, {eq}`twice-dx`, {eq}`twice-dw`, each with
              its part of {eq}`twice-parameters-grad`
    """
    wdy, ddq = times(dy, weight), centred(ddx)
    x_hat_dot = projected(ddx, x_hat, rstd)
    c1, e1, cov = row_mean(x_hat * wdy), row_mean(x_hat * ddx), row_mean(wdy * ddq)
    bent = c1 * ddq + e1 * centred(wdy) + x_hat * (cov - 3 * c1 * e1)
    to_x = projected(ddw * dy, x_hat, rstd) - rstd.square() * bent
    to_dy = times(x_hat_dot, weight) + ddw * x_hat + ddb
    return to_dy, to_x, over_rows(dy * x_hat_dot)


def layer_norm(way, x, weight=None, bias=None, eps=1e-5):
    """LayerNorm over the last axis of x (..., N) by one of the three ways.

    y = (x - mean) * rstd * weight + bias,  rstd = 1 / sqrt(var + eps)                    {eq}`ln-forward`

    Args:     way: a name in WAYS; x (..., N); weight, bias (N,), absent means 1 and 0; eps at least 0, inside the root
    Returns:  y (..., N)
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    if not isinstance(way, str) or way not in WAYS:
        raise ValueError(f"way: got {way!r}, needs one of {', '.join(map(repr, WAYS))}")
    check_tensors(x, name="x", weight=weight, bias=bias)
    check_shapes(x, weight, bias, None)
    out = WAYS[way].apply(x, weight, bias, check_eps(eps))
    return out if isinstance(out, torch.Tensor) else out[0]


WAYS = {
    "recompute": RecomputeNorm,
    "statistics": StatisticsNorm,
    "explicit": ExplicitNorm,
}
