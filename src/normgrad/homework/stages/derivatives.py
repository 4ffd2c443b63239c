"""Stages that differentiate: central differences against the gradients, and the gradients' own gradients."""

from __future__ import annotations

import numpy as np

from ...checks.finite_difference import directional, inner
from ..diagnosis.named import named
from ..oracles import second
from ..oracles.norms import directional_cotangents
from ..words import INPUTS, WRONG_BEFORE, Wrong, compare, small

GRADIENTS = {"x": "dx", "weight": "dw", "bias": "db"}
CONSTANT = (named("constant-to-autograd"),)
ALL = GRADIENTS | {"residual": "dresidual"}


def gradcheck(exam) -> str:
    """The gradients against central differences of the forward, along random directions, row by row scaled."""
    rng, worst = exam.rng("directions"), (0.0, 1.0)
    for trial in exam.trials():
        names, inputs, loss = exam.task.oracle.loss(trial)
        if exam.task.oracle.op == "gradients":
            loss = _own_loss(exam, trial, names, loss)
        got = exam.answers(trial)
        if "y" in got and compare("y", got["y"], *exam.task.oracle.expected(trial)["y"])[2]:
            raise Wrong(f"{INPUTS}{trial.name}. The slopes are those of your own y, which is wrong. Put y right first.")
        spread = trial.case.x.std(-1, keepdims=True)
        direction = [rng.standard_normal(a.shape) * (spread if a.ndim == 2 else 1) for a in inputs]
        slope = directional(loss, inputs, direction)
        pairs = [(got.get(ALL[name]), v) for name, v in zip(names, direction, strict=True)]
        if missing := [name for name, (grad, _) in zip(names, pairs, strict=True) if grad is None]:
            raise ValueError(f"no gradient for {missing}")
        claimed = sum(inner(grad, v) for grad, v in pairs)
        error = abs(claimed - slope.value)
        if not error <= slope.tolerance:
            raise Wrong(
                f"{INPUTS}{trial.name}. Along a random direction the gradients give the slope {claimed:.9g}, central "
                f"differences {slope.value:.9g}: off by {small(error)}, where {small(slope.tolerance)} is allowed."
            )
        worst = max(worst, (error, slope.tolerance), key=lambda pair: pair[0] / pair[1])
    return f"Slopes agree: largest error {small(worst[0])}, allowed {small(worst[1])}."


def _own_loss(exam, trial, names, reference_loss):
    """The loss <dy, y> of the student's own forward."""
    from dataclasses import replace

    def loss(*arrays):
        moved = replace(trial, case=replace(trial.case, **dict(zip(names, arrays, strict=True))))
        y = exam.answers(moved, names=("y",))["y"]
        return float((trial.case.dy * y).sum()), reference_loss(*arrays)[1]

    return loss


def gradgradcheck(exam) -> str:
    """What the gradients pass on when they are differentiated: against the complex step of the reference."""
    rng, worst = exam.rng("directions"), (0.0, 1.0)
    for trial in exam.trials():
        trial = second.without_rows(trial, 3)
        cotangents = directional_cotangents(rng, trial)
        got, first = exam.answers(trial), exam.task.oracle.expected(trial)
        if any(compare(name, got[name], *first[name])[2] for name in GRADIENTS.values()):
            raise Wrong(WRONG_BEFORE)
        twice = {"cotangents": list(cotangents), "inputs": list(second.INPUTS)}
        request = exam.task.oracle.request(trial, second=twice, extra=cotangents)
        outcome = exam.ask(request)
        if outcome.facts.get("graph") != len(cotangents):
            raise Wrong(
                "The gradients cannot be differentiated: they are not connected to x, weight and dy. In backward use "
                "tensors from ctx.saved_tensors and operations that autograd follows, without .detach() or no_grad.",
                diagnoses=CONSTANT,
            )
        known = second.expected(trial, cotangents)
        for (name, (value, bound)), got in zip(known.items(), outcome.values, strict=True):
            if got.numbers.shape != value.shape:
                raise Wrong(
                    f"torch sees no way from {name} to the gradients. Backward uses something that forward made from "
                    f"{name} and saved: a constant, when backward is differentiated. Compute it from {name} again.",
                    diagnoses=CONSTANT,
                )
            error, allowed, words = compare(f"the second gradient for {name}, at ", got.numbers, value, bound)
            if words:
                raise Wrong(
                    f"{INPUTS}{trial.name}. Differentiated again, {words} An intermediate "
                    "that forward saved looks like a constant here; compute it from x again, or differentiate by hand.",
                    diagnoses=CONSTANT,
                )
            if np.isfinite(allowed) and allowed:
                worst = max(worst, (error, allowed), key=lambda pair: pair[0] / pair[1])
    return f"Second gradients agree: largest error {small(worst[0])}, allowed {small(worst[1])}."
