"""One row: tangents, Hessians and Hessian-vector products of L2 normalization, RMSNorm and LayerNorm.

The row of L2 normalization is called r, as in the projections; eps stands inside the root of the other two. A tangent
has a dot; it is the direction of a Hessian-vector product, too.
"""

from __future__ import annotations

from sympy import S, Symbol, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, index, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import N, alphabet, eps, j, k

row = alphabet()
l = index("l")  # noqa: E741 - the third column index of second derivatives
x, q, x_hat, rstd, w, dy, wdy = row.x, row.q, row.x_hat, row.rstd, row.w, row.dy, row.wdy
norm, r, C = Symbol("s", real=True), tensor("r", N), tensor("C", N, N)
x_dot, w_dot, b_dot, q_dot, r_dot, x_hat_dot, y_dot = (
    tensor(f"{name}_dot", N) for name in ("x", "w", "b", "q", "r", "x_hat", "y")
)
rstd_dot, dx_dot = tensor("rstd_dot"), tensor("dx_dot", N)
e1, cov = tensor("e1"), tensor("cov")


def l2_row() -> Defs:
    """A row divided by its Euclidean norm, its tangent, and its linear loss with the names of the derivatives."""
    defs = Defs()
    defs[norm] = sqrt(total(N, lambda t: x[t] ** 2))
    defs[r[k]] = x[k] / norm
    defs[r_dot[k]] = total(N, lambda t: Partial(r[k], x[t]) * x_dot[t])
    defs[row.L] = total(N, lambda t: dy[t] * r[t])
    defs[row.dx[j]] = Partial(row.L, x[j])
    defs[row.c1] = total(N, lambda t: r[t] * dy[t])
    defs[e1] = total(N, lambda t: r[t] * x_dot[t])
    defs[dx_dot[j]] = total(N, lambda t: x_dot[t] * Partial(row.dx[j], x[t]))
    return defs


def scaled_row(centred: bool) -> Defs:
    """A row of LayerNorm (centred) or RMSNorm, its linear loss, and the names of the derivatives."""
    defs = Defs()
    if centred:
        defs[C[k, j]] = delta(k, j) - 1 / N
        defs[row.mean] = mean(N, lambda t: x[t])
        defs[q[k]] = x[k] - row.mean
    p = q if centred else x
    defs[row.D] = sqrt(mean(N, lambda t: p[t] ** 2) + eps)
    defs[rstd] = 1 / row.D
    defs[x_hat[k]] = p[k] * rstd
    defs[row.y[k]] = w[k] * x_hat[k] + row.b[k] if centred else w[k] * x_hat[k]
    defs[row.L] = total(N, lambda t: dy[t] * row.y[t])
    defs[row.dx[j]] = Partial(row.L, x[j])
    defs[wdy[k]] = dy[k] * w[k]
    defs[row.c1] = mean(N, lambda t: x_hat[t] * wdy[t])
    defs[e1] = mean(N, lambda t: x_hat[t] * x_dot[t])
    if centred:
        defs[row.c2] = mean(N, lambda t: wdy[t])
        defs[q_dot[k]] = along(q[k], [(x, x_dot)])
        defs[cov] = mean(N, lambda t: wdy[t] * q_dot[t])
    defs[dx_dot[j]] = total(N, lambda t: x_dot[t] * Partial(row.dx[j], x[t]))
    return defs


def along(f, tangents):
    """The tangent of f: every derivative times the change of its input."""
    terms = [total(N, lambda t, v=v, v_dot=v_dot: Partial(f, v[t]) * v_dot[t]) for v, v_dot in tangents]
    return sum(terms[1:], terms[0])


def slices(metric):
    """The second derivatives of a normalized row; the metric is delta, or C where the row is centred."""
    cubic = 3 / N * x_hat[k] * x_hat[j] * x_hat[l]
    return rstd**2 / N * (cubic - metric(k, j) * x_hat[l] - metric(k, l) * x_hat[j] - metric(j, l) * x_hat[k])


def _l2():
    defs = l2_row()
    yield definition("hess-l2-forward", "A row divided by its norm.", defs, norm, r[k])
    yield proved(
        "hess-l2-jvp",
        "The tangent of a row divided by its norm.",
        defs,
        r_dot[k],
        (x_dot[k] / norm - x[k] / norm**2 * total(N, lambda t: Partial(norm, x[t]) * x_dot[t]), "quotient rule"),
        1 / norm * (x_dot[k] - r[k] * total(N, lambda t: r[t] * x_dot[t])),
    )
    yield proved(
        "hess-l2",
        "The second derivatives of a row divided by its norm.",
        defs,
        Partial(Partial(r[k], x[j]), x[l]),
        (Partial(1 / norm * (delta(k, j) - r[k] * r[j]), x[l]), "the first derivative"),
        -(1 / norm**2) * r[l] * (delta(k, j) - r[k] * r[j])
        - 1 / norm**2 * ((delta(k, l) - r[k] * r[l]) * r[j] + r[k] * (delta(j, l) - r[j] * r[l])),
        1 / norm**2 * (3 * r[k] * r[j] * r[l] - delta(k, j) * r[l] - delta(k, l) * r[j] - delta(j, l) * r[k]),
        wide=True,
    )
    yield definition("hess-l2-names", "The sums that second derivatives of L2 normalization need.", defs, row.c1, e1)
    yield proved(
        "hess-l2-hvp",
        "The Hessian of the linear loss of L2 normalization times a direction.",
        defs,
        dx_dot[j],
        -(1 / norm**2)
        * (row.c1 * x_dot[j] + e1 * dy[j] + r[j] * (total(N, lambda t: dy[t] * x_dot[t]) - 3 * row.c1 * e1)),
    )


