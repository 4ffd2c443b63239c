"""Random edits of the right solutions of homeworks 2, 3, 4 and 7, and what their reading says.

python tests/homework_edits.py 60 [task ...]    prints each edit with its reading, and shares of what is said

An edit is exact where the difference of each output that it makes wrong is said, and wrong where what is said is not
what the program does: each equation of a report is evaluated with random numbers beside a run of the program.
"""

import ast
import copy
import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from homework_operators import OPERATORS
from homework_solutions import of_source
from points import Point, results
from sympy import Abs, SympifyError, sqrt, sympify

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.checks.exam import Exam
from normgrad.homework.hw4 import gpu
from normgrad.homework.hw4.checks import _of_size
from normgrad.homework.named import Diagnosis
from normgrad.homework.reading import kernels
from normgrad.homework.reading.beliefs import diagnoses
from normgrad.homework.reading.equations import equations_of
from normgrad.homework.reading.operators import NEAR
from normgrad.homework.reading.rerun import POINTS, STEP
from normgrad.homework.sandbox.student import Local
from normgrad.homework.task import Draw, find
from normgrad.symbolic import Defs, tensor
from normgrad.symbolic.symbols import M, N, eps, i, j
from normgrad.verify import norm, verify
from normgrad.verify.definitions import at as entries
from normgrad.verify.definitions import columns, rows
from normgrad.verify.programs import gradient_of, input_of

TASKS = ("rmsnorm-forward", "rmsnorm-backward", "layernorm-backward")
KERNELS = {"addnorm-forward": "forward_kernel", "addnorm-backward": "backward_kernel"}
NAMES = ("x_hat", "wdy", "dy", "x", "weight", "rstd", "c1", "c2", "mean")
KERNEL_NAMES = (*NAMES, "residual", "p", "q", "bias", "stream", "dx", "y", "N", "M")
OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
REDUCTIONS = {"mean": "sum", "sum": "mean"}
PATIENCE = 60  # seconds of a stage, on a machine that is busy
# What tells a kernel's addresses: their edits are not of the mathematics.
CHANGE = " is right with one change"
ADDRESSES = {"rows", "cols", "mask", "at", "mine", "tile"}


@dataclass
class Edited:
    """One edit.

    Args:  line: as it is then; outputs: those whose numbers it makes wrong; said: a list of Diagnosis
           false: what is shown and does not hold
    """

    line: str
    outputs: set
    said: list
    false: list = field(default_factory=list)

    @property
    def is_exact(self):
        """Whether each wrong output has its difference, term by term."""
        shown = {head for head, _ in equations(self.said)}
        return self.outputs <= shown | {head for head, _ in changes(self.said)}

    @property
    def kind(self):
        """What is said of it, in a word."""
        if self.false:
            return "WRONG"
        if self.is_exact:
            return "exact"
        if not self.said:
            return "nothing said"
        if {diagnosis.misconception for diagnosis in self.said} != {"unknown"}:
            return "named"
        titles = " ".join(diagnosis.title for diagnosis in self.said)
        return "unread" if "not read" in titles else "said in part"


def equations(said):
    """(output, Diagnosis) of each equation with its difference."""
    for diagnosis in said:
        shown = diagnosis.implemented and diagnosis.difference
        if shown and CHANGE not in diagnosis.title:
            yield diagnosis.implemented.partition(" = ")[0], diagnosis


def changes(said):
    """(gradient, Diagnosis) of each change of a line with which a gradient is right."""
    for diagnosis in said:
        words, change, _ = diagnosis.title.partition(CHANGE)
        if change:
            name = words.removeprefix("The gradient for ")
            yield gradient_of(name, ()), diagnosis


def edits(node, names=NAMES):
    """All single edits of a function's tree, as (node, replacement). Args: names: that stand for each other"""
    for part in mathematics(node):
        if isinstance(part, ast.BinOp):
            for operation in OPERATIONS:
                if not isinstance(part.op, (operation, ast.Pow)):
                    yield part, ast.BinOp(part.left, operation(), part.right)
            yield part, part.left
            if not isinstance(part.op, ast.Sub):
                yield part, part.right
        if isinstance(part, ast.Attribute) and part.attr in REDUCTIONS:
            yield part, ast.Attribute(part.value, REDUCTIONS[part.attr], part.ctx)
        if isinstance(part, ast.Call) and part.args:
            for axis in (0, None):
                if ast.unparse(part.args[0]) == "-1":
                    call = copy.deepcopy(part)
                    call.args[0] = ast.Constant(axis)
                    yield part, call
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            for name in names:
                if part.id in names and name != part.id:
                    yield part, ast.Name(name, part.ctx)
        if isinstance(part, ast.Constant) and type(part.value) in (int, float):
            for number in {1 - part.value, 2 * part.value, part.value + 1}:
                yield part, ast.Constant(number)


