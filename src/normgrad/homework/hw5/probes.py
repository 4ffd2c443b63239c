"""Wrong results of homework 5 that no formula explains: what the student's code does on inputs made to tell."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import wraps

import numpy as np

from ...checks.tolerance import round_to
from ..diagnosis.named import named
from ..messages import Wrong
from .diagnosis import LOOSE, by_rounding, of_pairs, of_rows

STATISTICS = ("var", "mean")
# An error so many times the bound is no matter of rounding, which differs from one call to the next.
CERTAIN = 16
# Rows of 64 small whole numbers about this one: their sums, means and squared deviations are exact in float32.
EXACT_MEAN = 2.0**15
LARGER, FAR = 128, 100.0
# Entries of a row that are changed one at a time: the first and the last.
CHANGED = 31


@contextmanager
def explaining(exam, explain):
    """Gives wrong numbers that are met inside of it the Diagnoses of what is behind them."""
    try:
        yield
    except Wrong as wrong:
        if not wrong.evidence:
            raise
        raise Wrong(str(wrong), diagnoses=behind(exam, wrong, explain)) from None


def behind(exam, wrong, explain) -> list:
    """The Diagnoses of wrong numbers. Args: explain: rows or pairs"""
    failed = {}
    for name, _, trial in wrong.evidence:
        failed.setdefault(name, []).append((trial, exam.answers(trial), exam.task.oracle.expected(trial)))
    with np.errstate(all="ignore"):
        return explain(exam, failed)


def _probe(probe):
    """A question that has no answer where the code fails on rows that nobody promised."""

    @wraps(probe)
    def asked(*arguments):
        try:
            return probe(*arguments)
        except Wrong:
            return []

    return asked


def rows(exam, failed) -> list:
    """The Diagnoses of wrong statistics: formulas of each, then what the code does with rows made to tell."""
    known = exam.shared.setdefault("explained", set())
    found = {name: of_rows(name, trials) for name, trials in failed.items() if name not in known}
    known.update(name for name, diagnoses in found.items() if diagnoses)
    found = [each for diagnoses in found.values() for each in diagnoses]
    left = [name for name in STATISTICS if name in failed and name not in known]
    if not left:
        return found
    trials = failed[left[0]]
    trial = trials[0][0]
    more = _together(exam, left[0], trials) or _left_out(exam, trial)
    if not more and left[0] == "var":
        more = _fixed(exam, trial) or by_rounding(trials)
    if not more and (more := _offset(exam, trial, left[0])) and left[0] == "var":
        more = _rounded_means(exam, trial) or more
    known.update(STATISTICS if more else ())
    return found + more


def pairs(exam, failed) -> list:
    """The Diagnoses of wrong merges: each pair alone, then formulas of each result."""
    name, known = next(iter(failed)), exam.shared.setdefault("explained", set())
    found = _together(exam, name, failed[name], "pair")
    found = found or [each for name, trials in failed.items() if name not in known for each in of_pairs(name, trials)]
    known.update(failed if found else ())
    return found


@_probe
def _together(exam, name, failed, what="row") -> list:
    """One Diagnosis where each row is right alone, and not with the others."""
    trial, got, known = failed[0]
    off, bound = np.abs(got[name] - known[name][0]), known[name][1]
    bad = np.flatnonzero(~(off <= bound))
    if not (off[bad] > CERTAIN * bound[bad]).any():
        return []
    for at in bad:
        alone = exam.answers(trial.alone(at))[name]
        if not (np.abs(alone - known[name][0][at]) <= bound[at]).all():
            return []
    title = f"Alone each {what} is right, together they are not"
    depends, own = f"what a {what} leads to depends on the others", f"what a {what} leads to depends on it alone"
    return [named("rows-mixed", depends, own, title=title)]


def _made(trial, x):
    return replace(trial, x=round_to(x, "float32"))


@_probe
def _left_out(exam, trial) -> list:
    """One Diagnosis where an entry of a row may change, and mean or variance does not."""
    row = trial.x[0] - trial.x[0].mean()
    n = len(row)
    places = sorted({*range(min(n, CHANGED)), *range(max(0, n - CHANGED), n)})
    x = np.tile(row, (len(places) + 1, 1))
    x[np.arange(1, len(x)), places] += FAR * (1 + np.abs(row).max())
    got = exam.answers(_made(trial, x))
    for words, names in (("neither mean nor var", ("mean", "var")), ("not var", ("var",)), ("not mean", ("mean",))):
        same = np.all([got[name][1:] == got[name][0] for name in names], axis=0)
        if same.any() and not same.all():
            left = [place for place, out in zip(places, same, strict=True) if out]
            last = f":{left[-1] + 1}" if left == list(range(left[0], left[-1] + 1)) and len(left) > 1 else ""
            where = f"{left[0]}{last}" if last or len(left) == 1 else str(left)
            return [named("columns-left-out", f"x[:, {where}] of {n} columns moves {words}")]
    return []


@_probe
def _fixed(exam, trial) -> list:
    """One Diagnosis where the variance of rows that are multiplied does not grow with their square."""
    once, more = (exam.answers(_made(trial, factor * trial.x))["var"] for factor in (1, LARGER))
    if (np.abs(more - LARGER**2 * once) <= LOOSE * np.abs(more)).all():
        return []
    return [named("fixed-number", f"var of {LARGER} * x is not {LARGER}**2 times var of x")]


@_probe
def _rounded_means(exam, trial) -> list:
    """One Diagnosis where rows whose sums and mean are exact lose digits of their mean, but not those of its square."""
    deviations = np.repeat([[3, -5, 7, -1, -6, 2, -4, 4]], 8, axis=-1) * [[1], [-1]]
    x = _made(trial, EXACT_MEAN + deviations)
    var, exact = exam.answers(x)["var"], x.x.var(-1)
    off, most = np.abs(var - exact), LOOSE * EXACT_MEAN * np.sqrt(exact)
    return [named("running-mean")] if (off > LOOSE * exact).any() and (off <= most).all() else []


@_probe
def _offset(exam, trial, name) -> list:
    """One Diagnosis where the same rows less their first entry are right."""
    near = _made(trial, trial.x - trial.x[:, :1])
    value, bound = exam.task.oracle.expected(near)[name]
    right = (np.abs(exam.answers(near)[name] - value) <= bound).all()
    return [named("offset-kept")] if right else []
