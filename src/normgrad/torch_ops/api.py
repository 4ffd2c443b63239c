"""The functional API: torch's signatures where torch has the function, and normalize behind each of them."""

from __future__ import annotations

from functools import partial
from numbers import Integral

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..spec import L2_NORM, LAYER_NORM, RMS_NORM, Axes, NormSpec
from . import automatic, torch_compile
from .arguments import Backend, check_tensors, is_traced
from .autograd import apply
from .distributed import by_rows, is_distributed
from .prepare import OF_INPUT, OF_SPEC, Call, prepare


def normalize(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    spec: NormSpec = LAYER_NORM,
    backend: Backend = "auto",
    out_dtype: torch.dtype | None = None,
    portable_sums: bool = False,
    heads: int | None = None,
) -> Tensor:
    """The operator on the last axis, whatever the spec.

    q = input - center * mean(input)                                                      {eq}`norm-forward`
    y = scale * q / D(sqrt(reduce(q**2)), eps) * (weight_offset + weight) + bias

    Args:     input (..., N), read where it lies if one stride leads from row to row, or two, as in a slice of a fused
              QKV tensor, else copied; weight, bias (N,), absent means 1 and 0; or all of them DTensors on one mesh,
              where each process normalizes the rows that it holds, and columns that are split are gathered first, as
              weight and bias are, with heads also the heads; spec a NormSpec; backend "torch", "triton", "numba"
              (compiled for the CPU) or "auto": triton on a GPU tensor; on a CPU torch's own kernels where they compute
              the same, numba where it is installed and faster, else torch; out_dtype of y, None means input.dtype;
              portable_sums: the order in which triton sums the gradients of weight and bias does not
              depend on the GPU's number of multiprocessors; heads: H where weight and bias are (H, N), one row for
              each head of input (..., H, N), as QK norm has them; None means one weight and one bias for all
    Returns:  y (..., N)
    Numerics: statistics and sums in float32, in float64 where input is float64; every output and gradient is rounded
              once
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    of_spec = (OF_INPUT, OF_SPEC, OF_SPEC)
    call = prepare(
        spec,
        input,
        None,
        weight,
        bias,
        *of_spec,
        heads,
        backend,
        out_dtype,
        None,
        True,
        portable_sums,
    )
    return _normalized(call, input, None, weight, bias)[0]


def add_normalize(
    input: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    spec: NormSpec = LAYER_NORM,
    backend: Backend = "auto",
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
    portable_sums: bool = False,
    heads: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(y, residual_out): normalize of the sum input + residual, and the sum.

    residual_out = input + residual,  y = normalize(residual_out)                         {eq}`res-forward`

    Args:     input, residual (..., N), of one shape; residual_dtype of residual_out, None means the promoted dtype of
              input and residual; round_residual: True normalizes the sum as residual_out holds it, False the sum before
              that rounding; the rest as normalize
    Returns:  y (..., N), residual_out (..., N)
    Numerics: as normalize, in float64 where input or residual is float64; the gradients take the sum as residual_out
              holds it, with the statistics of the forward, and under torch.func the sum that is normalized
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    _check_residual(residual)
    of_spec = (OF_INPUT, OF_SPEC, OF_SPEC)
    options = (out_dtype, residual_dtype, round_residual, portable_sums)
    call = prepare(
        spec, input, residual, weight, bias, *of_spec, heads, backend, *options
    )
    return _normalized(call, input, residual, weight, bias)


def _check_residual(residual: Tensor) -> None:
    if residual is None:
        raise TypeError(
            "residual: got None, needs a torch.Tensor; for input alone call the function without add_, as rms_norm"
        )


def _normalized(
    call: Call,
    input: Tensor,
    residual: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
):
    """(y, residual_out) of a call, residual_out None without a residual; autograd.Normalize has their derivatives."""
    if call.backend == automatic.TORCH_OWN and not _forward_mode():
        return automatic.run_torch_own(
            call.spec, call.axes, input, residual, weight, bias
        )
    if call.rows is not None and input.dim() != len(call.rows):
        rows = _reshaped(call.rows, input, residual)
        vectors = _reshaped(call.vector, weight, bias)
        return tuple(_reshaped(input.shape, *_normalized(call, *rows, *vectors)))
    if call.distributed and is_distributed(input):
        on_local = partial(_normalized, call)
        return by_rows(
            on_local, 1 + call.options.per_head, input, residual, weight, bias
        )
    if is_traced(input):
        return torch_compile.normalize(
            input, residual, weight, bias, call.spec, call.backend, call.options
        )
    return apply(input, residual, weight, bias, call.spec, call.kernels, call.options)


def _forward_mode():
    """Whether tangents may be asked for: torch 2.13 takes those of its own layer_norm for constants, and its compiler
    fails on them."""
    if torch.compiler.is_compiling():
        return torch_compile.transforms_are_open()
    return forward_ad._current_level >= 0


def _reshaped(shape, *tensors):
    return [None if t is None else t.reshape(shape) for t in tensors]


def layer_norm(
    input: Tensor,
    normalized_shape: Axes,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    weight_offset: float = 0.0,
    heads: int | None = None,
    out_dtype: torch.dtype | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """LayerNorm over the last axes, as torch.nn.functional.layer_norm.

    y = (x - mean) * rstd * (weight_offset + weight) + bias,  rstd = 1 / sqrt(var + eps)  {eq}`ln-forward`

    Args:     input (..., *normalized_shape); weight, bias normalized_shape or None; eps at least 0; weight_offset: what
              is added to the weight, 1.0 where it is stored as its distance from 1; heads: H where weight and bias are
              (H, *normalized_shape) and input (..., H, *normalized_shape); out_dtype, backend as normalize
    Returns:  y in input's shape, in out_dtype or input's dtype
    Numerics: as normalize; the variance is centred first (two passes), but by torch's own kernel, which auto may take
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Ba, Kiros and Hinton 2016, arXiv:1607.06450
    """
    asked = (normalized_shape, eps, weight_offset, heads, backend, out_dtype)
    call = prepare(LAYER_NORM, input, None, weight, bias, *asked)
    return _normalized(call, input, None, weight, bias)[0]


def rms_norm(
    input: Tensor,
    normalized_shape: Axes,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    weight_offset: float = 0.0,
    heads: int | None = None,
    out_dtype: torch.dtype | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """RMSNorm over the last axes, as torch.nn.functional.rms_norm.

    y = x * rstd * (weight_offset + weight),  rstd = 1 / sqrt(mean(x**2) + eps)           {eq}`rms-forward`

    Args:     input (..., *normalized_shape); weight normalized_shape or None; eps at least 0, None means the machine
              epsilon of the statistics' dtype, as torch computes it; weight_offset: what is added to the weight, 1.0 in
              Gemma 1 to 3; heads, out_dtype, backend as layer_norm
    Returns:  y in input's shape, in out_dtype or input's dtype
    Numerics: as normalize
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Zhang and Sennrich 2019, arXiv:1910.07467
    """
    asked = (normalized_shape, eps, weight_offset, heads, backend, out_dtype)
    call = prepare(RMS_NORM, input, None, weight, None, *asked)
    return _normalized(call, input, None, weight, None)[0]


def l2_norm(
    input: Tensor,
    dim: int = -1,
    eps: float = 1e-12,
    *,
    out_dtype: torch.dtype | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """L2 normalization along one axis, as torch.nn.functional.normalize.

    y = x / max(sqrt(sum(x**2)), eps)                                                     {eq}`norm-denominator-clamp`

    Args:     input, any shape with at least one axis; dim the axis; eps at least 0; out_dtype, backend as normalize
    Returns:  y in input's shape, in out_dtype or input's dtype
    Numerics: as normalize
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    check_tensors(input, shared=True)
    if (
        isinstance(dim, bool)
        or not isinstance(dim, Integral)
        or not -input.dim() <= dim < input.dim()
    ):
        raise ValueError(
            f"dim: got {dim!r}, needs an axis of input, whose shape is {tuple(input.shape)}"
        )
    x = input.movedim(dim, -1)
    call = prepare(
        L2_NORM, x, None, None, None, OF_INPUT, eps, 0.0, None, backend, out_dtype
    )
    return _normalized(call, x, None, None, None)[0].movedim(-1, dim)


