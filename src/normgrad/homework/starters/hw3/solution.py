"""Homework 3: LayerNorm as an autograd Function, double backward included. Replace each `raise NotImplementedError`.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np  # noqa: F401
import torch


def layernorm_backward(dy, x, weight, mean, rstd):
    """The gradients of LayerNorm in NumPy, from the gradient dy of the loss by y.

    Args:     dy, x (M, N), float64 or float32; weight (N,); mean, rstd (M,) of each row of x
    Returns:  (dx, dw, db): dx (M, N), the gradient by x; dw, db (N,), the gradients by weight and bias
    Equations: ln-dx, ln-dw, ln-db with the names of ln-names (chapter LayerNorm)
    """
    raise NotImplementedError


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
        raise NotImplementedError

    @staticmethod
    def backward(ctx, dy):
        """(dx, dw, db, None): one gradient an argument of forward; eps has none.

        Args:     dy (M, N), the gradient of the loss by y
        Equations: ln-dx, ln-dw, ln-db; differentiated again: twice-dx, twice-dy, twice-dw (chapter Higher derivatives)
        """
        raise NotImplementedError
