"""Chapter "Kernels on any machine": what the columns past the end of a row do to its statistics."""

from __future__ import annotations

from sympy import S

from ..definitions import Defs
from ..notation import dim, mean, tensor, total
from ..registry import definition, proved
from ..symbols import N, alphabet, j, k

row, P = alphabet(), dim("P")
z, m0, v0 = tensor("z", P), tensor("m0"), tensor("v0")


def padded_row() -> Defs:
    """A row of N columns in a tile with P more, which hold 0 until the mean is subtracted from all of them."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda r: row.x[r])
    defs[row.q[j]] = row.x[j] - row.mean
    defs[row.v] = mean(N, lambda r: row.q[r] ** 2)
    defs[z[k]] = S.Zero
    defs[m0] = 1 / N * (total(N, lambda r: row.x[r]) + total(P, lambda t: z[t]))
    defs[v0] = 1 / N * (total(N, lambda r: (row.x[r] - m0) ** 2) + total(P, lambda t: (z[t] - m0) ** 2))
    return defs


def equations():
    """The equations labelled kern-..."""
    defs = padded_row()
    yield definition("kern-tile", "Statistics as a tile computes them with one mask.", defs, z[k], m0, v0)
    yield proved("kern-padded-mean", "Zeros past the end leave the mean as it is.", defs, m0, row.mean)
    yield proved(
        "kern-padded-variance",
        "Without a second mask each padding column adds the squared mean to the sum of squares.",
        defs,
        v0,
        row.v + P / N * row.mean**2,
    )
