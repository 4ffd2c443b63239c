"""The operator as NumPy code generated from the definitions whose gradients are proved.

The backward pass is the one that `norm-dx-...` and `eps-theorem-dx` prove.
"""

from __future__ import annotations

from functools import cache
from inspect import signature

import numpy

from ..spec import NormSpec, check_shapes, check_spec, check_weight_offset
from .codegen import compile
from .derivations import family
from .symbols import i, j

FORWARD = (family.y[i, j], family.p[i, j], family.average[i], family.rstd[i])
BACKWARD = (family.dp[i, j], family.dw[j], family.db[j])


@cache
def _program(placement: str, outputs: tuple):
    return compile(family.computed(placement), outputs)


def _run(outputs, spec, x, weight, bias, residual, **cotangents):
    """(spec, what outputs are for arrays of rows)."""
    check_shapes(x, weight, bias, residual)
    spec = check_spec(spec).resolve(numpy.finfo(numpy.float64).eps)
    check_weight_offset(weight, spec.weight_offset)
    columns = x.shape[-1]
    absent = numpy.zeros(x.shape)
    rows = {"x": x, "residual": residual, **cotangents}
    arrays = {
        name: (absent if array is None else array).reshape(-1, columns)
        for name, array in rows.items()
    }
    arrays["w"] = numpy.ones(columns) if weight is None else weight
    arrays["b"] = numpy.zeros(columns) if bias is None else bias
    arguments = {name: array.astype(numpy.float64) for name, array in arrays.items()}
    arguments |= {"a": float(spec.center), "c": spec.scale, "w0": spec.weight_offset}
    arguments |= {"eps": spec.eps, "n": spec.count(columns)}
    program = _program(spec.placement, outputs)
    # those that the definitions read
    names = signature(program).parameters
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return spec, program(**{name: arguments[name] for name in names})


def forward(x, weight, bias, residual, spec: NormSpec):
    """y, residual_out, mean and rstd of the operator, in float64.

    Args:     x, residual (..., N); weight, bias (N,); residual, weight and bias may be None
    Returns:  (y, residual_out, mean, rstd); mean is None where the spec does not centre
    """
    spec, (y, p, mean, rstd) = _run(FORWARD, spec, x, weight, bias, residual)
    rows = x.shape[:-1]
    mean = mean.reshape(rows) if spec.center else None
    return y.reshape(x.shape), p.reshape(x.shape), mean, rstd.reshape(rows)


def backward(dy, x, weight, bias, residual, dresidual_out, spec: NormSpec):
    """dx, dw and db of the operator, in float64; dx is the residual's gradient too.

    Args:     dy, dresidual_out (..., N): the cotangents of y and of residual_out; dresidual_out may be None
    Returns:  (dx, dw, db); dw is None without a weight, db without a bias
    """
    cotangents = {"dy": dy, "dresidual_out": dresidual_out}
    _, (dx, dw, db) = _run(BACKWARD, spec, x, weight, bias, residual, **cotangents)
    dw = None if weight is None else dw
    db = None if bias is None else db
    return dx.reshape(x.shape), dw, db
