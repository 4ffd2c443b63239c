"""What the timing tools share: implementations of the operators, inputs, the check before the clock starts, and files.

An implementation is a function of (x, residual, weight, bias) that returns a tuple of outputs: (y,), or
(y, residual_out) where there is a residual.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import torch
import torch.nn.functional as F

import normgrad
from normgrad.checks import tolerance

OPERATORS = ("layer_norm", "rms_norm", "add_layer_norm", "add_rms_norm")
DTYPES = ("bfloat16", "float16", "float32")
COPY = "copy"
# One eps for everyone; passed explicitly, since the defaults of rms_norm differ.
EPS = {"layer_norm": 1e-5, "rms_norm": 1e-6}
# Results are compared so many elements at a time, since the comparison is in float64.
CHUNK = 2**24


@dataclass(frozen=True)
class Shape:
    """An operator on M rows of length N."""

    operator: str
    dtype: str
    rows: int
    columns: int

    @property
    def size(self) -> dict:
        """What the bytes of an operation depend on, and a record of times holds."""
        return {"rows": self.rows, "columns": self.columns, "dtype": self.dtype}


# Implementations


class Unavailable(Exception):
    """An implementation that is not installed; the message says what it needs."""


def ours(operator: str, backend: str):
    """This package, through its public functions."""
    if backend == "numba" and find_spec("numba") is None:
        raise Unavailable("needs numba, which the extra normgrad[cpu] installs")
    function, eps = getattr(normgrad, operator), EPS[operator.removeprefix("add_")]

    def call(x, residual, weight, bias):
        inputs = (x,) if residual is None else (x, residual)
        affine = (weight,) if operator.endswith("rms_norm") else (weight, bias)
        out = function(*inputs, x.shape[-1], *affine, eps, backend=backend)
        return (out,) if residual is None else out

    return call


def eager(operator: str):
    """torch's own kernels: the sum, then the norm."""
    eps = EPS[operator.removeprefix("add_")]
    if operator.endswith("rms_norm"):
        return summed(lambda p, weight, bias: F.rms_norm(p, p.shape[-1:], weight, eps))
    return summed(
        lambda p, weight, bias: F.layer_norm(p, p.shape[-1:], weight, bias, eps)
    )


def compiled(operator: str):
    """torch.compile of the same two lines, for static shapes.

    What was compiled for earlier shapes is forgotten: at a limit on recompilations torch would run eagerly, silently.
    """
    import torch._dynamo
    import torch._functorch.config

    # a backward that is timed many times keeps its graph, which donated buffers forbid
    torch._functorch.config.donated_buffer = False
    torch._dynamo.reset()
    return torch.compile(eager(operator), fullgraph=True, dynamic=False)


def liger(operator: str):
    """Liger's Triton kernels, called as its modules call them; it may not overwrite the cotangent, which is read again.

    LayerNorm with a residual, which Liger does not fuse, is the sum and then its LayerNorm.
    """
    try:
        from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    except ImportError as error:
        raise Unavailable(
            f"needs liger-kernel, which the extra normgrad[bench] installs ({error})"
        ) from error
    eps = EPS[operator.removeprefix("add_")]
    offset, casting, in_place = 0.0, "llama", False
    if operator == "add_rms_norm":
        added = LigerFusedAddRMSNormFunction.apply
        return lambda x, residual, weight, bias: added(
            x, residual, weight, eps, offset, casting, in_place
        )
    if operator == "rms_norm":
        return summed(
            lambda p, weight, bias: LigerRMSNormFunction.apply(
                p, weight, eps, offset, casting, in_place
            )
        )
    return summed(
        lambda p, weight, bias: LigerLayerNormFunction.apply(p, weight, bias, eps)
    )


def summed(norm):
    """The sum, and then a norm of (p, weight, bias); without a residual the norm alone."""

    def call(x, residual, weight, bias):
        if residual is None:
            return (norm(x, weight, bias),)
        p = x + residual
        return norm(p, weight, bias), p

    return call


