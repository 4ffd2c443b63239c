"""What every stage works with: the task, the student, the inputs, and calls whose failures are already words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..messages import INPUTS, Wrong, a, compare, failure, largest, swapped
from ..sandbox.student import Outcome, Student
from ..task import Draw, Task
from .norms import AXES, USUAL, shape_of

# Code that ran out of time once will do so again; what is left is still tried, with less patience.
IMPATIENT_SECONDS = 0.3
# Of a Function.
PLACES = (
    " A gradient stands among the results of backward where its argument stands in forward, and so does its flag in "
    "ctx.needs_input_grad."
)
KINDS = {"numpy": ("ndarray", "a numpy.ndarray"), "torch": ("tensor", "a torch.Tensor")}


@dataclass(frozen=True)
class OwnInputs:
    """What stands in the place of an oracle where the student draws the inputs. Args: arguments: of the entry"""

    arguments: tuple[str, ...] = ()


@dataclass
class Exam:
    """One stage of one task for one student.

    Args:  inputs: the name of its inputs, part of the seed: the stage's own, or one that several stages share
           feedback: how much may be given away; shared: what one stage leaves for the later ones of the same report
           remembers: whether an answer to the same question is taken from there
           printed: what the student's code printed; slips: {what is wrong with the form of results whose numbers are
           compared all the same: its key}, collected
    """

    task: Task
    student: Student
    draw: Draw
    inputs: str
    feedback: str = "solution"
    shared: dict = field(default_factory=dict)
    remembers: bool = False
    printed: tuple[int, str] = (0, "")
    slips: dict[str, str] = field(default_factory=dict)

    @property
    def oracle(self):
        """What makes the inputs and knows the right answers."""
        return self.task.oracle

    @property
    def base(self) -> str:
        """The dtype of the stages that name none."""
        return self.oracle.base

    def rng(self, *names):
        """The generator of this stage; names: for what, where it is not for the inputs."""
        return self.draw.rng(self.task.name, self.inputs, *names)

    def trials(self, kinds=USUAL):
        """The oracle's trials of some kinds of inputs."""
        return self.oracle.trials(self.rng(), self.draw, kinds)

    def ask(self, request) -> Outcome:
        """One call of the student's code.

        Raises:  Wrong in words where there are no results
        """
        outcome = self._called(request)
        if outcome.printed[0]:
            self.printed = (
                self.printed[0] + outcome.printed[0],
                self.printed[1] or outcome.printed[1],
            )
        if outcome.values is None:
            raise failure(outcome, self.task)
        if left := outcome.facts.get("left out"):
            self.slips[
                f"backward returns {left} None too few at the end: it returns something for every input."
            ] = "nones-left-out"
        if hasattr(self.oracle, "admit"):
            self.oracle.admit(request, outcome)
        return outcome

    def _called(self, request) -> Outcome:
        """The outcome of a call, from the stages with the same inputs where one of them has asked already."""
        if not self.remembers:
            return self.student.call(self.task.entry, request)
        numbers = [
            np.asarray(given.value, float).tobytes() for given in request.arguments
        ]
        plain = [
            replace(given, value=bytes_)
            for given, bytes_ in zip(request.arguments, numbers, strict=True)
        ]
        key = request.op, tuple(plain), repr(request.options)
        outcome = self.shared.get(key) or self.student.call(self.task.entry, request)
        if outcome.values is not None:
            self.shared[key] = outcome
        return outcome

    def answers(
        self, trial, dtype=None, layout="contiguous", names=None, **options
    ) -> dict:
        """{result: numbers} for a trial, with types, shapes and dtypes checked.

        Of a Function whose y alone is asked for, only the forward is run: there may be no backward yet.

        Raises:  Wrong
        """
        dtype = dtype or self.base
        if names == ("y",) and self.oracle.op == "gradients":
            outcome = self.ask(self.oracle.request(trial, dtype, layout, op="apply"))
            return self.named(outcome, trial, dtype, names)
        return self.named(
            self.ask(self.oracle.request(trial, dtype, layout, **options)),
            trial,
            dtype,
        )

    def named(self, outcome: Outcome, trial, dtype, names=None) -> dict:
        """The results of an outcome by name.

        Raises:  Wrong where their number, a type, a shape or a dtype is not what the signature says
        """
        names, x = names or self.oracle.results, trial.case.x
        if len(outcome.values) != len(names):
            raise Wrong(_counted(outcome.values, names))
        shapes = [shape_of(name, x) for name in names]
        for name, shape, value in zip(names, shapes, outcome.values, strict=True):
            self._check(name, shape, value, x.shape, dtype)
        pairs = zip(names, shapes, outcome.values, strict=True)
        return {name: value.numbers.reshape(shape) for name, shape, value in pairs}

    def _check(self, name, shape, value, x_shape, dtype):
        facts, (kind, words) = value.facts, KINDS[self.oracle.kind]
        if facts.get("kind") != kind:
            lost = facts.get("type") == "NoneType" and self.oracle.op == "gradients"
            raise Wrong(f"{name} is {a(facts.get('type'))}, needs {words} of shape {shape}.{PLACES if lost else ''}",
                        key="gradient-missing" * lost)  # fmt: skip
        got = tuple(facts.get("shape", ()))
        if got != shape or value.numbers.shape != shape:
            words = f"{name} has shape {got}, needs {shape} for x of shape {x_shape}."
            if value.numbers.shape != got or _without_ones(got) != _without_ones(shape):
                key = "wrong-axis" * _other_axis(name, got, x_shape)
                order = (
                    f"The results come in the order {', '.join(self.oracle.results)}."
                )
                raise Wrong(f"{words} {order}", key=key)
            self.slips[words] = "axis-of-one"
        statistic = name in ("mean", "var", "rstd") and dtype not in (
            "float64",
            "float32",
        )
        needed = "float32" if statistic else dtype
        if facts.get("dtype") != needed:
            why = (
                "as statistics have for every x"
                if statistic
                else "the dtype of its inputs"
            )
            words = f"{name} has dtype {facts.get('dtype')}, needs {needed}, {why}."
            if dtype != self.base or not str(facts.get("dtype")).startswith("int"):
                raise Wrong(words)
            self.slips[words] = "whole-numbers"

    def compare(self, trials, names, dtype=None, layout="contiguous", **options) -> str:
        """The student's results against the oracle's.

        Returns: a sentence with the largest error
        Raises:  Wrong with the worst place of the first trial that fails, and all wrong numbers as evidence
        """
        dtype, errors, evidence, sentence, order = dtype or self.base, [], [], "", ""
        for trial in trials:
            got = self.answers(trial, dtype, layout, names, **options)
            expected = self.oracle.expected(trial, dtype)
            for name in names:
                error, bound, words = compare(name, got[name], *expected[name])
                if words:
                    sentence = (
                        sentence
                        or f"{INPUTS}{trial.name}{_kind(dtype, layout, self.base)}. {words}"
                    )
                    order = order or swapped(name, got, expected)
                    evidence.append((name, got[name], trial))
                else:
                    errors.append((error, bound))
        if order:
            raise Wrong(f"{sentence} {order}", key="results-swapped")
        if sentence:
            raise Wrong(sentence, evidence)
        return largest(errors).capitalize()

    def is_right(self, trials, dtype=None) -> bool:
        """Whether all results of some trials are right in a dtype."""
        try:
            self.compare(trials, self.oracle.results, dtype)
        except Wrong:
            return False
        return True


def _counted(values, names) -> str:
    """The sentence for a wrong number of results."""
    needs = f"needs {len(names)}: {', '.join(names)}."
    if len(values) != 1:
        return f"It returned {len(values)} results, {needs}"
    kind = values[0].facts.get("type")
    end = ": is a return missing?" if kind == "NoneType" else "."
    return f"It returned one result, {needs} What came back is {a(kind)}{end}"


def _without_ones(shape):
    return [n for n in shape if n != 1]


def _other_axis(name, got, shape) -> bool:
    """Whether one number a row, or a column, came as one a column, a row, or of the whole matrix."""
    m, n = shape
    others = {"M": ((), (1,), (n,), (1, n)), "N": ((m,), (m, 1))}
    return m != n and got in others.get(AXES[name], ())


def _kind(dtype, layout, base):
    parts = [dtype] * (dtype != base) + [f"{layout} memory"] * (layout != "contiguous")
    return "".join(f", {part}" for part in parts)
