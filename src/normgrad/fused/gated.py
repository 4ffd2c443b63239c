"""RMSNorm with a gate before or after it, as state-space models and linear attention use it, written by `Fused`."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from ..spec import check_eps, check_shapes

if TYPE_CHECKING:
    from torch import Tensor

    from .launch import Programs


def programs_of(gate_first: bool) -> Programs:
    """The programs of a gated norm: the kernels as they were written and proved, and the formulas in torch."""
    from . import gated_torch
    from .launch import Programs

    try:
        from . import gated_kernels
    except ImportError:
        gated_kernels = None
    name = "gate_then_rms_norm" if gate_first else "rms_norm_then_gate"
    kernels = None
    if gated_kernels is not None:
        ways = f"{name}_forward", f"{name}_backward"
        kernels = tuple(getattr(gated_kernels, way) for way in ways)
    names = ("g", "x"), ("w",), ("eps",), ("rstd",), ("g", "x", "w", "eps")
    forward = partial(gated_torch.forward, gate_first=gate_first)
    backward = partial(gated_torch.backward, gate_first=gate_first)
    return Programs(name, *names, "dy", forward, backward, kernels)


_kept = cache(programs_of)


def gated_rms_norm(
    input: Tensor,
    gate: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    *,
    gate_first: bool = False,
) -> Tensor:
    """RMSNorm over the last axis with a gate silu(gate) = gate * sigmoid(gate), in one kernel each way.

    y = x * rstd * weight * silu(gate),  rstd = 1 / sqrt(mean(x**2) + eps)                {eq}`own-forward`
    gate_first: the same with x * silu(gate) in place of x, and no gate behind

    Args:     input, gate (..., N); weight (N,) or None; eps positive; gate_first: False as in Qwen3-Next and gated
              linear attention, True as in Mamba-2
    Returns:  y in input's shape and dtype
    Numerics: as Fused, which wrote the kernels and proved them; what runs in torch is proved, too
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Dao and Gu 2024, arXiv:2405.21060
    """
    from ..torch_ops.arguments import check_flag, check_tensors, is_compiling
    from .launch import run

    if gate is None:
        raise TypeError(
            "gate: got None, needs a torch.Tensor; without a gate use rms_norm"
        )
    check_tensors(input, gate=gate, weight=weight)
    check_shapes(input, weight, None, None, name="input")
    if gate.shape != input.shape:
        raise ValueError(
            f"gate: got shape {tuple(gate.shape)}, needs {tuple(input.shape)}, the shape of input"
        )
    check_flag("gate_first", gate_first)
    if check_eps(eps) == 0:
        raise ValueError("eps: got 0, needs a positive number")
    weight = input.new_ones(input.shape[-1]) if weight is None else weight
    # A compiler traces through a cache, and warns of it.
    programs = programs_of(gate_first) if is_compiling() else _kept(gate_first)
    return run(programs, {"eps": float(eps)}, gate, input, weight)
