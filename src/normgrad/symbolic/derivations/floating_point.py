"""Chapter "Floating point": six ways to a variance that are one in exact arithmetic, and what a rounded mean costs.

Sources: Welford (1962); Chan, Golub and LeVeque (1983). V is the sum of squared deviations, the variance times N.
"""

from __future__ import annotations

from sympy import Expr, S, sqrt

from ..definitions import Defs
from ..notation import dim, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, alphabet, eps, i, j

row, batch = alphabet(), alphabet(M)
x, average, v = row.x, row.mean, row.v
m, x_next, V = tensor("m"), tensor("x_next"), tensor("V")
mean_next, V_next = tensor("mean_next"), tensor("V_next")
N1, N2 = dim("N1"), dim("N2")
x1, x2 = tensor("x1", N1), tensor("x2", N2)
mean1, mean2, V1, V2, d = (tensor(name) for name in ("mean1", "mean2", "V1", "V2", "d"))
err, theta, stored, c1_stored, dx_stored = (
    tensor("err", M),
    tensor("theta", M),
    tensor("z", M, N),
    tensor("c1_stored", M),
    tensor("dx_stored", M, N),
)
dw_stored = tensor("dw_stored", N)


def statistics() -> Defs:
    """Mean, sum of squared deviations and variance of one row."""
    defs = Defs()
    defs[average] = mean(N, lambda r: x[r])
    defs[V] = total(N, lambda r: (x[r] - average) ** 2)
    defs[v] = V / N
    return defs


def one_more() -> Defs:
    """The statistics of one row, and those of the same row with the number x_next more."""
    defs = statistics()
    defs[mean_next] = (total(N, lambda r: x[r]) + x_next) / (N + 1)
    defs[V_next] = (
        total(N, lambda r: (x[r] - mean_next) ** 2) + (x_next - mean_next) ** 2
    )
    return defs


def alone() -> Defs:
    """The statistics of a single number x_next."""
    defs = Defs()
    defs[mean1] = x_next
    defs[V1] = (x_next - mean1) ** 2
    return defs


def two_blocks() -> Defs:
    """A row in two blocks of any lengths: the statistics of each, and those of the whole."""
    defs = Defs()
    for block, size, middle, spread in ((x1, N1, mean1, V1), (x2, N2, mean2, V2)):
        defs[middle] = mean(size, lambda r, block=block: block[r])
        defs[spread] = total(
            size, lambda r, block=block, middle=middle: (block[r] - middle) ** 2
        )
    defs[average] = (total(N1, lambda r: x1[r]) + total(N2, lambda r: x2[r])) / (
        N1 + N2
    )
    defs[V] = total(N1, lambda r: (x1[r] - average) ** 2) + total(
        N2, lambda r: (x2[r] - average) ** 2
    )
    defs[d] = mean2 - mean1
    return defs


def rounded_mean() -> Defs:
    """LayerNorm's backward pass with the exact mean of each row, and with one that is off by err."""
    defs, b = Defs(), batch
    defs[b.mean[i]] = mean(N, lambda r: b.x[i, r])
    defs[b.rstd[i]] = 1 / sqrt(mean(N, lambda r: (b.x[i, r] - b.mean[i]) ** 2) + eps)
    defs[b.x_hat[i, j]] = (b.x[i, j] - b.mean[i]) * b.rstd[i]
    defs[theta[i]] = err[i] * b.rstd[i]
    defs[stored[i, j]] = (b.x[i, j] - (b.mean[i] + err[i])) * b.rstd[i]
    defs[b.wdy[i, j]] = b.w[j] * b.dy[i, j]
    defs[b.c1[i]] = mean(N, lambda r: b.x_hat[i, r] * b.wdy[i, r])
    defs[b.c2[i]] = mean(N, lambda r: b.wdy[i, r])
    defs[c1_stored[i]] = mean(N, lambda r: stored[i, r] * b.wdy[i, r])
    defs[b.dx[i, j]] = b.rstd[i] * (b.wdy[i, j] - b.c2[i] - b.x_hat[i, j] * b.c1[i])
    defs[dx_stored[i, j]] = b.rstd[i] * (
        b.wdy[i, j] - b.c2[i] - stored[i, j] * c1_stored[i]
    )
    defs[b.dw[j]] = total(M, lambda r: b.dy[r, j] * b.x_hat[r, j])
    defs[dw_stored[j]] = total(M, lambda r: b.dy[r, j] * stored[r, j])
    return defs


