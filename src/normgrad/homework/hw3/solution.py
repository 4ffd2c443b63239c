"""Homework 3: LayerNorm as an autograd Function, double backward included.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np  # noqa: F401
import torch


def layernorm_backward(dy, x, weight, mean, rstd):
    """The gradients of LayerNorm in NumPy, from the gradient dy of the loss by y.

    Args:     dy, x (M, N), float64 or float32; weight (N,); mean, rstd (M,) of each row of x
    Returns:  (dx, dw, db): the gradients with respect to x (M, N), weight and bias (N,)
    Equations: ln-dx, ln-dw, ln-db with the names of ln-names (chapter LayerNorm)
    """
    ### BEGIN SOLUTION
    rstd = rstd[:, None]
    x_hat = (x - mean[:, None]) * rstd
    wdy = weight * dy
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    c2 = wdy.mean(-1, keepdims=True)
    dx = rstd * (wdy - c2 - x_hat * c1)
    dw = (dy * x_hat).sum(0)
    db = dy.sum(0)
    return dx, dw, db
    ### END SOLUTION


### BEGIN SOLUTION
def wide(t):
    """The tensor in float32, or in float64 where it has that already: sums of 16-bit numbers need it."""
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def normalized(x, eps):
    """(x_hat, rstd) of the rows of x, in operations that autograd can follow.  {eq}`ln-forward`"""
    q = x - x.mean(-1, keepdim=True)
    rstd = (q.square().mean(-1, keepdim=True) + eps).rsqrt()
    return q * rstd, rstd


### END SOLUTION


class LayerNorm(torch.autograd.Function):
    """LayerNorm over the last axis, called as LayerNorm.apply(x, weight, bias, eps).

    x (M, N) may be float64, float32 or bfloat16; compute in float32 where it is narrower, and round once at the end.
    torch must be able to differentiate the backward again: it may not use an intermediate of forward as a constant.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        """y (M, N) in the dtype of x.

        Args:     x (M, N); weight, bias (N,); eps: a number, added to the variance under the root
        Equations: ln-forward (chapter LayerNorm)
        """
        ### BEGIN SOLUTION
        x_hat, _ = normalized(wide(x), eps)
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return (x_hat * wide(weight) + wide(bias)).to(x.dtype)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy):
        """(dx, dw, db, None): one gradient an argument of forward; eps has none.

        Args:     dy (M, N), the gradient of the loss by y
        Equations: ln-dx, ln-dw, ln-db; differentiated again: twice-dx, twice-dy, twice-dw (chapter Higher derivatives)
        """
        ### BEGIN SOLUTION
        x, weight = ctx.saved_tensors
        x_hat, rstd = normalized(wide(x), ctx.eps)
        dy = wide(dy)
        wdy = wide(weight) * dy
        c1 = (x_hat * wdy).mean(-1, keepdim=True)
        c2 = wdy.mean(-1, keepdim=True)
        dx = rstd * (wdy - c2 - x_hat * c1)
        dw, db = (dy * x_hat).sum(0), dy.sum(0)
        return dx.to(x.dtype), dw.to(weight.dtype), db.to(weight.dtype), None
        ### END SOLUTION
