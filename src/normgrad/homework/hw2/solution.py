"""Homework 2: RMSNorm forward and backward in NumPy.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np


def rmsnorm_forward(x, weight, eps):
    """RMSNorm of every row of a matrix.

    Args:     x (M, N), float64 or float32; weight (N,); eps: a number, added to the mean square under the root
    Returns:  (y, rstd): y (M, N) in the dtype of x; rstd (M,), the reciprocal of each row's root mean square
    Equations: rms-forward, rms-statistics (chapter RMSNorm)
    """
    ### BEGIN SOLUTION
    rstd = 1 / np.sqrt((x * x).mean(-1) + eps)
    x_hat = x * rstd[:, None]
    return x_hat * weight, rstd
    ### END SOLUTION


def rmsnorm_backward(dy, x, weight, rstd):
    """The gradients of RMSNorm, from the gradient dy of the loss by y.

    Args:     dy, x (M, N); weight (N,); rstd (M,), what the forward returned
    Returns:  (dx, dw): the gradients with respect to x (M, N) and to weight (N,), summed over the rows
    Equations: rms-dx, rms-dw with the names of rms-names (chapter RMSNorm)
    """
    ### BEGIN SOLUTION
    rstd = rstd[:, None]
    x_hat = x * rstd
    wdy = weight * dy
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    dx = rstd * (wdy - x_hat * c1)
    dw = (dy * x_hat).sum(0)
    return dx, dw
    ### END SOLUTION
