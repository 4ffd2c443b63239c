"""What a right backward passes on when it is differentiated again, by the complex step, and how far off it may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ... import numpy_ref
from ...checks.finite_difference import complex_step
from ...checks.tolerance import ELEMENTWISE, SAFETY, unit_roundoff

INPUTS = ("dy", "x", "weight")
RESULTS = {"dy": "what dx, dw, db pass to dy", "x": "to x", "weight": "to weight"}


def _pairing(trial, cotangents):
    """<ddx, dx> + <ddw, dw> + <ddb, db> as a function of one of INPUTS, complex numbers allowed."""

    def with_(name, array):
        parts = {each: getattr(trial.case, each).astype(complex) for each in (*INPUTS, "bias")} | {name: array}
        saved = numpy_ref.forward(parts["x"], parts["weight"], parts["bias"], spec=trial.spec)
        grads = numpy_ref.backward(parts["dy"], saved)
        pairs = zip(cotangents.values(), (grads.dx, grads.dweight, grads.dbias), strict=True)
        return sum((cotangent * grad).sum() for cotangent, grad in pairs)

    return with_


def expected(trial, cotangents) -> dict:
    """{input: (value, bound)}: the gradients of that sum, entry by entry by the complex step."""
    pairing, found = _pairing(trial, cotangents), {}
    for name, bound in second_bounds(trial, **cotangents).items():
        at = getattr(trial.case, name)
        value = np.empty(at.shape)
        for index in np.ndindex(at.shape):
            unit = np.zeros(at.shape)
            unit[index] = 1
            value[index] = complex_step(lambda t, unit=unit, name=name, at=at: pairing(name, at + t * unit), 0.0)
        found[name] = (value, bound)
    return found


def _mean(t):
    return t.mean(-1, keepdims=True)


def second_bounds(trial, ddx, ddw, ddb) -> dict:
    """Bounds of the second gradients in float64: their closed formula with every minus a plus, times the rounding.

    {eq}`twice-dx`, {eq}`twice-dy`, {eq}`twice-dw` and {eq}`twice-parameters-grad`, each term by its absolute value;
    x_hat by the size of the row over its deviation, whose rounding it carries.
    """
    case, saved = trial.case, trial.forward()
    rstd = saved.rstd[:, None]
    x_hat = (np.abs(case.x).max(-1, keepdims=True, initial=0) + np.abs(case.x - saved.mean[:, None])) * rstd
    ddx, ddw, ddb, dy, weight = (np.abs(t) for t in (ddx, ddw, ddb, case.dy, case.weight))
    wdy, direction = dy * weight + _mean(dy * weight), ddx + _mean(ddx)

    def projected(v):
        return rstd * (v + _mean(v) + x_hat * _mean(x_hat * v))

    c1, e1 = _mean(x_hat * wdy), _mean(x_hat * direction)
    bent = c1 * direction + e1 * wdy + x_hat * (_mean(wdy * direction) + 3 * c1 * e1)
    sizes = {
        "dy": weight * projected(ddx) + ddw * x_hat + ddb,
        "x": projected(ddw * dy) + rstd**2 * bent,
        "weight": (dy * projected(ddx)).sum(0),
    }
    terms = unit_roundoff("float64") * (sum(case.x.shape) + ELEMENTWISE)
    return {name: SAFETY * ELEMENTWISE * terms * size for name, size in sizes.items()}


def without_rows(trial, rows):
    """The trial with only its first rows: the complex step takes one call an entry."""
    case = trial.case
    return replace(trial, case=replace(case, x=case.x[:rows], dy=case.dy[:rows]))
