"""Chapter "Differentials, JVP and VJP": differentials of a normalized row, the adjoint identity, chains."""

from __future__ import annotations

from sympy import S, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, alphabet, eps, i, j, k, over_all, p
from . import layer_norm_graph, reverse_mode

row = alphabet()
x_dot, q_dot, x_hat_dot, y_dot = (
    tensor(f"{name}_dot", N) for name in ("x", "q", "x_hat", "y")
)
mean_dot, v_dot, rstd_dot = (tensor(f"{name}_dot") for name in ("mean", "v", "rstd"))
J = tensor("J", N, N)
a = tensor("a", positive=True)
b, a_dot, b_dot = (tensor(name) for name in ("b", "a_dot", "b_dot"))


def push(f, along=x_dot):
    """The change of f when the row x moves by x_dot: the sum of all its total derivatives times the changes."""
    return total(N, lambda r: Partial(f, row.x[r]) * along[r])


def normalized_row() -> Defs:
    """One row of LayerNorm before weight and bias, a formula per step."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda r: row.x[r])
    defs[row.q[k]] = row.x[k] - row.mean
    defs[row.v] = mean(N, lambda r: row.q[r] ** 2)
    defs[row.rstd] = 1 / sqrt(row.v + eps)
    defs[row.x_hat[k]] = row.q[k] * row.rstd
    defs[row.y[k]] = row.w[k] * row.x_hat[k] + row.b[k]
    return defs


def pushed_row() -> Defs:
    """The normalized row, and the change of each of its quantities when x moves by x_dot."""
    defs = normalized_row()
    for changed, name in ((mean_dot, row.mean), (v_dot, row.v), (rstd_dot, row.rstd)):
        defs[changed] = push(name)
    for changed, name in ((q_dot, row.q), (x_hat_dot, row.x_hat), (y_dot, row.y)):
        defs[changed[k]] = push(name[k])
    defs[J[k, j]] = Partial(row.x_hat[k], row.x[j])
    return defs


def _two(f):
    return Partial(f, a) * a_dot + Partial(f, b) * b_dot


def _rules():
    x = row.x
    defs = normalized_row()
    defs[y_dot[k]] = push(row.y[k])
    claim = "The change of y to first order: the Jacobian times the change of x."
    yield definition("diff-differential", claim, defs, y_dot[k])
    yield together(
        "diff-rules",
        "The differentials of a sum, a product, a quotient, a root and a mean.",
        None,
        (_two(a + b), a_dot + b_dot),
        (_two(a * b), a_dot * b + a * b_dot),
        (_two(a / b), (a_dot - a / b * b_dot) / b),
        (Partial(sqrt(a), a) * a_dot, a_dot / (2 * sqrt(a))),
        (push(mean(N, lambda r: x[r])), mean(N, lambda r: x_dot[r])),
    )


def _projected(f, place):
    """A row without its mean and without its part along the normalized row."""
    x_hat = row.x_hat
    return (
        f[place]
        - mean(N, lambda r: f[r])
        - x_hat[place] * mean(N, lambda r: x_hat[r] * f[r])
    )


def _row_steps():
    defs, q, x_hat, rstd = pushed_row(), row.q, row.x_hat, row.rstd
    yield definition(
        "diff-row",
        "One normalized row, a formula per step.",
        normalized_row(),
        row.mean,
        row.q[k],
        row.v,
        row.rstd,
        row.x_hat[k],
    )
    yield together(
        "diff-row-steps",
        "The differential of each step, written with the one before.",
        defs,
        (mean_dot, mean(N, lambda r: x_dot[r])),
        (q_dot[k], x_dot[k] - mean_dot),
        (v_dot, mean(N, lambda r: 2 * q[r] * q_dot[r])),
        (rstd_dot, -(rstd**3 * v_dot / 2)),
        (x_hat_dot[k], q_dot[k] * rstd + q[k] * rstd_dot),
    )
    yield proved(
        "diff-row-rstd",
        "The reciprocal's differential in terms of the normalized row.",
        defs,
        rstd_dot,
        -(rstd**2 * mean(N, lambda r: x_hat[r] * q_dot[r])),
    )


def _row_whole():
    defs, x_hat, rstd = pushed_row(), row.x_hat, row.rstd
    yield proved(
        "diff-row-jvp",
        "The differential of a normalized row: two means and no matrix.",
        defs,
        x_hat_dot[k],
        rstd * _projected(x_dot, k),
    )
    yield proved(
        "diff-row-sum",
        "The same as a matrix times the change of x.",
        defs,
        x_hat_dot[k],
        total(
            N,
            lambda r: rstd * (delta(k, r) - 1 / N - x_hat[k] * x_hat[r] / N) * x_dot[r],
        ),
    )
    yield proved(
        "diff-row-jacobian",
        "The Jacobian of a normalized row, read off its differential.",
        defs,
        J[k, j],
        rstd * (delta(k, j) - 1 / N - x_hat[k] * x_hat[j] / N),
    )


def _adjoint():
    defs, rstd, w, dy, dx = pushed_row(), row.rstd, row.w, row.dy, row.dx
    defs[row.wdy[k]] = dy[k] * w[k]
    defs[dx[j]] = total(N, lambda r: dy[r] * Partial(row.y[r], row.x[j]))
    yield proved(
        "diff-jvp",
        "The JVP of LayerNorm: the change of the output for a change of the row.",
        defs,
        y_dot[k],
        w[k] * rstd * _projected(x_dot, k),
    )
    yield proved(
        "diff-vjp",
        "The VJP of LayerNorm: the cotangent of the row for a cotangent of the output.",
        defs,
        dx[j],
        rstd * _projected(row.wdy, j),
    )
    yield proved(
        "diff-adjoint",
        "Pushing the tangent forward and pulling the cotangent back give the same change of the loss.",
        defs,
        total(N, lambda r: dy[r] * y_dot[r]),
        total(N, lambda r: dx[r] * x_dot[r]),
    )


def _batch():
    defs = layer_norm_graph.forward()
    g = layer_norm_graph.g
    defs[g.rstd[i]] = 1 / g.D[i]
    defs[g.x_hat[i, j]] = g.q[i, j] * g.rstd[i]
    x_hat = g.x_hat
    yield proved(
        "diff-block-diagonal",
        "In a batch an output depends on the inputs of its own row alone.",
        defs,
        Partial(g.y[i, j], g.x[p, k]),
        delta(i, p)
        * (g.w[j] * g.rstd[i] * (delta(j, k) - 1 / N - x_hat[i, j] * x_hat[i, k] / N)),
    )
    yield together(
        "diff-block-count",
        "All entries of the Jacobian of a batch, and those within a block.",
        None,
        (over_all(lambda r, s: over_all(lambda t, u: S.One)), M**2 * N**2),
        (over_all(lambda r, s: over_all(lambda t, u: delta(r, t))), M * N**2),
    )


def equations():
    """The equations labelled diff-..."""
    for section in (_rules, _row_steps, _row_whole, _adjoint, _batch):
        yield from section()
    yield from reverse_mode.equations()
