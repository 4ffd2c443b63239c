"""RMSNorm with a gate before or after it, as state-space models and linear attention use it, made by `Fused`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sympy import evaluate, sqrt

from ..spec import check_eps, check_shapes
from ..symbolic import Defs, dim, index, mean, sigmoid, tensor, total
from .operator import Fused

if TYPE_CHECKING:
    from torch import Tensor


@cache
def gated_layer(gate_first: bool) -> Fused:
    """The layer behind gated_rms_norm, its closed forms proved.

    Args:  gate_first: whether the gate multiplies x, or what is normalized
    """
    M, N = dim("M"), dim("N")
    i, j = index("i", "j")
    eps, rstd = tensor("eps", positive=True), tensor("rstd", M, positive=True)
    x, g, p, x_hat, y, dy, wdy, dp = (tensor(name, M, N) for name in ("x", "g", "p", "x_hat", "y", "dy", "wdy", "dp"))
    w, c1 = tensor("w", N), tensor("c1", M)

    def silu(r, k):
        return g[r, k] * sigmoid(g[r, k])

    def before(r, k):
        return silu(r, k) if gate_first else 1

    def after(r, k):
        return 1 if gate_first else silu(r, k)

    with evaluate(True):
        defs = Defs()
        defs[p[i, j]] = x[i, j] * before(i, j)
        defs[rstd[i]] = 1 / sqrt(mean(N, lambda r: p[i, r] ** 2) + eps)
        defs[x_hat[i, j]] = p[i, j] * rstd[i]
        defs[y[i, j]] = w[j] * x_hat[i, j] * after(i, j)
        defs[wdy[i, j]] = dy[i, j] * w[j] * after(i, j)
        defs[c1[i]] = mean(N, lambda r: x_hat[i, r] * wdy[i, r])
        defs[dp[i, j]] = rstd[i] * (wdy[i, j] - x_hat[i, j] * c1[i])
        slope = sigmoid(g[i, j]) * (1 + g[i, j] * (1 - sigmoid(g[i, j])))
        gradients = {
            x[i, j]: dp[i, j] * before(i, j),
            g[i, j]: slope * (dp[i, j] * x[i, j] if gate_first else dy[i, j] * w[j] * x_hat[i, j]),
            w[j]: total(M, lambda r: dy[r, j] * x_hat[r, j] * after(r, j)),
        }
        name = "gate_then_rms_norm" if gate_first else "rms_norm_then_gate"
        return Fused(defs, [y[i, j]], gradients=gradients, name=name)


def gated_rms_norm(
    input: Tensor, gate: Tensor, weight: Tensor | None = None, eps: float = 1e-6, *, gate_first: bool = False
) -> Tensor:
    """RMSNorm over the last axis with a gate silu(gate) = gate * sigmoid(gate), in one kernel each way.

    y = x * rstd * weight * silu(gate),  rstd = 1 / sqrt(mean(x**2) + eps)                {eq}`own-forward`
    gate_first: the same with x * silu(gate) in place of x, and no gate behind

    Args:     input, gate (..., N); weight (N,) or None; eps positive; gate_first: False as in Qwen3-Next and gated
              linear attention, True as in Mamba-2
    Returns:  y in input's shape and dtype
    Numerics: as Fused; the kernels are generated, and proved before the first call, which takes two seconds
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Dao and Gu 2024, arXiv:2405.21060
    """
    from ..torch_ops.arguments import check_flag, check_tensors

    if gate is None:
        raise TypeError("gate: got None, needs a torch.Tensor; without a gate use rms_norm")
    check_tensors(input, gate=gate, weight=weight)
    check_shapes(input, weight, None, None, name="input")
    if gate.shape != input.shape:
        raise ValueError(f"gate: got shape {tuple(gate.shape)}, needs {tuple(input.shape)}, the shape of input")
    check_flag("gate_first", gate_first)
    if check_eps(eps) == 0:
        raise ValueError("eps: got 0, needs a positive number")
    weight = input.new_ones(input.shape[-1]) if weight is None else weight
    return gated_layer(gate_first)(x=input, g=gate, w=weight, eps=float(eps))
