"""Homework 3, the reference solution: LayerNorm's gradients in NumPy, and LayerNorm as an autograd Function."""

import torch


def layernorm_backward(dy, x, weight, mean, rstd):
    """The gradients by x, weight and bias: (dx, dw, db).  {eq}`ln-dx`, {eq}`ln-dw`, {eq}`ln-db`"""
    rstd = rstd[:, None]
    x_hat = (x - mean[:, None]) * rstd
    wdy = weight * dy
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    c2 = wdy.mean(-1, keepdims=True)
    dx = rstd * (wdy - c2 - x_hat * c1)
    dw = (dy * x_hat).sum(0)
    db = dy.sum(0)
    return dx, dw, db


def wide(t):
    """The tensor in float32, or in float64 where it has that already: sums of 16-bit numbers need it."""
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def normalized(x, eps):
    """(x_hat, rstd) of the rows of x, in operations that autograd can follow.  {eq}`ln-forward`"""
    q = x - x.mean(-1, keepdim=True)
    rstd = (q.square().mean(-1, keepdim=True) + eps).rsqrt()
    return q * rstd, rstd


class LayerNorm(torch.autograd.Function):
    """LayerNorm that saves its inputs, and computes again what its backward needs."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        x_hat, _ = normalized(wide(x), eps)
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return (x_hat * wide(weight) + wide(bias)).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        x_hat, rstd = normalized(wide(x), ctx.eps)
        dy = wide(dy)
        wdy = wide(weight) * dy
        c1 = (x_hat * wdy).mean(-1, keepdim=True)
        c2 = wdy.mean(-1, keepdim=True)
        dx = rstd * (wdy - c2 - x_hat * c1)
        dw, db = (dy * x_hat).sum(0), dy.sum(0)
        return dx.to(x.dtype), dw.to(weight.dtype), db.to(weight.dtype), None
