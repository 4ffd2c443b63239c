"""A test that the student writes: right backwards must pass it, wrong ones must not, and why one does."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import numpy_ref
from ...spec import LAYER_NORM
from ...tolerance import unit_roundoff
from ..checks.exam import IMPATIENT_SECONDS
from ..messages import OUT_OF_TIME, Wrong
from ..sandbox.student import Request
from .backwards import ENTRIES, FLAT, FLAT_ZERO, OUTPUTS, RIGHT, SUBJECTS, ZEROS

ZERO = "zeros"
# A test that ran out of time so often is given less of it from then on.
LATE = 2
# Where a line of the student's own raises what it was that ended the call.
RAISED = ": raise "
# Half the digits of float64: what is off by more, a test with a computed tolerance sees; rounding is far below.
VISIBLE = unit_roundoff("float64") ** 0.5
# Terms that add up to no more of the size of a row were made to add up to 0; numbers that differ by no more are equal.
BALANCED, NEARLY_ONE = 1e-9, 1e-3
EQUAL = 16 * np.finfo(np.float64).eps
# Of inputs on which a wrong backward may be right, in words.
SPECIAL = {
    "the weight has equal entries": lambda s: np.ptp(s.weight) == 0,
    "weight * dy is constant": lambda s: np.ptp(s.wdy) <= EQUAL * abs(s.wdy).max(),
    "weight * dy adds up to 0": lambda s: (
        abs(s.wdy.sum(-1)).max() <= BALANCED * abs(s.wdy).sum(-1).max()
    ),
    "there is one row": lambda s: len(s.x) == 1,
    "all rows are the same": lambda s: not np.ptp(s.x, 0).any() | np.ptp(s.dy, 0).any(),
    "rows and columns are equally many": lambda s: s.x.shape[0] == s.x.shape[1],
    "rstd is 1": lambda s: (abs(s.rstd - 1) < NEARLY_ONE).all(),
    "the means are 0": lambda s: (abs(s.mean) * s.rstd < NEARLY_ONE).all(),
    "a row has two entries": lambda s: s.x.shape[1] <= 2,
    "no row is constant": lambda s: np.ptp(s.x, -1).all(),
}


class Call:
    """What the student's test handed to a backward, and what that gave, in float64."""

    def __init__(self, arrays):
        arrays = [array.astype(np.float64) for array in arrays]
        self.given, self.grads = arrays[:5], arrays[5:]
        self.dy, self.x, self.weight, self.mean, self.rstd = self.given
        self.wdy = self.dy * self.weight

    def exchanged(self) -> str:
        """Two arguments that stand in each other's place, by the means of the rows; "" for none."""
        means = self.x.mean(-1)
        if self.mean.shape != means.shape or np.allclose(self.mean, means):
            return ""
        if np.allclose(self.mean, self.dy.mean(-1)):
            return "dy and x"
        return "mean and rstd" if np.allclose(self.rstd, means) else ""

    def special(self) -> set[str]:
        """What is special about the inputs, keys of SPECIAL."""
        if not self.x.size:
            return set(SPECIAL)
        return {words for words, holds in SPECIAL.items() if holds(self)}

    def off(self) -> dict:
        """{gradient: largest error over the size of its terms}: where terms cancel, one like rounding is no error.

        Where all terms of an entry are 0, or rounding beside those of other rows, its error is taken over the size of
        the others.
        """
        terms = np.abs(self.wdy).max(-1, keepdims=True, initial=0)
        largest = terms.max(initial=0)
        terms = np.where(terms > BALANCED * largest, terms, largest)
        sums = np.abs(self.dy).sum(0)
        sizes, shares = (self.rstd[:, None] * terms, sums, sums), {}
        for at, name in enumerate(OUTPUTS):
            size = np.where(sizes[at] > 0, sizes[at], sizes[at].max(initial=0))
            error = np.abs(self.grads[at] - right(*self.given)[at])
            share = error / np.maximum(size, np.finfo(np.float64).tiny)
            shares[name] = float(np.nan_to_num(share, nan=np.inf).max(initial=0))
        return shares


def right(dy, x, weight, mean, rstd):
    """(dx, dw, db) of LayerNorm.  {eq}`ln-dx`, {eq}`ln-dw`, {eq}`ln-db`"""
    saved = numpy_ref.Forward(None, x, mean, rstd, weight, weight, LAYER_NORM)
    grads = numpy_ref.backward(dy, saved)
    return grads.dx, grads.dweight, grads.dbias


def _tried(exam) -> dict:
    """{what was handed over: facts, or the Wrong that it ended in} of all backwards, each in a call of its own."""
    if "tried" in exam.shared:
        return exam.shared["tried"]
    sources = RIGHT | {ZERO: ZEROS}
    for number, subject in enumerate(SUBJECTS, start=1):
        sources[number] = subject.source()
    tried, late, seconds = {}, 0, exam.student.seconds
    for which, source in sources.items():
        limit = min(seconds, IMPATIENT_SECONDS) if late >= LATE else seconds
        tried[which] = facts = _try(exam, source, limit)
        if isinstance(facts, Wrong):
            late += OUT_OF_TIME in str(facts)
            if facts.stub:
                raise facts
    exam.shared["tried"] = tried
    return tried


