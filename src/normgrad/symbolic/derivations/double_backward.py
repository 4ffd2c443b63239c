"""LayerNorm's backward, differentiated: what reaches x, dy and w when dx, dw and db have cotangents of their own."""

from __future__ import annotations

from sympy import S

from ..definitions import Defs
from ..notation import Partial, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, i, j, over_all
from .layer_norm_theorem import n, with_gradients

u, udy = tensor("u", M, N), tensor("udy", M, N)
uw, ub = tensor("uw", N), tensor("ub", N)
P, Q, R = tensor("P"), tensor("Q"), tensor("R")
a, g, e1, cov = tensor("a", M, N), tensor("g", M, N), tensor("e1", M), tensor("cov", M)
dmean, drstd = n.dmean, tensor("drstd", M)
y_dot = tensor("y_dot", M, N)


def backward_layer() -> Defs:
    """LayerNorm, its gradients as definitions, and the pairings of the gradients with cotangents of their own."""
    defs = with_gradients()
    defs[P] = over_all(lambda r, s: u[r, s] * n.dx[r, s])
    defs[Q] = total(N, lambda s: uw[s] * n.dw[s]) + total(N, lambda s: ub[s] * n.db[s])
    defs[R] = total(M, lambda r: dmean[r] * n.mean[r]) + total(M, lambda r: drstd[r] * n.rstd[r])
    defs[e1[i]] = mean(N, lambda r: n.x_hat[i, r] * u[i, r])
    defs[a[i, j]] = n.wdy[i, j] - n.c2[i]
    defs[g[i, j]] = u[i, j] - mean(N, lambda r: u[i, r])
    defs[cov[i]] = mean(N, lambda r: a[i, r] * g[i, r])
    defs[udy[i, j]] = n.dy[i, j] * uw[j]
    return defs


def dx_dot(coefficient=3):
    """What P passes to x; the coefficient is there to be changed, so that the proof can be seen to refuse."""
    curved = n.x_hat[i, j] * (cov[i] - coefficient * n.c1[i] * e1[i])
    return -(n.rstd[i] ** 2) * (n.c1[i] * g[i, j] + e1[i] * a[i, j] + curved)


def pushed(r, s):
    """The tangent of the normalized entry x_hat[r, s] along u."""
    return n.rstd[r] * (g[r, s] - n.x_hat[r, s] * e1[r])


def _input():
    defs = backward_layer()
    yield definition("twice-loss", "A function of dx alone that has u as dx's cotangent, u held constant.", defs, P)
    yield definition(
        "twice-names", "wdy and u without their means, and two means.", defs, a[i, j], g[i, j], e1[i], cov[i]
    )
    yield proved(
        "twice-dx", "What the backward passes to x when dx has the cotangent u.", defs, Partial(P, n.x[i, j]), dx_dot()
    )
    yield proved(
        "twice-dy",
        "What the backward passes to dy when dx has the cotangent u: the tangent of y along u.",
        defs,
        Partial(P, n.dy[i, j]),
        (total(N, lambda s: Partial(n.y[i, j], n.x[i, s]) * u[i, s]), "the derivative of y along u"),
        n.w[j] * pushed(i, j),
    )
    yield proved(
        "twice-dw",
        "What the backward passes to the weight when dx has the cotangent u.",
        defs,
        Partial(P, n.w[j]),
        total(M, lambda r: n.dy[r, j] * pushed(r, j)),
    )


def _parameters():
    defs = backward_layer()
    yield definition("twice-parameters", "The same for the cotangents uw and ub of dw and db.", defs, Q, udy[i, j])
    yield together(
        "twice-parameters-grad",
        "What the backward passes on when dw and db have cotangents: LayerNorm once more, with uw for w and ub for b.",
        defs,
        (
            Partial(Q, n.x[i, j]),
            n.rstd[i]
            * (
                udy[i, j]
                - mean(N, lambda r: udy[i, r])
                - n.x_hat[i, j] * (1 / N) * total(N, lambda r: n.x_hat[i, r] * udy[i, r])
            ),
        ),
        (Partial(Q, n.dy[i, j]), uw[j] * n.x_hat[i, j] + ub[j]),
        (Partial(Q, n.w[j]), S.Zero),
    )


def _pairing():
    defs = backward_layer()
    x_part = total(N, lambda s: Partial(n.y[i, j], n.x[i, s]) * u[i, s])
    w_part = total(N, lambda s: Partial(n.y[i, j], n.w[s]) * uw[s])
    defs[y_dot[i, j]] = x_part + w_part + total(N, lambda s: Partial(n.y[i, j], n.b[s]) * ub[s])
    yield definition("twice-tangent", "The tangent of y for the tangents u, uw, ub.", defs, y_dot[i, j])
    yield proved(
        "twice-pairing",
        "Pairing the gradients with u, uw, ub is pairing dy with the tangent of y along them.",
        defs,
        P + Q,
        over_all(lambda r, s: n.dy[r, s] * y_dot[r, s]),
    )


def _statistics():
    defs = backward_layer()
    yield definition("twice-statistics", "Mean and rstd as outputs, with cotangents of their own.", defs, R)
    yield proved(
        "twice-statistics-dx",
        "What the cotangents of mean and rstd add to dx.",
        defs,
        Partial(R, n.x[i, j]),
        1 / N * (dmean[i] - drstd[i] * n.rstd[i] ** 2 * n.x_hat[i, j]),
    )


def equations():
    """The equations labelled twice-..."""
    for section in (_input, _parameters, _pairing, _statistics):
        yield from section()
