"""LayerNorm's gradients for M rows, the agreement of the three routes, and what follows from them."""

from __future__ import annotations

from sympy import S, Symbol, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, alphabet, eps, i, j, k, over_all

n = alphabet(M)
row = alphabet()
C = tensor("C", N, N)


def layer_norm() -> Defs:
    """LayerNorm for M rows, its loss, and the names of the backward pass."""
    defs = Defs()
    defs[n.mean[i]] = mean(N, lambda r: n.x[i, r])
    defs[n.q[i, j]] = n.x[i, j] - n.mean[i]
    defs[n.v[i]] = mean(N, lambda r: n.q[i, r] ** 2)
    defs[n.D[i]] = sqrt(n.v[i] + eps)
    defs[n.rstd[i]] = 1 / n.D[i]
    defs[n.x_hat[i, j]] = n.q[i, j] * n.rstd[i]
    defs[n.y[i, j]] = n.w[j] * n.x_hat[i, j] + n.b[j]
    defs[n.L] = over_all(lambda r, s: n.dy[r, s] * n.y[r, s])
    defs[n.wdy[i, j]] = n.dy[i, j] * n.w[j]
    defs[n.c1[i]] = mean(N, lambda r: n.x_hat[i, r] * n.wdy[i, r])
    defs[n.c2[i]] = mean(N, lambda r: n.wdy[i, r])
    return defs


def with_gradients() -> Defs:
    """The same, and the gradients as the derivatives of the loss."""
    defs = layer_norm()
    for gradient, variable in (
        (n.dx[i, j], n.x[i, j]),
        (n.dw[j], n.w[j]),
        (n.db[j], n.b[j]),
    ):
        defs[gradient] = Partial(n.L, variable)
    return defs


def dx_by_entries():
    """dx as the entry-by-entry route leaves it."""
    return n.rstd[i] * (n.wdy[i, j] - n.c2[i] - n.x_hat[i, j] * n.c1[i])


def dx_by_graph():
    """dx as the graph leaves it."""
    q, D, weighted = n.q, n.D, lambda r: n.dy[i, r] * n.w[r]
    return weighted(j) / D[i] - total(
        N, lambda r: weighted(r) / N * (1 / D[i] + q[i, r] * q[i, j] / D[i] ** 3)
    )


def dx_by_projections():
    """dx as the two projections leave it, applied to the cotangent of the normalized row."""
    x_hat = n.x_hat
    return n.rstd[i] * total(
        N, lambda r: (C[j, r] - x_hat[i, j] * x_hat[i, r] / N) * n.wdy[i, r]
    )


def _gradients():
    defs, loss = with_gradients(), n.L
    yield definition(
        "ln-forward",
        "LayerNorm for M rows.",
        defs,
        n.mean[i],
        n.q[i, j],
        n.v[i],
        n.D[i],
        n.rstd[i],
        n.x_hat[i, j],
        n.y[i, j],
    )
    yield proved(
        "ln-y",
        "LayerNorm in one line.",
        defs,
        n.y[i, j],
        (n.x[i, j] - n.mean[i]) * n.rstd[i] * n.w[j] + n.b[j],
    )
    yield definition(
        "ln-loss", "A loss that has dy as its cotangent, dy held constant.", defs, loss
    )
    yield definition(
        "ln-names",
        "The names of the backward pass.",
        defs,
        n.wdy[i, j],
        n.c1[i],
        n.c2[i],
    )
    yield proved(
        "ln-dx",
        "The input's gradient of LayerNorm, for every number of rows and columns.",
        defs,
        n.dx[i, j],
        Partial(loss, n.x[i, j]),
        dx_by_entries(),
    )
    yield proved(
        "ln-dw",
        "The weight's gradient of LayerNorm sums over the rows.",
        defs,
        n.dw[j],
        Partial(loss, n.w[j]),
        total(M, lambda r: n.dy[r, j] * n.x_hat[r, j]),
    )
    yield proved(
        "ln-db",
        "The bias's gradient of LayerNorm sums over the rows.",
        defs,
        n.db[j],
        Partial(loss, n.b[j]),
        total(M, lambda r: n.dy[r, j]),
    )


def _agreement():
    defs = layer_norm()
    defs[C[k, j]] = delta(k, j) - 1 / N
    yield proved(
        "ln-entry-equals-graph",
        "The entry-by-entry route and the graph give one gradient.",
        defs,
        dx_by_entries(),
        dx_by_graph(),
    )
    yield proved(
        "ln-graph-equals-proj",
        "The graph and the projections give one gradient.",
        defs,
        dx_by_graph(),
        dx_by_projections(),
        wide=True,
    )
    yield proved(
        "ln-proj-equals-entry",
        "The projections and the entry-by-entry route give one gradient.",
        defs,
        dx_by_projections(),
        dx_by_entries(),
    )


def _consequences():
    defs = with_gradients()
    x_hat, wdy = n.x_hat, n.wdy
    yield together(
        "ln-statistics",
        "A normalized row has mean 0, and a mean square below 1 by eps rstd^2.",
        defs,
        (mean(N, lambda r: x_hat[i, r]), S.Zero),
        (mean(N, lambda r: x_hat[i, r] ** 2), 1 - eps * n.rstd[i] ** 2),
    )
    yield proved(
        "ln-dx-sum",
        "The input's gradient adds up to 0 along every row.",
        defs,
        total(N, lambda r: n.dx[i, r]),
        S.Zero,
    )
    yield proved(
        "ln-dx-row",
        "Against the row itself the input's gradient has the factor eps.",
        defs,
        total(N, lambda r: n.x[i, r] * n.dx[i, r]),
        eps * n.rstd[i] ** 2 * total(N, lambda r: wdy[i, r] * x_hat[i, r]),
    )


def _normalized(f, offset):
    """The entry k of the normalized row f."""
    average = mean(N, f)
    return (f(k) - average) / sqrt(mean(N, lambda r: (f(r) - average) ** 2) + offset)


def _invariance():
    x, average, v = row.x, row.mean, row.v
    m, alpha = tensor("m"), Symbol("alpha", positive=True)
    defs = Defs()
    defs[average] = mean(N, lambda r: x[r])
    defs[v] = mean(N, lambda r: (x[r] - average) ** 2)
    yield proved(
        "ln-shift",
        "A shift of the whole row changes nothing.",
        defs,
        _normalized(lambda r: x[r] + m, eps),
        (x[k] - average) / sqrt(v + eps),
    )
    yield proved(
        "ln-scale",
        "A factor alpha > 0 on the row does what dividing eps by alpha^2 does.",
        defs,
        _normalized(lambda r: alpha * x[r], eps),
        (x[k] - average) / sqrt(v + eps / alpha**2),
    )


def equations():
    """The equations labelled ln-... that do not belong to one route."""
    for section in (_gradients, _agreement, _consequences, _invariance):
        yield from section()
