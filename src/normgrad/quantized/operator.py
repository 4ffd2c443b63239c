"""The quantized operator as one of torch's own, normgrad::quantized, for torch.compile, and the code behind it."""

from __future__ import annotations

import torch

from ..spec import NormSpec
from ..torch_ops.arguments import kernels_of
from ..torch_ops.compiled import SPEC, SPEC_FIELDS
from ..torch_ops.formula import accumulator, promoted
from .rows import quantize

OPTIONS = "ScalarType dtype, ScalarType residual_dtype, bool round_residual, str backend"
SCHEMA = f"(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, {SPEC}, {OPTIONS}) -> (Tensor, Tensor, Tensor)"


def quantized(x, residual, weight, bias, *scalars):
    """(quantized, scale, residual_out) of x (..., N); residual_out is empty without a residual.

    Args:  scalars: the fields of a NormSpec, dtype, residual_dtype, round_residual and backend
    """
    spec, (dtype, residual_dtype, round_residual, backend) = NormSpec(*scalars[:SPEC_FIELDS]), scalars[SPEC_FIELDS:]
    kernels = kernels_of(backend, x.device)
    options = {"residual_dtype": residual_dtype, "round_residual": round_residual}
    rows = [t if t is None else t.reshape(-1, x.shape[-1]) for t in (x, residual)]
    arguments = (rows[0], weight, bias, rows[1], spec)
    if kernels.__name__.endswith("triton_kernels"):
        from . import launch

        found, scale, residual_out = launch.forward(*arguments, dtype, **options)
    else:
        y, residual_out, *_ = kernels.forward(*arguments, out_dtype=accumulator(promoted(x, residual)), **options)
        found, scale = quantize(y, dtype)
    residual_out = x.new_empty(0, dtype=residual_dtype) if residual is None else residual_out.reshape(x.shape)
    return found.reshape(x.shape), scale.reshape(*x.shape[:-1], 1), residual_out


compiled = torch.library.custom_op("normgrad::quantized", quantized, mutates_args=(), schema=SCHEMA)


@compiled.register_fake
def _(x, residual, weight, bias, *scalars):
    dtype, residual_dtype, *_ = scalars[SPEC_FIELDS:]
    scale = x.new_empty((*x.shape[:-1], 1), dtype=accumulator(promoted(x, residual)))
    residual_out = x.new_empty(0 if residual is None else x.shape, dtype=residual_dtype)
    return x.new_empty(x.shape, dtype=dtype), scale, residual_out