def add_layer_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: Axes,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    weight_offset: float = 0.0,
    heads: int | None = None,
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
    backend: Backend = "auto",
) -> tuple[Tensor, Tensor]:
    """(output, residual_out): LayerNorm of the sum input + residual, and the sum.

    residual_out = input + residual,  output = layer_norm(residual_out)                   {eq}`res-forward`

    Args:     input, residual (..., *normalized_shape); out_dtype, residual_dtype, round_residual as add_normalize; the
              rest as layer_norm
    Returns:  output in out_dtype or input.dtype; residual_out in residual_dtype or the promoted dtype of input and
              residual
    Numerics: as normalize; in one dtype bitwise what layer_norm(input + residual) gives
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    _check_residual(residual)
    asked = (
        normalized_shape,
        eps,
        weight_offset,
        heads,
        backend,
        out_dtype,
        residual_dtype,
        round_residual,
    )
    call = prepare(LAYER_NORM, input, residual, weight, bias, *asked)
    return _normalized(call, input, residual, weight, bias)


def add_rms_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: Axes,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    weight_offset: float = 0.0,
    heads: int | None = None,
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
    backend: Backend = "auto",
) -> tuple[Tensor, Tensor]:
    """(output, residual_out): RMSNorm of the sum input + residual, and the sum.

    residual_out = input + residual,  output = rms_norm(residual_out)

    Args:     input, residual (..., *normalized_shape); out_dtype, residual_dtype, round_residual as add_normalize; the
              rest as rms_norm
    Returns:  output in out_dtype or input.dtype; residual_out in residual_dtype or the promoted dtype of input and
              residual
    Numerics: as normalize; in one dtype bitwise what rms_norm(input + residual) gives
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    _check_residual(residual)
    asked = (
        normalized_shape,
        eps,
        weight_offset,
        heads,
        backend,
        out_dtype,
        residual_dtype,
        round_residual,
    )
    call = prepare(RMS_NORM, input, residual, weight, None, *asked)
    return _normalized(call, input, residual, weight, None)
