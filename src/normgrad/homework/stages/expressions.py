"""Stages for answers that are SymPy expressions: their form, their letters, and what they are worth."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..diagnosis.named import Diagnosis, named
from ..words import INPUTS, Wrong, apart, swapped

MISCONCEPTIONS = {
    "letter-left-free": "A letter is free on the right alone",
    "delta-not-contracted": "A delta is still summed over",
    "counted-from-zero": "A sum begins with an entry 0",
    "text-for-expression": "A text stands where an expression belongs",
    "results-swapped": named("results-swapped").title,
}


def _named(key, hint, text, needs, equation="index-delta") -> tuple:
    """A diagnosis that the form of an answer shows."""
    return (Diagnosis(key, MISCONCEPTIONS[key], hint, equation, text[:120], needs),)


def _forms(exam, trial):
    """(outcome, forms) of a call whose answers are as many expressions as the signature says."""
    outcome, names = exam.ask(exam.task.oracle.request(trial)), exam.task.oracle.results
    forms = outcome.facts.get("forms", [])
    if len(forms) != len(names):
        raise Wrong(f"It returned {len(forms)} results, needs {len(names)}: {', '.join(names)}.")
    for name, form in zip(names, forms, strict=True):
        if "type" in form:
            got = "None" if form["type"] == "NoneType" else f"a {form['type']}"
            text = _named("text-for-expression", "What can SymPy put in the place of a letter in what you return?",
                          "a text", "an object that is made of the arguments", "")  # fmt: skip
            raise Wrong(f"{name} is {got}, needs a SymPy expression or a number. Put it together from the arguments.",
                        diagnoses=text if form["type"] == "str" else ())  # fmt: skip
    return outcome, dict(zip(names, forms, strict=True))


def returns_expressions(exam) -> str:
    """It takes SymPy objects and returns as many expressions as it should."""
    _forms(exam, exam.trials()[0])
    return "It returns what the signature says."


def letters_match(exam) -> str:
    """No letter is free that is not an argument, and none is left out that the answer depends on."""
    oracle, trial = exam.task.oracle, exam.trials()[0]
    _, forms = _forms(exam, trial)
    for name, form in forms.items():
        if extra := sorted(set(form["free"]) - set(oracle.arguments)):
            raise Wrong(
                f"In {name} the letter {extra[0]} is free, but it is no argument. Every letter that the left side does "
                f"not have belongs to a sum: Sum(..., ({extra[0]}, 1, N)).",
                diagnoses=_named("letter-left-free", "Which letters does the left side have?", form["text"],
                                 f"an expression in which {extra[0]} is bound by a sum, or gone"),
            )  # fmt: skip
        if form["outside"]:
            zero = _named("counted-from-zero", "Which entry is the first one of a row, and which is the last?",
                          form["text"], "a sum whose letter takes the values of an index", "index-mean")  # fmt: skip
            raise Wrong(f"{name} asks for {form['outside'][0]}, which is not there: indices run from 1 to the length.",
                        diagnoses=zero if form["from zero"] else ())  # fmt: skip
        letters = {letter for letter, kind in oracle.kinds if kind == "letter"} & _needed(oracle, name, trial)
        if missing := sorted(letters - set(form["free"])):
            raise Wrong(
                f"{name} does not depend on {missing[0]}. That letter is free on the left, so it is free on the right, "
                "too; is it summed?"
            )
    return "The free letters are those of the left side."


def _needed(oracle, name, trial) -> set[str]:
    """The letters on which the right answer depends."""
    value = oracle.expected(trial)[name][0].reshape([*trial.letters.values()])
    return {letter for axis, letter in enumerate(trial.letters) if np.ptp(value, axis=axis).any()}


def worth(*names):
    """A stage that compares what some results are worth, at every value of their letters."""
    return partial(_worth, names=names)


def _worth(exam, names) -> str:
    oracle, trials = exam.task.oracle, exam.trials()
    asked = [_forms(exam, trial) for trial in trials]
    got = [dict(zip(oracle.results, (v.numbers for v in outcome.values), strict=True)) for outcome, _ in asked]
    for name in names:
        for trial, found in zip(trials, got, strict=True):
            value, bound = oracle.expected(trial)[name]
            if found[name].shape != value.shape or not (np.abs(found[name] - value) <= bound).all():
                words = _words(name, found[name], value, bound, trial, asked[0][1][name])
                raise Wrong(words, diagnoses=_confused(oracle, trials, got, name))
    count = sum(len(trial.points()) for trial in trials)
    return f"Equal at all {count} values of the letters and lengths."


def _words(name, found, value, bound, trial, form) -> str:
    if found.shape != value.shape:
        return f"{name} has no value for every value of its letters."
    at = int(np.argmin(np.abs(found - value) <= bound))
    where = ", ".join(f"{letter} = {index}" for letter, index in trial.points()[at].items())
    if np.isnan(found[at]):
        left = f", because {', '.join(form['left'])} is left in it" if form["left"] else ""
        return f"{name} has no value at {where}{left}."
    got, needs = apart(found[at], value[at])
    return f"{INPUTS}{where}. Your {name} is {got} there, needs {needs}."


def _confused(oracle, trials, got, name) -> list:
    """The confusion whose answer is the student's on every case, if there is one."""
    found = []
    for confusion in oracle.confusions:
        if name not in confusion.answers:
            continue
        pairs = [(oracle.values({name: confusion.answers[name]}, trial)[name], each[name], trial)
                 for trial, each in zip(trials, got, strict=True)]  # fmt: skip
        if all(a.shape == b.shape and (np.abs(a - b) <= oracle.bound(a, t)).all() for a, b, t in pairs):
            found.append(confusion.diagnosis(oracle.texts[name]))
    if all(swapped(name, each, oracle.expected(trial)) for each, trial in zip(got, trials, strict=True)):
        found.append(named("results-swapped"))
    return found[:1]


def contracted(exam) -> str:
    """No sum still has a delta of its own letter: a delta that is summed over is contracted."""
    _, forms = _forms(exam, exam.trials()[0])
    for name, form in forms.items():
        if form["deltas"]:
            raise Wrong(
                f"{name} still has a sum over a delta: {form['text'][:120]}. In a sum over r, the delta of k and r "
                "leaves the one term with r = k; take the sum away and write k for r in what is left.",
                diagnoses=_named("delta-not-contracted", "Which terms of the sum are not 0?", form["text"],
                                 "the same without that sum"),
            )  # fmt: skip
    return "Every delta that was summed over is contracted."