def _shifted(power: int) -> Expr:
    return (
        mean(N, lambda r: (x[r] - m) ** power)
        if power > 1
        else mean(N, lambda r: x[r] - m)
    )


def _passes():
    defs = statistics()
    yield definition(
        "fp-statistics",
        "Mean, sum of squared deviations and variance of a row.",
        defs,
        average,
        V,
        v,
    )
    yield proved(
        "fp-one-pass",
        "The variance is the mean of the squares less the square of the mean.",
        defs,
        v,
        mean(N, lambda r: x[r] ** 2) - average**2,
    )
    yield together(
        "fp-shifted",
        "A shift by any number m leaves the variance as it is, and is added to the mean.",
        defs,
        (average, m + _shifted(1)),
        (v, _shifted(2) - _shifted(1) ** 2),
    )
    yield proved(
        "fp-correction",
        "Deviations from the mean add up to 0.",
        defs,
        total(N, lambda r: x[r] - average),
        S.Zero,
    )
    yield proved(
        "fp-wrong-mean",
        "Squares taken about a number m other than the mean are too large by the square of the distance.",
        defs,
        _shifted(2),
        v + (m - average) ** 2,
    )


def _welford():
    defs = one_more()
    yield definition(
        "fp-one-more",
        "The statistics of a row with one number more.",
        defs,
        mean_next,
        V_next,
    )
    yield proved(
        "fp-welford-base",
        "A single number is its own mean, so its V is 0.",
        alone(),
        V1,
        (x_next - mean1) ** 2,
        S.Zero,
    )
    yield together(
        "fp-welford",
        "Welford's step: mean and V of N + 1 numbers from those of N.",
        defs,
        (mean_next, average + (x_next - average) / (N + 1)),
        (V_next, V + (x_next - average) * (x_next - mean_next)),
    )
    yield proved(
        "fp-welford-grows",
        "What a number adds to V is not negative.",
        defs,
        V_next - V,
        N / (N + 1) * (x_next - average) ** 2,
    )


def _merge():
    defs = two_blocks()
    yield definition(
        "fp-blocks",
        "Two blocks, the row that they make up, and the distance of their means.",
        defs,
        mean1,
        V1,
        mean2,
        V2,
        d,
        average,
        V,
    )
    yield together(
        "fp-merge",
        "Chan's merge: mean and V of two blocks together, for blocks of any lengths.",
        defs,
        (average, mean1 + N2 / (N1 + N2) * d),
        (V, V1 + V2 + N1 * N2 / (N1 + N2) * d**2),
    )


def _stored_statistics():
    defs, b = rounded_mean(), batch
    yield definition(
        "fp-stored",
        "The backward pass with a mean that is off by err.",
        defs,
        theta[i],
        stored[i, j],
        c1_stored[i],
        dx_stored[i, j],
        dw_stored[j],
    )
    yield proved(
        "fp-stored-dw",
        "What an error of the mean does to dw.",
        defs,
        dw_stored[j] - b.dw[j],
        -total(M, lambda r: theta[r] * b.dy[r, j]),
    )
    yield proved(
        "fp-stored-dx",
        "What an error of the mean does to dx.",
        defs,
        dx_stored[i, j] - b.dx[i, j],
        b.rstd[i] * theta[i] * (b.c1[i] + stored[i, j] * b.c2[i]),
    )


def equations():
    """The equations labelled fp-..."""
    for section in (_passes, _welford, _merge, _stored_statistics):
        yield from section()
