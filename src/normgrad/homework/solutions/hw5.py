"""Homework 5, the reference solution: statistics of rows far from 0, in float32."""

import numpy as np


def stable_normalize(x, eps):
    """(x_hat, mean, var, rstd): the mean twice, so that the deviations' own mean is 0.  {eq}`fp-correction`"""
    wide = x.astype(np.float32)
    first = wide.mean(-1, keepdims=True)
    q = wide - first
    left = q.mean(-1, keepdims=True)
    q = q - left
    var = (q * q).mean(-1)
    rstd = 1 / np.sqrt(var + np.float32(eps))
    return (q * rstd[:, None]).astype(x.dtype), (first + left)[:, 0], var, rstd


def merge_blocks(n1, mean1, squares1, n2, mean2, squares2):
    """(n, mean, squares) of two blocks together.  {eq}`fp-merge`"""
    n = n1 + n2
    share = n2 / np.maximum(n, 1)
    d = mean2 - mean1
    mean = mean1 + share * d
    squares = squares1 + squares2 + n1 * share * d * d
    return n, mean, squares
