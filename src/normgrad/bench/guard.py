"""Nothing wrong is timed: outputs and gradients are compared with a reference before the clock starts."""

from __future__ import annotations

import math

import torch

from ..checks import tolerance

# Compared so many elements at a time, since the comparison is in float64.
CHUNK = 2**24


def outcome(function, inputs, cotangents) -> dict[str, torch.Tensor]:
    """{name: tensor} of the outputs of an implementation and of all its gradients.

    Args:  function: of (x, residual, weight, bias); inputs: those four, None where absent; cotangents: of the outputs
    """
    outputs = function(*inputs)
    if len(outputs) != len(cotangents):
        raise ValueError(f"outputs: got {len(outputs)}, needs {len(cotangents)}, one for each cotangent")
    present = [(name, t) for name, t in zip(("dx", "dresidual", "dw", "db"), inputs, strict=True) if t is not None]
    grads = torch.autograd.grad(outputs, [t for _, t in present], cotangents)
    named = dict(zip(("y", "residual_out"), (t.detach() for t in outputs), strict=False))
    return named | {name: grad for (name, _), grad in zip(present, grads, strict=True)}


def difference(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    """||mine - theirs|| / ||theirs|| of the worst row, in float64, so that one wrong row among many is seen.

    NaN where a value is not finite, infinity where shape or dtype is off. A vector is one row.
    """
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return math.inf
    columns, worst = theirs.shape[-1], 0.0
    rows = max(1, CHUNK // columns)
    for a, b in zip(mine.reshape(-1, columns).split(rows), theirs.reshape(-1, columns).split(rows), strict=True):
        off, size = (a.double() - b.double()).norm(dim=-1), b.double().norm(dim=-1)
        ratio = torch.where(off == 0, 0.0, off / size).max().item()
        if math.isnan(ratio):
            return ratio
        worst = max(worst, ratio)
    return worst


def limit(dtype: str, rows: int, columns: int) -> float:
    """The largest difference that roundings explain.

    An element meets a few roundings to its dtype. A sum of n terms of either sign, added one after the other, is off by
    about u sqrt(n) of its own size, u the unit roundoff of the sums' dtype.

    Args:  dtype: the name of the inputs' dtype; rows, columns: M and N
    """
    sums = tolerance.unit_roundoff(tolerance.accumulator(dtype)) * math.sqrt(max(rows, columns))
    return tolerance.ELEMENTWISE * (tolerance.unit_roundoff(dtype) + sums)


def differences(mine: dict, theirs: dict) -> dict[str, float]:
    """{name: difference} of everything that the reference has."""
    return {name: difference(mine[name], theirs[name]) for name in theirs}


def refusal(found: dict[str, float], allowed: float) -> str | None:
    """Why an implementation is not timed; None where every difference is allowed. NaN never is."""
    wrong = [f"{name} by {value:.2g}" for name, value in found.items() if not value <= allowed]
    return f"differs from the reference: {', '.join(wrong)}; allowed {allowed:.2g}" if wrong else None
