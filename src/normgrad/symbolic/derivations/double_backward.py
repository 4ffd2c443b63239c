"""LayerNorm's backward, differentiated: what reaches x, dy and w when dx, dw and db have cotangents of their own."""

from __future__ import annotations

from sympy import S

from ..definitions import Defs
from ..notation import Partial, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, i, j, over_all
from .layer_norm_theorem import n, with_gradients

ddx, ddq, ddw, ddb = (
    tensor("ddx", M, N),
    tensor("ddq", M, N),
    tensor("ddw", N),
    tensor("ddb", N),
)
L1, L2, L3 = tensor("L1"), tensor("L2"), tensor("L3")
e1, cov = tensor("e1", M), tensor("cov", M)
dmean, drstd = n.dmean, tensor("drstd", M)
y_dot = tensor("y_dot", M, N)


def backward_layer() -> Defs:
    """LayerNorm, its gradients as definitions, and losses made of the gradients, which give them cotangents."""
    defs = with_gradients()
    defs[L1] = over_all(lambda r, s: ddx[r, s] * n.dx[r, s])
    defs[L2] = total(N, lambda s: ddw[s] * n.dw[s]) + total(
        N, lambda s: ddb[s] * n.db[s]
    )
    defs[L3] = total(M, lambda r: dmean[r] * n.mean[r]) + total(
        M, lambda r: drstd[r] * n.rstd[r]
    )
    defs[e1[i]] = mean(N, lambda r: n.x_hat[i, r] * ddx[i, r])
    defs[ddq[i, j]] = ddx[i, j] - mean(N, lambda r: ddx[i, r])
    defs[cov[i]] = mean(N, lambda r: n.wdy[i, r] * ddq[i, r])
    return defs


def dx_dot(coefficient=3):
    """What L1 passes to x; the coefficient is there to be changed, so that the proof can be seen to refuse."""
    curved = n.x_hat[i, j] * (cov[i] - coefficient * n.c1[i] * e1[i])
    return -(n.rstd[i] ** 2) * (
        n.c1[i] * ddq[i, j] + e1[i] * (n.wdy[i, j] - n.c2[i]) + curved
    )


def pushed(r, s):
    """The tangent of the normalized entry x_hat[r, s] along ddx."""
    return n.rstd[r] * (ddq[r, s] - n.x_hat[r, s] * e1[r])


def _input():
    defs = backward_layer()
    yield definition(
        "twice-loss",
        "A loss made of dx alone: its cotangent is ddx, held constant.",
        defs,
        L1,
    )
    yield definition(
        "twice-names",
        "The cotangent of dx without its mean, and two means.",
        defs,
        ddq[i, j],
        e1[i],
        cov[i],
    )
    yield proved(
        "twice-dx",
        "What the backward passes to x when dx has the cotangent ddx.",
        defs,
        Partial(L1, n.x[i, j]),
        dx_dot(),
    )
    yield proved(
        "twice-dy",
        "What the backward passes to dy when dx has the cotangent ddx: the tangent of y along ddx.",
        defs,
        Partial(L1, n.dy[i, j]),
        n.w[j] * pushed(i, j),
    )
    yield proved(
        "twice-dw",
        "What the backward passes to the weight when dx has the cotangent ddx.",
        defs,
        Partial(L1, n.w[j]),
        total(M, lambda r: n.dy[r, j] * pushed(r, j)),
    )


def _parameters():
    defs = backward_layer()
    yield definition(
        "twice-parameters",
        "The same for the cotangents ddw and ddb of dw and db.",
        defs,
        L2,
    )
    yield together(
        "twice-parameters-grad",
        "What the backward passes on when dw and db have cotangents: LayerNorm again, with ddw for w and ddb for b.",
        defs,
        (
            Partial(L2, n.x[i, j]),
            n.rstd[i]
            * (
                ddw[j] * n.dy[i, j]
                - mean(N, lambda r: ddw[r] * n.dy[i, r])
                - n.x_hat[i, j]
                * mean(N, lambda r: n.x_hat[i, r] * (ddw[r] * n.dy[i, r]))
            ),
        ),
        (Partial(L2, n.dy[i, j]), ddw[j] * n.x_hat[i, j] + ddb[j]),
        (Partial(L2, n.w[j]), S.Zero),
    )


def _pairing():
    defs = backward_layer()
    x_part = total(N, lambda s: Partial(n.y[i, j], n.x[i, s]) * ddx[i, s])
    w_part = total(N, lambda s: Partial(n.y[i, j], n.w[s]) * ddw[s])
    defs[y_dot[i, j]] = (
        x_part + w_part + total(N, lambda s: Partial(n.y[i, j], n.b[s]) * ddb[s])
    )
    yield definition(
        "twice-tangent",
        "The tangent of y for the tangents ddx, ddw, ddb.",
        defs,
        y_dot[i, j],
    )
    yield proved(
        "twice-pairing",
        "Pairing the gradients with ddx, ddw, ddb is pairing dy with the tangent of y along them.",
        defs,
        L1 + L2,
        over_all(lambda r, s: n.dy[r, s] * y_dot[r, s]),
    )


def _statistics():
    defs = backward_layer()
    yield definition(
        "twice-statistics",
        "Mean and rstd as outputs, with cotangents of their own.",
        defs,
        L3,
    )
    yield proved(
        "twice-statistics-dx",
        "What the cotangents of mean and rstd add to dx.",
        defs,
        Partial(L3, n.x[i, j]),
        1 / N * (dmean[i] - drstd[i] * n.rstd[i] ** 2 * n.x_hat[i, j]),
    )


def equations():
    """The equations labelled twice-..."""
    for section in (_input, _parameters, _pairing, _statistics):
        yield from section()
