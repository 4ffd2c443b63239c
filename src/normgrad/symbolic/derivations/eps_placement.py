"""Where eps stands: one theorem for every differentiable denominator D(s), then each placement as a case of it.

D stays an opaque function, of which nothing is used but the chain rule. The number kappa = D D'(s) / s is all that
the gradient ever learns of D.
"""

from __future__ import annotations

from sympy import S, Symbol, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..opaque import derivative, opaque
from ..registry import definition, proved, together
from ..symbols import N, eps, i, j, k
from . import family

D = opaque("D")
slope = derivative(D)

n = family.n
size, square, h, c = (Symbol(name, positive=True) for name in ("s", "v", "h", "c"))
s, kappa, rstd, average, shift = (tensor(name) for name in ("s", "kappa", "rstd", "mean", "a"))
x, z, q, r, dr, u, rest = (tensor(name, N) for name in ("x", "z", "q", "r", "dr", "u", "e"))
p, scaled_size, turned_size = tensor("p", N), tensor("t"), tensor("v")


def divided_row() -> Defs:
    """One row q, already centred or not, divided by an opaque denominator of its size s."""
    defs = Defs()
    defs[s] = sqrt(1 / n * total(N, lambda b: q[b] ** 2))
    defs[rstd] = 1 / D(s)
    defs[r[k]] = q[k] * rstd
    defs[kappa] = D(s) * slope(s) / s
    return defs


def _row_theorem():
    defs = divided_row()
    yield definition("eps-row", "A row divided by any denominator D of its size s.", defs, s, rstd, r[k], kappa)
    yield proved(
        "eps-size-slope", "How the size of a row reacts to one of its entries.", defs, Partial(s, q[j]), q[j] / (n * s)
    )
    yield proved(
        "eps-rstd-slope",
        "How the reciprocal denominator reacts to one entry: kappa is the only trace of D.",
        defs,
        Partial(rstd, q[j]),
        (-slope(s) / D(s) ** 2 * Partial(s, q[j]), "chain rule"),
        -slope(s) / D(s) ** 2 * (q[j] / (n * s)),
        -kappa / n * rstd**2 * r[j],
    )
    yield proved(
        "eps-theorem-jacobian",
        "The Jacobian of a row divided by any differentiable denominator.",
        defs,
        Partial(r[k], q[j]),
        (delta(k, j) * rstd + q[k] * Partial(rstd, q[j]), "product rule"),
        rstd * (delta(k, j) - kappa / n * r[k] * r[j]),
    )
    yield proved(
        "eps-theorem-dq",
        "The cotangent of the row, for any differentiable denominator.",
        defs,
        total(N, lambda b: dr[b] * Partial(r[b], q[j])),
        rstd * (dr[j] - kappa / n * r[j] * total(N, lambda b: r[b] * dr[b])),
    )


def _operator_theorem():
    size_i = family.s[i]
    defs = family.operator(D(size_i), D(size_i) * slope(size_i) / size_i)
    yield definition(
        "eps-theorem-denominator", "An opaque denominator and its factor.", defs, family.D[i], family.kappa[i]
    )
    for name, variable, gradient in (
        ("dx", family.x[i, j], family.dp[i, j]),
        ("dw", family.w[j], family.dw[j]),
        ("db", family.b[j], family.db[j]),
    ):
        yield proved(
            f"eps-theorem-{name}",
            f"The operator's {name} for any differentiable denominator, centring, reduction and scale.",
            defs,
            Partial(family.loss, variable),
            gradient,
        )


def _kappa(below):
    """The factor of a denominator, with its derivative still to be taken."""
    return 1 / size * below * Partial(below, size)


def _factors():
    yield proved(
        "eps-kappa-square",
        "kappa is the derivative of D squared with respect to s squared, here called v.",
        None,
        Partial(D(sqrt(square)) ** 2, square),
        D(sqrt(square)) * slope(sqrt(square)) / sqrt(square),
    )
    places = sqrt(size**2 + eps), sqrt(size**2 + eps**2), size + eps
    yield together(
        "eps-kappa",
        "kappa for the denominators in use that depend on s.",
        None,
        (_kappa(size), S.One),
        (_kappa(places[0]), S.One),
        (_kappa(places[1]), S.One),
        (_kappa(places[2]), 1 + eps / size),
    )
    yield together(
        "eps-kappa-floor",
        "kappa of a floor that s does not reach is 0, with eps or its root as the floor.",
        None,
        (_kappa(eps), S.Zero),
        (_kappa(sqrt(eps)), S.Zero),
    )


