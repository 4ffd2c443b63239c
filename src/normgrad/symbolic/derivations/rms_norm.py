"""RMSNorm: from L2 normalization to a layer with a weight, its Jacobian, its gradients for M rows, what keeps it fixed.

Source: 000_0e2bb4a165a62f6c.txt, the case without centring; it has no eps and one row.
"""

from __future__ import annotations

from sympy import Expr, S, Symbol, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, alphabet, eps, i, j, k, over_all

row, n = alphabet(), alphabet(M)
scale, norm, marked = tensor("c"), Symbol("s", real=True), Symbol("n", positive=True)
r, z, dr, x_dot, mask = (tensor(name, N) for name in ("r", "z", "dr", "x_dot", "mask"))
batch_s, batch_r = tensor("s", M), tensor("r", M, N)


def rms(f, offset=S.Zero) -> Expr:
    """The root of the mean square of a row f(1), ..., f(N), with an offset inside the root."""
    square = mean(N, lambda t: f(t) ** 2)
    return sqrt(square if offset == 0 else square + offset)


def rms_row() -> Defs:
    """One row of RMSNorm with weight and bias."""
    defs = Defs()
    defs[row.rstd] = 1 / rms(lambda t: row.x[t], eps)
    defs[row.x_hat[k]] = row.x[k] * row.rstd
    defs[row.y[k]] = row.w[k] * row.x_hat[k] + row.b[k]
    return defs


def source_row() -> Defs:
    """One row as source 000 has it, not centred: divided by its norm, times c; beside it RMSNorm without eps."""
    defs = Defs()
    defs[norm] = sqrt(total(N, lambda t: row.x[t] ** 2))
    defs[r[k]] = row.x[k] / norm
    defs[row.y[k]] = scale * r[k] * row.w[k] + row.b[k]
    defs[row.rstd] = 1 / rms(lambda t: row.x[t])
    defs[row.x_hat[k]] = row.x[k] * row.rstd
    defs[row.wdy[k]] = row.dy[k] * row.w[k]
    defs[row.c1] = mean(N, lambda t: row.x_hat[t] * row.wdy[t])
    defs[dr[k]] = sqrt(N) * row.w[k] * row.dy[k]
    return defs


def rms_norm() -> Defs:
    """RMSNorm for M rows, its loss, and the names of the backward pass."""
    defs = Defs()
    defs[n.D[i]] = rms(lambda t: n.x[i, t], eps)
    defs[n.rstd[i]] = 1 / n.D[i]
    defs[n.x_hat[i, j]] = n.x[i, j] * n.rstd[i]
    defs[n.y[i, j]] = n.w[j] * n.x_hat[i, j] + n.b[j]
    defs[n.L] = over_all(lambda t, v: n.dy[t, v] * n.y[t, v])
    defs[n.wdy[i, j]] = n.dy[i, j] * n.w[j]
    defs[n.c1[i]] = mean(N, lambda t: n.x_hat[i, t] * n.wdy[i, t])
    for name, variable in ((n.dx[i, j], n.x[i, j]), (n.dw[j], n.w[j]), (n.db[j], n.b[j])):
        defs[name] = Partial(n.L, variable)
    return defs


def _from_l2():
    defs, x = source_row(), row.x
    yield definition("rms-source", "Source 000's layer for one row, without centring.", defs, norm, r[k], row.y[k])
    yield proved(
        "rms-from-l2", "Without eps, RMSNorm is sqrt(N) times the row over its norm.", defs,
        row.x_hat[k], (x[k] / sqrt(1 / N * norm**2), "mean of squares"), sqrt(N) * r[k],
    )  # fmt: skip
    yield proved(
        "rms-eps-on-sum", "An eps beside the sum of squares is an eps / N beside their mean.", None,
        sqrt(N) * (x[k] / sqrt(total(N, lambda t: x[t] ** 2) + eps)), x[k] / rms(lambda t: x[t], eps / N),
    )  # fmt: skip
    yield proved(
        "rms-dx-from-l2", "Without eps, the projection of L2 normalization gives RMSNorm's gradient.", defs,
        1 / norm * (dr[j] - r[j] * total(N, lambda t: r[t] * dr[t])),
        row.rstd * (row.wdy[j] - row.x_hat[j] * row.c1),
    )  # fmt: skip


