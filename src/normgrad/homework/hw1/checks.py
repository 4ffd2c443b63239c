"""Answers that are SymPy expressions: what they are worth at every value of their indices, and their form."""

from __future__ import annotations

import ast
import re
from configparser import ConfigParser
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from ...tolerance import ELEMENTWISE, unit_roundoff
from ..messages import INPUTS, Wrong, a, apart, swapped
from ..named import Diagnosis, named
from ..reading.rerun import tree_of
from ..sandbox.operations import number_at, objects_of
from ..sandbox.student import Given, Request
from ..task import Stage

# Rows and columns of the small cases; the last one comes from the draw, as far as writing out sums stays quick.
SIZES = ((2, 3), (3, 2), (2, 1))
MOST_ROWS, MOST_COLUMNS = 3, 4
EIGHTHS = 40
ANSWERS = ConfigParser(interpolation=None)
ANSWERS.read_string(Path(__file__).with_name("answers.ini").read_text(encoding="utf8"))
KNOWN: dict = {}  # right answers of cases that have been asked for
KINDS = {
    "M": "length",
    "N": "length",
    "j": "index",
    "k": "index",
    "a": "index",
    "b": "index",
}


@dataclass(frozen=True)
class Sheet:
    """One small case: the arrays and the lengths, and every value of the indices."""

    arrays: dict
    lengths: dict
    indices: dict

    def points(self) -> list[dict]:
        """Every combination of the indices, with the lengths."""
        grid = product(*(range(1, length + 1) for length in self.indices.values()))
        return [
            dict(zip(self.indices, values, strict=True)) | self.lengths
            for values in grid
        ]


@dataclass(frozen=True)
class Confusion:
    """An answer that a known confusion leads to.

    Args:  key: of the table; answers: {result: the text of the confused answer}, of which all have to be there
           equation: the label of the equation to read, and a hint, where this task has other ones than the table
    """

    key: str
    answers: dict[str, str]
    equation: str = ""
    hint: str = ""

    def diagnosis(self, yours: str) -> Diagnosis:
        """What the report shows of your answer."""
        entry = named(self.key, yours, "", self.equation, "hw1")
        return replace(entry, hint=self.hint or entry.hint)


