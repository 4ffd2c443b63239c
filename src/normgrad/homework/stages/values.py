"""Stages that compare numbers with the reference: ordinary rows, degenerate ones, narrow dtypes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..diagnosis.named import named
from ..oracles.norms import DEGENERATE, OFFSET, USUAL
from ..words import INPUTS, OUT_OF_TIME, Wrong
from .rounding import rounding


def value(*names):
    """A stage that compares some results, element by element, on every usual kind of rows."""
    return partial(_value, names=names)


def _value(exam, names) -> str:
    *usual, other = exam.trials()
    return two_shapes(exam, usual, [other], names)


def two_shapes(exam, trials, others, names, explain=lambda wrong: [named("one-shape")]) -> str:
    """As Exam.compare, for trials of one shape and then for others: what is wrong for these alone has a name.

    Args:  explain: takes the Wrong of the others, returns the diagnoses
    """
    sentence = exam.compare(trials, names)
    try:
        exam.compare(others, names)
    except Wrong as wrong:
        if wrong.stub or OUT_OF_TIME in str(wrong):
            raise
        words = str(wrong) if str(wrong).startswith(INPUTS) else f"{INPUTS}{others[0].name}. {wrong}"
        found = wrong.diagnoses or explain(wrong)
        raise Wrong(f"{words} For x of shape {trials[0].case.x.shape} it is right.", diagnoses=found) from None
    return sentence


def degenerate(exam) -> str:
    """Rows without variance, rows of zeros, no rows, one row, one column."""
    exam.compare(exam.trials(DEGENERATE), exam.task.oracle.results)
    return "Constant rows, zero rows, no rows, one row and one column are right."


def quietly_degenerate(exam) -> str:
    """As degenerate, and NumPy has nothing to warn of on a constant row and a row of zeros."""
    said = degenerate(exam)
    (trial,) = exam.trials(DEGENERATE[:1])
    if words := exam.ask(replace(exam.task.oracle.request(trial), op="warned")).facts["warning"]:
        raise Wrong(f"{INPUTS}{trial.name}. The results are right, but NumPy warned: {words}. Compute nothing there "
                    "that is thrown away afterwards.", diagnoses=[named("warns")])  # fmt: skip
    return said


def low_precision(exam) -> str:
    """The narrow dtypes: results come in the dtype of x and are as close as sums in float32 can be."""
    oracle, sentences = exam.task.oracle, []
    for dtype in oracle.dtypes:
        trials = exam.trials((*USUAL, *OFFSET))
        try:
            sentences.append(f"{dtype}: {exam.compare(trials, oracle.results, dtype).lower()}")
        except Wrong as wrong:
            hint = " Compute in float32 and round once, at the end." if "float16" in dtype else ""
            found = rounding(exam, wrong.evidence, dtype)
            raise Wrong(f"{wrong}{hint}", stub=wrong.stub, diagnoses=found) from None
    return " ".join(sentences)
