"""Relatives of the norms: softmax, which projects; BatchNorm, which sums down the columns; DyT, which sums nothing."""

from __future__ import annotations

from sympy import exp, sqrt, tanh

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved
from ..symbols import M, N, alphabet, eps, i, j, k, over_all

row, n = alphabet(), alphabet(M)
a, t = tensor("a"), tensor("t", N)
average, rstd, c1, c2 = (
    tensor("mean", N),
    tensor("rstd", N, positive=True),
    tensor("c1", N),
    tensor("c2", N),
)


def softmax() -> Defs:
    """One row of softmax and its loss."""
    defs = Defs()
    defs[row.y[k]] = exp(row.x[k]) / total(N, lambda r: exp(row.x[r]))
    defs[row.L] = total(N, lambda r: row.dy[r] * row.y[r])
    return defs


def batch_norm() -> Defs:
    """BatchNorm in training: each column is centred and scaled, over all rows."""
    defs = Defs()
    defs[average[j]] = mean(M, lambda p: n.x[p, j])
    defs[rstd[j]] = 1 / sqrt(mean(M, lambda p: (n.x[p, j] - average[j]) ** 2) + eps)
    defs[n.x_hat[i, j]] = (n.x[i, j] - average[j]) * rstd[j]
    defs[n.y[i, j]] = n.w[j] * n.x_hat[i, j] + n.b[j]
    defs[n.L] = over_all(lambda p, r: n.dy[p, r] * n.y[p, r])
    defs[n.wdy[i, j]] = n.dy[i, j] * n.w[j]
    defs[c1[j]] = mean(M, lambda p: n.x_hat[p, j] * n.wdy[p, j])
    defs[c2[j]] = mean(M, lambda p: n.wdy[p, j])
    return defs


def dyt() -> Defs:
    """One row of dynamic tanh."""
    defs = Defs()
    defs[t[k]] = tanh(a * row.x[k])
    defs[row.y[k]] = row.w[k] * t[k] + row.b[k]
    return defs


def equations():
    """The equations labelled softmax-..., batch-... and dyt-..."""
    defs, x, y, dy = softmax(), row.x, row.y, row.dy
    yield proved(
        "softmax-jacobian", "The Jacobian of softmax: a diagonal without an outer product.", defs,
        Partial(y[k], x[j]), y[k] * (delta(k, j) - y[j]),
    )  # fmt: skip
    yield proved(
        "softmax-null", "A change of the whole row moves nothing.", defs,
        total(N, lambda r: Partial(y[k], x[r])), 0,
    )  # fmt: skip
    yield proved(
        "softmax-dx", "The gradient of softmax: the cotangent without its mean, weighted by y.", defs,
        Partial(row.L, x[j]), y[j] * (dy[j] - total(N, lambda r: y[r] * dy[r])),
    )  # fmt: skip
    defs = batch_norm()
    yield definition(
        "batch-forward",
        "BatchNorm in training.",
        defs,
        average[j],
        rstd[j],
        n.x_hat[i, j],
        n.y[i, j],
    )
    yield proved(
        "batch-dx", "The gradient of BatchNorm: LayerNorm's, down the columns.", defs,
        Partial(n.L, n.x[i, j]), rstd[j] * (n.wdy[i, j] - c2[j] - n.x_hat[i, j] * c1[j]),
    )  # fmt: skip
    yield proved(
        "dyt-jacobian", "The Jacobian of dynamic tanh is a diagonal: nothing is summed.", dyt(),
        Partial(y[k], x[j]), row.w[k] * (a * (1 - t[k] ** 2)) * delta(k, j),
    )  # fmt: skip