def _jacobian():
    defs, x, x_hat, rstd, w = rms_norm(), n.x, n.x_hat, n.rstd, n.w
    yield definition("rms-forward", "RMSNorm for M rows.", defs, n.D[i], rstd[i], x_hat[i, j], n.y[i, j])
    yield proved(
        "rms-statistics", "The mean square of a normalized row is below 1 by eps rstd^2.", defs,
        mean(N, lambda t: x_hat[i, t] ** 2), 1 - eps * rstd[i] ** 2,
    )  # fmt: skip
    yield proved(
        "rms-rstd", "The reciprocal shrinks as an entry moves away from 0.", defs,
        Partial(rstd[i], x[i, j]), -rstd[i] ** 2 * (x_hat[i, j] / N),
    )  # fmt: skip
    yield proved(
        "rms-x-hat", "The derivative of a normalized row.", defs,
        Partial(x_hat[i, k], x[i, j]), rstd[i] * (delta(k, j) - x_hat[i, k] * x_hat[i, j] / N),
    )  # fmt: skip
    jacobian = Partial(n.y[i, k], x[i, j])
    yield proved(
        "rms-jacobian", "The Jacobian of RMSNorm: the weight scales its rows.", defs,
        jacobian, rstd[i] * w[k] * (delta(k, j) - x_hat[i, k] * x_hat[i, j] / N),
    )  # fmt: skip
    yield proved(
        "rms-asymmetry", "The Jacobian is symmetric only where the weights agree or an entry is 0.", defs,
        jacobian - Partial(n.y[i, j], x[i, k]), rstd[i] * (w[j] - w[k]) * (x_hat[i, k] * x_hat[i, j] / N),
    )  # fmt: skip


def _gradients():
    defs, x_hat, rstd, wdy = rms_norm(), n.x_hat, n.rstd, n.wdy
    yield definition("rms-loss", "A loss that has dy as its cotangent, dy held constant.", defs, n.L)
    yield definition("rms-names", "The names of the backward pass.", defs, wdy[i, j], n.c1[i])
    yield proved(
        "rms-dx", "The input's gradient of RMSNorm, for every number of rows and columns.", defs,
        n.dx[i, j], rstd[i] * (wdy[i, j] - x_hat[i, j] * n.c1[i]),
    )  # fmt: skip
    yield proved(
        "rms-dw", "The weight's gradient of RMSNorm sums over the rows.", defs,
        n.dw[j], total(M, lambda t: n.dy[t, j] * x_hat[t, j]),
    )  # fmt: skip
    yield proved(
        "rms-db", "The bias's gradient sums over the rows.", defs, n.db[j], total(M, lambda t: n.dy[t, j])
    )
    yield proved(
        "rms-dx-row", "Against the row itself the gradient has the factor eps.", defs,
        total(N, lambda t: n.x[i, t] * n.dx[i, t]),
        eps * rstd[i] ** 2 * total(N, lambda t: wdy[i, t] * x_hat[i, t]),
    )  # fmt: skip


def _directions():
    defs, x, x_hat, rstd = rms_row(), row.x, row.x_hat, row.rstd
    yield definition("rms-row", "One row of RMSNorm.", defs, rstd, x_hat[k], row.y[k])
    yield proved(
        "rms-along", "Along the row itself the derivative has the factor eps.", defs,
        total(N, lambda t: Partial(x_hat[k], x[t]) * x[t]), eps * rstd**3 * x[k],
    )  # fmt: skip
    yield proved(
        "rms-jvp",
        "A direction loses its part along the row, up to eps; one across the row is only scaled by rstd.",
        defs,
        total(N, lambda t: Partial(x_hat[k], x[t]) * x_dot[t]),
        rstd * (x_dot[k] - x_hat[k] * mean(N, lambda t: x_hat[t] * x_dot[t])),
    )  # fmt: skip
    yield proved(
        "rms-shift", "What a shift of the whole row changes, to first order: not nothing, as in LayerNorm.", defs,
        total(N, lambda t: Partial(x_hat[k], x[t])), rstd * (1 - x_hat[k] * mean(N, lambda t: x_hat[t])),
    )  # fmt: skip


