"""What a call of the operator asks for: its arguments, checked once and kept for the next call like it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ..spec import (
    Axes,
    NormSpec,
    check_eps,
    check_shapes,
    check_spec,
    check_weight_offset,
)
from . import automatic
from .arguments import (
    PLAIN,
    Backend,
    Options,
    check_backend,
    check_normalized_shape,
    check_options,
    check_tensors,
    is_traced,
    kernels_of,
)
from .differentiable import accumulator, promoted
from .distributed import is_distributed


class Absent:
    """Stands for an argument that a function lacks. The type is asked for: torch 2.11 compares no symbol by `is`."""


# A normalized_shape of the last axis; an eps and a weight_offset of the spec.
OF_INPUT: Any = Absent()
OF_SPEC: Any = Absent()
# Only calls on plain tensors are kept: those of a tracer can have sizes that are not numbers.
MOST_CALLS = 256
_calls: dict[Any, Call] = {}


@dataclass(frozen=True)
class Call:
    """What the arguments of a call ask for; it holds neither a tensor nor a number of one.

    Args:  spec with a number for eps; options; backend: its name, or automatic.TORCH_OWN; device of the tensors;
           distributed: whether they are DTensors; axes: the sizes of those that are normalized; rows, vector: the
           shapes of input and residual, and of weight and bias, with the normalized axes as one, None where one axis
           is normalized
    """

    spec: NormSpec
    options: Options
    backend: Backend
    device: torch.device
    distributed: bool
    axes: tuple[int, ...]
    rows: tuple[int, ...] | None
    vector: tuple[int, ...] | None

    @cached_property
    def kernels(self) -> ModuleType:
        """The module whose forward and backward run; an error where it cannot run on the device."""
        torchs_own = self.backend == automatic.TORCH_OWN
        name = "torch" if torchs_own else self.backend
        return kernels_of(name, self.device)


def prepare(
    spec: NormSpec,
    input: Tensor,
    residual: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    normalized_shape: Axes,
    eps: float | None,
    weight_offset: float,
    heads: int | None,
    backend: Backend,
    out_dtype: torch.dtype | None,
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
    portable_sums: bool = False,
) -> Call:
    """The Call of these arguments, or an error that names the argument, what it got and what it needs.

    Args:  normalized_shape: the last axes' sizes, or OF_INPUT for the last axis alone; eps, weight_offset: to put into
           the spec, or OF_SPEC; the rest as normgrad.add_normalize
    """
    tensors = (input, residual, weight, bias)
    settings = (normalized_shape, eps, weight_offset, heads, backend)
    settings += (out_dtype, residual_dtype, round_residual, portable_sums)
    if is_traced(input):
        return _checked(spec, *tensors, *settings)
    # 1, 1.0 and True are equal, and not each of them is allowed.
    key = [spec, *settings, *map(type, settings)]
    if isinstance(normalized_shape, tuple):
        key += map(type, normalized_shape)
    for t in tensors:
        if t is None:
            key.append(None)
        elif type(t) not in PLAIN or t.is_nested:
            return _checked(spec, *tensors, *settings)
        else:
            key += (t.dtype, t.shape, t.device, t.layout)
    key = tuple(key)
    try:
        call = _calls.get(key)
    except TypeError:  # a list, or a size that is a symbol
        return _checked(spec, *tensors, *settings)
    if call is None:
        call = _checked(spec, *tensors, *settings)
        if all(_has_numbers(t) for t in tensors):
            if len(_calls) >= MOST_CALLS:
                _calls.clear()
            _calls[key] = call
    return call


def _has_numbers(t: Tensor | None) -> bool:
    """Whether no size is a symbol or, as torch.jit.trace has it, a tensor."""
    return t is None or all(type(size) is int for size in t.shape)


def _checked(
    spec,
    input,
    residual,
    weight,
    bias,
    normalized_shape,
    eps,
    weight_offset,
    heads,
    backend,
    *options,
) -> Call:
    """As prepare, of arguments that no call had before."""
    rows = vector = None
    if isinstance(normalized_shape, Absent):
        check_tensors(input, shared=True, weight=weight, bias=bias, residual=residual)
        check_shapes(input, weight, bias, residual, "input", heads)
        axes = input.shape[-1:]
    else:
        of_heads, axes = check_normalized_shape(
            input, normalized_shape, residual, heads, weight=weight, bias=bias
        )
        if len(axes) > 1:
            rows = (*input.shape[: -len(axes)], math.prod(axes))
            vector = (*of_heads, math.prod(axes))
    if isinstance(eps, Absent):
        check_weight_offset(weight, check_spec(spec).weight_offset)
    else:
        # None is the eps of RMS_NORM alone.
        number = None if eps is None and spec.eps is None else check_eps(eps)
        spec = spec.replace(
            eps=number, weight_offset=check_weight_offset(weight, weight_offset)
        )
    checked = check_options(input, residual, heads, *options)
    check_backend(backend)
    spec = spec.resolve(torch.finfo(accumulator(promoted(input, residual))).eps)
    if backend == "auto":
        backend = automatic.choose(spec, checked, (input, residual, weight, bias))
    distributed = is_distributed(input)
    return Call(spec, checked, backend, input.device, distributed, axes, rows, vector)