def _ratio(below):
    """The gain along a row over the gain across it, with the denominator's derivative still to be taken."""
    return 1 - size / below * Partial(below, size)


def _gains():
    defs = divided_row()
    defs[rest[k]] = u[k] - q[k] / (n * s**2) * total(N, lambda b: q[b] * u[b])
    yield proved(
        "eps-gain-along",
        "Along the row the Jacobian multiplies by the slope of s / D(s).",
        defs,
        total(N, lambda b: Partial(r[k], q[b]) * q[b]),
        (rstd - s * slope(s) * rstd**2) * q[k],
    )
    yield proved(
        "eps-profile",
        "The slope of s / D(s): how fast the size of the output grows with the size of the row.",
        None,
        Partial(size / D(size), size),
        1 / D(size) - size * slope(size) * (1 / D(size)) ** 2,
    )
    yield definition("eps-across", "Any direction u without its part along the row.", defs, rest[k])
    yield proved(
        "eps-gain-across",
        "A direction without its part along the row is multiplied by rstd.",
        defs,
        total(N, lambda b: Partial(r[k], q[b]) * rest[b]),
        rstd * rest[k],
    )
    yield together(
        "eps-gain-ratio",
        "The gain along the row over the gain across it.",
        None,
        (_ratio(size), S.Zero),
        (_ratio(sqrt(size**2 + eps)), eps / (size**2 + eps)),
        (_ratio(size + eps), eps / (size + eps)),
    )


def nudged_row() -> Defs:
    """A row that is constant but for h u: its normalized row z, and the centred u with its size."""
    defs = Defs()
    defs[x[k]] = shift + h * u[k]
    defs[average] = mean(N, lambda b: x[b])
    defs[z[k]] = (x[k] - average) / D(sqrt(mean(N, lambda b: (x[b] - average) ** 2)))
    defs[q[k]] = u[k] - mean(N, lambda b: u[b])
    defs[s] = sqrt(mean(N, lambda b: q[b] ** 2))
    return defs


def _flat():
    defs = nudged_row()
    yield definition(
        "eps-nudge", "A constant row a, moved by h > 0 towards u, and normalized.", defs, x[k], average, z[k], q[k], s
    )
    yield proved(
        "eps-quotient",
        "The difference quotient at a constant row, where the output itself is 0.",
        defs,
        z[k] / h,
        q[k] / D(h * s),
    )


def scaled_rows() -> Defs:
    """A centred row q of size s, the centred row p of c x with its size t, and the centred row e of -x, of size v."""
    defs = Defs()
    defs[q[k]] = x[k] - mean(N, lambda b: x[b])
    defs[s] = sqrt(mean(N, lambda b: q[b] ** 2))
    defs[p[k]] = c * x[k] - mean(N, lambda b: c * x[b])
    defs[scaled_size] = sqrt(mean(N, lambda b: p[b] ** 2))
    defs[rest[k]] = -x[k] - mean(N, lambda b: -x[b])
    defs[turned_size] = sqrt(mean(N, lambda b: rest[b] ** 2))
    return defs


def _scaled():
    defs, large = scaled_rows(), scaled_size
    yield definition(
        "eps-scaled-row",
        "A row, c > 0 times the row, and the row with its sign turned.",
        defs,
        q[k],
        s,
        p[k],
        large,
        rest[k],
        turned_size,
    )
    yield together(
        "eps-scale",
        "A positive factor c does nothing without eps, what eps / c^2 does inside the root, and eps / c outside it.",
        defs,
        (p[k] / large, q[k] / s),
        (p[k] / sqrt(large**2 + eps), q[k] / sqrt(s**2 + eps / c**2)),
        (p[k] / (large + eps), q[k] / (s + eps / c)),
    )
    yield proved(
        "eps-odd",
        "Turning the sign of the row turns the sign of the output, for any denominator.",
        defs,
        rest[k] / D(turned_size),
        -q[k] / D(s),
    )


def _sum_and_mean():
    squares = total(N, lambda b: q[b] ** 2)
    yield together(
        "eps-sum-mean",
        "An eps on the mean is N times as large on the sum; outside the root, sqrt(N) times.",
        None,
        (sqrt(N) * (q[k] / sqrt(squares + N * eps)), q[k] / sqrt(1 / N * squares + eps)),
        (sqrt(N) * (q[k] / (sqrt(squares) + sqrt(N) * eps)), q[k] / (sqrt(1 / N * squares) + eps)),
    )


def equations():
    """The equations labelled eps-..."""
    for section in (_row_theorem, _operator_theorem, _factors, _gains, _flat, _scaled, _sum_and_mean):
        yield from section()
