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


@cache
def _programs(placement: str):
    defs = family.computed(placement)
    forward = (family.y[i, j], family.p[i, j], family.average[i], family.rstd[i])
    backward = (family.dp[i, j], family.dw[j], family.db[j])
    return compile(defs, forward), compile(defs, backward)


def _run(program, arguments):
    """The program on those of the arguments that its definitions read."""
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return program(
            **{name: arguments[name] for name in signature(program).parameters}
        )


def _arguments(x, weight, residual, spec):
    check_shapes(x, weight, None, residual)
    spec = check_spec(spec).resolve(numpy.finfo(numpy.float64).eps)
    check_weight_offset(weight, spec.weight_offset)
    columns = x.shape[-1]
    rows = x.reshape(-1, columns).astype(numpy.float64)
    return spec, {
        "x": rows,
        "residual": numpy.zeros_like(rows)
        if residual is None
        else residual.reshape(rows.shape).astype(numpy.float64),
        "w": numpy.ones(columns) if weight is None else weight.astype(numpy.float64),
        "a": float(spec.center),
        "c": spec.scale,
        "w0": spec.weight_offset,
        "eps": spec.eps,
        "n": spec.count(columns),
    }


def forward(x, weight, bias, residual, spec: NormSpec):
    """y, residual_out, mean and rstd of the operator, in float64.

    Args:     x, residual (..., N); weight, bias (N,); residual, weight and bias may be None
    Returns:  (y, residual_out, mean, rstd); mean is None where the spec does not centre
    """
    check_shapes(x, weight, bias, residual)
    spec, arguments = _arguments(x, weight, residual, spec)
    arguments["b"] = (
        numpy.zeros(x.shape[-1]) if bias is None else bias.astype(numpy.float64)
    )
    y, p, mean, rstd = _run(_programs(spec.placement)[0], arguments)
    lead = x.shape[:-1]
    return (
        y.reshape(x.shape),
        p.reshape(x.shape),
        mean.reshape(lead) if spec.center else None,
        rstd.reshape(lead),
    )


def backward(dy, x, weight, bias, residual, dresidual_out, spec: NormSpec):
    """dx, dw and db of the operator, in float64; dx is the residual's gradient too.

    Args:     dy, dresidual_out (..., N): the cotangents of y and of residual_out; dresidual_out may be None
    Returns:  (dx, dw, db); dw is None without a weight, db without a bias
    """
    check_shapes(x, weight, bias, residual)
    spec, arguments = _arguments(x, weight, residual, spec)
    rows = arguments["x"]
    arguments["dy"] = dy.reshape(rows.shape).astype(numpy.float64)
    arguments["dresidual_out"] = (
        numpy.zeros_like(rows)
        if dresidual_out is None
        else dresidual_out.reshape(rows.shape).astype(numpy.float64)
    )
    dx, dw, db = _run(_programs(spec.placement)[1], arguments)
    return (
        dx.reshape(x.shape),
        None if weight is None else dw,
        None if bias is None else db,
    )
