"""Checks of the tensors that the torch API is given, and their layout as rows."""

from __future__ import annotations

import math

import torch

from .spec import check_axes, check_shapes

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
BACKENDS = ("auto", "torch", "triton")


def check_backend(backend):
    """One of the backends' names, or an error that lists them."""
    if backend not in BACKENDS:
        raise ValueError(f"backend: got {backend!r}, needs one of {', '.join(map(repr, BACKENDS))}")


def check_tensors(input, *, name="input", **others):
    """Floating-point tensors on one device, or an error that names the argument, what it got and what it needs."""
    first = name
    for name, t in ((first, input), *others.items()):
        if t is None and name != first:
            continue
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"{name}: got {type(t).__module__}.{type(t).__name__}, needs a torch.Tensor")
        if t.dtype not in DTYPES:
            raise TypeError(f"{name}: got dtype {t.dtype}, needs float64, float32, float16 or bfloat16")
        if t.device != input.device:
            raise ValueError(f"{name}: got device {t.device}, needs {input.device}, the device of {first}")


def flatten(input, normalized_shape, residual=None, **affine):
    """The arguments with the normalized axes as one."""
    check_tensors(input, residual=residual, **affine)
    axes = check_axes(normalized_shape)
    if tuple(input.shape[-len(axes) :]) != axes:
        raise ValueError(
            f"normalized_shape: got {axes}, needs the last axes of input, whose shape is {tuple(input.shape)}"
        )
    for name, t in affine.items():
        if t is not None and tuple(t.shape) != axes:
            raise ValueError(f"{name}: got shape {tuple(t.shape)}, needs {axes}, the normalized_shape")
    check_shapes(input, None, None, residual, name="input")
    if len(axes) == 1:
        return input, residual, *affine.values()
    rows = (*input.shape[: -len(axes)], math.prod(axes))
    flat = [None if t is None else t.reshape(-1) for t in affine.values()]
    return input.reshape(rows), None if residual is None else residual.reshape(rows), *flat
