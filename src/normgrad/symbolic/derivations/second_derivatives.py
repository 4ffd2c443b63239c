"""One row of LayerNorm: its tangent, and the Hessian of its linear loss times a direction.

A tangent has a dot; it is the direction of a Hessian-vector product, too.
"""

from __future__ import annotations

from sympy import sqrt

from ..definitions import Defs
from ..notation import Partial, mean, tensor, total
from ..registry import definition, proved
from ..symbols import N, alphabet, eps, j, k

row = alphabet()
x, q, x_hat, rstd, w, dy, wdy = (
    row.x,
    row.q,
    row.x_hat,
    row.rstd,
    row.w,
    row.dy,
    row.wdy,
)
x_dot, w_dot, b_dot, q_dot, x_hat_dot, y_dot = (
    tensor(f"{name}_dot", N) for name in ("x", "w", "b", "q", "x_hat", "y")
)
rstd_dot, dx_dot = tensor("rstd_dot"), tensor("dx_dot", N)
e1, cov = tensor("e1"), tensor("cov")


def centred_row() -> Defs:
    """A row of LayerNorm, its linear loss, and the names of the derivatives."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda t: x[t])
    defs[q[k]] = x[k] - row.mean
    defs[row.D] = sqrt(mean(N, lambda t: q[t] ** 2) + eps)
    defs[rstd] = 1 / row.D
    defs[x_hat[k]] = q[k] * rstd
    defs[row.y[k]] = w[k] * x_hat[k] + row.b[k]
    defs[row.L] = total(N, lambda t: dy[t] * row.y[t])
    defs[row.dx[j]] = Partial(row.L, x[j])
    defs[wdy[k]] = dy[k] * w[k]
    defs[row.c1] = mean(N, lambda t: x_hat[t] * wdy[t])
    defs[row.c2] = mean(N, lambda t: wdy[t])
    defs[e1] = mean(N, lambda t: x_hat[t] * x_dot[t])
    defs[q_dot[k]] = along(q[k], [(x, x_dot)])
    defs[cov] = mean(N, lambda t: wdy[t] * q_dot[t])
    defs[dx_dot[j]] = total(N, lambda t: x_dot[t] * Partial(row.dx[j], x[t]))
    return defs


def along(f, tangents):
    """The tangent of f: every derivative times the change of its input."""
    terms = [
        total(N, lambda t, v=v, v_dot=v_dot: Partial(f, v[t]) * v_dot[t])
        for v, v_dot in tangents
    ]
    return sum(terms[1:], terms[0])


def _layer_norm():
    defs = centred_row()
    defs[rstd_dot] = along(rstd, [(x, x_dot)])
    defs[x_hat_dot[k]] = along(x_hat[k], [(x, x_dot)])
    defs[y_dot[k]] = along(row.y[k], [(x, x_dot), (w, w_dot), (row.b, b_dot)])
    yield definition(
        "hess-ln-forward",
        "One row of LayerNorm.",
        defs,
        row.mean,
        q[k],
        row.D,
        rstd,
        x_hat[k],
        row.y[k],
    )
    yield definition(
        "hess-tangent",
        "A tangent: every derivative times the change of its input.",
        defs,
        x_hat_dot[k],
        y_dot[k],
    )
    yield proved(
        "hess-ln-q",
        "Centring is linear.",
        defs,
        q_dot[k],
        x_dot[k] - mean(N, lambda t: x_dot[t]),
    )
    yield proved(
        "hess-ln-rstd",
        "The tangent of rstd.",
        defs,
        rstd_dot,
        -(rstd**2) * mean(N, lambda t: x_hat[t] * x_dot[t]),
    )
    yield proved(
        "hess-ln-x-hat",
        "The tangent of the normalized row.",
        defs,
        x_hat_dot[k],
        rstd * (q_dot[k] - x_hat[k] * mean(N, lambda t: x_hat[t] * x_dot[t])),
    )
    yield proved(
        "hess-ln-jvp",
        "The tangent of LayerNorm when input, weight and bias change at once.",
        defs,
        y_dot[k],
        w[k] * x_hat_dot[k] + w_dot[k] * x_hat[k] + b_dot[k],
    )


def _layer_norm_products():
    defs, c1, c2 = centred_row(), row.c1, row.c2
    yield definition(
        "hess-loss",
        "The loss that is linear in y, and its gradient.",
        defs,
        row.L,
        row.dx[j],
    )
    yield definition(
        "hess-product",
        "The Hessian times a direction is the tangent of dx.",
        defs,
        dx_dot[j],
    )
    yield definition(
        "hess-names",
        "wdy, the centred direction, and four means.",
        defs,
        wdy[k],
        q_dot[k],
        c1,
        c2,
        e1,
        cov,
    )
    yield proved(
        "hess-ln-hvp",
        "The Hessian of the linear loss of LayerNorm times a direction: the tangent of dx.",
        defs,
        dx_dot[j],
        -(rstd**2)
        * (c1 * q_dot[j] + e1 * (wdy[j] - c2) + x_hat[j] * (cov - 3 * c1 * e1)),
    )


def equations():
    """The equations labelled hess-..."""
    for section in (_layer_norm, _layer_norm_products):
        yield from section()
