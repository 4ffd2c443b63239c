"""Homework 2: RMSNorm forward and backward in NumPy. Replace each `raise NotImplementedError`.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np  # noqa: F401


def rmsnorm_forward(x, weight, eps):
    """RMSNorm of every row of a matrix.

    Args:     x (M, N), float64 or float32; weight (N,); eps: a number, added to the mean square under the root
    Returns:  (y, rstd): y (M, N) in the dtype of x; rstd (M,), the reciprocal of each row's root mean square
    Equations: rms-forward, rms-statistics (chapter RMSNorm)
    """
    raise NotImplementedError


def rmsnorm_backward(dy, x, weight, rstd):
    """The gradients of RMSNorm, from the gradient dy of the loss by y.

    Args:     dy, x (M, N); weight (N,); rstd (M,), what the forward returned
    Returns:  (dx, dw): dx (M, N), the gradient by x; dw (N,), the gradient by weight, summed over the rows
    Equations: rms-dx, rms-dw with the names of rms-names (chapter RMSNorm)
    """
    raise NotImplementedError
