"""A norm of one's own: gated RMSNorm, and a softmax whose blocks are merged."""

from __future__ import annotations

from sympy import Expr, Symbol, exp, sqrt

from ..definitions import Defs
from ..elementary import sigmoid
from ..notation import Partial, dim, mean, tensor, total
from ..registry import definition, proved
from ..symbols import M, N, alphabet, eps, i, j, over_all

n = alphabet(M)
g = tensor("g", M, N)
N1, N2 = dim("N1"), dim("N2")
x, x1, x2 = tensor("x", N), tensor("x1", N1), tensor("x2", N2)
m, m1, m2 = (tensor(name) for name in ("m", "m1", "m2"))
S1, S2 = (Symbol(name, real=True) for name in ("S1", "S2"))


def gated() -> Defs:
    """RMSNorm with a gate, its loss, and the names of its backward pass."""
    defs = Defs()
    defs[n.rstd[i]] = 1 / sqrt(mean(N, lambda r: n.x[i, r] ** 2) + eps)
    defs[n.x_hat[i, j]] = n.x[i, j] * n.rstd[i]
    defs[n.y[i, j]] = n.w[j] * n.x_hat[i, j] * (g[i, j] * sigmoid(g[i, j]))
    defs[n.L] = over_all(lambda r, s: n.dy[r, s] * n.y[r, s])
    defs[n.wdy[i, j]] = n.dy[i, j] * n.w[j] * (g[i, j] * sigmoid(g[i, j]))
    defs[n.c1[i]] = mean(N, lambda r: n.x_hat[i, r] * n.wdy[i, r])
    return defs


def exponentials(row, size: Symbol, shift) -> Expr:
    """The sum of exp(row[r] - shift) over a row."""
    return total(size, lambda r: exp(row[r] - shift))


def blocks() -> Defs:
    """The sums of two blocks, each with a shift of its own."""
    defs = Defs()
    defs[S1] = exponentials(x1, N1, m1)
    defs[S2] = exponentials(x2, N2, m2)
    return defs


def equations():
    """The equations labelled own-... and softmax-..."""
    defs = gated()
    yield definition(
        "own-forward", "RMSNorm with a gate.", defs, n.rstd[i], n.x_hat[i, j], n.y[i, j]
    )
    yield proved(
        "own-dx", "The gradient by x: RMSNorm's, with the gate in the cotangent.", defs,
        Partial(n.L, n.x[i, j]), n.rstd[i] * (n.wdy[i, j] - n.x_hat[i, j] * n.c1[i]),
    )  # fmt: skip
    slope = sigmoid(g[i, j]) * (1 + g[i, j] * (1 - sigmoid(g[i, j])))
    yield proved(
        "own-dg", "The gradient by the gate, entry by entry.", defs,
        Partial(n.L, g[i, j]), n.dy[i, j] * n.w[j] * n.x_hat[i, j] * slope,
    )  # fmt: skip
    yield proved(
        "softmax-shift", "A shift of the whole row changes nothing.", None,
        exp(x[j] - m) / exponentials(x, N, m), exp(x[j]) / total(N, lambda r: exp(x[r])),
    )  # fmt: skip
    yield proved(
        "softmax-merge", "Two blocks with a shift each are put together without looking at their numbers again.",
        blocks(), exp(m1 - m) * S1 + exp(m2 - m) * S2, exponentials(x1, N1, m) + exponentials(x2, N2, m),
    )  # fmt: skip
