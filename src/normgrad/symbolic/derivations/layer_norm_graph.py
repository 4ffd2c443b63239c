"""LayerNorm, through its graph: one local derivative per arrow, cotangents combined backwards, M rows at once.

A local derivative holds every other quantity of a defining formula fixed; a cotangent sums over the arrows that leave
its quantity. Source: 003_0cf2c5b4e9e38000.txt, in the book's letters.
"""

from __future__ import annotations

from sympy import Rational, S, sqrt

from ..definitions import Defs
from ..notation import Local, Partial, delta, mean, total
from ..registry import proved, together
from ..symbols import M, N, alphabet, eps, i, j, k, over_all, p

g = alphabet(M)


def forward() -> Defs:
    """LayerNorm as a graph: mean, centred input q, variance v, denominator D, output y, and the loss."""
    defs = Defs()
    defs[g.mean[i]] = mean(N, lambda r: g.x[i, r])
    defs[g.q[i, j]] = g.x[i, j] - g.mean[i]
    defs[g.v[i]] = mean(N, lambda r: g.q[i, r] ** 2)
    defs[g.D[i]] = sqrt(g.v[i] + eps)
    defs[g.y[i, j]] = g.q[i, j] / g.D[i] * g.w[j] + g.b[j]
    defs[g.L] = over_all(lambda r, s: g.dy[r, s] * g.y[r, s])
    return defs


def backward() -> Defs:
    """The forward graph and its cotangents, each one the chain rule over the arrows that leave a quantity."""
    defs = forward()
    y, dy, q, local = g.y, g.dy, g.q, defs.local
    defs[g.dw[k]] = over_all(lambda r, s: dy[r, s] * Partial(y[r, s], g.w[k]))
    defs[g.db[k]] = over_all(lambda r, s: dy[r, s] * Partial(y[r, s], g.b[k]))
    defs[g.dD[p]] = over_all(lambda r, s: dy[r, s] * local(y[r, s], g.D[p]))
    defs[g.dv[p]] = total(M, lambda r: g.dD[r] * local(g.D[r], g.v[p]))
    through_v = total(M, lambda r: g.dv[r] * local(g.v[r], q[p, k]))
    defs[g.dq[p, k]] = through_v + over_all(
        lambda r, s: dy[r, s] * local(y[r, s], q[p, k])
    )
    defs[g.dmean[p]] = over_all(lambda r, s: g.dq[r, s] * local(q[r, s], g.mean[p]))
    through_mean = total(M, lambda r: g.dmean[r] * local(g.mean[r], g.x[p, k]))
    defs[g.dx[p, k]] = through_mean + over_all(
        lambda r, s: g.dq[r, s] * local(q[r, s], g.x[p, k])
    )
    return defs


