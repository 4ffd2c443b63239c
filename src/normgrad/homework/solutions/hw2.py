"""Homework 2, the reference solution: RMSNorm forward and backward in NumPy."""

import numpy as np


def rmsnorm_forward(x, weight, eps):
    """RMSNorm of every row: (y, rstd).  {eq}`rms-forward`"""
    rstd = 1 / np.sqrt((x * x).mean(-1) + eps)
    x_hat = x * rstd[:, None]
    return x_hat * weight, rstd


def rmsnorm_backward(dy, x, weight, rstd):
    """The gradients by x and weight: (dx, dw).  {eq}`rms-dx`, {eq}`rms-dw`"""
    rstd = rstd[:, None]
    x_hat = x * rstd
    wdy = weight * dy
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    dx = rstd * (wdy - x_hat * c1)
    dw = (dy * x_hat).sum(0)
    return dx, dw
