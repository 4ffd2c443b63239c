"""Homework 5: a variance that survives an offset of 10000.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np


def stable_normalize(x, eps):
    """Mean, variance and normalized rows in float32 arithmetic, for rows with means up to 10000.

    Args:     x (M, N), float32 or float16; eps: a number, added to the variance under the root
    Returns:  (x_hat, mean, var, rstd): x_hat (M, N) in the dtype of x; mean, var, rstd (M,) in float32
    Equations: fp-statistics, fp-shifted, fp-correction, fp-wrong-mean (chapter Floating point)
    """
    ### BEGIN SOLUTION
    wide = x.astype(np.float32)
    first = wide.mean(-1, keepdims=True)
    q = wide - first
    left = q.mean(-1, keepdims=True)
    q = q - left
    var = (q * q).mean(-1)
    rstd = 1 / np.sqrt(var + np.float32(eps))
    return (q * rstd[:, None]).astype(x.dtype), (first + left)[:, 0], var, rstd
    ### END SOLUTION


def merge_blocks(n1, mean1, squares1, n2, mean2, squares2):
    """Count, mean and sum of squared deviations of two blocks together, for M pairs of blocks at once.

    Args:     n1, n2 (M,), whole numbers in float32, 0 for an empty block; mean1, mean2 (M,); squares1, squares2 (M,)
    Returns:  (n, mean, squares), (M,) each, in float32
    Equations: fp-merge with the names of fp-blocks (chapter Floating point)
    """
    ### BEGIN SOLUTION
    n = n1 + n2
    share = n2 / np.maximum(n, 1)
    d = mean2 - mean1
    mean = mean1 + share * d
    squares = squares1 + squares2 + n1 * share * d * d
    return n, mean, squares
    ### END SOLUTION
