"""LayerNorm, entry by entry: what its pages derive, the Jacobian of one row and its contraction.

Source: 001_535f2afd34b1feba.txt puts eps beside the standard deviation (sigma + eps); torch puts it inside the root.
"""

from __future__ import annotations

from sympy import S, sqrt

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import N, alphabet, eps, j, k

row = alphabet()
sigma, z = tensor("sigma"), tensor("z", N)
scale, shift = tensor("w"), tensor("b")


def eps_outside() -> Defs:
    """One row, z = (x - mean) / (sigma + eps), and y with one number as weight and one as bias."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda r: row.x[r])
    defs[sigma] = sqrt(mean(N, lambda r: (row.x[r] - row.mean) ** 2))
    defs[z[k]] = (row.x[k] - row.mean) / (sigma + eps)
    defs[row.y[k]] = scale * z[k] + shift
    return defs


def eps_inside() -> Defs:
    """One row of LayerNorm as torch defines it, and the names of its backward pass."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda r: row.x[r])
    defs[row.v] = mean(N, lambda r: (row.x[r] - row.mean) ** 2)
    defs[row.rstd] = 1 / sqrt(row.v + eps)
    defs[row.x_hat[k]] = (row.x[k] - row.mean) * row.rstd
    defs[row.y[k]] = row.w[k] * row.x_hat[k] + row.b[k]
    defs[row.wdy[k]] = row.dy[k] * row.w[k]
    defs[row.c1] = mean(N, lambda r: row.x_hat[r] * row.wdy[r])
    defs[row.c2] = mean(N, lambda r: row.wdy[r])
    return defs


def _inside():
    defs, x, x_hat, rstd, wdy = eps_inside(), row.x, row.x_hat, row.rstd, row.wdy
    average = row.mean
    yield proved(
        "ln-entry-mean",
        "Every entry contributes 1/N to the mean.",
        defs,
        Partial(average, x[j]),
        1 / N,
    )
    yield proved(
        "ln-entry-deviations",
        "The deviations from the mean add up to 0.",
        defs,
        total(N, lambda r: x[r] - average),
        S.Zero,
    )
    yield proved(
        "ln-entry-rstd",
        "The derivative of the reciprocal standard deviation.",
        defs,
        Partial(rstd, x[j]),
        -(rstd**2 * x_hat[j]) / N,
    )
    yield proved(
        "ln-entry-jacobian",
        "The Jacobian with eps inside the root.",
        defs,
        Partial(x_hat[k], x[j]),
        rstd * (delta(k, j) - 1 / N - x_hat[k] * x_hat[j] / N),
    )
    yield together(
        "ln-entry-vector-parameters",
        "A weight vector scales the rows of the Jacobian; its own derivative and that of a bias vector are diagonal.",
        defs,
        (Partial(row.y[k], x[j]), row.w[k] * Partial(x_hat[k], x[j])),
        (Partial(row.y[k], row.w[j]), x_hat[k] * delta(k, j)),
        (Partial(row.y[k], row.b[j]), delta(k, j)),
    )
    yield proved(
        "ln-entry-dx",
        "The Jacobian contracted with the cotangent costs two means and no matrix.",
        defs,
        Partial(total(N, lambda r: row.dy[r] * row.y[r]), x[j]),
        rstd * (wdy[j] - row.c2 - x_hat[j] * row.c1),
        wide=True,
    )


def _outside():
    defs, x, average = eps_outside(), row.x, row.mean
    below = sigma + eps
    yield definition(
        "ln-entry-forward",
        "One normalized row, eps outside the root.",
        defs,
        average,
        sigma,
        z[k],
    )
    yield proved(
        "ln-entry-std",
        "The derivative of the standard deviation; it exists where the row is not constant.",
        defs,
        Partial(sigma, x[j]),
        (x[j] - average) / (N * sigma),
    )
    yield proved(
        "ln-entry-product-rule",
        "The Jacobian by the product rule, with the derivatives of mean and standard deviation still to be put in.",
        defs,
        Partial(z[k], x[j]),
        1 / below * (delta(k, j) - Partial(average, x[j]))
        - (x[k] - average) / below**2 * Partial(sigma, x[j]),
    )
    yield proved(
        "ln-entry-jacobian-outside",
        "The Jacobian with eps outside the root.",
        defs,
        Partial(z[k], x[j]),
        1 / below * (delta(k, j) - 1 / N - below / sigma * (z[k] * z[j] / N)),
    )
    yield together(
        "ln-entry-scalar-parameters",
        "A scalar scale multiplies the Jacobian; its own derivative and that of a scalar shift.",
        defs,
        (Partial(row.y[k], x[j]), scale * Partial(z[k], x[j])),
        (Partial(row.y[k], scale), (x[k] - average) / below),
        (Partial(row.y[k], shift), S.One),
    )
    defs = eps_outside()
    defs[row.wdy[k]] = row.dy[k] * row.w[k]
    defs[row.c1] = mean(N, lambda r: z[r] * row.wdy[r])
    defs[row.c2] = mean(N, lambda r: row.wdy[r])
    yield proved(
        "ln-entry-dx-outside",
        "The same contraction with eps outside the root: the last term gains the factor (sigma + eps) / sigma.",
        defs,
        total(N, lambda r: row.wdy[r] * Partial(z[r], x[j])),
        1 / below * (row.wdy[j] - row.c2 - below / sigma * z[j] * row.c1),
    )


def equations():
    """The equations labelled ln-entry-..."""
    for section in (_inside, _outside):
        yield from section()
