"""Wrong formulas: each backward or forward differs from the right one in the term that its name says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ... import numpy_ref
from .operators import parts, right, right_forward


def weight_twice(given, saved):
    """RMSNorm; each entry of dx is scaled by its weight."""
    g = parts(given, saved)
    dx = g.rstd * (g.wdy - given.weight * g.x_hat * g.c1)
    return replace(right(given, saved), dx=dx)


def offset_forgotten(given, saved):
    """The weight is stored as its distance from 1, and wdy is formed with it alone."""
    plain = replace(saved, spec=saved.spec.replace(weight_offset=0.0))
    return replace(right(given, saved), dx=right(given, plain).dx)


def no_weight_gradient(given, saved):
    """Only dx is computed; the weight is taken to be frozen."""
    return replace(right(given, saved), dweight=None)


def residual_first(given, saved):
    """The stream's gradient is added to dy, before the Jacobian."""
    if given.dresidual_out is None:
        return right(given, saved)
    dy = given.dy + given.dresidual_out
    both = replace(given, dy=dy, dresidual_out=None)
    return replace(right(given, saved), dx=right(both, saved).dx)


def first_block(given, saved):
    """The cotangent of residual_out is read only where a residual came in."""
    if given.residual is None:
        given = replace(given, dresidual_out=None)
    return right(given, saved)


def eps_on_the_sum(given):
    """sqrt(sum + eps) for sqrt(mean + eps)."""
    eps = given.spec.eps / given.p.shape[-1]
    return right_forward(replace(given, spec=given.spec.replace(eps=eps)))


def sigmoid(t):
    """1 / (1 + exp(-t))."""
    return 1 / (1 + np.exp(-t))


def gated_forward(x, gate, weight, spec):
    """RMSNorm of x * sigmoid(gate), and x as it came in, for the residual stream."""
    saved = numpy_ref.forward(x * sigmoid(gate), weight, spec=spec)
    return saved, x


def gate_order_wrong(x, gate, weight, dy, dresidual_out, spec):
    """The stream's gradient joins before the gate's chain rule."""
    g = sigmoid(gate)
    saved, _ = gated_forward(x, gate, weight, spec)
    grads = numpy_ref.backward(dy, saved)
    dx = grads.dx + dresidual_out
    return dx * g, dx * x * g * (1 - g), grads.dweight


def gate_order_right(x, gate, weight, dy, dresidual_out, spec):
    """It joins after the chain rule, since residual_out is x."""
    g = sigmoid(gate)
    saved, _ = gated_forward(x, gate, weight, spec)
    grads = numpy_ref.backward(dy, saved)
    dx = grads.dx
    return dx * g + dresidual_out, dx * x * g * (1 - g), grads.dweight


def projected_forward(x, gate, weight, matrix, spec):
    """RMSNorm of x, times silu(gate), and a product with a matrix: what follows in linear attention."""
    saved = numpy_ref.forward(x, weight, spec=spec)
    return saved, saved.y * gate * sigmoid(gate) @ matrix


def _projected_backward(x, gate, weight, matrix, dout, spec, recomputed):
    saved, _ = projected_forward(x, gate, weight, matrix, spec)
    g, dy = sigmoid(gate), dout @ matrix.T
    grads = numpy_ref.backward(dy * gate * g, saved)
    dgate = dy * saved.y * g * (1 + gate * (1 - g))
    return grads.dx, dgate, grads.dweight, recomputed(saved, gate).T @ dout


def gate_dropped_wrong(x, gate, weight, matrix, dout, spec):
    """What the matrix was multiplied with is computed again, up to the gate."""
    return _projected_backward(x, gate, weight, matrix, dout, spec, lambda saved, gate: saved.y)


def gate_dropped_right(x, gate, weight, matrix, dout, spec):
    """It is computed again as it was, with the gate."""
    return _projected_backward(x, gate, weight, matrix, dout, spec, lambda saved, gate: saved.y * gate * sigmoid(gate))


def dx_is_zero(given, saved):
    """No input gradient at all."""
    return replace(right(given, saved), dx=np.zeros_like(given.p))


def weight_left_out(given, saved):
    """The weight scales the output and nothing else."""
    unit = replace(saved, weight=None)
    return replace(right(given, saved), dx=right(given, unit).dx)


def off_by_a_thousand(given):
    """The right output plus 1000."""
    saved = right_forward(given)
    return replace(saved, y=saved.y + 1000)


def projection_dropped(given, saved):
    """dx = rstd * wdy: mean and rstd are taken for constants."""
    g = parts(given, saved)
    return replace(right(given, saved), dx=g.rstd * g.wdy)
