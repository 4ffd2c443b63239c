"""Wrong results of homework 5 that no formula explains: what the student's code does on inputs made to tell."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import wraps

import numpy as np

from ...checks.tolerance import round_to
from ..diagnosis.named import named
from ..messages import Wrong
from .diagnosis import (
    LOOSE,
    MERGED,
    RIGHT,
    U,
    between,
    by_rounding,
    of_pairs,
    of_rows,
    rough_mean,
)

STATISTICS = ("var", "mean")
# An error so many times the bound is no matter of rounding, which differs from one call to the next.
CERTAIN = 16
# Rows of 64 small whole numbers about this one: their sums, means and squared deviations are exact in float32.
EXACT_MEAN = 2.0**15
LARGER, FAR, SCATTERED = 128, 100.0, ", far apart"
# Odd numbers below 2**12, whose squares, sums and means float32 holds, and float16 does not: the mean is 2**11.
WHOLE = 2.0**11 + np.array([301.0, -501.0, 701.0, -501.0])
# So many entries less than a row's own are tried beside it.
SHORTER = 4
# No rounding is so large a share of what is rounded.
PLAIN = 0.01
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
        failed.setdefault(name, []).append(
            (trial, exam.answers(trial), exam.task.oracle.expected(trial))
        )
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
    found = {
        name: of_rows(name, trials)
        for name, trials in failed.items()
        if name not in known
    }
    if [each.misconception for each in found.get("var", ())] == ["variance-uncentred"]:
        found["var"] = _padded(exam, failed["var"][0][0]) or found["var"]
    known.update(name for name, diagnoses in found.items() if diagnoses)
    found = [each for diagnoses in found.values() for each in diagnoses]
    left = [name for name in STATISTICS if name in failed and name not in known]
    if not left:
        return found
    trials = failed[left[0]]
    trial = trials[0][0]
    more = _together(exam, left[0], trials) or _left_out(exam, trial)
    if not more and left[0] == "var":
        more = _padded(exam, trial) or _fixed(exam, trial)
    if not more and _lost_digits(exam, left[0], trials):
        more = by_rounding(trials) if left[0] == "var" else []
        if not more and (more := _offset(exam, trial, left[0])) and left[0] == "var":
            more = _rounded_means(exam, trial) or more
    more = more or (rough_mean(trials) if left[0] == "var" else [])
    known.update(STATISTICS if more else ())
    return found + more


def pairs(exam, failed) -> list:
    """The Diagnoses of wrong merges: each pair alone, then formulas of each result."""
    name, known = next(iter(failed)), exam.shared.setdefault("explained", set())
    found = _together(exam, name, failed[name], "pair")
    if not found and any(
        (got["n"] != right["n"][0]).any()
        for trials in failed.values()
        for _, got, right in trials
    ):
        return []  # whatever is made of a wrong count follows from it
    left = [(name, trials) for name, trials in failed.items() if name not in known]
    found = found or [each for name, trials in left for each in of_pairs(name, trials)]
    found = found or [
        each for name, trials in left for each in _parts(exam, trials[0][0], name)
    ]
    known.update(failed if found else ())
    return found


@_probe
def _parts(exam, trial, name) -> list:
    """What is wrong with a merge: with squares alone, with means alone; a mean in proportion to the means."""

    def answers(**parts):
        made = replace(trial, parts=trial.parts | parts)
        return exam.answers(made)[name], exam.task.oracle.expected(made)[name][0]

    mean1, mean2 = (trial.parts[each] for each in ("mean1", "mean2"))
    if name == "mean":
        (once, _), (twice, _) = answers(), answers(mean1=2 * mean1, mean2=2 * mean2)
        if not _close(answers(mean1=-mean1, mean2=-mean2)[0], -once, LOOSE):
            words = "mean = mean1 + n2 / n * abs(mean2 - mean1)"
            apart = mean1 + trial.parts["n2"] / (
                trial.parts["n1"] + trial.parts["n2"]
            ) * np.abs(mean2 - mean1)
            return (
                [named("merge-sign", words, MERGED[name])]
                if _close(once, apart, PLAIN)
                else []
            )
        return (
            [named("merge-weights", equation="fp-merge")]
            if _close(twice, 2 * once, LOOSE)
            else []
        )
    if name == "n":
        return []
    found = []
    none = 0 * mean1
    if not _close(*answers(mean1=none, mean2=none), PLAIN):
        found.append(named("merge-within", equation="fp-merge"))
    got, value = answers(squares1=none, squares2=none)
    if not _close(got, value, PLAIN):
        words = between(trial, got)
        found.append(
            named(
                "merge-between", words, MERGED["squares"] if words else "", "fp-merge"
            )
        )
    return found


def _close(got, value, share) -> bool:
    return bool((np.abs(got - value) <= share * np.abs(value)).all())


@_probe
def _together(exam, name, failed, what="row") -> list:
    """One Diagnosis where each row is right alone, and not with the others."""
    trial, got, known = failed[0]
    off, bound = np.abs(got[name] - known[name][0]), known[name][1]
    bad = np.flatnonzero(~(off <= bound))
    if not (off[bad] > CERTAIN * bound[bad]).any():
        return (
            []
            if what == "pair" or trial.name.endswith(SCATTERED)
            else _scattered(exam, name, trial)
        )
    for at in bad:
        alone = exam.answers(trial.alone(at))[name]
        if not (np.abs(alone - known[name][0][at]) <= bound[at]).all():
            return []
    title = f"Alone each {what} is right, together they are not"
    depends, own = (
        f"what a {what} leads to depends on the others",
        f"what a {what} leads to depends on it alone",
    )
    equation = "fp-statistics" if what == "row" else "fp-merge"
    return [named("rows-mixed", depends, own, equation, title=title)]


def _scattered(exam, name, trial) -> list:
    """As _together, for the same rows with means far from each other, where it is wrong for them."""
    far = _made(trial, trial.x + EXACT_MEAN * np.arange(len(trial.x))[:, None])
    far = replace(far, name=trial.name + SCATTERED)
    got, known = exam.answers(far), exam.task.oracle.expected(far)
    value, bound = known[name]
    return (
        []
        if (np.abs(got[name] - value) <= bound).all()
        else _together(exam, name, [(far, got, known)])
    )


def _made(trial, x):
    return replace(trial, x=round_to(x, "float32"))


@_probe
def _left_out(exam, trial) -> list:
    """One Diagnosis where an entry of a row may change, and mean or variance does not."""
    row = trial.x[0] - trial.x[0].mean()
    n = len(row)
    places = sorted({*range(min(n, CHANGED)), *range(max(0, n - CHANGED), n)})
    far, once = FAR * (1 + np.abs(row).max()), len(places) + 1
    x = np.tile(row, (2 * once, 1))
    x[np.arange(1, once), places] += far
    x[np.arange(once + 1, 2 * once), places] -= far
    got = exam.answers(_made(trial, x))
    for words, names in (
        ("neither mean nor var", ("mean", "var")),
        ("not var", ("var",)),
        ("not mean", ("mean",)),
    ):
        if any(got[name][0] == 0 for name in names):  # cut off there, or never computed
            continue
        same = np.all([got[name][1:once] == got[name][0] for name in names], axis=0)
        same &= np.all(
            [got[name][once + 1 :] == got[name][0] for name in names], axis=0
        )  # a median moves one way only
        if same.any() and not same.all():
            left = [place for place, out in zip(places, same, strict=True) if out]
            last = (
                f":{left[-1] + 1}"
                if left == list(range(left[0], left[-1] + 1)) and len(left) > 1
                else ""
            )
            where = f"{left[0]}{last}" if last or len(left) == 1 else str(left)
            return [
                named("columns-left-out", f"x[:, {where}] of {n} columns moves {words}")
            ]
    return []


@_probe
def _padded(exam, trial) -> list:
    """One Diagnosis where zeros are counted that fill a row up: rows of two lengths have one length with their zeros.

    A zero that is counted for every row is a wrong divisor, and no padding.
    """
    far, found = trial.x + np.abs(trial.x).max(), {}
    for n in range(far.shape[1], max(far.shape[1] - SHORTER, 1), -1):
        shorter = _made(trial, far[:, :n])
        got, exact = exam.answers(shorter)["var"], shorter.x.var(-1)
        rest = n * (got - exact) / ((shorter.x**2).mean(-1) - exact)
        counted = np.round(rest)
        alike = (np.abs(rest - counted) <= PLAIN * counted).all() and (
            counted == counted[0]
        ).all()
        if alike and counted[0] not in (0, n):
            found[n] = int(counted[0])
    whole = [n + zeros for n, zeros in found.items()]
    n = next((n for n, zeros in found.items() if whole.count(n + zeros) > 1), None)
    if n is None:
        return []
    return [
        named(
            "padding-counted",
            f"squares of {found[n]} zeros less the mean are added, for {n} columns",
            RIGHT,
        )
    ]


@_probe
def _fixed(exam, trial) -> list:
    """One Diagnosis where the variance of rows that are multiplied does not grow with their square: a number is added,
    or it grows with another power."""
    once, more = (
        exam.answers(_made(trial, factor * trial.x))["var"] for factor in (1, LARGER)
    )
    if (
        not np.isfinite([once, more]).all()
        or (np.abs(more - LARGER**2 * once) <= LOOSE * np.abs(more)).all()
    ):
        return []
    power = np.log(np.abs(more / once)) / np.log(LARGER)
    if np.ptp(power) <= PLAIN and abs(power.mean() - 2) > PLAIN:
        return [
            named(
                "other-power",
                f"var of {LARGER} * x is {LARGER}**{power.mean():.3g} times var of x",
            )
        ]
    return [
        named("fixed-number", f"var of {LARGER} * x is not {LARGER}**2 times var of x")
    ]


@_probe
def _lost_digits(exam, name, failed) -> bool:
    """Whether what is wrong is as small as rounding makes it, and right where nothing need be rounded.

    What formula it is does not matter there: a wrong one is wrong on whole numbers, too, or off by more.
    """
    power = STATISTICS[::-1].index(name) + 1
    for trial, got, known in failed:
        size = np.abs(trial.x).max(-1) ** power
        if not (
            np.abs(got[name] - known[name][0])
            <= (trial.x.shape[1] / LOOSE * U + 1) * LOOSE * size
        ).all():
            return False
    whole = _made(failed[0][0], np.stack([WHOLE, -WHOLE, WHOLE[::-1]]))
    got, exact = exam.answers(whole)[name], exam.task.oracle.expected(whole)[name][0]
    return bool((np.abs(got - exact) <= LOOSE * WHOLE.mean() ** power).all())


@_probe
def _rounded_means(exam, trial) -> list:
    """One Diagnosis where rows whose sums and mean are exact lose digits of their mean, but not those of its square."""
    deviations = np.repeat([[3, -5, 7, -1, -6, 2, -4, 4]], 8, axis=-1) * [[1], [-1]]
    x = _made(trial, EXACT_MEAN + deviations)
    var, exact = exam.answers(x)["var"], x.x.var(-1)
    off, most = np.abs(var - exact), LOOSE * EXACT_MEAN * np.sqrt(exact)
    return (
        [named("running-mean")]
        if (off > LOOSE * exact).any() and (off <= most).all()
        else []
    )


@_probe
def _offset(exam, trial, name) -> list:
    """One Diagnosis where the same rows less their first entry are right."""
    near = _made(trial, trial.x - trial.x[:, :1])
    value, bound = exam.task.oracle.expected(near)[name]
    right = (np.abs(exam.answers(near)[name] - value) <= bound).all()
    return [named("offset-kept")] if right else []
