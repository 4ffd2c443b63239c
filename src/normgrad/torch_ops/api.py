"""The functional API: torch's signatures where torch has the function, and normalize behind each of them."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..spec import (
    L2_NORM,
    LAYER_NORM,
    RMS_NORM,
    Axes,
    NormSpec,
    check_eps,
    check_shapes,
    check_spec,
    check_weight_offset,
)
from . import differentiable, torch_compile
from .arguments import Backend, check_backend, check_options, check_tensors, flatten, kept, kernels_of
from .autograd import apply
from .differentiable import accumulator, promoted
from .distributed import by_rows, is_distributed


def _open_transforms() -> int:
    """How many transforms of torch.func are open; a compiler opens its own where the function that it traces does."""
    return torch._C._functorch.get_dynamic_layer_stack_depth()


# A compiler keeps one program for each stack of transforms, so it may take this for a constant; torch 2.11 cannot trace
# it. This is all that torch.compiler.assume_constant_result does, but that imports the compiler, and Triton with it:
# without a GPU Triton could then no longer interpret.
_open_transforms._dynamo_marked_constant = True


def _needs_formula() -> bool:
    """Whether torch would lose derivatives without a word, so that the plain formula has to take over.

    In eager mode that is where two forward-mode transforms are nested: torch differentiates the tangents of an
    autograd.Function as if they were constants there (seen with 2.13: the second forward derivative of x**3 is 0).
    A compiler calls operators, and an operator gets no tangents at all (seen with 2.13: jvp gives 0).
    """
    if torch.compiler.is_compiling():
        return _open_transforms() > 0 or forward_ad._current_level >= 0
    stack = torch._C._functorch.get_interpreter_stack()
    return stack is not None and sum(level.key() == torch._C._functorch.TransformType.Jvp for level in stack) > 1


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
              (compiled for the CPU) or "auto" (triton on a GPU tensor, torch on others); out_dtype of y, None means
              input.dtype; portable_sums: the order in which triton sums the gradients of weight and bias does not
              depend on the GPU's number of multiprocessors; heads: H where weight and bias are (H, N), one row for
              each head of input (..., H, N), as QK norm has them; None means one weight and one bias for all
    Returns:  y (..., N)
    Numerics: statistics and sums in float32, in float64 where input is float64; every output and gradient is rounded
              once
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    options = (heads, out_dtype, None, True, portable_sums)
    return _on_last_axis(input, weight, bias, None, spec, backend, *options)[0]


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
              holds it, with the statistics of the forward
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    _check_residual(residual)
    options = (heads, out_dtype, residual_dtype, round_residual, portable_sums)
    return _on_last_axis(input, weight, bias, residual, spec, backend, *options)


def _check_residual(residual: Tensor) -> None:
    if residual is None:
        raise TypeError("residual: got None, needs a torch.Tensor; a norm of input alone has no add_ in its name")


def _on_last_axis(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None,
    spec: NormSpec,
    backend: Backend,
    heads: int | None,
    *options: Any,
) -> tuple[Tensor, Any]:
    """_normalized of tensors that are checked here."""
    check_tensors(input, shared=True, weight=weight, bias=bias, residual=residual)
    check_shapes(input, weight, bias, residual, "input", heads)
    check_weight_offset(weight, check_spec(spec).weight_offset)
    return _normalized(input, weight, bias, residual, spec, backend, heads, *options)


def _normalized(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None,
    spec: NormSpec,
    backend: Backend,
    *given: Any,
) -> tuple[Tensor, Any]:
    """(y, residual_out) of tensors that were checked; residual_out is None without a residual.

    Args:  given: heads, out_dtype, residual_dtype, round_residual and portable_sums, as many of them as are given
    """
    options = check_options(input, residual, *given)
    check_backend(backend)
    if spec.eps is None:
        spec = _with(spec, torch.finfo(accumulator(promoted(input, residual))).eps, spec.weight_offset)
    if is_distributed(input):
        normalized = partial(_on_rows, spec, backend, options)
        return by_rows(normalized, 1 + options.per_head, input, weight, bias, residual)
    return _on_rows(spec, backend, options, input, weight, bias, residual)


def _on_rows(spec, backend, options, input, weight, bias, residual):
    """_normalized of tensors of one process."""
    arguments = (input, residual, weight, bias)
    if _needs_formula():
        return differentiable.forward(*arguments, spec, **options.of_forward)
    if torch.compiler.is_compiling():
        return torch_compile.normalize(*arguments, spec, backend, options)
    return apply(*arguments, spec, kernels_of(backend, input.device), options)


@kept
def _with(spec: NormSpec, eps: float | None, weight_offset: float) -> NormSpec:
    return spec.replace(eps=eps, weight_offset=weight_offset)


def _as(t: Tensor, input: Tensor) -> Tensor:
    """In input's shape; the very tensor where it has that already, since a view may not be modified in place."""
    return t if t.shape == input.shape else t.reshape(input.shape)


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
    Numerics: as normalize; the variance is centred first (two passes)
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Ba, Kiros and Hinton 2016, arXiv:1607.06450
    """
    x, _, weight, bias = flatten(input, normalized_shape, None, heads, weight=weight, bias=bias)
    spec = _with(LAYER_NORM, check_eps(eps), check_weight_offset(weight, weight_offset))
    return _as(_normalized(x, weight, bias, None, spec, backend, heads, out_dtype)[0], input)


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
              Gemma; heads, out_dtype, backend as layer_norm
    Returns:  y in input's shape, in out_dtype or input's dtype
    Numerics: as normalize
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Zhang and Sennrich 2019, arXiv:1910.07467
    """
    x, _, weight = flatten(input, normalized_shape, None, heads, weight=weight)
    spec = _rms_spec(eps, check_weight_offset(weight, weight_offset))
    return _as(_normalized(x, weight, None, None, spec, backend, heads, out_dtype)[0], input)


