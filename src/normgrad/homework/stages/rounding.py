"""Why results are wrong in a narrow dtype: what is rounded where it should not be, or is not where it should."""

from __future__ import annotations

import warnings

import numpy as np

from ...checks.tolerance import Dtypes
from ..diagnosis.diagnose import OUTPUTS, diagnose
from ..diagnosis.named import named
from ..words import Wrong

# Mistakes that ordinary rows hide in float64.
HIDDEN = ("one-pass-variance", "narrow-statistics")


def rounding(exam, evidence, dtype) -> list:
    """The Diagnosis of results that are wrong in a narrow dtype; none where it is not the rounding that is wrong.

    Args:  evidence: (output, numbers, trial) of what is wrong in the dtype
    """
    known = [each for each in evidence if each[0] in OUTPUTS]
    trials = list({id(trial): trial.rounded(dtype) for _, _, trial in evidence}.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = bool(trials) and _right(exam, trials, exam.base)
        if right and known and all(_not_rounded(*each, dtype) for each in known):
            return [named("sum-not-rounded")]
        if right and "16" in dtype and _right(exam, trials, "float32"):
            return [named("narrow-intermediate")]
        for output, numbers, trial in known:
            if not right and not np.isfinite(numbers).all():  # rows that are missing in float64, too
                continue
            found = diagnose(output, numbers, trial.case, trial.spec, dtype)
            if hidden := [each for each in found if each.misconception in HIDDEN]:
                return hidden[:1]
    return []


def _not_rounded(output, numbers, trial, dtype) -> bool:
    """Whether a result is that of a sum that was normalized as it was computed, and stored rounded."""
    if getattr(trial.case, "residual", None) is None or not np.isfinite(numbers).all():
        return False
    return not diagnose(output, numbers, trial.case, trial.spec, Dtypes(dtype, round_residual=False))


def _right(exam, trials, dtype) -> bool:
    """Whether all results are right in another dtype, for the same numbers."""
    try:
        exam.compare(trials, exam.task.oracle.results, dtype)
    except Wrong:
        return False
    return True
