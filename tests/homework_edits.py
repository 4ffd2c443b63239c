"""Random edits of the right solutions of homeworks 2 and 3, and what their reading says.

python tests/homework_edits.py    prints the share of edits whose difference is exact, and each edit with its reading
"""

import ast
import copy
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
from homework_solutions import of_source
from points import Point

from normgrad.homework import solutions
from normgrad.homework.reading.beliefs import belief
from normgrad.homework.reading.equations import equations_of
from normgrad.homework.task import find
from normgrad.verify import norm, verify
from normgrad.verify.programs import input_of

TASKS = (
    "rmsnorm-forward",
    "rmsnorm-backward",
    "layernorm-backward",
    "layernorm-function",
)
NAMES = ("x_hat", "wdy", "dy", "x", "weight", "rstd", "c1", "c2", "mean")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass
class Edited:
    """One edit. Args: line: as it is then; outputs: those whose numbers it changes; kinds: {output: the verdict}"""

    task: str
    line: str
    outputs: set
    kinds: dict
    equations: list

    @property
    def is_exact(self):
        """Whether each wrong output has its difference, term by term."""
        shown = {each.output for each in self.equations if each.findings}
        return bool(shown) and self.outputs <= shown


def edits(node):
    """All single edits of a function's tree, as (node, replacement)."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp):
            for operator in OPERATORS:
                if not isinstance(part.op, (operator, ast.Pow)):
                    yield part, ast.BinOp(part.left, operator(), part.right)
            yield part, part.left
            if not isinstance(part.op, ast.Sub):
                yield part, part.right
        if isinstance(part, ast.Attribute) and part.attr in ("mean", "sum"):
            other = {"mean": "sum", "sum": "mean"}[part.attr]
            yield part, ast.Attribute(part.value, other, part.ctx)
        if isinstance(part, ast.Call) and part.args:
            for axis in (0, None):
                if ast.unparse(part.args[0]) == "-1":
                    call = copy.deepcopy(part)
                    call.args[0] = ast.Constant(axis)
                    yield part, call
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            for name in NAMES:
                if part.id in NAMES and name != part.id:
                    yield part, ast.Name(name, part.ctx)


def edited_texts(task):
    """The texts of a module in which one node of a task's code is another, with the line that changed."""
    text = solutions.solution(task.homework)
    tree = ast.parse(text)
    names = {task.entry} | ({"normalized"} if task.library == "torch" else set())
    for at, node in enumerate(tree.body):
        if getattr(node, "name", "") not in names:
            continue
        for target, replacement in edits(node):
            body = [*tree.body]
            body[at] = with_edit(node, target, replacement)
            own = ast.unparse(ast.Module(body, []))
            before = ast.unparse(tree).split("\n")
            changed = [row for row in own.split("\n") if row not in before]
            yield own, (changed or [""])[0].strip()


def with_edit(node, target, replacement):
    """A copy of a tree with another node in the place of one of its nodes."""
    memo = {id(target): copy.deepcopy(replacement)}
    return copy.deepcopy(node, memo)


def results(task, text):
    """{output: numbers} of a solution on one case; None where it raises, or returns other shapes."""
    target = of_source(text)[task.entry]
    point = Point((4, 6), norm(**task.reads.norm).defs, np.random.default_rng(0))
    names = ["x", "weight", "bias", "eps", "dy"]
    if task.library == "numpy":
        names = task.oracle.arguments
    values = {name: point.tensor(input_of(name, name).head) for name in names}
    call = target if task.library == "numpy" else partial(_gradients, target)
    try:
        with np.errstate(all="ignore"):
            outputs = call(*values.values())
    except Exception:
        return None
    pairs = zip(task.oracle.results, outputs, strict=True)
    return {name: np.asarray(output) for name, output in pairs}


def _gradients(target, x, weight, bias, eps, dy):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in (x, weight, bias)]
    y = target.apply(*tensors, eps)
    return [y.detach(), *torch.autograd.grad(y, tensors, torch.tensor(dy))]


def read_edits(task_name, most, seed=0):
    """Some edits of a task that change its numbers and keep their shapes, each with its reading."""
    task = find(task_name)
    right = results(task, solutions.solution(task.homework))
    texts = list(edited_texts(task))
    order = np.random.default_rng(seed).permutation(len(texts))
    readings = []
    for at in order:
        text, line = texts[at]
        own = results(task, text)
        if own is None or any(own[k].shape != right[k].shape for k in right):
            continue
        wrong = {k for k in right if not np.allclose(own[k], right[k], equal_nan=True)}
        if wrong:
            readings.append(_reading(task, text, line, wrong))
        if len(readings) == most:
            break
    return readings


def _reading(task, text, line, wrong):
    definitions = norm(**task.reads.norm)
    target = of_source(text)[task.entry]
    options = {"outputs": task.reads.outputs, "library": task.reads.library}
    verdict = verify(target, definitions, seconds=10, **options)
    kinds = {name: own.kind for name, own in verdict.outputs.items()} or {
        "": verdict.kind
    }
    equations = equations_of(verdict, definitions)
    return Edited(task.name, line, wrong, kinds, equations)


def main():
    counts = Counter()
    for name in TASKS:
        for each in read_edits(name, int((sys.argv[1:] or ["60"])[0])):
            counts[name, each.is_exact] += 1
            print(name, "|", each.line, "|", "exact" if each.is_exact else each.kinds)
            for equation in each.equations:
                print("    ", equation.output, "=", equation.yours)
                for finding in equation.findings:
                    print("        ", finding, "--", belief(finding))
    for name in TASKS:
        total = counts[name, True] + counts[name, False]
        print(f"{name}: {counts[name, True]} of {total} exact")


if __name__ == "__main__":
    main()
