"""Source 001's comparison in NumPy: one closed rule for the input's gradient against the same gradient in pieces.

The layer is (x - mean) / (sigma + eps), sigma the standard deviation with 1/N, for rows x (M, N) and no weight. Three
backward passes, the same function on paper:

    closed   the formula after every cancellation
    pieces   a rule per operation, chained: what a framework of small rules does
    matrix   the product rule's N x N matrix of each row, then its product with the cotangent

Each takes the cotangent dz and x (M, N), mean and sigma (M, 1) as `forward` gives them, and eps, and returns dx (M, N).
"""

from __future__ import annotations

import numpy as np


def forward(x, eps):
    """(z, mean, sigma) of rows x (M, N): z (M, N), mean and sigma (M, 1)."""
    mean = x.sum(-1, keepdims=True) / x.shape[-1]
    q = x - mean
    sigma = np.sqrt((q * q).sum(-1, keepdims=True) / x.shape[-1])
    return q / (sigma + eps), mean, sigma


def closed(dz, x, mean, sigma, eps):
    """The input's gradient in closed form: two sums a row."""
    columns = x.shape[-1]
    q, below = x - mean, sigma + eps
    along = (q * dz).sum(-1, keepdims=True) / (columns * sigma * below)
    return (dz - dz.sum(-1, keepdims=True) / columns - q * along) / below


def pieces(dz, x, mean, sigma, eps):
    """The same, one rule per operation, chained backwards.

    The rule of the standard deviation cannot know that the mean of q is 0,
    so it subtracts it once more.
    """
    columns = x.shape[-1]
    q, below = x - mean, sigma + eps
    dq = dz / below
    dbelow = -(dz * q / (below * below)).sum(-1, keepdims=True)
    dsigma = dbelow
    centred = q - q.sum(-1, keepdims=True) / columns
    through_sigma = dsigma * centred / (columns * sigma)
    dmean = -dq.sum(-1, keepdims=True)
    return dq + through_sigma + dmean / columns


def jacobian(x, mean, sigma, eps):
    """dz_k / dx_i of one row x (N,) at [i, k], the inputs down the rows as source 001 prints it."""
    columns = len(x)
    q, below = x - mean, sigma + eps
    dmean = np.full(columns, 1 / columns)
    dsigma = q / (columns * sigma)
    return (np.eye(columns) - dmean[:, None]) / below - q[None, :] / (
        below * below
    ) * dsigma[:, None]


def matrix(dz, x, mean, sigma, eps):
    """The same by source 001's own route: a matrix for every row, times the row's cotangent."""
    rows = zip(dz, x, mean[:, 0], sigma[:, 0], strict=True)
    return np.stack(
        [
            (jacobian(row, *statistics, eps) * dz_row).sum(-1)
            for dz_row, row, *statistics in rows
        ]
    )


class _Counted(np.ndarray):
    """An array that adds up the numbers its operations read or write, an estimate of their work."""

    work = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(a) for a in inputs]
        result = getattr(ufunc, method)(*plain, **kwargs)
        _Counted.work += plain[0].size if method == "reduce" else np.size(result)
        return np.asarray(result).view(_Counted)


def operations(rule, rows: int, columns: int, rng: np.random.Generator) -> int:
    """How many scalar operations a rule takes, counted as it runs: one per result, and one per term of a sum.

    Args:     rule: closed, pieces or matrix; rows, columns: the size; rng: draws the numbers
    """
    x, dz = rng.standard_normal((2, rows, columns))
    _, mean, sigma = forward(x, 0.0)
    _Counted.work = 0
    rule(
        dz.view(_Counted),
        x.view(_Counted),
        mean.view(_Counted),
        sigma.view(_Counted),
        0.0,
    )
    return _Counted.work