def installed(builders: dict, operator: str) -> dict:
    """{name: implementation of an operator} of the builders whose library is here; the others are named in print."""
    functions = {}
    for name, build in builders.items():
        try:
            functions[name] = build(operator)
        except Unavailable as error:
            print(f"{name} is left out: {error}", flush=True)
    return functions


# Inputs and calls


@dataclass(frozen=True)
class Inputs:
    """(x, residual, weight, bias), None where absent, and the cotangents of the outputs."""

    arguments: tuple
    cotangents: tuple

    @property
    def leaves(self):
        """The arguments that get gradients."""
        return [t for t in self.arguments if t is not None]


def draw(shape: Shape, device, generator: torch.Generator) -> Inputs:
    """Inputs of an operator.

    Rows have an offset. Within a row dy follows the row and the constant, so that the gradient's projections are large;
    the signs differ from row to row, so that the sums over rows stay in float16's range.

    Args:  shape; device: a torch device; generator: draws them, on that device
    """
    dtype, size = getattr(torch, shape.dtype), (shape.rows, shape.columns)

    def normal(*size):
        return torch.randn(size, generator=generator, device=device)

    def leaf(t):
        return t.to(dtype).requires_grad_()

    weight = leaf(normal(shape.columns) + 0.5)
    bias = (
        leaf(normal(shape.columns)) if shape.operator.endswith("layer_norm") else None
    )
    x = normal(*size).add_(0.5)
    signs = [normal(shape.rows, 1).sign_() for _ in range(2)]
    dy = normal(*size).addcmul_(signs[0], x).add_(signs[1]).to(dtype)
    if not shape.operator.startswith("add_"):
        return Inputs((leaf(x), None, weight, bias), (dy,))
    return Inputs(
        (leaf(x), leaf(normal(*size)), weight, bias), (dy, normal(*size).to(dtype))
    )


def call(function, direction: str, inputs: Inputs) -> Callable[[], object]:
    """A function without arguments that computes a direction, and returns all that it computed.

    A forward stores what a backward needs, as in training. Gradients are returned, and accumulated nowhere.

    Args:  function: an implementation; direction: "forward", "backward" or "both"; inputs: as draw
    """
    if direction == "forward":
        return lambda: function(*inputs.arguments)

    def gradients(outputs, keep):
        return torch.autograd.grad(
            outputs, inputs.leaves, inputs.cotangents, retain_graph=keep
        )

    if direction == "backward":
        outputs = function(*inputs.arguments)
        return lambda: gradients(outputs, True)

    def both():
        outputs = function(*inputs.arguments)
        return outputs, gradients(outputs, False)

    return both


# Nothing wrong is timed


def outcome(function, inputs: Inputs) -> dict[str, torch.Tensor]:
    """{name: tensor} of the outputs of an implementation and of all its gradients."""
    outputs = function(*inputs.arguments)
    if len(outputs) != len(inputs.cotangents):
        raise ValueError(
            f"outputs: got {len(outputs)}, needs {len(inputs.cotangents)}, one for each cotangent"
        )
    gradients = torch.autograd.grad(outputs, inputs.leaves, inputs.cotangents)
    arguments = zip(("dx", "dresidual", "dw", "db"), inputs.arguments, strict=True)
    names = [*("y", "residual_out")[: len(outputs)]]
    names += [name for name, argument in arguments if argument is not None]
    tensors = [*(output.detach() for output in outputs), *gradients]
    return dict(zip(names, tensors, strict=True))


