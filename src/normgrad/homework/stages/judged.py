"""Stages for a test that the student writes: right backwards must pass it, wrong ones must not, and why one does."""

from __future__ import annotations

from functools import partial

from ...checks.tolerance import unit_roundoff
from ..diagnosis.named import Diagnosis
from ..oracles.backwards import FLAT, RIGHT, ROW, SPREAD, WDY, WEIGHT, ZEROS, subjects
from ..oracles.seen import NOT_A_NUMBER, summed
from ..sandbox.student import Request
from ..words import OUT_OF_TIME, Wrong
from .exam import IMPATIENT_SECONDS

# Half the digits of float64: what is off by more, a test with a computed tolerance sees; rounding is far below.
VISIBLE = unit_roundoff("float64") ** 0.5
HARDLY = 0.01
# A test that ran out of time so often is given less of it from then on.
LATE = 2
NOTHING = "zeros"
BLIND = {
    WDY: "blind-constant-wdy", WEIGHT: "blind-equal-weights", ROW: "blind-one-row", SPREAD: "blind-unit-spread",
    FLAT: "blind-no-constant-row",
}  # fmt: skip
SILENT = "verdict-not-raised"
INPUTS, COMPARED = "your inputs cannot show it", "your inputs show it, and your comparison lets it pass"
# {key: (title, hint, what the test has, what it needs)}; a hint asks, and leaves the answer to the reader.
FOUND = {
    "blind-constant-wdy": (
        "In every call weight * dy is constant along each row, as for a loss that sums up y",
        "Multiply your dy by your weight and look at one row of the product. What is dx for such a row, whatever x is?",
        "weight * dy with equal entries in each row", "rows of weight * dy with different entries"),
    "blind-equal-weights": (
        "In every call all weights are equal",
        "Take two formulas that differ only in where the weight stands. On which inputs do they differ?",
        "equal weights", "weights of different size and of both signs"),
    "blind-one-row": (
        "In every call x has one row, where a sum, a mean and a mix of rows look alike",
        "Some sums run along a row, others down the rows. Can your inputs tell one from the other?",
        "x with one row", "x with several rows"),
    "blind-unit-spread": (
        "In every call rstd is 1, up to a thousandth",
        "Which quantities are worth 1 on all of your inputs? A factor of 1 cannot be missed.",
        "rstd = 1 in every row", "rows of different size"),
    "blind-no-constant-row": (
        "No row that you try is constant",
        "Which rows does the forward take that you do not try? Which of them are special for a norm?",
        "rows with different entries", "a row with equal entries among them"),
    "blind-inputs": (
        "The inputs hide the mistake",
        "Go through the terms of the formula. Which of them is 0, or equal to another one, on all of your inputs?",
        "inputs on which wrong and right agree", "inputs on which no term is 0 by chance"),
    "nan-passes": (
        "NaN passes the comparison",
        "What does your comparison say about NaN?",
        "a comparison that is false for NaN", "a comparison that demands a small error"),
    "loose-tolerance": (
        "The tolerance hides the mistake",
        "How large is the error of what you compare with? How large is your tolerance?",
        "a tolerance larger than the mistake", "a tolerance as large as the error of the difference"),
    "false-alarm": (
        "A right backward is rejected",
        "Is the tolerance larger than the error of the difference itself, at your step and in your dtype?",
        "a tolerance smaller than rounding", "a tolerance as large as the error of the difference"),
    "never-called": (
        "The backward under test is never called",
        "Which line of your test hands numbers to the backward?",
        "no call of the backward", "a call with inputs that you draw"),
    SILENT: (
        "The verdict does not leave the test as an AssertionError",
        "What does somebody who calls your test learn from it, when two numbers disagree?",
        "a verdict that is returned, or dropped", "an AssertionError"),
    **{f"{name}-not-compared": (
        f"{name} is not compared with anything",
        "Change the results of a right backward by hand, one at a time. Which change does your test notice?",
        f"a comparison without {name}", "a comparison of dx, dw and db") for name in ("dx", "dw", "db")},
}  # fmt: skip
MISCONCEPTIONS = {key: title for key, (title, *_) in FOUND.items()}
# A test that says nothing violates no equation.
EQUATIONS = {"blind-constant-wdy": "vacuous-ones", "loose-tolerance": "fd-best-step", "false-alarm": "fd-best-step",
             "never-called": "", SILENT: ""}  # fmt: skip


class Returned(Wrong):
    """A test that returned True or False."""


def _tried(exam) -> dict:
    """{what was handed over: facts, or the Wrong that it ended in} of all backwards, each in a call of its own."""
    if "tried" not in exam.shared:
        found, late, seconds = {}, 0, exam.student.seconds
        texts = {how: make() for how, make in RIGHT.items()} | {NOTHING: ZEROS}
        texts |= {number: subject.source() for number, subject in enumerate(subjects(), start=1)}
        for which, text in texts.items():
            found[which] = facts = _try(exam, text, min(seconds, IMPATIENT_SECONDS) if late >= LATE else seconds)
            late += isinstance(facts, Wrong) and OUT_OF_TIME in str(facts)
            if isinstance(facts, Wrong) and facts.stub:
                raise facts
        exam.shared["tried"] = found
    return exam.shared["tried"]


