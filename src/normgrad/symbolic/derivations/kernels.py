"""Chapter "Kernels on any machine": what the columns past the end of a row do to its statistics."""

from __future__ import annotations

from sympy import S

from ..definitions import Defs
from ..notation import dim, mean, tensor, total
from ..registry import definition, proved
from ..symbols import N, alphabet, j, k

row, N0 = alphabet(), dim("N0")
pad, mean0, v0 = tensor("pad", N0), tensor("mean0"), tensor("v0")


def padded_row() -> Defs:
    """A row of N columns in a tile with N0 more, which hold 0 until the mean is subtracted from all of them."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda r: row.x[r])
    defs[row.q[j]] = row.x[j] - row.mean
    defs[row.v] = mean(N, lambda r: row.q[r] ** 2)
    defs[pad[k]] = S.Zero
    defs[mean0] = 1 / N * (total(N, lambda r: row.x[r]) + total(N0, lambda t: pad[t]))
    defs[v0] = (
        1
        / N
        * (
            total(N, lambda r: (row.x[r] - mean0) ** 2)
            + total(N0, lambda t: (pad[t] - mean0) ** 2)
        )
    )
    return defs


def equations():
    """The equations labelled kern-..."""
    defs = padded_row()
    yield definition(
        "kern-tile",
        "Statistics as a tile computes them with one mask.",
        defs,
        pad[k],
        mean0,
        v0,
    )
    yield proved(
        "kern-padded-mean",
        "Zeros past the end leave the mean as it is.",
        defs,
        mean0,
        row.mean,
    )
    yield proved(
        "kern-padded-variance",
        "Without a second mask each padding column adds the squared mean to the sum of squares.",
        defs,
        v0,
        row.v + N0 / N * row.mean**2,
    )
