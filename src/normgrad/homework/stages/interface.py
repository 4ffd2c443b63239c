"""Stages about how a function is called: what it takes and returns, and that it leaves its inputs alone."""

from __future__ import annotations

import numpy as np

from ..diagnosis.named import named
from ..words import Wrong, compare

WRITTEN, STRIDES = (named("input-overwritten"),), (named("stride-ignored"),)


def signature(exam) -> str:
    """It can be called as described, and returns arrays of the right number, type, shape and dtype."""
    trial = exam.trials(("random",))[0]
    exam.answers(trial)
    if exam.slips:
        words = " ".join(exam.slips)
        raise Wrong(f"{words} The numbers are compared all the same.", diagnoses=map(named, exam.slips.values()))
    return "It takes and returns what the signature says."


def inputs_untouched(exam) -> str:
    """No input is written to, and the results do not depend on how the inputs lie in memory."""
    trial = exam.trials(("random",))[0]
    outcome = exam.ask(exam.task.oracle.request(trial, exam.base))
    if outcome.changed:
        names = ", ".join(outcome.changed)
        raise Wrong(f"It changed its input {names} in place. Copy what you want to write to.", diagnoses=WRITTEN)
    plain = exam.named(outcome, trial, exam.base)
    for layout in ("strided", "transposed"):
        other = exam.ask(exam.task.oracle.request(trial, exam.base, layout))
        if other.changed:
            raise Wrong(f"It changed its input {', '.join(other.changed)} in place.", diagnoses=WRITTEN)
        known = exam.task.oracle.expected(trial, exam.base)
        for name, got in exam.named(other, trial, exam.base).items():
            # Two right results may differ by twice the bound; one that ignores strides is NaN or far off.
            words = compare(name, got, plain[name], 2 * known[name][1])[2]
            if words:
                how = "every second column of a wider array" if layout == "strided" else "a transposed array"
                right = all((np.abs(plain[each] - value) <= bound).all() for each, (value, bound) in known.items())
                raise Wrong(f"With x and dy as {how}, the same numbers give another {name}. {words}",
                            diagnoses=STRIDES if right else ())  # fmt: skip
    if not all(np.isfinite(numbers).all() for numbers in plain.values()):
        raise Wrong("The results are not finite, so nothing can be said about them.")
    return "Inputs unchanged; strided and transposed inputs give the same."
