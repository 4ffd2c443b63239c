"""Chapter "L2 normalization": a row divided by its norm, whose derivative is a projection divided by the norm.

The steps stand in the chapter's cells; here are both ends. Source: 000_0e2bb4a165a62f6c.txt, whose lines the cells of
`l2-jacobian` and `l2-dq` follow in their order; the source has no eps.
"""

from __future__ import annotations

from sympy import S, Symbol, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, tensor, total
from ..registry import definition, proved, together
from ..symbols import N, alphabet, j, k

row = alphabet()
q, dq = row.q, row.dq
norm, r, dr = Symbol("s", real=True), tensor("r", N), tensor("dr", N)
Pi, J = tensor("Pi", N, N), tensor("J", N, N)
alpha = Symbol("alpha", positive=True)
q1, q2, q_dot = (tensor(name, N) for name in ("q1", "q2", "q_dot"))


def inner(f, g):
    """The sum of the products of two rows."""
    return total(N, lambda t: f[t] * g[t])


def squares(f):
    """The sum of the squares of a row."""
    return total(N, lambda t: f[t] ** 2)


def l2_row() -> Defs:
    """A row divided by its norm, the Jacobian J, the projector Pi, and the gradient dq of a loss with cotangent dr."""
    defs = Defs()
    defs[norm] = sqrt(squares(q))
    defs[r[k]] = q[k] / norm
    defs[J[k, j]] = Partial(r[k], q[j])
    defs[Pi[k, j]] = delta(k, j) - r[k] * r[j]
    defs[row.L] = inner(dr, r)
    defs[dq[j]] = Partial(row.L, q[j])
    return defs


def _forward():
    defs = l2_row()
    yield definition("l2-forward", "A row divided by its norm.", defs, norm, r[k])
    yield proved("l2-unit", "A normalized row has length 1.", defs, squares(r), S.One)
    yield proved(
        "l2-partial-norm",
        "The norm grows along the row: its gradient is the normalized row.",
        defs,
        Partial(norm, q[j]),
        r[j],
    )
    yield proved(
        "l2-jacobian",
        "The Jacobian of a row divided by its norm removes the direction of the row and divides by the norm.",
        defs,
        J[k, j],
        1 / norm * (delta(k, j) - r[k] * r[j]),
    )


def _projector():
    defs = l2_row()
    yield definition("l2-p", "The matrix I - r r^T.", defs, Pi[k, j])
    yield together(
        "l2-projector",
        "I - r r^T is a symmetric projector of trace N - 1 that removes the direction of r.",
        defs,
        (total(N, lambda t: Pi[k, t] * Pi[t, j]), Pi[k, j]),
        (Pi[k, j], Pi[j, k]),
        (total(N, lambda t: Pi[k, t] * r[t]), S.Zero),
        (total(N, lambda t: Pi[t, t]), N - 1),
    )
    yield together(
        "l2-null",
        "The row itself moves nothing, and no movement of the output is along the output.",
        defs,
        (total(N, lambda t: J[k, t] * q[t]), S.Zero),
        (total(N, lambda t: r[t] * J[t, j]), S.Zero),
    )
    yield proved(
        "l2-across",
        "What is left of any direction without its part along r is divided by the norm.",
        defs,
        total(N, lambda t: J[k, t] * (q_dot[t] - r[t] * inner(r, q_dot))),
        1 / norm * (q_dot[k] - r[k] * inner(r, q_dot)),
    )
    yield proved(
        "l2-hessian",
        "The Jacobian is a matrix of second derivatives of the norm, hence symmetric.",
        defs,
        J[k, j],
        J[j, k],
    )


def _gradient():
    defs = l2_row()
    yield definition(
        "l2-loss", "A loss that has dr as its cotangent, dr held constant.", defs, row.L
    )
    yield proved(
        "l2-dq",
        "The gradient of the row: the cotangent without its part along r, over the norm.",
        defs,
        dq[j],
        1 / norm * (dr[j] - r[j] * inner(r, dr)),
    )
    yield proved(
        "l2-orthogonal",
        "The gradient is orthogonal to the row.",
        defs,
        inner(r, dq),
        S.Zero,
    )
    yield proved(
        "l2-length",
        "The length of the gradient: what the projection leaves of the cotangent, over the norm.",
        defs,
        squares(dq),
        1 / norm**2 * (squares(dr) - inner(r, dr) ** 2),
    )


def _normalized(f):
    return f[k] / sqrt(squares(f))


def _jacobian_at(f):
    return 1 / sqrt(squares(f)) * (delta(k, j) - f[k] * f[j] / squares(f))


def _homogeneity():
    defs = l2_row()
    defs[q1[k]], defs[q2[k]] = alpha * q[k], -alpha * q[k]
    yield definition(
        "l2-scaled-rows",
        "A row times a positive and a negative number.",
        defs,
        q1[k],
        q2[k],
    )
    yield together(
        "l2-scale",
        "A positive factor changes nothing, a negative one turns the sign.",
        defs,
        (_normalized(q1), r[k]),
        (_normalized(q2), -r[k]),
    )
    yield together(
        "l2-jacobian-scale",
        "At a row that is longer by a factor the Jacobian is smaller by it, whatever the sign.",
        defs,
        (_jacobian_at(q1), 1 / alpha * J[k, j]),
        (_jacobian_at(q2), 1 / alpha * J[k, j]),
    )
    yield together(
        "l2-euler",
        "Euler's identities: r is homogeneous of degree 0, its Jacobian of degree -1.",
        defs,
        (total(N, lambda t: q[t] * Partial(r[k], q[t])), S.Zero),
        (total(N, lambda t: q[t] * Partial(J[k, j], q[t])), -J[k, j]),
    )


def equations():
    """The equations labelled l2-..."""
    for section in (_forward, _projector, _gradient, _homogeneity):
        yield from section()