@dataclass(frozen=True)
class ExpressionOracle:
    """What the tasks with expressions share.

    Args:  arguments: names, of arrays where KINDS has none; task: its name in answers.ini
           times: how often each mean is taken
    """

    arguments: tuple[str, ...]
    task: str
    times: int = 1

    def with_options(self, **options) -> ExpressionOracle:
        """The oracle of the same task with another number of means."""
        return replace(self, **options)

    def answers(self, name: str) -> dict[str, str]:
        """The texts of a section of answers.ini, with so many means."""
        means = rf"*({self.times})/\1"
        section = ANSWERS[name].items()
        return {result: re.sub("/([MN])", means, text) for result, text in section}

    @property
    def texts(self) -> dict[str, str]:
        """{result: the right answer as a text}."""
        return self.answers(self.task)

    @property
    def confusions(self) -> list[Confusion]:
        """The known ones."""
        confusions = []
        for section in ANSWERS.sections():
            task, _, key = section.partition(": ")
            if task == self.task and key:
                answers = self.answers(section)
                words = [answers.pop(name, "") for name in ("equation", "hint")]
                confusions.append(Confusion(key.partition(" ")[0], answers, *words))
        return confusions

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(self.texts)

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(name, "array", "index" or "length") of every argument."""
        return tuple((name, KINDS.get(name, "array")) for name in self.arguments)

    def axes(self, name) -> str:
        """The lengths of an array, or the length that a letter counts to."""
        return "MN" if "M" in self.arguments and name in ("x", "dy") else "N"

    @property
    def shapes(self) -> dict[str, tuple]:
        """{array: its dimensions, as SymPy has them}."""
        from ...symbolic.symbols import M, N

        sizes = {"M": M, "N": N}
        names = [name for name, kind in self.kinds if kind == "array"]
        return {name: tuple(map(sizes.get, self.axes(name))) for name in names}

    def trials(self, rng, draw, kinds=()) -> list[Sheet]:
        """A few small cases with numbers that fractions of two hold, so that nothing is rounded."""
        sizes = (*SIZES, (min(draw.rows, MOST_ROWS), min(draw.columns, MOST_COLUMNS)))
        return [self.sheet(rng, dict(zip("MN", size, strict=True))) for size in sizes]

    def sheet(self, rng, lengths) -> Sheet:
        """One case of these lengths."""
        arrays, indices = {}, {}
        for name, kind in self.kinds:
            if kind == "array":
                shape = tuple(lengths[axis] for axis in self.axes(name))
                signs = np.where(rng.integers(2, size=shape), 1, -1)
                arrays[name] = signs * rng.integers(1, EIGHTHS, shape) / 8
            elif kind == "index":
                indices[name] = lengths[self.axes(name)]
        used = {name: lengths[name] for name, kind in self.kinds if kind == "length"}
        return Sheet(arrays, used, indices)

    def request(self, trial) -> Request:
        """The call that a case leads to: the arrays' numbers go to the grader's part of the student's process."""
        arguments = tuple(Given(name, array) for name, array in trial.arrays.items())
        return Request(
            "written", arguments, {"kinds": self.kinds, "points": trial.points()}
        )

    def expected(self, trial) -> dict:
        """{result: (value, bound)}; the student's numbers are exact until they become floats."""
        import sympy

        key, objects = (self, repr(trial)), objects_of(self.kinds)
        points = [
            {objects[name]: sympy.Integer(n) for name, n in point.items()}
            for point in trial.points()
        ]
        for name, text in () if key in KNOWN else self.texts.items():
            right = sympy.sympify(text, locals=objects)
            numbers = [number_at(right, point, trial.arrays) for point in points]
            value = np.array(numbers, float)
            KNOWN.setdefault(key, {})[name] = value, self.bound(value, trial)
        return KNOWN[key]

    def bound(self, value, trial):
        """How far two floating-point evaluations of the same few sums may be apart."""
        terms = sum(array.size for array in trial.arrays.values()) + ELEMENTWISE
        largest = max(
            (np.abs(array).max(initial=1) for array in trial.arrays.values()),
            default=1.0,
        )
        return unit_roundoff("float64") * terms * (np.abs(value) + terms * largest**2)


def _named(key, text, needs) -> tuple:
    """A diagnosis that the form of an answer shows."""
    return (named(key, text[:120], needs, homework="hw1"),)


def _forms(exam, trial):
    """(outcome, forms) of a call whose answers are as many expressions as the signature says."""
    outcome, names = exam.ask(exam.oracle.request(trial)), exam.oracle.results
    forms = outcome.facts.get("forms", [])
    if len(forms) != len(names):
        count = f"{len(forms)} result{'s' * (len(forms) != 1)}"
        raise Wrong(f"It returned {count}, needs {len(names)}: {', '.join(names)}.")
    for name, form in zip(names, forms, strict=True):
        if "type" in form:
            got = a(form["type"])
            text = _named("text-for-expression", "a text", "an object that is made of the arguments")  # fmt: skip
            raise Wrong(f"{name} is {got}, needs a SymPy expression or a number. Put it together from the arguments.",
                        diagnoses=text if form["type"] == "str" else ())  # fmt: skip
    return outcome, dict(zip(names, forms, strict=True))


def _by_form(form, missing=()) -> tuple:
    """A diagnosis of what is wrong wherever it stands. Args: missing: letters that the answer should depend on"""
    if form["namesakes"]:
        return _named(
            "index-of-its-own",
            form["text"],
            f"the argument {form['namesakes'][0]} itself",
        )
    if form["floors"]:
        return _named("whole-division", form["text"], "a division by /")
    if form["twice"]:
        return _named(
            "one-index-for-both",
            form["twice"][0],
            "an index for the row, another for the column",
        )
    if summed := sorted(set(form["counted"]) & set(missing)):
        needed = f"a sum with an index of its own, and {summed[0]} outside of it"
        return _named("free-index-summed", form["text"], needed)
    return ()


def _by_forms(oracle, trial, forms, name) -> tuple:
    """As _by_form, of this result, or of another one that may be a part of it."""
    for result in (name, *forms):
        if diagnoses := _by_form(
            forms[result], _needed(oracle, result, trial) - set(forms[result]["free"])
        ):
            return diagnoses
    return ()