def difference(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    """||mine - theirs|| / ||theirs|| of the worst row, in float64, so that one wrong row among many is detected.

    NaN where a value is not finite, infinity where shape or dtype is off. A vector is one row.
    """
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return math.inf
    columns, worst = theirs.shape[-1], 0.0
    rows = max(1, CHUNK // columns)
    for a, b in zip(
        mine.reshape(-1, columns).split(rows),
        theirs.reshape(-1, columns).split(rows),
        strict=True,
    ):
        off, size = (a.double() - b.double()).norm(dim=-1), b.double().norm(dim=-1)
        ratio = torch.where(off == 0, 0.0, off / size).max().item()
        if math.isnan(ratio):
            return ratio
        worst = max(worst, ratio)
    return worst


def refusal(shape: Shape, function, inputs: Inputs) -> str | None:
    """Why an implementation is not timed; None where it differs from this package in torch operations by roundings.

    An element meets a few roundings to its dtype. A sum of n terms of either sign, added one after the other, is off by
    about u sqrt(n) of its own size, u the unit roundoff of the sums' dtype. NaN is never allowed.
    """
    u = tolerance.unit_roundoff
    sums = u(tolerance.accumulator(shape.dtype)) * math.sqrt(
        max(shape.rows, shape.columns)
    )
    allowed = tolerance.ELEMENTWISE * (u(shape.dtype) + sums)
    mine = outcome(function, inputs)
    theirs = outcome(ours(shape.operator, "torch"), inputs)
    differences = {name: difference(mine[name], theirs[name]) for name in theirs}
    wrong = [
        f"{name} by {value:.2g}"
        for name, value in differences.items()
        if not value <= allowed
    ]
    if not wrong:
        return None
    return f"differs from the reference: {', '.join(wrong)}; allowed {allowed:.2g}"


# Clocks, figures and files


def timed(
    call: Callable[[], object], repeats: int = 1, clock=time.perf_counter
) -> float:
    """Seconds of a call."""
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


def interleaved(calls: dict, timed: Callable) -> Iterator[dict]:
    """Rounds without an end, each {name: what the clock says}, in the names' order; the order of timing rotates.

    Args:  calls: {name: function}; timed: the clock, a function of one of them
    """
    names = list(calls)
    for call in calls.values():
        call()
    for turn in count():
        first = turn % len(names)
        times = {name: timed(calls[name]) for name in names[first:] + names[:first]}
        yield {name: times[name] for name in names}


def spread(values) -> list[float]:
    """The first quartile, the median and the third quartile, to four digits."""
    if len(values) < 2:
        values = values * 2
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    return [float(f"{value:.4g}") for value in quartiles]


def begun(kind: str, device: dict, settings: dict) -> dict:
    """Results of today without records, as normgrad.bench.results describes them."""
    versions = {
        "torch": torch.__version__,
        "normgrad": normgrad.__version__,
        "python": platform.python_version(),
    }
    return {
        "kind": kind,
        "device": device,
        "versions": versions,
        "date": datetime.date.today().isoformat(),
        "settings": {"spread": "quartile, median, quartile", **settings},
        "records": [],
    }


def size(text: str) -> tuple[int, int]:
    """(M, N) of a text such as 4096x1024."""
    rows, columns = text.split("x")
    return int(rows), int(columns)


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all timing tools have."""
    options = argparse.ArgumentParser(description=description.partition("\n\n")[0])
    add = options.add_argument
    add("--json", help="the results file to write")
    add(
        "--operators",
        nargs="+",
        choices=OPERATORS,
        default=OPERATORS,
        help="only these",
    )
    return options


def save(file: str | os.PathLike, results: dict) -> None:
    """Write results, a record a line; a run that is cut short leaves the file as it was before or as it is after."""
    target = Path(file)
    beside = target.with_name(f"{target.name}.part")
    head = json.dumps(
        {name: value for name, value in results.items() if name != "records"},
        indent=1,
        allow_nan=False,
    )
    lines = ",\n".join(
        json.dumps(record, allow_nan=False) for record in results["records"]
    )
    beside.write_text(f'{head[:-2]},\n "records": [\n{lines}\n]}}\n', encoding="utf8")
    os.replace(beside, target)