def _locals(defs):
    """What stands on the arrows; the page of the graph lists them."""
    y, q, D, w, x, local = g.y, g.q, g.D, g.w, g.x, defs.local
    yield proved(
        "ln-graph-y-w",
        "The output's derivative by the weight.",
        defs,
        Partial(y[i, j], w[k]),
        q[i, j] / D[i] * delta(j, k),
    )
    yield proved(
        "ln-graph-y-b",
        "The output's derivative by the bias.",
        defs,
        Partial(y[i, j], g.b[k]),
        delta(j, k),
    )
    yield proved(
        "ln-graph-y-D",
        "The output's local derivative by the denominator.",
        defs,
        local(y[i, j], D[p]),
        -(q[i, j] * w[j] / D[i] ** 2 * delta(i, p)),
    )
    yield proved(
        "ln-graph-D-v",
        "The denominator's local derivative by the variance.",
        defs,
        local(D[i], g.v[p]),
        Rational(1, 2) * (g.v[i] + eps) ** Rational(-1, 2) * delta(i, p),
        delta(i, p) / (2 * D[i]),
    )
    yield proved(
        "ln-graph-v-q",
        "The variance's local derivative by the centred input.",
        defs,
        local(g.v[i], q[p, k]),
        2 / N * total(N, lambda s: q[i, s] * delta(i, p) * delta(s, k)),
        2 / N * q[i, k] * delta(i, p),
    )
    yield proved(
        "ln-graph-y-q",
        "The output's local derivative by the centred input, the denominator held fixed.",
        defs,
        local(y[i, j], q[p, k]),
        w[j] / D[i] * delta(i, p) * delta(j, k),
    )
    yield proved(
        "ln-graph-q-mean",
        "The centred input's local derivative by the mean, the input held fixed.",
        defs,
        local(q[i, j], g.mean[p]),
        Local(x[i, j] - g.mean[i], g.mean[p]),
        -delta(i, p),
    )
    yield proved(
        "ln-graph-mean-x",
        "The mean's derivative by the input.",
        defs,
        local(g.mean[i], x[p, k]),
        1 / N * total(N, lambda s: delta(i, p) * delta(s, k)),
        delta(i, p) / N,
    )
    yield proved(
        "ln-graph-q-x",
        "The centred input's local derivative by the input, the mean held fixed.",
        defs,
        local(q[i, j], x[p, k]),
        Local(x[i, j] - g.mean[i], x[p, k]),
        delta(i, p) * delta(j, k),
    )
    yield proved(
        "ln-graph-q-x-total",
        "The total derivative adds the path through the mean: it is not the local one.",
        defs,
        Partial(q[i, j], x[p, k]),
        delta(i, p) * (delta(j, k) - 1 / N),
    )
    yield proved(
        "ln-graph-centred-sum",
        "A centred row adds up to 0.",
        defs,
        total(N, lambda s: q[p, s]),
        (total(N, lambda s: x[p, s] - g.mean[p]), "definition"),
        total(N, lambda s: x[p, s]) - g.mean[p] * total(N, lambda s: S.One),
        N * g.mean[p] - N * g.mean[p],
        S.Zero,
    )


def _cotangents(defs):
    dy, q, D, w = g.dy, g.q, g.D, g.w
    through_y = total(N, lambda s: dy[p, s] * w[s] / D[p])
    yield proved(
        "ln-graph-dw",
        "The weight's gradient sums over the rows.",
        defs,
        g.dw[k],
        total(M, lambda r: dy[r, k] * (q[r, k] / D[r])),
    )
    yield proved(
        "ln-graph-db",
        "The bias's gradient sums over the rows.",
        defs,
        g.db[k],
        total(M, lambda r: dy[r, k]),
    )
    yield proved(
        "ln-graph-dD",
        "The denominator's cotangent.",
        defs,
        g.dD[p],
        -total(N, lambda s: dy[p, s] * (q[p, s] * w[s] / D[p] ** 2)),
    )
    yield proved(
        "ln-graph-dv",
        "The variance's cotangent.",
        defs,
        g.dv[p],
        -total(N, lambda s: dy[p, s] * (q[p, s] * w[s] / (2 * D[p] ** 3))),
    )
    yield proved(
        "ln-graph-dq",
        "The centred input's cotangent: one contribution through the variance, one through the output.",
        defs,
        g.dq[p, k],
        2 / N * g.dv[p] * q[p, k] + dy[p, k] * w[k] / D[p],
    )
    yield proved(
        "ln-graph-dmean", "The mean's cotangent.", defs, g.dmean[p], -through_y
    )
    yield proved(
        "ln-graph-dx",
        "The input's cotangent: one contribution through the mean, one through the centred input.",
        defs,
        g.dx[p, k],
        -(1 / N * through_y) + 2 / N * g.dv[p] * q[p, k] + dy[p, k] * w[k] / D[p],
    )
    yield proved(
        "ln-graph-dx-closed",
        "The input's cotangent in terms of the output's.",
        defs,
        g.dx[p, k],
        dy[p, k] * w[k] / D[p]
        - total(
            N,
            lambda s: (
                dy[p, s] * (w[s] / N) * (1 / D[p] + q[p, s] * q[p, k] / D[p] ** 3)
            ),
        ),
    )


def _totals(defs):
    pairs = ((g.x[p, k], g.dx[p, k]), (g.w[k], g.dw[k]), (g.b[k], g.db[k]))
    yield together(
        "ln-graph-total",
        "The graph's gradients are the loss's total derivatives.",
        defs,
        *((Partial(g.L, variable), gradient) for variable, gradient in pairs),
    )


def equations():
    """The equations labelled ln-graph-..."""
    defs = backward()
    for section in (_locals, _cotangents, _totals):
        yield from section(defs)
