"""What is timed: input sets, one call of each direction on a set, the copy that moves as many bytes; and rounds."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

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


def timed(call: Callable[[int], object], repeats: int = 1) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        call(0)
    return (time.perf_counter() - start) / repeats


def interleaved(calls: dict, timed: Callable) -> Iterator[dict]:
    """Rounds without an end, each {name: what the clock says}, in the names' order; the order of timing rotates.

    Args:  calls: {name: function of an int}; timed: the clock, a function of one of them
    """
    names = list(calls)
    for call in calls.values():
        call(0)
    for turn in count():
        first = turn % len(names)
        said = {name: timed(calls[name]) for name in names[first:] + names[:first]}
        yield {name: said[name] for name in names}


def processor() -> str:
    """The name of this machine's processor."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
