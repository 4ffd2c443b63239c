"""The chapter on notation: the index rules that every later derivation uses."""

from __future__ import annotations

from sympy import S

from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved
from ..symbols import M, N, alphabet, i, j, k, over_all

row, batch = alphabet(), alphabet(M)


def centred_row() -> Defs:
    """The mean of a row, the centred row, and the weighted centred row y = w * q."""
    defs = Defs()
    defs[row.mean] = mean(N, lambda r: row.x[r])
    defs[row.q[j]] = row.x[j] - row.mean
    defs[row.y[k]] = row.w[k] * row.q[k]
    return defs


def broadcast() -> Defs:
    """A bias added to every row, and the loss whose cotangent is dy."""
    defs = Defs()
    defs[batch.y[i, j]] = batch.x[i, j] + batch.b[j]
    defs[batch.L] = over_all(lambda r, s: batch.dy[r, s] * batch.y[r, s])
    return defs


def _delta_rules():
    x = row.x
    yield proved(
        "index-delta",
        "A sum against a delta renames the index.",
        None,
        total(N, lambda r: delta(k, r) * x[r]),
        x[k],
    )
    yield proved(
        "index-count",
        "A sum of ones counts the index range.",
        None,
        total(N, lambda r: S.One),
        N,
    )
    yield proved(
        "index-trace",
        "The trace of the identity is the length of a row.",
        None,
        total(N, lambda r: delta(r, r)),
        N,
    )
    yield proved(
        "index-delta-product",
        "Two deltas that share a summed index contract to one.",
        None,
        total(N, lambda r: delta(k, r) * delta(r, j)),
        delta(k, j),
    )
    yield proved(
        "index-partial-x",
        "The entries of the input are independent.",
        None,
        Partial(x[k], x[j]),
        delta(k, j),
    )


def _differentiation_rules():
    x, w = row.x, row.w
    yield proved(
        "index-product-rule",
        "The product rule in index notation.",
        None,
        Partial(w[k] * x[k] ** 2, x[j]),
        2 * w[k] * x[k] * delta(k, j),
    )
    yield proved(
        "index-sum-of-squares",
        "The derivative of a sum of squares: differentiate under the sum, then contract the delta.",
        None,
        Partial(total(N, lambda r: x[r] ** 2), x[j]),
        2 * x[j],
    )
    size = total(N, lambda r: x[r] ** 2)
    yield proved(
        "index-quotient-rule",
        "The quotient rule in index notation, on a row divided by its sum of squares.",
        None,
        Partial(x[k] / size, x[j]),
        delta(k, j) / size - 2 * x[k] * x[j] / size**2,
    )


def _mean_rules():
    defs = centred_row()
    x, q, average = row.x, row.q, row.mean
    yield definition("index-mean", "The mean of a row.", defs, average)
    yield definition("index-centred", "The centred row.", defs, q[j])
    yield proved(
        "index-partial-mean",
        "Every entry contributes 1/N to the mean.",
        defs,
        Partial(average, x[k]),
        1 / N,
    )
    yield proved(
        "index-centred-sum",
        "The entries of a centred row add up to 0.",
        defs,
        total(N, lambda r: q[r]),
        S.Zero,
    )
    yield proved(
        "index-local",
        "With the mean held fixed, a centred entry varies with its own input alone.",
        defs,
        defs.local(q[j], x[k]),
        delta(j, k),
    )
    yield proved(
        "index-local-mean",
        "A centred entry falls as the mean rises.",
        defs,
        defs.local(q[j], average),
        -S.One,
    )
    yield proved(
        "index-total",
        "The total derivative adds the path through the mean.",
        defs,
        Partial(q[j], x[k]),
        delta(j, k) - 1 / N,
    )


def _weighted_row():
    defs, jacobian = centred_row(), tensor("J", N, N)
    defs[jacobian[k, j]] = Partial(row.y[k], row.x[j])
    return defs, jacobian


def _layout():
    defs, jacobian = _weighted_row()
    w, y = row.w, row.y
    yield definition(
        "index-weighted", "A centred row with a weight per column.", defs, y[k]
    )
    yield proved(
        "index-jacobian",
        "The Jacobian in numerator layout: row k is the output, column j the input.",
        defs,
        jacobian[k, j],
        w[k] * (delta(k, j) - 1 / N),
    )
    yield proved(
        "index-jacobian-transposed",
        "The transpose carries the weight of the other index: with a weight vector the layouts differ.",
        defs,
        jacobian[j, k],
        w[j] * (delta(k, j) - 1 / N),
    )
    yield proved(
        "index-jacobian-asymmetry",
        "The Jacobian is symmetric only where the weights agree.",
        defs,
        jacobian[k, j] - jacobian[j, k],
        (w[j] - w[k]) / N,
    )


def _contraction():
    defs, jacobian = _weighted_row()
    x, w, y, dy = row.x, row.w, row.y, row.dy
    yield proved(
        "index-vjp",
        "The vector-Jacobian product sums over the output index.",
        defs,
        total(N, lambda r: dy[r] * jacobian[r, j]),
        dy[j] * w[j] - mean(N, lambda r: dy[r] * w[r]),
    )
    yield proved(
        "index-gradient",
        "The derivative of the loss is the cotangent times the Jacobian.",
        defs,
        Partial(total(N, lambda r: dy[r] * y[r]), x[j]),
        total(N, lambda r: dy[r] * Partial(y[r], x[j])),
    )


def _broadcasting():
    defs = broadcast()
    b, y, dy, loss = batch.b, batch.y, batch.dy, batch.L
    yield definition(
        "index-loss",
        "A loss that has dy as its cotangent, dy held constant.",
        defs,
        loss,
    )
    yield proved(
        "index-cotangent",
        "The loss has dy as its cotangent.",
        None,
        Partial(defs.line(loss)[1], y[i, j]),
        dy[i, j],
    )
    yield proved(
        "index-broadcast",
        "A vector broadcast over rows receives the sum over those rows.",
        defs,
        Partial(loss, b[j]),
        total(M, lambda r: dy[r, j]),
    )


def equations():
    """The equations labelled index-..."""
    for section in (
        _delta_rules,
        _differentiation_rules,
        _mean_rules,
        _layout,
        _contraction,
        _broadcasting,
    ):
        yield from section()
