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
size, square, h, alpha = (
    Symbol(name, positive=True) for name in ("s", "v", "h", "alpha")
)
s, kappa, rstd, average, m = (
    tensor(name) for name in ("s", "kappa", "rstd", "mean", "m")
)
x, z, q, r, wdy, x_dot, q_dot = (
    tensor(name, N) for name in ("x", "z", "q", "r", "wdy", "x_dot", "q_dot")
)
q1, q2, across, s1, s2 = (
    *(tensor(name, N) for name in ("q1", "q2", "across")),
    tensor("s1"),
    tensor("s2"),
)


def divided_row() -> Defs:
    """One row q, already centred or not, divided by an opaque denominator of its size s."""
    defs = Defs()
    defs[s] = sqrt(1 / n * total(N, lambda t: q[t] ** 2))
    defs[rstd] = 1 / D(s)
    defs[r[k]] = q[k] * rstd
    defs[kappa] = D(s) * slope(s) / s
    return defs


def _row_theorem():
    defs = divided_row()
    yield definition(
        "eps-row",
        "A row divided by any denominator D of its size s.",
        defs,
        s,
        rstd,
        r[k],
        kappa,
    )
    yield proved(
        "eps-size-slope",
        "How the size of a row reacts to one of its entries.",
        defs,
        Partial(s, q[j]),
        q[j] / (n * s),
    )
    yield proved(
        "eps-rstd-slope",
        "How the reciprocal denominator reacts to one entry: kappa is the only trace of D.",
        defs,
        Partial(rstd, q[j]),
        -kappa / n * rstd**2 * r[j],
    )
    yield proved(
        "eps-theorem-jacobian",
        "The Jacobian of a row divided by any differentiable denominator.",
        defs,
        Partial(r[k], q[j]),
        rstd * (delta(k, j) - kappa / n * r[k] * r[j]),
    )
    yield proved(
        "eps-theorem-dq",
        "The cotangent of the row, for any differentiable denominator.",
        defs,
        total(N, lambda t: wdy[t] * Partial(r[t], q[j])),
        rstd * (wdy[j] - kappa / n * r[j] * total(N, lambda t: r[t] * wdy[t])),
    )