def mathematics(node):
    """The nodes of a function but for what tells where a kernel's numbers lie."""
    if isinstance(node, ast.Assign):
        stored = {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        if stored & ADDRESSES:
            return
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if called in ("tl.load", "tl.zeros", "tl.arange"):
            return
        if called == "tl.store":
            parts = node.args[1:]
    if isinstance(node, (ast.FunctionDef, ast.For)):
        parts = node.body
    yield node
    for part in parts:
        yield from mathematics(part)


def edited_texts(text, functions, names=NAMES):
    """The texts of a module in which one node of some functions is another one, with the line that changed."""
    tree = ast.parse(text)
    before = ast.unparse(tree).split("\n")
    for node in ast.walk(tree):
        if getattr(node, "name", "") not in functions:
            continue
        for target, replacement in edits(node, names):
            own = ast.unparse(with_edit(tree, target, replacement))
            changed = [row for row in own.split("\n") if row not in before]
            yield own, (changed or [""])[0].strip()


def with_edit(node, target, replacement):
    """A copy of a tree with another node in the place of one of its nodes."""
    memo = {id(target): copy.deepcopy(replacement)}
    return copy.deepcopy(node, memo)


@np.errstate(all="ignore")
def read_edits(task_name, most, seed=0):
    """Some edits of a task that change its numbers and keep their shapes, each with its reading."""
    subject = SUBJECTS[task_name](task_name)
    texts = list(subject.texts())
    readings = []
    for at in np.random.default_rng(seed).permutation(len(texts)):
        text, line = texts[at]
        wrong = subject.wrong(text)
        said = subject.said(text) if wrong else None
        if said is None:
            continue
        edited = Edited(line, wrong, said)
        if not edited.is_exact and subject.is_refused(text):
            continue
        subject.check(text, edited)
        readings.append(edited)
        if len(readings) == most:
            break
    return readings


def sum_of(e, axis=1):
    """The sums of an equation."""
    return (rows, columns)[axis](e)


def mean_of(e, axis=1):
    """The means of an equation."""
    return sum_of(e, axis) / (M, N)[axis]


WORDS = vars(entries) | {"M": M, "N": N, "eps": eps, "sqrt": sqrt, "Abs": Abs}
WORDS |= {"q": entries.x_hat / entries.rstd, "sum_of": sum_of, "mean_of": mean_of}


class Subject:
    """A right program: its edits, and what is read of each."""

    def wrong(self, text):
        """The outputs whose numbers are others; none where it raises, or returns other shapes."""
        try:
            sides = self.sides(text)
        except Exception:
            return set()
        if any(own.shape != right.shape for own, right in sides.values()):
            return set()
        return {
            name
            for name, (own, right) in sides.items()
            if not self.near(own, right, right)
        }

    def is_refused(self, text):
        """Whether it would not run outside of the interpreter."""
        return False

    def check(self, text, edited):
        """Evaluates each side of an equation, which has to give the numbers of a run."""
        sides = self.sides(text)
        for output, shown in equations(edited.said):
            for side, numbers in self.shown(shown, *sides[output]):
                e = self.parsed(side)
                if e is None:
                    continue
                letters = dict(zip(self.point.sizes.values(), (i, j), strict=True))
                axes = [letters[size] for size in numbers.shape if size > 1]
                value = self.point.value(e, axes)
                if not self.near(value, numbers, *sides[output]):
                    edited.false.append(side)


class Norms(Subject):
    """The solutions of homeworks 2 and 3."""

    sizes, library = (4, 6), "numpy"
    beside = ()  # functions that are edited beside the task's
    definitions = property(lambda self: norm(**self.task.reads.norm))

    def __init__(self, task_name):
        self.task = find(task_name)
        self.solution = solutions.solution(self.task.homework)
        self.point = Point(self.sizes, self.definitions.defs, np.random.default_rng(0))
        self.right = self.results(self.solution)

    def texts(self):
        return edited_texts(self.solution, {self.task.entry, *self.beside})

    def value(self, name):
        return self.point.tensor(input_of(name, name).head)

    def results(self, text):
        """{output: numbers} of a solution on one case."""
        values = map(self.value, self.task.oracle.arguments)
        outputs = self.run(of_source(text)[self.task.entry], values)
        return dict(zip(self.task.oracle.results, outputs, strict=True))

    def run(self, target, values):
        return results(target, self.library, values)

    def sides(self, text):
        """{output: (its numbers, the right ones)}."""
        own = self.results(text)
        return {name: (own[name], right) for name, right in self.right.items()}

    def near(self, value, numbers, *scales):
        return np.allclose(value, numbers, equal_nan=True)

    def said(self, text):
        """What is read."""
        reads = self.task.reads
        target = of_source(text)[self.task.entry]
        options = {"outputs": reads.outputs, "library": reads.library}
        verdict = verify(target, self.definitions, seconds=10, **options)
        said = []
        for equation in equations_of(verdict, self.definitions):
            said += diagnoses(equation)
        return said or [Diagnosis("unknown", f"{verdict.kind}: {verdict.why}", "")]

    def shown(self, shown, own, right):
        """What an equation shows, each with its numbers."""
        return (shown.implemented, own), (shown.right, right)

    def parsed(self, equation):
        """The right side of an equation in i and j; None where it is in other words than these."""
        equation = re.sub(r"\b(sum|mean)\(", r"\1_of(", equation)
        text, _, root = equation.partition(" = ")[2].partition(", rstd = ")
        space = dict(WORDS)
        try:
            if root:
                space["rstd"] = eval(root, {}, space)
                space["x_hat"] = space["q"] * space["rstd"]
            return sympify(eval(text, {}, space))
        except (NameError, SyntaxError, TypeError):
            return None


class Functions(Norms):
    """The autograd Function of homework 3."""

    beside = ("normalized",)

    def run(self, target, values):
        import torch

        *inputs, eps = values
        inputs = [torch.tensor(array, requires_grad=True) for array in inputs]
        y = target.apply(*inputs, eps)
        gradients = torch.autograd.grad(y, inputs, torch.tensor(self.value("dy")))
        return [value.detach().numpy() for value in (y, *gradients)]


@cache
def launch_of(task_name):
    """(what a launch of the right kernel tells, results, eps), as the grader has it."""
    task = find(task_name)
    names = of_source(solutions.solution("hw4"))
    student = Local({task.entry: names[task.entry]})
    student.begin(100)
    exam = Exam(task, student, Draw(), "usual")
    (trial,) = _of_size(exam, *kernels.SHAPE)
    op, layout = task.oracle.read_as
    request = replace(task.oracle.request(trial, layout=layout), op=op)
    launches = student.call(task.entry, request).facts["launches"]
    return launches[0], task.oracle.results, trial.spec.eps


class Kernels(Norms):
    """The kernels of homework 4: run by Triton's interpreter, and read with the binding that one launch tells."""

    sizes, library = (5, 6), "torch"
    definitions = property(lambda self: norm(**kernels.NORM))

    def texts(self):
        return edited_texts(self.solution, {KERNELS[self.task.name]}, KERNEL_NAMES)

    def wrong(self, text):
        names = super().wrong(text)
        return names - {"dresidual"} if "dx" in names else names  # they are one tensor

    def is_refused(self, text):
        return bool(gpu.refusal([self.launch(text)["described"]]))

    def launch(self, text):
        """What the launch tells, of another text."""
        launch = launch_of(self.task.name)[0]
        for node in ast.parse(text).body:
            if getattr(node, "name", "") == launch["kernel"]:
                described = launch["described"] | {
                    "sources": [ast.unparse(node).split("\n")]
                }
        return launch | {"described": described}

    def said(self, text):
        return kernels._of_launch(self.launch(text), *launch_of(self.task.name)[1:])


class Own(Subject):
    """An operator of homework 7, whose gradients are compared with differences of its forward."""

    def __init__(self, name):
        self.source, _ = OPERATORS.get(name, (solutions.solution("hw7"), {}))

    def texts(self):
        functions, texts = {}, []
        for node in ast.walk(ast.parse(self.source)):
            if isinstance(node, ast.FunctionDef):
                parts = ast.walk(node)
                names = {part.id for part in parts if isinstance(part, ast.Name)}
                functions[node.name] = names | {part.arg for part in node.args.args}
        for name, names in functions.items():
            if name not in ("inputs", "degenerate"):
                names = sorted(names - {"np", "Operator", "torch", *functions})
                texts += edited_texts(self.source, {name}, names)
        return texts

    def sides(self, text):
        """{gradient: (of backward, of forward by differences of four points)}."""
        operator = of_source(text)["Operator"]
        inputs = operator.inputs(np.random.default_rng(0))
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        library = "torch" if "import torch" in self.source else "numpy"

        def forward(arrays):
            return results(operator.forward, library, arrays.values())[0]

        dy = np.random.default_rng(1).standard_normal(forward(arrays).shape)
        self.values = arrays | {"dy": dy}
        gradients = results(operator.backward, library, (dy, *arrays.values()))
        sides = {}
        for (name, array), own in zip(arrays.items(), gradients, strict=True):
            right = np.zeros(array.shape)
            for at in np.ndindex(array.shape):
                for times, weight in POINTS:
                    moved = array.copy()
                    moved[at] += times * STEP
                    y = forward(arrays | {name: moved})
                    right[at] += weight * (dy * y).sum() / (12 * STEP)
            if not np.isfinite(own + right).all():
                raise FloatingPointError(name)
            sides[gradient_of(name, ())] = own, right
        return sides

    def near(self, value, numbers, *scales):
        return np.abs(value - numbers).max() <= NEAR * sum(map(np.abs, scales)).max()

    def said(self, text):
        operator = of_source(text)["Operator"]
        report = hw.check("norm-project", operator, seconds=PATIENCE)
        return report.diagnoses if report["description"].passed else None

    def check(self, text, edited):
        """Evaluates each equation of two axes, and runs what is changed."""
        for output, change in changes(edited.said):
            if all(output in self.wrong(mended) for mended in changed(text, change)):
                edited.false.append(change.right)
        super().check(text, edited)

    def shown(self, shown, own, right):
        """What an equation shows, each with its numbers."""
        _, _, difference = shown.difference.partition("forward has: ")
        _, _, implemented = shown.implemented.partition(" = ")
        return (implemented, own), (difference, own - right)

    def parsed(self, text):
        """An expression in the indices i and j; None for other words."""
        (sizes,) = {array.shape for array in self.values.values() if array.ndim == 2}
        self.point = Point(sizes, Defs(), None)
        self.point.values |= self.values
        axes = dict(zip(sizes, (M, N), strict=True))
        space = {"M": M, "N": N, "i": i, "j": j}
        for name, array in self.values.items():
            space[name] = tensor(
                name, *(axes[size] for size in array.shape if size > 1)
            )
        try:
            e = sympify(text, space)
        except (AttributeError, SympifyError, TypeError):
            return None
        names = {symbol.name for symbol in e.free_symbols if symbol.is_Symbol}
        return e if names <= {*space} else None


def changed(text, diagnosis):
    """The texts with the change, for each line that has the same words."""
    for match in re.finditer(re.escape(diagnosis.implemented), text):
        yield text[: match.start()] + diagnosis.right + text[match.end() :]


OWN = (*OPERATORS, "group norm")
SUBJECTS = (
    dict.fromkeys(TASKS, Norms)
    | {"layernorm-function": Functions}
    | dict.fromkeys(KERNELS, Kernels)
    | dict.fromkeys(OWN, Own)
)


def main():
    most, *tasks = sys.argv[1:] or ["60"]
    counts = Counter()
    for name in tasks or SUBJECTS:
        for edit in read_edits(name, int(most)):
            counts[name, edit.kind] += 1
            print(name, "|", edit.line, "|", edit.kind, *sorted(edit.outputs))
            for diagnosis in edit.said:
                print("    ", diagnosis.misconception, diagnosis.title)
                print("        ", diagnosis.implemented, "--", diagnosis.difference)
            for words in edit.false:
                print("    FALSE", words)
    for (name, kind), count in sorted(counts.items()):
        total = sum(n for key, n in counts.items() if key[0] == name)
        print(f"{name}: {kind} {count} of {total}")


if __name__ == "__main__":
    main()
