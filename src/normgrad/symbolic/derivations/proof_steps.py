"""Chapter "Proving for every N": the claims on which the kernel's rules are shown, and the ring of sums as letters."""

from __future__ import annotations

from sympy import Expr, S, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import N, alphabet, eps, j, k
from .index_rules import centred_row

row = alphabet()
s, z, A = tensor("s"), tensor("z", N), tensor("A", N, N)
S1, S2, T1, T2 = (tensor(name) for name in ("S1", "S2", "T1", "T2"))


def divided_row() -> Defs:
    """A row divided by its Euclidean length s."""
    defs = Defs()
    defs[s] = sqrt(total(N, lambda r: row.x[r] ** 2))
    defs[z[k]] = row.x[k] / s
    return defs


def letters() -> Defs:
    """LayerNorm of one row with its sums as letters: S1, S2 of x, T1, T2 of wdy, rstd, and the loss."""
    defs = Defs()
    defs[S1] = total(N, lambda r: row.x[r])
    defs[S2] = total(N, lambda r: row.x[r] ** 2)
    defs[T1] = total(N, lambda r: row.wdy[r])
    defs[T2] = total(N, lambda r: row.x[r] * row.wdy[r])
    defs[row.rstd] = 1 / sqrt(mean(N, lambda r: (row.x[r] - S1 / N) ** 2) + eps)
    defs[row.x_hat[k]] = (row.x[k] - S1 / N) * row.rstd
    defs[row.L] = total(N, lambda r: row.wdy[r] * row.x_hat[r])
    return defs


def slopes() -> dict[Expr, Expr]:
    """How each letter reacts to x_j."""
    return {
        S1: S.One,
        S2: 2 * row.x[j],
        T1: S.Zero,
        T2: row.wdy[j],
        row.rstd: -(row.rstd**3) * (row.x[j] - S1 / N) / N,
    }


def loss_in_letters() -> Expr:
    """The loss of `letters` as an expression in which no sum is left."""
    return row.rstd * (T2 - S1 * T1 / N)


def dx_in_letters() -> Expr:
    """The input's gradient of that loss: rstd * (wdy - c2 - x_hat * c1) in the letters."""
    centred = row.x[j] - S1 / N
    return row.rstd * (row.wdy[j] - T1 / N - row.rstd**2 * centred * (T2 - S1 * T1 / N) / N)


def _sums():
    x, q, average = row.x, row.q, row.mean
    yield proved(
        "proof-square-of-sum",
        "The square of a sum is a double sum, with two letters.",
        None,
        total(N, lambda r: x[r]) ** 2,
        total(N, lambda r: total(N, lambda t: x[r] * x[t])),
    )
    yield proved(
        "proof-exchange",
        "Two sums may change places.",
        None,
        total(N, lambda r: total(N, lambda t: A[r, t] * x[t])),
        total(N, lambda t: x[t] * total(N, lambda r: A[r, t])),
    )
    yield proved(
        "proof-root-content",
        "A known positive factor leaves a root.",
        None,
        sqrt(mean(N, lambda r: x[r] ** 2)),
        sqrt(total(N, lambda r: x[r] ** 2)) / sqrt(N),
    )
    yield proved(
        "proof-fourth",
        "The fourth powers of a centred row, in power sums of the row.",
        centred_row(),
        total(N, lambda r: q[r] ** 4),
        total(N, lambda r: x[r] ** 4)
        - 4 * average * total(N, lambda r: x[r] ** 3)
        + 6 * average**2 * total(N, lambda r: x[r] ** 2)
        - 3 * N * average**4,
    )


def _divided():
    defs, x = divided_row(), row.x
    yield definition("proof-length", "A row divided by its length.", defs, s, z[k])
    yield proved(
        "proof-length-slope",
        "The length of a row grows along the row.",
        defs,
        Partial(s, x[j]),
        x[j] / s,
    )
    yield proved(
        "proof-jacobian",
        "The Jacobian of a row divided by its length.",
        defs,
        Partial(z[k], x[j]),
        1 / s * (delta(k, j) - z[k] * z[j]),
    )


def _letters():
    defs = letters()
    yield definition("proof-letters", "The sums that LayerNorm needs, as letters.", defs, S1, S2, T1, T2)
    yield definition("proof-letter-row", "One row of LayerNorm and its loss.", defs, row.rstd, row.x_hat[k], row.L)
    yield proved(
        "proof-letter-variance",
        "The variance in the letters.",
        defs,
        mean(N, lambda r: (row.x[r] - S1 / N) ** 2),
        S2 / N - (S1 / N) ** 2,
    )
    yield together(
        "proof-letter-slopes",
        "How each letter reacts to one entry of the row.",
        defs,
        *[(Partial(letter, row.x[j]), rule) for letter, rule in slopes().items()],
    )
    yield proved("proof-letter-loss", "The loss in the letters.", defs, row.L, loss_in_letters())
    yield proved(
        "proof-letter-dx",
        "The input's gradient of one row of LayerNorm, in the letters.",
        defs,
        Partial(row.L, row.x[j]),
        dx_in_letters(),
    )


def equations():
    """The equations labelled proof-..."""
    for section in (_sums, _divided, _letters):
        yield from section()