def _by_branch(exam) -> tuple:
    """A diagnosis of `if j == k`, which asks whether two letters are one, whatever numbers they stand for."""
    program = exam.student.program(exam.task.entry)
    try:
        body = (
            ast.parse(program).body if isinstance(program, str) else [tree_of(program)]
        )
    except (OSError, TypeError):  # a function that no file has
        return ()
    letters = {name for name, kind in exam.oracle.kinds if kind == "index"}
    for function in body:
        if getattr(function, "name", "") != exam.task.entry:
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            if {getattr(side, "id", "") for side in sides} <= letters:
                delta = "KroneckerDelta, which is 1 where its two indices are equal"
                return _named("letters-compared", ast.unparse(node), delta)
    return ()


def returns_expressions(exam) -> str:
    """It takes SymPy objects and returns as many expressions as it should."""
    _forms(exam, exam.trials()[0])
    return "It returns what the signature says."


def indices_match(exam) -> str:
    """No letter is free that is not an argument, and none is left out that the answer depends on."""
    oracle, trial = exam.oracle, exam.trials()[0]
    _, forms = _forms(exam, trial)
    for name, form in forms.items():
        if extra := sorted(set(form["free"]) - set(oracle.arguments)):
            raise Wrong(
                f"In {name}, {extra[0]} is free, but it is no argument: {', '.join(oracle.arguments)} are. An index "
                "that counts belongs to a sum, as in Sum(..., (r, 1, N)), or has become another one in every factor; "
                "what stands for something else is to be written out.",
                diagnoses=_named("index-left-free", form["text"],
                                 f"an expression of {', '.join(oracle.arguments)}, in which {extra[0]} is bound by a "
                                 "sum, replaced, or written out"),
            )  # fmt: skip
        if form["outside"]:
            zero = _named(
                "counted-from-zero",
                form["text"],
                "a sum whose index begins with 1",
            )
            entry = form["outside"][0]
            both = "the first index counts the M rows, the second the N columns"
            counts = both if "," in entry else "its index counts N entries"
            words = f"{name} asks for {entry}, which is not there: {counts}, from 1 on."
            diagnoses = zero if form["from zero"] else _by_form(form)
            raise Wrong(words, diagnoses=diagnoses or _read(exam, forms, name))
        letters = {
            letter for letter, kind in oracle.kinds if kind == "index"
        } & _needed(oracle, name, trial)
        if missing := sorted(letters - set(form["free"])):
            raise Wrong(
                f"{name} does not depend on {missing[0]}. That index is free on the left, so it is free on the right, "
                "too; is it summed?",
                diagnoses=_by_branch(exam) or _by_form(form, missing),
            )
    return "The free indices are those of the left side."


def _read(exam, forms, name):
    """What the text of an answer shows; [] where a letter in it is no argument."""
    from ..reading.letters import read

    arguments = list(exam.oracle.arguments)
    if any(set(form["free"]) - set(arguments) for form in forms.values()):
        return []
    parameters = exam.student.look(exam.task.entry)["parameters"]
    exchanged = parameters != arguments and sorted(parameters) == sorted(arguments)
    texts = {key: form["text"] for key, form in forms.items()}
    diagnoses = read(name, texts, exam.oracle, exchanged)
    for diagnosis in diagnoses:
        diagnosis.equation = _label(exam.task, name, diagnosis.equation)
    return diagnoses


def _label(task, name, usual="") -> str:
    """The label of the equation that a result has in the book: by its name, or by its place.

    Args:  usual: that of the mistake; of another result of the task it gives way to this one's
    """
    by_name = [label for label in task.equations if label.endswith(f"-{name}")]
    if usual and not (by_name and usual in task.equations):
        return usual
    return by_name[0] if by_name else task.equations[task.oracle.results.index(name)]


def _needed(oracle, name, trial) -> set[str]:
    """The letters on which the right answer depends."""
    value = oracle.expected(trial)[name][0].reshape([*trial.indices.values()])
    return {
        letter
        for axis, letter in enumerate(trial.indices)
        if np.ptp(value, axis=axis).any()
    }


def worth(*names):
    """A stage that compares what some results are worth, at every value of their indices."""
    return partial(_worth, names=names)


