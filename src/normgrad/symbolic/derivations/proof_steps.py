"""Chapter "Proving for every N": the claims on which the kernel's rules are shown."""

from __future__ import annotations

from sympy import sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved
from ..symbols import N, alphabet, j, k

row = alphabet()
s, z, A = tensor("s"), tensor("z", N), tensor("A", N, N)


def divided_row() -> Defs:
    """A row divided by its Euclidean length s."""
    defs = Defs()
    defs[s] = sqrt(total(N, lambda r: row.x[r] ** 2))
    defs[z[k]] = row.x[k] / s
    return defs


def _sums():
    x = row.x
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


def equations():
    """The equations labelled proof-..."""
    for section in (_sums, _divided):
        yield from section()
