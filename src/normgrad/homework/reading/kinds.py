"""What tells the inputs that come out right from the others, where nothing else names a mistake: digits and sizes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from ..messages import Wrong
from ..named import named

SHORT, SHORTER, ODD, LONG = (4, 16), (4, 64), (4, 17), (4, 1030)
MANY, FIVE, SINGLE, SINGLE_ODD = (64, 16), (5, 16), (1, 16), (1, 17)
MIXED = "rows-mixed"
SUMS = ("dw", "db")  # over the rows
# (key of the mistake, shapes of x for which all is right, a shape for which it is not), the first that fits
BY_SIZE = (
    ("padding-counted", (SHORT, SHORTER), ODD),
    ("last-rows", (MANY,), FIVE),
    ("many-rows", (SHORT,), MANY),
    ("many-columns", (SHORT,), LONG),
    (MIXED, (SINGLE, SINGLE_ODD), SHORT),
)
NARROW = "float32"
DRAWS = 3
ONE_ROW = "Is it set, with =, in a loop in which the rows are to be added up, or set to 0 anew for each row?"
# times the bound by which a result is wrong in itself; less may be one row of many that is near the bound
FAR = 100
# by which a result that is computed in float32 may come nearer than the bound of float32
FINER = 1e4


def told_apart(exam, evidence) -> list:
    """A Diagnosis of wrong numbers by the inputs for which they are right; [] where these do not tell.

    Args:  evidence: (output, numbers, trial) of each result that is wrong
    """
    if not hasattr(exam.oracle, "op"):  # there is no shape of x
        return []
    for told in (_handed_on, _digits, _sizes, _rows):
        if diagnoses := told(exam, evidence):
            return diagnoses
    return []


def _handed_on(exam, evidence):
    """Whether a wrong result is an input, which is no coincidence for random numbers."""
    for output, numbers, trial in evidence:
        # a sum over no rows adds nothing to the weight
        if not getattr(trial, "case", trial).x.size:
            continue
        for argument in exam.oracle.request(trial).arguments:
            value = np.asarray(argument.value)
            if value.size > 1 and np.array_equal(value, numbers):
                title = f"{output} is {argument.name}, as it came in"
                return [named("identity", title=title)]
    return []


def _digits(exam, evidence):
    """Whether all results have the digits of float32, and some have not those that are asked for.

    For a sum in float32. It stops what is rounded to 12 decimals: arithmetic in float32 loses more than that.
    """
    if exam.base == NARROW:
        return []
    oracle, trials = exam.oracle, {id(trial): trial for *_, trial in evidence}
    outputs, wrong = {output for output, *_ in evidence}, False
    for trial in trials.values():
        try:
            results = exam.answers(trial)
        except Wrong:
            return []
        allowed = oracle.expected(trial, NARROW)
        for output, (value, bound) in oracle.expected(trial).items():
            if output in outputs:
                error = np.abs(results[output] - value)
                if not (error <= allowed[output][1]).all():
                    return []
                is_narrow = error > allowed[output][1] / FINER
                wrong = wrong or (is_narrow & (error > bound)).any()
    title = f"Right to the digits of {NARROW}, and not to those of {exam.base}"
    return [named("narrow-arithmetic", title=title)] if wrong else []


def _sizes(exam, evidence):
    """The first of BY_SIZE that fits."""
    names = tuple({output: 0 for output, *_ in evidence})

    @cache
    def error(shape):
        try:
            exam.compare(_of_shape(exam, shape), names)
        except Wrong as wrong:
            return wrong
        return None

    if _of_shape(exam, SHORT)[0].case.x.shape != SHORT:  # it has no rows and columns
        return []
    for key, right, wrong in BY_SIZE:
        if key == MIXED and {*names} <= {*SUMS}:  # all rows belong in these
            continue
        if not any(map(error, right)) and _is_far(exam, error(wrong)):
            if key == MIXED and not _is_finite(error(wrong)):
                continue  # nothing is written there
            shapes = " and ".join(map(str, right))
            title = f"Right for x of shape {shapes}, wrong for {wrong}"
            return [named(key, title=title)]
    return []


def _is_far(exam, error):
    """Whether what a comparison found is far from what is needed.

    For a sum of squares that counts padded columns. It stops an eps left out, which one row of four shows.
    """
    for output, numbers, trial in getattr(error, "evidence", ()):
        needed, bound = exam.oracle.expected(trial, exam.base)[output]
        if np.shape(numbers) != np.shape(needed):
            return True
        if not (np.abs(numbers - needed) <= FAR * bound).all():
            return True
    return error is not None and not error.evidence


def _is_finite(error):
    """Whether what a comparison found are numbers, which may come from another row."""
    return all(np.isfinite(n).all() for _, n, _ in getattr(error, "evidence", ()))


def _of_shape(exam, shape):
    """Some ordinary rows of a shape."""
    draw = replace(exam.draw, rows=shape[0], columns=shape[1])
    rngs = [exam.rng("sizes", str(k)) for k in range(DRAWS)]
    return [exam.oracle.trials(rng, draw)[0] for rng in rngs]


def _rows(exam, evidence):
    """Which rows do not reach a sum over the rows: with a cotangent in one row alone, the others are right."""
    for output, _, trial in evidence:
        if output not in SUMS:
            continue
        dy, wrong = trial.case.dy, []
        for row in range(len(dy)):
            own = np.zeros_like(dy)
            own[row] = dy[row]
            moved = replace(trial, case=replace(trial.case, dy=own))
            try:
                exam.compare([moved], (output,))
            except Wrong as error:
                if any(numbers.any() for _, numbers, _ in error.evidence):
                    return []  # it is there, and another one
                wrong.append(str(row))
        if 0 < len(wrong) < len(dy):
            rows = f"row{'s' * (len(wrong) > 1)} {', '.join(wrong)} of {len(dy)}"
            title = (
                f"{output} is wrong in what {rows} add{'s' * (len(wrong) == 1)} to it"
            )
            diagnosis = named("rows-left-out", title=title)
            if len(wrong) == len(dy) - 1 > 1:
                diagnosis.title = f"{output} holds what one row adds to it"
                diagnosis.hint = ONE_ROW
            return [diagnosis]
    return []