def _operator_theorem():
    size_i = family.s[i]
    defs = family.operator(D(size_i), D(size_i) * slope(size_i) / size_i)
    yield definition(
        "eps-theorem-denominator",
        "An opaque denominator and its factor.",
        defs,
        family.D[i],
        family.kappa[i],
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
    return below / size * Partial(below, size)


def _factors():
    yield proved(
        "eps-kappa-square",
        "kappa is the derivative of D squared with respect to s squared, which is v.",
        None,
        Partial(D(sqrt(square)) ** 2, square),
        D(sqrt(square)) * slope(sqrt(square)) / sqrt(square),
    )
    yield together(
        "eps-kappa",
        "kappa for no eps, inside, outside, and for a floor that s does not reach.",
        None,
        (_kappa(size), S.One),
        (_kappa(sqrt(size**2 + eps)), S.One),
        (_kappa(size + eps), 1 + eps / size),
        (_kappa(eps), S.Zero),
    )
    yield together(
        "eps-kappa-floor",
        "kappa with eps squared inside the root, and with a floor under the variance that it does not reach.",
        None,
        (_kappa(sqrt(size**2 + eps**2)), S.One),
        (_kappa(sqrt(eps)), S.Zero),
    )


def _ratio(below):
    """The gain along a row over the gain across it, with the denominator's derivative still to be taken."""
    return 1 - size / below * Partial(below, size)


def _gains():
    defs = divided_row()
    defs[across[k]] = q_dot[k] - q[k] / (n * s**2) * total(N, lambda t: q[t] * q_dot[t])
    yield proved(
        "eps-gain-along",
        "Along the row the Jacobian multiplies by the slope of s / D(s).",
        defs,
        total(N, lambda t: Partial(r[k], q[t]) * q[t]),
        (rstd - s * slope(s) * rstd**2) * q[k],
    )
    yield proved(
        "eps-profile",
        "The slope of s / D(s): how fast the size of the output grows with the size of the row.",
        None,
        Partial(size / D(size), size),
        1 / D(size) - size * slope(size) * (1 / D(size)) ** 2,
    )
    yield definition(
        "eps-across", "Any direction without its part along the row.", defs, across[k]
    )
    yield proved(
        "eps-gain-across",
        "A direction without its part along the row is multiplied by rstd.",
        defs,
        total(N, lambda t: Partial(r[k], q[t]) * across[t]),
        rstd * across[k],
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
    """A constant row m and a step h from it: the normalized row z, and the direction, centred, with its size."""
    defs = Defs()
    defs[x[k]] = m + h * x_dot[k]
    defs[average] = mean(N, lambda t: x[t])
    defs[z[k]] = (x[k] - average) / D(sqrt(mean(N, lambda t: (x[t] - average) ** 2)))
    defs[q_dot[k]] = x_dot[k] - mean(N, lambda t: x_dot[t])
    defs[s1] = sqrt(mean(N, lambda t: q_dot[t] ** 2))
    return defs


def _flat():
    defs = nudged_row()
    yield definition(
        "eps-nudge",
        "A constant row m, moved by h > 0, and normalized.",
        defs,
        x[k],
        average,
        z[k],
        q_dot[k],
        s1,
    )
    yield proved(
        "eps-quotient",
        "The difference quotient at a constant row, where the output itself is 0.",
        defs,
        z[k] / h,
        q_dot[k] / D(h * s1),
    )


def scaled_rows() -> Defs:
    """A centred row q of size s, that of alpha x with its size, q1 and s1, and that of -x, q2 and s2."""
    defs = Defs()
    defs[q[k]] = x[k] - mean(N, lambda t: x[t])
    defs[s] = sqrt(mean(N, lambda t: q[t] ** 2))
    defs[q1[k]] = alpha * x[k] - mean(N, lambda t: alpha * x[t])
    defs[s1] = sqrt(mean(N, lambda t: q1[t] ** 2))
    defs[q2[k]] = -x[k] - mean(N, lambda t: -x[t])
    defs[s2] = sqrt(mean(N, lambda t: q2[t] ** 2))
    return defs


def _scaled():
    defs = scaled_rows()
    yield definition(
        "eps-scaled-row",
        "A row, alpha > 0 times the row, and the row with its sign turned.",
        defs,
        q[k],
        s,
        q1[k],
        s1,
        q2[k],
        s2,
    )
    yield together(
        "eps-scale",
        "A factor alpha > 0 does what eps / alpha^2 does inside the root, eps / alpha outside it, nothing without eps.",
        defs,
        (q1[k] / s1, q[k] / s),
        (q1[k] / sqrt(s1**2 + eps), q[k] / sqrt(s**2 + eps / alpha**2)),
        (q1[k] / (s1 + eps), q[k] / (s + eps / alpha)),
    )
    yield proved(
        "eps-odd",
        "Turning the sign of the row turns the sign of the output, for any denominator.",
        defs,
        q2[k] / D(s2),
        -q[k] / D(s),
    )


def _sum_and_mean():
    squares = total(N, lambda t: q[t] ** 2)
    yield together(
        "eps-sum-mean",
        "An eps on the mean is N times as large on the sum; outside the root, sqrt(N) times.",
        None,
        (
            sqrt(N) * (q[k] / sqrt(squares + N * eps)),
            q[k] / sqrt(1 / N * squares + eps),
        ),
        (
            sqrt(N) * (q[k] / (sqrt(squares) + sqrt(N) * eps)),
            q[k] / (sqrt(1 / N * squares) + eps),
        ),
    )


def equations():
    """The equations labelled eps-..."""
    for section in (
        _row_theorem,
        _operator_theorem,
        _factors,
        _gains,
        _flat,
        _scaled,
        _sum_and_mean,
    ):
        yield from section()
