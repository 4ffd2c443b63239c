"""LayerNorm, as projections: subtract the mean, then remove the part along the normalized row; eps is kept.

Source: 000_0e2bb4a165a62f6c.txt, which has no eps; its lines for a row divided by its norm are in `l2_norm`.
"""

from __future__ import annotations

from sympy import S, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import N, alphabet, eps, j, k
from .l2_norm import norm, r

row = alphabet()
C, J = tensor("C", N, N), tensor("J", N, N)
dq, p, z, x_dot = (tensor(name, N) for name in ("dq", "p", "z", "x_dot"))


def scaled_row() -> Defs:
    """A row divided by its root mean square with eps, the row q itself being the input."""
    defs = Defs()
    defs[row.rstd] = 1 / sqrt(mean(N, lambda s: row.q[s] ** 2) + eps)
    defs[z[k]] = row.q[k] * row.rstd
    return defs


def layer_norm_row() -> Defs:
    """One row of LayerNorm, the centring matrix C, and the Jacobian J of the normalized row."""
    defs = Defs()
    defs[C[k, j]] = delta(k, j) - 1 / N
    defs[row.q[k]] = total(N, lambda s: C[k, s] * row.x[s])
    defs[row.rstd] = 1 / sqrt(mean(N, lambda s: row.q[s] ** 2) + eps)
    defs[row.x_hat[k]] = row.q[k] * row.rstd
    defs[J[k, j]] = Partial(row.x_hat[k], row.x[j])
    return defs


def _centring():
    defs, x = layer_norm_row(), row.x
    yield definition("ln-proj-centring", "The centring matrix.", defs, C[k, j])
    yield together(
        "ln-proj-centring-facts",
        "C subtracts the mean: a symmetric projector of rank N - 1 that maps constant rows to 0.",
        defs,
        (total(N, lambda s: C[k, s] * x[s]), x[k] - mean(N, lambda s: x[s])),
        (total(N, lambda s: C[k, s] * C[s, j]), C[k, j]),
        (C[k, j], C[j, k]),
        (total(N, lambda s: C[k, s]), S.Zero),
        (total(N, lambda s: C[s, s]), N - 1),
    )
    yield proved(
        "ln-proj-dp",
        "Centring is its own adjoint: the cotangent is centred.",
        None,
        total(N, lambda s: dq[s] * Partial(p[s] - mean(N, lambda t: p[t]), p[k])),
        dq[k] - mean(N, lambda s: dq[s]),
    )


def _scaling():
    defs, q, rstd = scaled_row(), row.q, row.rstd
    yield definition(
        "ln-proj-scaled",
        "A row divided by its root mean square with eps.",
        defs,
        rstd,
        z[k],
    )
    yield proved(
        "ln-proj-scaled-jacobian",
        "With eps the division keeps its form; the matrix is a projector only for eps = 0.",
        defs,
        Partial(z[k], q[j]),
        rstd * (delta(k, j) - z[k] * z[j] / N),
    )


def _jacobian():
    defs, x_hat, rstd = layer_norm_row(), row.x_hat, row.rstd
    yield proved(
        "ln-proj-jacobian",
        "The Jacobian of LayerNorm: the division's matrix times the centring matrix.",
        defs,
        J[k, j],
        rstd * (C[k, j] - x_hat[k] * x_hat[j] / N),
    )
    yield proved(
        "ln-proj-symmetric", "The Jacobian is symmetric.", defs, J[k, j], J[j, k]
    )


def _properties():
    defs, x, x_hat, rstd = layer_norm_row(), row.x, row.x_hat, row.rstd
    yield together(
        "ln-proj-null",
        "A constant shift of the row changes nothing, and the derivatives of the outputs add up to 0.",
        defs,
        (total(N, lambda s: J[k, s]), S.Zero),
        (total(N, lambda s: J[s, k]), S.Zero),
    )
    yield proved(
        "ln-proj-scale-direction",
        "Along the row itself the derivative has the factor eps.",
        defs,
        total(N, lambda s: J[k, s] * x[s]),
        eps * rstd**2 * x_hat[k],
    )
    yield proved(
        "ln-proj-across",
        "J / rstd takes two means from a direction, and leaves alone what is across (1, ..., 1) and x_hat.",
        defs,
        total(N, lambda s: J[k, s] / rstd * x_dot[s]),
        x_dot[k]
        - mean(N, lambda s: x_dot[s])
        - x_hat[k] * mean(N, lambda s: x_hat[s] * x_dot[s]),
    )
    yield proved(
        "ln-proj-almost-projector",
        "J / rstd is a projector up to a term with the factor eps.",
        defs,
        total(N, lambda s: J[k, s] / rstd * (J[s, j] / rstd)),
        J[k, j] / rstd - eps * rstd**2 * (x_hat[k] * x_hat[j] / N),
    )
    yield proved(
        "ln-proj-trace",
        "The trace of J / rstd: the two removed directions are missing, the second one only up to eps.",
        defs,
        total(N, lambda s: J[s, s] / rstd),
        N - 2 + eps * rstd**2,
    )


def _one_pass():
    defs, x, x_hat, rstd = layer_norm_row(), row.x, row.x_hat, row.rstd
    dy, w = row.dy, row.w
    yield proved(
        "ln-proj-dx",
        "The two steps in one pass: the means of wdy and of x_hat wdy are all that is needed, with wdy = w dy.",
        defs,
        Partial(total(N, lambda s: dy[s] * w[s] * x_hat[s]), x[j]),
        rstd
        * (
            dy[j] * w[j]
            - mean(N, lambda s: dy[s] * w[s])
            - x_hat[j] * (1 / N) * total(N, lambda s: x_hat[s] * dy[s] * w[s])
        ),
        wide=True,
    )
    yield proved(
        "ln-proj-from-norm",
        "Without eps the normalized row is sqrt(N) times the centred row over its norm.",
        _without_eps(),
        x_hat[k],
        sqrt(N) * r[k],
    )


def _without_eps():
    defs = Defs()
    defs[row.q[k]] = row.x[k] - mean(N, lambda s: row.x[s])
    defs[norm] = sqrt(total(N, lambda s: row.q[s] ** 2))
    defs[r[k]] = row.q[k] / norm
    defs[row.x_hat[k]] = row.q[k] / sqrt(mean(N, lambda s: row.q[s] ** 2))
    return defs


def equations():
    """The equations labelled ln-proj-..."""
    for section in (_centring, _scaling, _jacobian, _properties, _one_pass):
        yield from section()
