"""The gradients of weight and bias, and the ways to add up M rows, for symbolic rows, columns, programs and stages.

A schedule, that is who adds which rows, is a matrix of shares A whose columns add up to 1. To have all such matrices in
one formula, A is any matrix E, corrected by one amount per column. g numbers programs, and h what follows them.
"""

from __future__ import annotations

from sympy import S

from ..definitions import Defs
from ..notation import Partial, delta, dim, index, mean, tensor, total
from ..registry import FOLLOWS, definition, proved, together
from ..symbols import M, N, i, j, k, over_all, p

P, Q, M1, M2 = (dim(name) for name in ("P", "Q", "M1", "M2"))
g, h = index("g", "h")
c, loss = tensor("c"), tensor("L")
w, b, dw, db = (tensor(name, N) for name in ("w", "b", "dw", "db"))
x_hat, q, y, dy, t = (tensor(name, M, N) for name in ("x_hat", "q", "y", "dy", "t"))
rstd = tensor("rstd", M)
E, A, parts = tensor("E", P, M), tensor("A", P, M), tensor("part", P, N)
E2, A2 = tensor("E2", Q, P), tensor("A2", Q, P)


def affine() -> Defs:
    """The last line of every norm: weight and bias on rows that do not depend on them, and a loss."""
    defs = Defs()
    defs[y[i, j]] = c * x_hat[i, j] * w[j] + b[j]
    defs[loss] = over_all(lambda r, s: dy[r, s] * y[r, s])
    defs[t[i, j]] = c * dy[i, j] * x_hat[i, j]
    return defs


def shares(defs: Defs) -> Defs:
    """The same with a schedule: program g has the share A[g, i] of row i, and a partial sum of its own."""
    defs[A[g, i]] = E[g, i] + (1 / P - mean(P, lambda r: E[r, i]))
    defs[parts[g, j]] = total(M, lambda r: A[g, r] * t[r, j])
    return defs


def _gradients():
    defs = affine()
    yield definition(
        "pg-affine",
        "Weight and bias on the rows of any norm, and a loss with cotangent dy.",
        defs,
        y[i, j],
        loss,
    )
    yield together(
        "pg-slopes",
        "An output reacts to the weight and the bias of its own column alone.",
        defs,
        (Partial(y[i, j], w[k]), c * x_hat[i, j] * delta(j, k)),
        (Partial(y[i, j], b[k]), delta(j, k)),
    )
    yield definition(
        "pg-terms", "What row i adds to the gradient of the weight.", defs, t[i, j]
    )
    yield proved(
        "pg-dw",
        "The weight's gradient, whatever the norm: one term per row, added up.",
        defs,
        Partial(loss, w[k]),
        total(M, lambda r: t[r, k]),
    )
    yield proved(
        "pg-db",
        "The bias's gradient, whatever the norm: the cotangents of its column, added up.",
        defs,
        Partial(loss, b[k]),
        total(M, lambda r: dy[r, k]),
    )


def _reads():
    defs = Defs()
    defs[dw[j]] = c * total(M, lambda r: dy[r, j] * x_hat[r, j])
    defs[db[j]] = total(M, lambda r: dy[r, j])
    yield together(
        "pg-reads",
        "An entry of dw or db depends on one column of dy, and there on every row.",
        defs,
        (Partial(dw[j], dy[i, k]), c * x_hat[i, j] * delta(j, k)),
        (Partial(db[j], dy[i, k]), delta(j, k)),
    )
    product = Defs()
    product[x_hat[i, j]] = q[i, j] * rstd[i]
    yield proved(
        "pg-matvec",
        "The sum over rows as a matrix times the vector of the rows' rstd.",
        product,
        c * total(M, lambda r: dy[r, j] * x_hat[r, j]),
        c * total(M, lambda r: (dy[r, j] * q[r, j]) * rstd[r]),
        wide=True,
    )


def _axes():
    x3, y3, dy3 = (tensor(name, M1, M2, N) for name in ("x_hat", "y", "dy"))
    defs = Defs()
    defs[y3[i, p, j]] = c * x3[i, p, j] * w[j] + b[j]
    defs[loss] = total(
        M1,
        lambda r: total(M2, lambda s: total(N, lambda v: dy3[r, s, v] * y3[r, s, v])),
    )
    yield together(
        "pg-axes",
        "With several leading axes the sum runs over all of them, in any order.",
        defs,
        (
            Partial(loss, w[j]),
            c * total(M2, lambda s: total(M1, lambda r: dy3[r, s, j] * x3[r, s, j])),
        ),
        (Partial(loss, b[j]), total(M2, lambda s: total(M1, lambda r: dy3[r, s, j]))),
    )


def _schedules():
    defs = shares(affine())
    yield definition(
        "pg-shares",
        "Shares of the rows, any matrix whose columns add up to 1, and partial sums.",
        defs,
        A[g, i],
        parts[g, j],
    )
    yield proved(
        "pg-share-sum",
        "The shares of a row add up to 1.",
        defs,
        total(P, lambda r: A[r, i]),
        S.One,
    )
    yield proved(
        "pg-split",
        "However the rows are shared among programs, the partial sums add up to the gradient.",
        defs,
        total(P, lambda s: parts[s, j]),
        Partial(loss, w[j]),
    )
    yield proved(
        "pg-mean-loss",
        "For a mean over the batch every part is divided by the rows of the whole batch.",
        defs,
        mean(M, lambda r: t[r, j]),
        total(P, lambda s: 1 / M * parts[s, j]),
    )
    defs = shares(affine())
    defs[A2[h, g]] = E2[h, g] + (1 / Q - mean(Q, lambda r: E2[r, g]))
    both = total(Q, lambda s: total(P, lambda r: A2[s, r] * A[r, i]))
    yield proved(
        "pg-stages", "A schedule after a schedule is a schedule.", defs, both, S.One
    )


def _cost():
    floor = 3 * (2 * M * N)
    yield proved(
        "pg-cost",
        "P rows of float32, written and read once, beside three tensors of 16-bit numbers: N cancels.",
        None,
        2 * (4 * P * N) / floor,
        4 * P / (3 * M),
        kind=FOLLOWS,
    )


def equations():
    """The equations labelled pg-..."""
    for section in (_gradients, _reads, _axes, _schedules, _cost):
        yield from section()