def _rms():
    defs = scaled_row(centred=False)
    defs[x_hat_dot[k]] = along(x_hat[k], [(x, x_dot)])
    defs[y_dot[k]] = along(row.y[k], [(x, x_dot), (w, w_dot)])
    yield definition("hess-rms-forward", "One row of RMSNorm.", defs, row.D, rstd, x_hat[k], row.y[k])
    yield together(
        "hess-rms-jvp",
        "The tangent of RMSNorm.",
        defs,
        (x_hat_dot[k], rstd * (x_dot[k] - x_hat[k] * mean(N, lambda t: x_hat[t] * x_dot[t]))),
        (y_dot[k], w[k] * x_hat_dot[k] + w_dot[k] * x_hat[k]),
    )
    yield proved(
        "hess-rms",
        "The second derivatives of a row divided by its root mean square.",
        defs,
        Partial(Partial(x_hat[k], x[j]), x[l]),
        slices(delta),
    )
    yield proved(
        "hess-rms-hvp",
        "The Hessian of the linear loss of RMSNorm times a direction.",
        defs,
        dx_dot[j],
        -(rstd**2)
        * (row.c1 * x_dot[j] + e1 * wdy[j] + x_hat[j] * (mean(N, lambda t: wdy[t] * x_dot[t]) - 3 * row.c1 * e1)),
    )


def _layer_norm():
    defs = scaled_row(centred=True)
    defs[rstd_dot] = along(rstd, [(x, x_dot)])
    defs[x_hat_dot[k]] = along(x_hat[k], [(x, x_dot)])
    defs[y_dot[k]] = along(row.y[k], [(x, x_dot), (w, w_dot), (row.b, b_dot)])
    yield definition("hess-ln-forward", "One row of LayerNorm.", defs, row.mean, q[k], row.D, rstd, x_hat[k], row.y[k])
    yield definition(
        "hess-tangent", "A tangent: every derivative times the change of its input.", defs, x_hat_dot[k], y_dot[k]
    )
    yield proved("hess-ln-q", "Centring is linear.", defs, q_dot[k], x_dot[k] - mean(N, lambda t: x_dot[t]))
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


def _potential():
    words = "A row divided by its norm is the gradient of the norm."
    yield proved("hess-potential-l2", words, l2_row(), r[k], Partial(norm, x[k]))
    for name, centred in (("rms", False), ("ln", True)):
        defs, words = scaled_row(centred), "The normalized row is N times the gradient of D, eps included."
        yield proved(f"hess-potential-{name}", words, defs, x_hat[k], N * Partial(row.D, x[k]))


def _layer_norm_hessian():
    defs = scaled_row(centred=True)
    yield definition("hess-centring", "The centring matrix.", defs, C[k, j])
    yield proved(
        "hess-ln",
        "The second derivatives of a normalized row.",
        defs,
        Partial(Partial(x_hat[k], x[j]), x[l]),
        slices(lambda a, b: C[a, b]),
    )
    second = Partial(Partial(x_hat[k], x[j]), x[l])
    yield together(
        "hess-ln-symmetric",
        "All three indices may trade places, and the entries add up to 0 along each of them.",
        defs,
        (second, Partial(Partial(x_hat[k], x[l]), x[j])),
        (second, Partial(Partial(x_hat[l], x[j]), x[k])),
        (total(N, lambda t: Partial(Partial(x_hat[k], x[j]), x[t])), S.Zero),
    )


def _layer_norm_products():
    defs, c1, c2 = scaled_row(centred=True), row.c1, row.c2
    yield definition("hess-loss", "The loss that is linear in y, and its gradient.", defs, row.L, row.dx[j])
    yield definition("hess-product", "The Hessian times a direction is the tangent of dx.", defs, dx_dot[j])
    yield definition(
        "hess-names", "wdy, the centred direction, and four means.", defs, wdy[k], q_dot[k], c1, c2, e1, cov
    )
    outer = 3 * c1 * x_hat[j] * x_hat[l] - x_hat[j] * (wdy[l] - c2) - (wdy[j] - c2) * x_hat[l]
    yield proved(
        "hess-ln-matrix",
        "The Hessian of the loss: a multiple of the centring matrix, and parts of rank one.",
        defs,
        Partial(row.dx[j], x[l]),
        rstd**2 * (1 / N * outer - c1 * C[j, l]),
    )
    yield proved(
        "hess-ln-hvp",
        "The Hessian of the linear loss of LayerNorm times a direction: the tangent of dx.",
        defs,
        dx_dot[j],
        -(rstd**2) * (c1 * q_dot[j] + e1 * (wdy[j] - c2) + x_hat[j] * (cov - 3 * c1 * e1)),
    )
    yield proved(
        "hess-ln-along-x",
        "Along the row itself the Hessian product is -dx, up to terms with the factor eps.",
        defs,
        total(N, lambda t: x[t] * Partial(row.dx[j], x[t])),
        -(1 - eps * rstd**2) * row.dx[j] - 2 * eps * rstd**3 * c1 * x_hat[j],
    )


def equations():
    """The equations labelled hess-..."""
    for section in (_l2, _rms, _layer_norm, _potential, _layer_norm_hessian, _layer_norm_products):
        yield from section()
