"""Roundings in the wrong place: formulas that are right on paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .operators import parts, right, right_forward


def one_pass(given):
    """mean(x**2) - mean(x)**2, the sums kept in the dtype of x."""
    x = given.p.astype(given.dtype)
    n = x.dtype.type(x.shape[-1])
    with np.errstate(over="ignore"):
        mean = np.add.accumulate(x, -1)[:, -1:] / n
        var = np.add.accumulate(x * x, -1)[:, -1:] / n - mean * mean
    mean, var = (t.astype(given.p.dtype) for t in (mean, var))
    x_hat = (given.p - mean) / np.sqrt(var + given.spec.eps)
    y = x_hat * given.weight + given.bias
    return replace(right_forward(given), y=y)


def offset_in_dtype(given):
    """1 + weight, added where the weight lies, in its 16 bits."""
    factor = given.store(1 + given.weight)
    spec = given.spec.replace(weight_offset=0.0)
    return right_forward(replace(given, weight=factor, spec=spec))


def statistics_in_dtype(given, saved):
    """The forward is right; mean and rstd wait for the backward in 16 bits."""
    mean, rstd = given.store(saved.mean), given.store(saved.rstd)
    return right(given, replace(saved, mean=mean, rstd=rstd))


def gradient_from_y(given, saved):
    """dx = rstd (dy - y <y, dy>), with y as it was stored."""
    y, dy = given.store(saved.y), given.dy
    dx = dy - y * (y * dy).sum(-1, keepdims=True)
    dx = saved.rstd[:, None] * dx
    return replace(right(given, saved), dx=dx)


BUFFERS = 8


def partial_sums_in_dtype(given, saved):
    """Rows add to a few buffers of dw, in the dtype of x."""
    terms = given.dy * parts(given, saved).x_hat
    buffers = np.zeros((BUFFERS, terms.shape[-1]), terms.dtype)
    for row, term in enumerate(terms):
        k = row % BUFFERS
        buffers[k] = given.store(buffers[k] + term)
    return replace(right(given, saved), dweight=buffers.sum(0))


def in_order_of_arrival(terms, arrival, store):
    """Rows add to one buffer when they get its lock."""
    total = np.zeros_like(terms[0])
    for row in arrival:
        total = store(total + terms[row])
    return total


def in_fixed_order(terms, arrival, store):
    """Rows write to places of their own; one reader adds them up."""
    places = np.zeros_like(terms)
    for row in arrival:
        places[row] = terms[row]
    return store(np.add.accumulate(places)[-1])