def _try(exam, text, seconds):
    """The facts of one run of the student's test on the backward of a text, or the Wrong that it ended in."""
    exam.student.begin(seconds)
    try:
        outcome = exam.ask(Request("examine", (), {"source": text}))
        facts = outcome.facts
        if not facts["rejected"] and facts["answer"] == "bool":
            raise Returned("It returned True or False. Raise AssertionError where the backward is wrong, and return "
                           "nothing.")  # fmt: skip
        if not facts["calls"]:
            raise Wrong("It never called the backward that it was given.", diagnoses=(_named("never-called"),))
    except Wrong as error:
        return error
    return facts | summed(_calls(outcome.values))


def _calls(values):
    """(inputs, results) of each call that was kept, in the formats that they had."""
    arrays = [value.numbers.astype(value.facts["dtype"]) for value in values]
    return [(arrays[at : at + 5], arrays[at + 5 : at + 8]) for at in range(0, len(arrays), 8)]


def _facts(exam, which):
    """What is known of one run.

    Raises:  Wrong where it ended in something else than a verdict
    """
    facts = _tried(exam)[which]
    if isinstance(facts, Returned):
        raise Wrong(str(facts), diagnoses=_silent(exam))
    if isinstance(facts, Wrong):
        raise facts
    return facts


def _silent(exam) -> tuple:
    """One Diagnosis where the test cannot say no: it rejects nothing, and returns a verdict or has nothing to raise.

    A return of True after assertions that do reject is another matter.
    """
    found = _tried(exam).values()
    if any(isinstance(facts, dict) and facts["rejected"] for facts in found):
        return ()
    answered = any(isinstance(facts, Returned) for facts in found)
    return (_named(SILENT),) if answered or not exam.student.look(exam.task.entry)["raises"] else ()


def accepts_right(exam) -> str:
    """Right backwards pass, however they are written; and a backward of zeros does not."""
    for how in RIGHT:
        if (facts := _facts(exam, how))["rejected"]:
            raise Wrong(_alarm(how, facts), diagnoses=(_named("false-alarm"),))
    facts = _facts(exam, NOTHING)
    if not facts["rejected"]:
        blind = (_named(BLIND[WDY]),) if WDY in facts["shared"] else ()
        why = f"{FOUND[BLIND[WDY]][0]}: there dx is 0 anyway. " if blind and exam.feedback != "hint" else ""
        words = f"It accepts a backward that returns zeros. {why}Raise AssertionError when a gradient is wrong."
        raise Wrong(words, diagnoses=(*_silent(exam), *blind))
    return f"{len(RIGHT)} right backwards pass; a backward of zeros does not."


def _alarm(how, facts) -> str:
    said = f' It said: "{facts["words"]}".' if facts["words"] else ""
    narrow = " Your inputs are narrower than float64." if "narrow" in facts["shared"] else ""
    return (
        f"It rejects a right backward ({how}), whose largest error is {max(facts['off'].values()):.0e} of the size "
        f"of its terms, by rounding.{said}{narrow} What a comparison may be off by can be computed: truncation of the "
        "difference, plus rounding over the step."
    )


def rejects(number):
    """The stage of one wrong backward, counted from 1."""
    return partial(_rejects, number=number)


def _rejects(exam, number) -> str:
    subject, facts = subjects()[number - 1], _facts(exam, number)
    if facts["rejected"]:
        return f'Rejected. Its author believed: "{subject.mutant.mistake}".'
    reason, side, key = _why(exam, subject, facts)
    short = f"Number {number} passes your test. Its {subject.output} is wrong; {side}."
    long = f'It passes your test. Its author believed: "{subject.mutant.mistake}". {reason} See {subject.equation}.'
    raise Wrong(short if exam.feedback == "hint" else long, diagnoses=(_named(key, subject.equation),))


def _why(exam, subject, facts):
    """(a sentence, whose fault it is, a key): the inputs hide the mistake, or the comparison lets it pass."""
    off, output, shared = facts["off"][subject.output], subject.output, facts["shared"]
    hiding = [name for name in subject.hidden_by if name in shared]
    if off <= VISIBLE:
        hiding += [name for name in BLIND if name in shared]
    if hiding and off < HARDLY:
        key = BLIND[hiding[0]]
        return f"{FOUND[key][0]}: there its {output} is right, or nearly, so no comparison can see it.", INPUTS, key
    if off <= VISIBLE:
        words = f"On your inputs its {output} is right, up to {off:.0e}: they cannot show this mistake."
        return words, INPUTS, "blind-inputs"
    share = "not a number" if off >= NOT_A_NUMBER else f"off by {off:.2g} of the size of its terms"
    words = f"On your inputs its {output} is {share}, and your comparison lets that pass."
    return words, COMPARED, _let_pass(exam, subject, off)


def _let_pass(exam, subject, off) -> str:
    """The blind spot of a comparison that saw the mistake and said nothing."""
    if _silent(exam):
        return SILENT
    if off >= NOT_A_NUMBER:
        return "nan-passes"
    if (facts := exam.shared.get(subject.output)) is None:
        facts = exam.shared[subject.output] = _try(exam, subject.ruined(), exam.student.seconds)
    seen = isinstance(facts, Wrong) or facts["rejected"]
    return "loose-tolerance" if seen else f"{subject.output}-not-compared"


def _named(key, equation="ln-forward"):
    title, hint, has, needs = FOUND[key]
    return Diagnosis(key, title, hint, EQUATIONS.get(key, equation), has, needs)