def _invariance():
    x, alpha = row.x, Symbol("alpha", positive=True)

    def normalized(factor, offset=S.Zero):
        return factor * x[k] / rms(lambda v: factor * x[v], offset)

    plain, minus = x[k] / rms(lambda v: x[v]), -alpha
    yield proved(
        "rms-scale", "A factor alpha > 0 on the row does what dividing eps by alpha^2 does.", None,
        normalized(alpha, eps), x[k] / rms(lambda v: x[v], eps / alpha**2),
    )  # fmt: skip
    yield together(
        "rms-sign", "Without eps, a factor on the row leaves its sign only.", None,
        (normalized(alpha), plain), (normalized(minus), -plain),
    )  # fmt: skip
    defs = Defs()
    defs[z[k]] = plain
    yield definition("rms-without-eps", "A row normalized without eps.", defs, z[k])
    again = z[k] / rms(lambda v: z[v])
    yield proved("rms-twice", "Without eps, the second RMSNorm changes nothing.", defs, again, z[k])


def _layer_norm():
    defs, x, q, average, v = Defs(), row.x, row.q, row.mean, row.v
    defs[average] = mean(N, lambda t: x[t])
    defs[v] = mean(N, lambda t: (x[t] - average) ** 2)
    defs[q[k]] = total(N, lambda t: (delta(k, t) - 1 / N) * x[t])
    yield definition("rms-ln-names", "Mean, variance and centred row, as LayerNorm has them.", defs, average, v, q[k])
    yield proved(
        "rms-centred", "RMSNorm of the centred row is LayerNorm.", defs,
        q[k] / rms(lambda t: q[t], eps), (x[k] - average) / sqrt(v + eps),
    )  # fmt: skip
    yield proved(
        "rms-mean-square", "A row's mean square is its variance plus the square of its mean.", defs,
        mean(N, lambda t: x[t] ** 2), v + average**2,
    )  # fmt: skip


def _trained_scale():
    defs, (c, dc) = Defs(), (scale, tensor("dc"))
    defs[batch_s[i]] = sqrt(total(N, lambda t: n.x[i, t] ** 2))
    defs[batch_r[i, j]] = n.x[i, j] / batch_s[i]
    defs[n.y[i, j]] = c * batch_r[i, j] * n.w[j] + n.b[j]
    defs[n.L] = over_all(lambda t, v: n.dy[t, v] * n.y[t, v])
    defs[n.dw[j]] = Partial(n.L, n.w[j])
    defs[dc] = Partial(n.L, c)
    yield together(
        "rms-dc", "The gradient of a trained scale, and what it has in common with the weight's.", defs,
        (dc, over_all(lambda t, v: n.dy[t, v] * batch_r[t, v] * n.w[v])),
        (c * dc, total(N, lambda t: n.w[t] * n.dw[t])),
    )  # fmt: skip


def _variants():
    defs, x, x_hat, rstd, w, dy = Defs(), row.x, row.x_hat, row.rstd, row.w, row.dy
    defs[rstd] = 1 / rms(lambda t: x[t], eps)
    defs[x_hat[k]] = x[k] * rstd
    defs[row.y[k]] = (1 + w[k]) * x_hat[k]
    defs[row.L] = total(N, lambda t: dy[t] * row.y[t])
    projected = x_hat[j] * mean(N, lambda t: x_hat[t] * (1 + w[t]) * dy[t])
    yield together(
        "rms-offset", "With the weight 1 + w only wdy changes.", defs,
        (Partial(row.L, x[j]), rstd * ((1 + w[j]) * dy[j] - projected)),
        (Partial(row.L, w[j]), dy[j] * x_hat[j]),
    )  # fmt: skip
    defs = Defs()
    defs[rstd] = 1 / sqrt(1 / marked * total(N, lambda t: mask[t] * x[t] ** 2) + eps)
    defs[x_hat[k]] = x[k] * rstd
    defs[row.wdy[k]] = dy[k] * w[k]
    yield definition("rms-partial", "A root mean square over the marked columns.", defs, rstd, x_hat[k])
    yield proved(
        "rms-partial-dx", "Only the marked columns receive the projection; its sum runs over all.", defs,
        Partial(total(N, lambda t: dy[t] * w[t] * x_hat[t]), x[j]),
        rstd * (row.wdy[j] - mask[j] * x_hat[j] * (1 / marked) * total(N, lambda t: x_hat[t] * row.wdy[t])),
    )  # fmt: skip


def equations():
    """The equations labelled rms-..."""
    for section in (_jacobian, _gradients, _from_l2, _directions, _invariance, _layer_norm, _trained_scale, _variants):
        yield from section()
