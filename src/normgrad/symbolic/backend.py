"""The operator as NumPy code generated from the definitions whose gradients are proved.

The backward pass is the one that `norm-dx-...` and `eps-theorem-dx` prove.
"""

from __future__ import annotations

from functools import cache
from inspect import signature

import numpy

from ..numpy_ref import Forward, Grads
from ..spec import NormSpec, check_shapes, check_spec, check_weight_offset
from .codegen import compile
from .derivations import family
from .symbols import i, j

FORWARD = (family.y[i, j], family.p[i, j], family.average[i], family.rstd[i])
BACKWARD = (family.dp[i, j], family.dw[j], family.db[j])


@cache
def _program(placement, outputs):
    return compile(family.computed(placement), outputs)


def _run(outputs, spec, weight, bias, **rows):
    """What outputs are for arrays of rows, of which one that is absent is 0."""
    shape = rows["x"].shape
    absent, columns = numpy.zeros(shape), shape[-1]
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
        return program(**{name: arguments[name] for name in names})


def forward(x, weight, bias, residual, spec: NormSpec) -> Forward:
    """The forward of the operator, in float64.

    Args:     x, residual (..., N); weight, bias (N,); residual, weight and bias may be None
    Returns:  as numpy_ref.forward
    """
    check_shapes(x, weight, bias, residual)
    spec = check_spec(spec).resolve(numpy.finfo(numpy.float64).eps)
    check_weight_offset(weight, spec.weight_offset)
    y, p, mean, rstd = _run(FORWARD, spec, weight, bias, x=x, residual=residual)
    y, p, rstd = y.reshape(x.shape), p.reshape(x.shape), rstd.reshape(x.shape[:-1])
    mean = mean.reshape(x.shape[:-1]) if spec.center else None
    return Forward(y, p, mean, rstd, weight, bias, spec)


def backward(dy, saved: Forward, dresidual_out=None) -> Grads:
    """The backward of the operator, in float64.

    Args:     dy, dresidual_out (..., N): the cotangents of y and of residual_out; dresidual_out may be None
              saved: what forward returned
    Returns:  as numpy_ref.backward
    """
    rows = {"x": saved.residual_out, "residual": None}
    rows |= {"dy": dy, "dresidual_out": dresidual_out}
    dx, dw, db = _run(BACKWARD, saved.spec, saved.weight, saved.bias, **rows)
    dw = None if saved.weight is None else dw
    db = None if saved.bias is None else db
    return Grads(dx.reshape(dy.shape), dw, db)
