"""The operator on DTensors: each process normalizes the rows that it holds.

Only whole rows can be normalized alone, and with a weight for each head only all heads of a token. Where a mesh splits
these axes, or its processes hold parts of a sum, the rows are gathered first; a weight or bias is gathered wherever it
is split. What a process finds for dw and db is then its rows' part of a sum over all processes, and says so by its
placement.

Torch's own conversions do the rest, between a DTensor and a process's tensor and back, gradients included. So every
backend, dtype and option is the same as for plain tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

NAMES = ("input", "residual", "weight", "bias")


def is_distributed(t: Any) -> bool:
    """Whether it is a DTensor; torch.distributed.tensor is not imported for the answer."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(t, module.DTensor)


def finished(t: Tensor) -> Tensor:
    """The tensor itself where a collective returned a promise of it: waited for, not copied; differentiable."""
    module = sys.modules.get("torch.distributed._functional_collectives")
    if module is not None and isinstance(t, module.AsyncCollectiveTensor):
        return torch.ops.aten._unsafe_view(t, t.shape)
    return t


def check(name: str, t: Tensor, input: Tensor, first: str) -> None:
    """A DTensor on input's mesh, or an error that names the argument."""
    if not is_distributed(t):
        raise TypeError(
            f"{name}: got a tensor of one process, needs a DTensor on the mesh of {first}, which is one"
        )
    if t.device_mesh != input.device_mesh:
        raise ValueError(
            f"{name}: got a DTensor on {t.device_mesh}, needs {input.device_mesh}, the mesh of {first}"
        )


def _check_parts(name, t):
    """Parts of a sum, where a gradient goes back to them; torch hands the whole one to each part of an average, too."""
    if t is None or not (t.requires_grad and torch.is_grad_enabled()):
        return
    for placement in t.placements:
        if placement.is_partial() and placement.reduce_op != "sum":
            raise ValueError(
                f"{name}: got parts of a {placement.reduce_op} with a gradient, needs parts of a sum, or whole rows:"
                " redistribute it first"
            )


def by_rows(
    normalized: Callable,
    axes: int,
    input: Tensor,
    residual: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
):
    """(y, residual_out) as DTensors, split as input is, its rows whole; residual_out is None without a residual.

    Args:  normalized: the operator on tensors of one process, of (input, residual, weight, bias)
           axes: how many of the last axes a process needs whole, those of the weight
    """
    from torch.distributed.tensor import DTensor, Partial, Replicate

    for name, t in zip(NAMES, (input, residual, weight, bias), strict=True):
        _check_parts(name, t)
    whole, mesh = Replicate(), input.device_mesh
    placements = [placement if placement.is_shard() and placement.dim % input.dim() < input.dim() - axes else whole
                  for placement in input.placements]  # fmt: skip
    of_sums = [whole if placement == whole else Partial() for placement in placements]

    def local(t, split, gradient):
        if t is None:
            return None
        if list(t.placements) != split:
            t = t.redistribute(placements=split)
        return finished(t.to_local(grad_placements=gradient))

    everywhere = [whole] * mesh.ndim
    affine = [local(t, everywhere, of_sums) for t in (weight, bias)]
    rows = [local(t, placements, placements) for t in (input, residual)]
    # What processes hold differs by a row where the rows do not divide, so the whole is said.
    layout = {
        "shape": input.shape,
        "stride": torch.empty(input.shape, device="meta").stride(),
    }
    outputs = normalized(*rows, *affine)
    return tuple(
        None if t is None else DTensor.from_local(t, mesh, placements, **layout)
        for t in outputs
    )
