"""Forward plus backward on a CPU, float32: this package beside torch's kernels, eager autograd and the source's way.

Each round times every implementation once, in an order that rotates, so that a machine whose speed drifts slows all
of them alike; what is compared is the median of the ratios, round by round.
"""

from __future__ import annotations

import statistics
import time

import torch
import torch.nn.functional as F

import normgrad
from normgrad import LAYER_NORM
from normgrad.torch_ops import formula as torch_formula

SHAPES = ((128, 256), (4096, 1024), (2048, 8192))
# A small shape is run often enough that one timing is not a clock tick: about 4 Mi elements a timing.
ELEMENTS_PER_TIMING = 4 * 2**20


class StagedLayerNorm(torch.autograd.Function):
    """LayerNorm's gradient as source 003 stages it: each intermediate is a tensor of its own, and all are saved.

    Its weight is an argument here; the source reads it from a global.
    """

    @staticmethod
    def forward(ctx, x, weight, bias):
        mean = x.mean(axis=1)
        q = x - mean.unsqueeze(1)
        v = torch.mean(q**2, axis=1)
        d = torch.sqrt(v + LAYER_NORM.eps)
        y = (q / d.unsqueeze(1)) * weight.unsqueeze(0) + bias.unsqueeze(0)
        ctx.save_for_backward(x, mean, q, v, d, y, weight)
        return y

    @staticmethod
    def backward(ctx, dy):
        _, _, q, _, d, _, weight = ctx.saved_tensors
        n = q.shape[1]
        dw = torch.einsum("bq,bq,b->q", [dy, q, 1 / d])
        c2 = torch.einsum("ph,h,p->p", [dy, weight, 1 / d]).unsqueeze(1) / n
        c1 = torch.einsum("ph,h,ph,p->p", [dy, weight, q, d ** (-3)]).unsqueeze(1) / n
        return dy * weight.unsqueeze(0) / d.unsqueeze(1) - c2 - q * c1, dw, dy.sum(axis=0)


def _norms():
    """{name: function of (x, weight, bias)}: LayerNorm in four ways."""

    def torchs(x, weight, bias):
        return F.layer_norm(x, x.shape[-1:], weight, bias)

    def eager(x, weight, bias):
        return torch_formula.forward(x, None, weight, bias, LAYER_NORM)[0]

    return {"torch": torchs, "eager": eager, "source": StagedLayerNorm.apply}


def implementations(operation: str):
    """{name: function of (x, residual, weight, bias) that returns a tuple of outputs}, for one of the two operations.

    Args:  operation: "layer_norm", whose residual is not used, or "add_layer_norm", which returns the sum as well
    """
    if operation == "layer_norm":
        plain = {name: lambda x, r, w, b, f=f: (f(x, w, b),) for name, f in _norms().items()}
        return {"normgrad": lambda x, r, w, b: (normgrad.layer_norm(x, x.shape[-1], w, b, backend="torch"),), **plain}
    if operation != "add_layer_norm":
        raise ValueError(f"operation: got {operation!r}, needs 'layer_norm' or 'add_layer_norm'")

    def added(f):
        def function(x, residual, weight, bias):
            p = x + residual
            return f(p, weight, bias), p

        return function

    fused = {"normgrad": lambda x, r, w, b: normgrad.add_layer_norm(x, r, x.shape[-1], w, b, backend="torch")}
    return {**fused, **{name: added(f) for name, f in _norms().items()}}


def _timed(function, inputs, cotangents, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        outputs = function(*inputs)
        torch.autograd.grad(outputs, inputs, cotangents[: len(outputs)], allow_unused=True)
    return (time.perf_counter() - start) / repeats


def measure(operation: str, shape: tuple[int, int], rounds: int, generator: torch.Generator):
    """{name: times in seconds, one a round} of forward plus backward.

    Args:  operation: as implementations; shape: (M, N); rounds: at least 1; generator: draws the inputs
    """
    m, n = shape
    inputs = [torch.randn(size, generator=generator, requires_grad=True) for size in ((m, n), (m, n), (n,), (n,))]
    cotangents = [torch.randn(m, n, generator=generator) for _ in range(2)]
    functions = implementations(operation)
    repeats = max(1, ELEMENTS_PER_TIMING // (m * n))
    names, times = list(functions), {name: [] for name in functions}
    for round_ in range(rounds + 1):
        for k in range(len(names)):
            name = names[(round_ + k) % len(names)]
            seconds = _timed(functions[name], inputs, cotangents, repeats)
            if round_ > 0:
                times[name].append(seconds)
    return times


def run(rounds: int, threads: int):
    """Print the table: median milliseconds of each implementation, and this package's time over each of theirs."""
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    print(f"forward + backward, float32, torch {torch.__version__}, {threads} threads, median of {rounds} rounds\n")
    names = list(implementations("layer_norm"))
    header = "".join(f"{name:>10}" for name in names) + "".join(f"{'/ ' + name:>10}" for name in names[1:])
    print(f"{'':16}{'(M, N)':>13}{'milliseconds':>{10 * len(names)}}{'normgrad over':>{10 * (len(names) - 1)}}")
    print(f"{'':29}{header}")
    for operation in ("layer_norm", "add_layer_norm"):
        for shape in SHAPES:
            times = measure(operation, shape, rounds, generator)
            ms = "".join(f"{1e3 * statistics.median(times[name]):10.3f}" for name in names)
            pairs = (zip(times["normgrad"], times[name], strict=True) for name in names[1:])
            ratios = "".join(f"{statistics.median(a / b for a, b in pair):10.2f}" for pair in pairs)
            print(f"{operation:16}{str(shape):>13}{ms}{ratios}", flush=True)
    print("\nnormgrad over X: below 1 is faster than X. torch: its own kernels. eager: autograd of the formula.")
    print("source: the autograd function as source text 003 stages it, intermediates saved.")