def _try(exam, source, seconds):
    """The facts of one run of the student's test on the backward of a text, or the Wrong that it ended in."""
    exam.student.begin(seconds)
    try:
        outcome = exam.ask(Request("examine", (), {"source": source}))
    except Wrong as error:
        if RAISED not in str(error):
            return error
        return Wrong(f"{error} Only AssertionError counts as a rejection.")
    facts = outcome.facts
    if facts.get("answer") == "bool":
        return Wrong(
            "It returned True or False. Raise AssertionError where the backward is wrong, and return nothing."
        )
    if not facts["calls"]:
        return Wrong("It never called the backward that it was given.")
    arrays = [value.numbers.astype(value.facts["dtype"]) for value in outcome.values]
    with np.errstate(all="ignore"):
        calls = [Call(arrays[at : at + 8]) for at in range(0, len(arrays), 8)]
        special = [call.special() for call in calls]
        shares = [call.off() for call in calls]
    off = {name: max((s[name] for s in shares), default=0.0) for name in OUTPUTS}
    shared = set.intersection(*special) if special else set()
    exchanged = [call.exchanged() for call in calls]
    return facts | {"special": shared, "off": off, "exchanged": max(exchanged)}


def _facts(exam, which):
    """What is known of one run.

    Raises:  Wrong where it ended in something else than a verdict
    """
    facts = _tried(exam)[which]
    if isinstance(facts, Wrong):
        raise facts
    return facts


def _passes(exam, source) -> bool:
    """Whether the student's test lets one more backward pass."""
    facts = _try(exam, source, exam.student.seconds)
    return isinstance(facts, dict) and not facts["rejected"]


def accepts_right(exam) -> str:
    """Right backwards pass, however they are written; and a backward of zeros does not."""
    for how in RIGHT:
        facts = _facts(exam, how)
        if facts["rejected"]:
            error = max(facts["off"].values())
            if facts["exchanged"]:
                words = f"{facts['exchanged']} stand in each other's place"
                raise Wrong(
                    f"It rejects a right backward ({how}): {words} where your test calls it. The backwards are called "
                    "as backward(dy, x, weight, mean, rstd)."
                )
            words = f"whose largest error is {error:.0e} of the size of its terms"
            said = ""
            if facts["words"]:
                said = f' It said: "{facts["words"]}".'
            raise Wrong(
                f"It rejects a right backward ({how}), {words}.{said} Either what you compare with is wrong (another "
                "loss, other statistics than layernorm_forward returns, an entry of x that is not put back), or you "
                "allow less than the forward's rounding and the truncation of a difference, which can be computed."
            )
    facts = _facts(exam, ZERO)
    if not facts["rejected"]:
        words = "It accepts a backward that returns zeros. Raise AssertionError when a gradient is wrong."
        raise Wrong(words + _about(exam, facts))
    return f"{len(RIGHT)} right backwards pass; a backward of zeros does not."


def _about(exam, facts) -> str:
    """A sentence about what is special in all calls of a test."""
    special = facts["special"]
    if not special or exam.feedback == "hint":
        return ""
    words = [words for words in SPECIAL if words in special]
    return f" In all of your calls {', and '.join(words)}."


def rejects(number):
    """The stage of one wrong backward, counted from 1."""
    return partial(_rejects, number=number)


def _rejects(exam, number) -> str:
    subject, facts = SUBJECTS[number - 1], _facts(exam, number)
    if facts["rejected"]:
        rejected = f"Number {number} is rejected, but a backward passes whose"
        outputs = [s.output for s in SUBJECTS]
        first = outputs.index(subject.output) == number - 1
        for words, value in ENTRIES.items() if first else ():
            if _passes(exam, subject.changed(value)):
                raise Wrong(f"{rejected} {subject.output} {words}")
        by_dividing = subject.mistake == FLAT
        if by_dividing and _all_rejected(exam) and _passes(exam, FLAT_ZERO):
            raise Wrong(f"{rejected} dx is 0 on constant rows.")
        return f'Rejected. Its author believed: "{subject.mistake}".'
    off = facts["off"][subject.output]
    which = f"Its {subject.output}"
    fault = "your inputs show it, and your comparison lets it pass"
    why = f"On your inputs its {subject.output} is off by {off:.2g} of the size of its terms"
    if off == np.inf:
        why = f"On your inputs its {subject.output} has entries that are not finite, and no comparison with NaN is true"
    if off <= VISIBLE:
        fault = "your inputs cannot show it"
        why = f"On your inputs its {subject.output} is right, up to {off:.0e}"
    if exam.feedback == "hint":
        raise Wrong(f"Number {number} passes your test. {which} is wrong; {fault}.")
    about = _about(exam, facts) if off <= VISIBLE else ""
    raise Wrong(
        f'It passes your test. Its author believed: "{subject.mistake}". {why}: {fault}.{about} '
        f"See {subject.equation}."
    )


def _all_rejected(exam) -> bool:
    """Whether zeros and all wrong backwards are rejected."""
    tried = _tried(exam)
    numbers = range(1, len(SUBJECTS) + 1)
    facts = [tried[which] for which in (ZERO, *numbers)]
    return all(isinstance(own, dict) and own["rejected"] for own in facts)
