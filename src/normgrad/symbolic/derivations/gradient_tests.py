"""Chapter "Testing the tests": why a sum as the loss, with a weight of ones, tests nothing."""

from __future__ import annotations

from sympy import S, sqrt

from ..definitions import Defs
from ..notation import Partial, mean
from ..registry import proved
from ..symbols import M, N, alphabet, eps, i, j, over_all

batch = alphabet(M)


def plain_layer_norm() -> Defs:
    """LayerNorm of M rows without weight and bias, and the sum of all outputs as the loss."""
    x, average, rstd, x_hat = batch.x, batch.mean, batch.rstd, batch.x_hat
    defs = Defs()
    defs[average[i]] = mean(N, lambda r: x[i, r])
    defs[rstd[i]] = 1 / sqrt(mean(N, lambda r: (x[i, r] - average[i]) ** 2) + eps)
    defs[x_hat[i, j]] = (x[i, j] - average[i]) * rstd[i]
    defs[batch.L] = over_all(lambda p, r: x_hat[p, r])
    return defs


def equations():
    """The equation labelled vacuous-ones."""
    yield proved(
        "vacuous-ones",
        "The sum of a LayerNorm with weight 1 has no slope.",
        plain_layer_norm(),
        Partial(batch.L, batch.x[i, j]),
        S.Zero,
    )
