"""The functions that give one byte a number and one scale a row, and what they refuse."""

from __future__ import annotations

from typing import overload

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..spec import LAYER_NORM, Axes, NormSpec, check_shapes, check_spec, check_weight_offset
from ..torch_ops.api import _as, _open_transforms, _rms_spec, _with
from ..torch_ops.arguments import Backend, check_backend, check_options, check_tensors, flatten
from ..torch_ops.compiled import scalars_of
from ..torch_ops.formula import accumulator, promoted
from .operator import compiled, quantized
from .rows import DTYPES


@overload
def normalize_quantized(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: None = None,
    *,
    spec: NormSpec = LAYER_NORM,
    dtype: torch.dtype = torch.int8,
    backend: Backend = "auto",
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
) -> tuple[Tensor, Tensor]: ...
@overload
def normalize_quantized(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    residual: Tensor,
    spec: NormSpec = LAYER_NORM,
    dtype: torch.dtype = torch.int8,
    backend: Backend = "auto",
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
) -> tuple[Tensor, Tensor, Tensor]: ...
def normalize_quantized(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    *,
    spec: NormSpec = LAYER_NORM,
    dtype: torch.dtype = torch.int8,
    backend: Backend = "auto",
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
) -> tuple[Tensor, ...]:
    """normalize with its output in one byte a number, and one scale a row: what a quantized product of matrices takes.

    scale = max(|y|) / Q,  quantized = round(y / scale),  Q = 127 or 448                  {eq}`quantized-forward`

    Args:     dtype: torch.int8, or torch.float8_e4m3fn, rounded to nearest, ties to even; the rest as normalize, but
              that tensors are no DTensors; triton is one kernel, up to 16384 columns (8192 in float64); numba
              normalizes, and torch rounds behind it
    Returns:  (quantized, scale), with a residual (quantized, scale, residual_out): quantized (..., N) in dtype, scale
              (..., 1) in the statistics' dtype, so that quantized.float() * scale is near y
    Numerics: y is as normalize has it before it is rounded; |scale * quantized - y| is at most scale / 2 for int8, and
              for float8_e4m3fn the larger of |y| / 17 and scale / 1024, up to the rounding of y / scale; a row of
              zeros has scale 0 and is 0 again; a row with a number that is not finite, or with a scale below the
              normal numbers of its dtype, has scale NaN
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs: also for a tensor that
              requires grad while gradients are recorded, as there is no backward
    """
    check_tensors(input, weight=weight, bias=bias, residual=residual)
    check_shapes(input, weight, bias, residual, "input")
    check_weight_offset(weight, check_spec(spec).weight_offset)
    return _quantized(input, weight, bias, residual, spec, dtype, backend, residual_dtype, round_residual)


def _quantized(input, weight, bias, residual, spec, dtype, backend, *sum_options):
    """(quantized, scale), and residual_out where there is a residual, of tensors that were checked."""
    if not isinstance(dtype, torch.dtype) or dtype not in DTYPES:
        raise TypeError(f"dtype: got {dtype!r}, needs {' or '.join(map(str, DTYPES))}")
    options = check_options(input, residual, None, None, *sum_options)
    check_backend(backend)
    _check_no_gradient(input=input, weight=weight, bias=bias, residual=residual)
    if spec.eps is None:
        spec = _with(spec, torch.finfo(accumulator(promoted(input, residual))).eps, spec.weight_offset)
    scalars = (*scalars_of(spec), dtype, options.residual_dtype, options.round_residual, backend)
    run = compiled if torch.compiler.is_compiling() else quantized
    found, scale, residual_out = run(input, residual, weight, bias, *scalars)
    return (found, scale) if residual is None else (found, scale, residual_out)


def _check_no_gradient(**tensors):
    """An error where a derivative is asked for, by the name of the tensor: it would be lost without a word."""
    if forward_ad._current_level >= 0 or _open_transforms() > 0:
        raise ValueError("input: got a call under torch.func or forward mode, needs one outside of them: "
                         "a quantized output has no derivative")  # fmt: skip
    for name, t in tensors.items():
        if t is not None and t.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name}: got a tensor that requires grad, needs one that does not, or torch.no_grad(): "
                             "a quantized output has no gradient")  # fmt: skip


def rms_norm_quantized(
    input: Tensor,
    normalized_shape: Axes,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    dtype: torch.dtype = torch.int8,
    weight_offset: float = 0.0,
    backend: Backend = "auto",
) -> tuple[Tensor, Tensor]:
    """(quantized, scale): rms_norm in one byte a number, and one scale a row.

    scale = max(|y|) / Q,  quantized = round(y / scale),  y = rms_norm(input)

    Args:     dtype: torch.int8 or torch.float8_e4m3fn; the rest as rms_norm
    Returns:  quantized in input's shape; scale with 1 in the place of each normalized axis
    Numerics: as normalize_quantized
    Raises:   as normalize_quantized
    """
    x, _, weight = flatten(input, normalized_shape, None, weight=weight)
    spec = _rms_spec(eps, check_weight_offset(weight, weight_offset))
    found, scale = _quantized(x, weight, None, None, spec, dtype, backend)
    return _as(found, input), _kept_axes(scale, input)


def add_rms_norm_quantized(
    input: Tensor,
    residual: Tensor,
    normalized_shape: Axes,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    dtype: torch.dtype = torch.int8,
    weight_offset: float = 0.0,
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
    backend: Backend = "auto",
) -> tuple[Tensor, Tensor, Tensor]:
    """(quantized, scale, residual_out): rms_norm_quantized of the sum input + residual, and the sum.

    residual_out = input + residual,  quantized, scale = rms_norm_quantized(residual_out)

    Args:     dtype: torch.int8 or torch.float8_e4m3fn; the rest as add_rms_norm
    Returns:  quantized, scale as rms_norm_quantized; residual_out as add_rms_norm
    Numerics: as normalize_quantized
    Raises:   as normalize_quantized
    """
    if residual is None:
        raise TypeError("residual: got None, needs a torch.Tensor; without a residual use rms_norm_quantized")
    x, residual, weight = flatten(input, normalized_shape, residual, weight=weight)
    spec = _rms_spec(eps, check_weight_offset(weight, weight_offset))
    given = (residual_dtype, round_residual)
    found, scale, residual_out = _quantized(x, weight, None, residual, spec, dtype, backend, *given)
    return _as(found, input), _kept_axes(scale, input), _as(residual_out, input)


def _kept_axes(scale, input):
    """The scales of rows with as many axes as input, so that they broadcast beside it."""
    ones = (1,) * (input.dim() - scale.dim())
    return scale.reshape(*scale.shape, *ones) if ones else scale
