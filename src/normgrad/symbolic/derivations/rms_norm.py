"""RMSNorm: from L2 normalization to a layer with a weight, its Jacobian, its gradients for M rows, what keeps it fixed.

Source: 000_0e2bb4a165a62f6c.txt, the case without centring; it has no eps and one row.
"""

from __future__ import annotations

from sympy import Expr, S, Symbol, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved
from ..symbols import M, N, alphabet, eps, i, j, k, over_all

row, n = alphabet(), alphabet(M)
scale, norm, r = tensor("c"), Symbol("s", real=True), tensor("r", N)


def rms(f, offset=S.Zero) -> Expr:
    """The root of the mean square of a row f(1), ..., f(N), with an offset inside the root."""
    square = mean(N, lambda t: f(t) ** 2)
    return sqrt(square if offset == 0 else square + offset)


def source_row() -> Defs:
    """One row as source 000 has it, not centred: divided by its norm, times c; beside it RMSNorm without eps."""
    defs = Defs()
    defs[norm] = sqrt(total(N, lambda t: row.x[t] ** 2))
    defs[r[k]] = row.x[k] / norm
    defs[row.y[k]] = scale * r[k] * row.w[k] + row.b[k]
    defs[row.rstd] = 1 / rms(lambda t: row.x[t])
    defs[row.x_hat[k]] = row.x[k] * row.rstd
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
    for name, variable in (
        (n.dx[i, j], n.x[i, j]),
        (n.dw[j], n.w[j]),
        (n.db[j], n.b[j]),
    ):
        defs[name] = Partial(n.L, variable)
    return defs


def _from_l2():
    defs, x = source_row(), row.x
    yield definition(
        "rms-source",
        "Source 000's layer for one row, without centring.",
        defs,
        norm,
        r[k],
        row.y[k],
    )
    yield proved(
        "rms-from-l2", "Without eps, RMSNorm is sqrt(N) times the row over its norm.", defs,
        row.x_hat[k], (x[k] / sqrt(1 / N * norm**2), "mean of squares"), sqrt(N) * r[k],
    )  # fmt: skip


def _jacobian():
    defs, x, x_hat, rstd, w = rms_norm(), n.x, n.x_hat, n.rstd, n.w
    yield definition(
        "rms-forward",
        "RMSNorm for M rows.",
        defs,
        n.D[i],
        rstd[i],
        x_hat[i, j],
        n.y[i, j],
    )
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
    yield definition(
        "rms-loss", "A loss that has dy as its cotangent, dy held constant.", defs, n.L
    )
    yield definition(
        "rms-names", "The names of the backward pass.", defs, wdy[i, j], n.c1[i]
    )
    yield proved(
        "rms-dx", "The input's gradient of RMSNorm, for every number of rows and columns.", defs,
        n.dx[i, j], rstd[i] * (wdy[i, j] - x_hat[i, j] * n.c1[i]),
    )  # fmt: skip
    yield proved(
        "rms-dw", "The weight's gradient of RMSNorm sums over the rows.", defs,
        n.dw[j], total(M, lambda t: n.dy[t, j] * x_hat[t, j]),
    )  # fmt: skip
    yield proved(
        "rms-db",
        "The bias's gradient sums over the rows.",
        defs,
        n.db[j],
        total(M, lambda t: n.dy[t, j]),
    )
    yield proved(
        "rms-dx-row", "Against the row itself the gradient has the factor eps.", defs,
        total(N, lambda t: n.x[i, t] * n.dx[i, t]),
        eps * rstd[i] ** 2 * total(N, lambda t: wdy[i, t] * x_hat[i, t]),
    )  # fmt: skip


def _invariance():
    x, alpha = row.x, Symbol("alpha", positive=True)
    yield proved(
        "rms-scale", "A factor alpha > 0 on the row does what dividing eps by alpha^2 does.", None,
        alpha * x[k] / rms(lambda t: alpha * x[t], eps), x[k] / rms(lambda t: x[t], eps / alpha**2),
    )  # fmt: skip


def equations():
    """The equations labelled rms-..."""
    for section in (_jacobian, _gradients, _from_l2, _invariance):
        yield from section()
