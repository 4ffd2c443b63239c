"""What is timed: input sets, one call of each direction on a set, and the copy that moves as many bytes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .plan import Shape


@dataclass(frozen=True)
class Inputs:
    """One input set: (x, residual, weight, bias), None where absent, and the cotangents of the outputs."""

    arguments: tuple
    cotangents: tuple

    @property
    def leaves(self):
        """The arguments that get gradients."""
        return [t for t in self.arguments if t is not None]


def draw(shape: Shape, count: int, device, generator: torch.Generator) -> list[Inputs]:
    """Input sets that share the parameters.

    Rows have an offset. Within a row dy follows the row and the constant, so that the gradient's projections are large;
    the signs differ from row to row, so that the sums over rows stay in float16's range.

    Args:  shape; count: how many; device: a torch device; generator: draws them, on that device
    """
    dtype, size = getattr(torch, shape.dtype), (shape.rows, shape.columns)

    def normal(*size):
        return torch.randn(size, generator=generator, device=device)

    def leaf(t):
        return t.to(dtype).requires_grad_()

    weight = leaf(normal(shape.columns) + 0.5)
    bias = leaf(normal(shape.columns)) if shape.operator.endswith("layer_norm") else None
    added, drawn = shape.operator.startswith("add_"), []
    for _ in range(count):
        x = normal(*size).add_(0.5)
        signs = [normal(shape.rows, 1).sign_() for _ in range(2)]
        dy = normal(*size).addcmul_(signs[0], x).add_(signs[1]).to(dtype)
        residual = leaf(normal(*size)) if added else None
        cotangents = (dy, normal(*size).to(dtype)) if added else (dy,)
        drawn.append(Inputs((leaf(x), residual, weight, bias), cotangents))
    return drawn


def call(function, direction: str, drawn: list[Inputs]):
    """A function of k that does one call on set k and returns all that the call made.

    A forward stores what a backward needs, as in training. Gradients are returned, and accumulated nowhere.

    Args:  function: of (x, residual, weight, bias); direction: as traffic.moved; drawn: the sets
    """
    if direction == "forward":
        return lambda k: function(*drawn[k].arguments)

    def gradients(outputs, k, keep):
        return torch.autograd.grad(outputs, drawn[k].leaves, drawn[k].cotangents, retain_graph=keep)

    if direction == "backward":
        made = [function(*one.arguments) for one in drawn]
        return lambda k: gradients(made[k], k, True)

    def both(k):
        outputs = function(*drawn[k].arguments)
        return outputs, gradients(outputs, k, False)

    return both


def copies(moved_bytes: int, count: int, device, generator):
    """A function of k that copies half as many bytes as given, the k-th buffer into another.

    Args:  moved_bytes: read and written together; count: pairs of buffers; device, generator: as draw
    """
    half = max(1, moved_bytes // 2)
    pairs = [[torch.empty(half, dtype=torch.uint8, device=device) for _ in range(2)] for _ in range(count)]
    for source, _ in pairs:
        source.random_(generator=generator)
    return lambda k: pairs[k][1].copy_(pairs[k][0])
