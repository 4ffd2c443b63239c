"""What a generated kernel computes that Triton has no name for."""

from __future__ import annotations

from ..triton_kernels.interpreter import tl, triton


@triton.jit
def tanh(x):
    """tanh through the sigmoid, and near 0, where that would cancel, as a quotient of polynomials."""
    square = x * x
    above = 10395 + square * (1260 + square * 21)
    below = 10395 + square * (4725 + square * (210 + square))
    return tl.where(square < 0.0625, x * above / below, 2 * tl.sigmoid(2 * x) - 1)
