"""Designs of a LayerNorm on this CPU, compiled by Numba: bytes predicted as multiples of a copy, and times measured so.

One thread, and memory for all results made and touched beforehand. Each round times every design once, in an order that
rotates, and each time is divided by the copy's of its own round.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numba import njit

from ..bench import results
from ..checks import tolerance
from ..numba_kernels import kernels, launch
from ..spec import LAYER_NORM
from ..torch_ops.api import layer_norm
from . import bytes as traffic

DTYPE = "float32"
COPY = "copy"


@dataclass(frozen=True)
class Design:
    """What is timed, what it moves by the count of traffic, and where its results lie, by their names."""

    call: Callable[[], object]
    moved: traffic.Traffic
    results: dict[str, np.ndarray]


@dataclass(frozen=True)
class Measured:
    """Multiples of a copy: predicted, and the quartiles of what was measured; the median time in seconds."""

    predicted: float
    low: float
    median: float
    high: float
    seconds: float


def machine() -> str:
    """The processor, its cores, and how many programs want one now."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{results.processor()}, {os.cpu_count()} cores, one thread{load}"


@njit(**kernels.OPTIONS)
def _backward_with_products(dy, p, weight, mean, rstd, dx, products, N, n, zero, scale):
    """dx, and in a matrix what each row adds to dw; both are streamed, as the kernels' own results are."""
    line, added = kernels.line_for(dx), kernels.line_for(products)
    for i in range(len(p)):
        c1, c2 = kernels.row_sums(dy[i], p[i], weight, mean[i], rstd[i], scale, zero)
        row = kernels.held(line, dx, i)
        kernels.input_gradient(
            dy[i], dy[i, :0], p[i], weight, mean[i], rstd[i], scale, c1 / n, c2 / N, row
        )
        kernels.send(line, dx, i)
        row = kernels.held(added, products, i)
        for j in range(len(row)):
            row[j] = dy[i, j] * kernels.normalized(p[i], mean[i], rstd[i], j)
        kernels.send(added, products, i)


def designs(rows: int, columns: int, generator: torch.Generator) -> dict[str, Design]:
    """{name: design} of a forward, of an addition and a forward, and of a backward, a copy first.

    Args:     rows, columns: M and N; generator: draws the inputs
    Raises:   ValueError naming a design whose results are wrong
    """
    shape = {"rows": rows, "columns": columns, "dtype": DTYPE}
    x, residual, dy = torch.randn(3, rows, columns, generator=generator)
    weight, bias = torch.randn(2, columns, generator=generator)
    # Within a row dy follows the row and the constant, so that the gradient's projections are large.
    dy += x + 1
    inputs = x, residual, weight, bias, dy
    x, residual, weight, bias, dy = (t.numpy() for t in inputs)
    # As torch hands out memory, at a multiple of 64 bytes, so that large results are streamed.
    y, total, products = torch.zeros(3, rows, columns).numpy()
    mean, rstd, *written = np.zeros((4, rows), x.dtype)
    sums, none, no_sums = np.zeros((2, 1, columns), x.dtype), x[:, :0], weight[None, :0]
    numbers = launch._numbers(LAYER_NORM, columns, torch.float32)
    N, n, zero, _, scale, *_ = numbers

    def forward(p, added=none, stored=none, statistics=written):
        kernels.forward(
            0,
            1,
            p,
            added,
            weight,
            bias,
            y,
            stored,
            *statistics,
            *numbers,
            launch.MOST[torch.float32],
        )

    def backward(dx=y, dw=sums[0], db=sums[1]):
        dw[:], db[:] = 0, 0
        kernels.backward(0, 1, dy, none, x, weight, mean, rstd, dx, dw, db, *numbers)

    def apart():
        np.add(x, residual, out=total)
        forward(total)

    def two_kernels():
        backward(dw=no_sums, db=no_sums)
        backward(dx=none)

    def matrix():
        _backward_with_products(
            dy, x, weight, mean, rstd, y, products, N, n, zero, scale
        )
        np.sum(products, 0, out=sums[0, 0])
        np.sum(dy, 0, out=sums[1, 0])

    forward(x, statistics=(mean, rstd))
    copied = traffic.copy(2 * x.nbytes)
    ahead, back = {"y": y}, {"dx": y, "dw": sums[0, 0], "db": sums[1, 0]}
    both = {**ahead, "residual_out": total}
    by_name = {
        COPY: Design(lambda: np.copyto(y, x), copied, {}),
        "copy, new memory": Design(x.copy, copied, {}),
        "forward": Design(
            lambda: forward(x), traffic.moved("layer_norm", "forward", **shape), ahead
        ),
        "add, then norm": Design(
            apart, traffic.unfused("add_layer_norm", "forward", **shape), both
        ),
        "add and norm": Design(
            lambda: forward(x, residual, total),
            traffic.moved("add_layer_norm", "forward", **shape),
            both,
        ),
        "backward, matrix": Design(matrix, traffic.matrix("layer_norm", **shape), back),
        "backward, two kernels": Design(
            two_kernels, traffic.two_kernels("layer_norm", **shape), back
        ),
        "backward, persistent": Design(
            backward, traffic.moved("layer_norm", "backward", **shape), back
        ),
    }
    _check(by_name, *inputs)
    return by_name


def _check(designs, x, residual, weight, bias, dy):
    """An error for a design whose results differ by more than roundings from this package in torch operations."""
    columns = x.shape[-1]

    def reference(p):
        leaves = [t.detach().requires_grad_() for t in (p, weight, bias)]
        y = layer_norm(leaves[0], columns, *leaves[1:], backend="torch")
        values = (y.detach(), *torch.autograd.grad(y, leaves, dy))
        return dict(zip(("y", "dx", "dw", "db"), values, strict=True))

    alone, added = (
        reference(x),
        reference(x + residual) | {"residual_out": x + residual},
    )
    # A sum of n terms of either sign, added one after the other, is off by about u sqrt(n) of its own size.
    unit = tolerance.unit_roundoff(DTYPE)
    allowed = tolerance.ELEMENTWISE * unit * (1 + math.sqrt(max(x.shape)))
    for name, design in designs.items():
        design.call()
        right = added if "residual_out" in design.results else alone
        for array, mine in design.results.items():
            theirs = right[array].numpy()
            off = np.linalg.norm(mine - theirs, axis=-1) / np.linalg.norm(
                theirs, axis=-1
            )
            if not np.all(off <= allowed):
                worst = f"{array} by {np.max(off):.2g}; allowed {allowed:.2g}"
                raise ValueError(f"{name}: differs from the reference: {worst}")


def measure(
    rows: int = 4096, columns: int = 4096, rounds: int = 9, seed: int = 0
) -> dict[str, Measured]:
    """{name: predicted and measured multiples of a copy} of each design.

    Args:  rows, columns: M and N; rounds: at least 1; seed: of the inputs
    """
    timed = designs(rows, columns, torch.Generator().manual_seed(seed))
    names = list(timed)
    seconds = {name: [] for name in names}
    for turn in range(rounds):
        for step in range(len(names)):
            name = names[(turn + step) % len(names)]
            start = time.perf_counter()
            timed[name].call()
            seconds[name].append(time.perf_counter() - start)
    copied = timed[COPY].moved.total
    measured = {}
    for name, design in timed.items():
        ratios = [
            mine / its for mine, its in zip(seconds[name], seconds[COPY], strict=True)
        ]
        low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
        measured[name] = Measured(
            design.moved.total / copied,
            low,
            middle,
            high,
            statistics.median(seconds[name]),
        )
    return measured