def _worth(exam, names) -> str:
    oracle, trials = exam.oracle, exam.trials()
    asked = [_forms(exam, trial) for trial in trials]
    got = [
        dict(zip(oracle.results, (v.numbers for v in outcome.values), strict=True))
        for outcome, _ in asked
    ]
    for name in names:
        for at, (trial, values) in enumerate(zip(trials, got, strict=True)):
            value, bound = oracle.expected(trial)[name]
            if (
                values[name].shape != value.shape
                or not (np.abs(values[name] - value) <= bound).all()
            ):
                form = asked[0][1][name]
                words = _words(
                    name, values[name], value, bound, trial, asked[at][1][name]
                )
                needs = "a sum whose terms have the index that it counts"
                idle = _named("sum-without-its-index", form["text"], needs)
                diagnoses = _by_branch(exam)
                diagnoses = diagnoses or _by_forms(oracle, trial, asked[0][1], name)
                diagnoses = diagnoses or (idle if form["idle"] else ())
                diagnoses = diagnoses or _swapped(oracle, trials, got, name)
                raise Wrong(
                    words, diagnoses=diagnoses or _read(exam, asked[0][1], name)
                )
    count = sum(len(trial.points()) for trial in trials)
    return f"Equal at all {count} values of the indices and lengths."


def _words(name, values, value, bound, trial, form) -> str:
    if values.shape != value.shape:
        return f"{name} has no value for every value of its letters."
    at = int(np.argmin(np.abs(values - value) <= bound))
    where = ", ".join(
        f"{letter} = {index}" for letter, index in trial.points()[at].items()
    )
    if np.isnan(values[at]):
        are = "is" if len(form["left"]) == 1 else "are"
        left = (
            f", because {', '.join(form['left'])} {are} left in it"
            if form["left"]
            else ""
        )
        left = (
            f", because {form['outside'][0]} is not there"
            if form["outside"] and not left
            else left
        )
        return f"{name} has no value at {where}{left}."
    got, needs = apart(values[at], value[at])
    return f"{INPUTS}{where}. Your {name} is {got} there, needs {needs}."


def _swapped(oracle, trials, got, name) -> list:
    """One Diagnosis where a result is what another one must be, in every case."""
    pairs = zip(got, trials, strict=True)
    if all(swapped(name, results, oracle.expected(trial)) for results, trial in pairs):
        return [named("results-swapped")]
    return []


def _one_term(text) -> str:
    """What a sum over a delta leaves, in the letters of an answer. Args: text: of the answer"""
    summed = re.findall(r"\((\w+), 1, \w+\)", text)
    for pair in re.findall(r"KroneckerDelta\((\w+), (\w+)\)", text):
        for index, partner in (pair, pair[::-1]):
            if index in summed:
                return (
                    f"In a sum over {index}, the delta of {partner} and {index} leaves the one term with "
                    f"{index} = {partner}; take the sum away and write {partner} for {index} in what is left."
                )
    return (
        "A delta with the index of a sum leaves the one term in which its two indices are equal; take the sum away "
        "and write the other index in what is left."
    )


def contracted(exam) -> str:
    """No sum still has a delta of its own letter: a delta that is summed over is contracted."""
    _, forms = _forms(exam, exam.trials()[0])
    for name, form in forms.items():
        if form["deltas"]:
            raise Wrong(
                f"{name} still has a sum over a delta: {form['text'][:120]}. {_one_term(form['text'])}",
                diagnoses=_named("delta-not-contracted", form["text"],
                                 "the same without that sum"),
            )  # fmt: skip
        if form["nested"] and not form["counted"]:
            raise Wrong(
                f"{name} has a sum within a sum: {form['text'][:120]}. It takes a number of operations that grows with "
                "N**2. What does not depend on a sum's index stands before that sum, or is multiplied by how many "
                "terms it has.",
                diagnoses=_named(
                    "sum-in-a-sum", form["text"], "sums that stand side by side"
                ),
            )
    return "Every delta that was summed over is contracted."


def stages(*values, form=True):
    """The stages of a task: form, letters, values with their points, contraction."""
    first = [Stage("signature", 1, returns_expressions, interface=True),
             Stage("free indices", 1, indices_match, interface=True)]  # fmt: skip
    first += [
        Stage(name.replace("_", " "), points, worth(name), derived=True)
        for name, points in values
    ]
    return (
        *first,
        *(
            [Stage("no delta is summed over", 1, contracted, interface=True)]
            if form
            else []
        ),
    )