def _rms_spec(eps: float | None, weight_offset: float) -> NormSpec:
    return _with(RMS_NORM, None if eps is None else check_eps(eps), weight_offset)


def l2_norm(
    input: Tensor,
    dim: int = -1,
    eps: float = 1e-12,
    *,
    out_dtype: torch.dtype | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """L2 normalization along one axis, as torch.nn.functional.normalize.

    y = x / max(sqrt(sum(x**2)), eps)                                                     {eq}`l2-clamp`

    Args:     input, any shape with at least one axis; dim the axis; eps at least 0; out_dtype, backend as normalize
    Returns:  y in input's shape, in out_dtype or input's dtype
    Numerics: as normalize
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    check_tensors(input, shared=True)
    if isinstance(dim, bool) or not isinstance(dim, Integral) or not -input.dim() <= dim < input.dim():
        raise ValueError(f"dim: got {dim!r}, needs an axis of input, whose shape is {tuple(input.shape)}")
    spec = _with(L2_NORM, check_eps(eps), 0.0)
    return normalize(input.movedim(dim, -1), spec=spec, out_dtype=out_dtype, backend=backend).movedim(-1, dim)


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
    x, residual, weight, bias = flatten(input, normalized_shape, residual, heads, weight=weight, bias=bias)
    options = (heads, out_dtype, residual_dtype, round_residual)
    spec = _with(LAYER_NORM, check_eps(eps), check_weight_offset(weight, weight_offset))
    return _add_norm(input, x, weight, bias, residual, spec, backend, *options)


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
    x, residual, weight = flatten(input, normalized_shape, residual, heads, weight=weight)
    options = (heads, out_dtype, residual_dtype, round_residual)
    spec = _rms_spec(eps, check_weight_offset(weight, weight_offset))
    return _add_norm(input, x, weight, None, residual, spec, backend, *options)


def _add_norm(
    input: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None,
    spec: NormSpec,
    backend: Backend,
    *options: Any,
) -> tuple[Tensor, Tensor]:
    _check_residual(residual)
    y, residual_out = _normalized(x, weight, bias, residual, spec, backend, *options)
    return _as(y, input), _as(residual_out, input)
