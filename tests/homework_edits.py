"""Random edits of the right solutions of homeworks 2 and 3, and what their reading says.

python tests/homework_edits.py    prints the share of edits whose difference is exact, and each edit with its reading
"""

import ast
import copy
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from homework_solutions import of_source

from normgrad.homework import solutions
from normgrad.homework.reading.beliefs import belief
from normgrad.homework.reading.equations import equations_of
from normgrad.homework.task import find
from normgrad.verify import norm, verify

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


class _Replaced(ast.NodeTransformer):
    def __init__(self, target, replacement):
        self.target, self.replacement = target, replacement

    def visit(self, node):
        return self.replacement if node is self.target else self.generic_visit(node)


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
            body[at] = _Replaced(target, replacement).visit(copy.deepcopy(node))
            body[at] = _with(node, target, replacement)
            own = ast.unparse(ast.Module(body, []))
            before = ast.unparse(tree).split("\n")
            changed = [row for row in own.split("\n") if row not in before]
            yield own, (changed or [""])[0].strip()


def _with(node, target, replacement):
    memo = {id(target): copy.deepcopy(replacement)}
    return copy.deepcopy(node, memo)


def results(task, text):
    """{output: numbers} of a solution on one case; None where it raises, or returns other shapes."""
    target = of_source(text)[task.entry]
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((2, 4, 6))
    weight, bias = rng.standard_normal((2, 6))
    x = 2 * x + 1
    centred = task.homework == "hw3"
    mean = x.mean(-1)
    q = x - mean[:, None] * centred
    values = {
        "x": x,
        "dy": dy,
        "weight": weight,
        "bias": bias,
        "mean": mean,
        "eps": 0.1,
    }
    values["rstd"] = 1 / np.sqrt((q * q).mean(-1) + 0.1)
    try:
        with np.errstate(all="ignore"):
            found = _called(task, target, values)
    except Exception:
        return None
    return {k: np.asarray(v) for k, v in zip(task.oracle.results, found, strict=True)}


def _called(task, target, values):
    if task.library == "numpy":
        return target(*[values[name] for name in task.oracle.arguments])
    import torch

    names = ("x", "weight", "bias")
    tensors = [torch.tensor(values[name], requires_grad=True) for name in names]
    y = target.apply(*tensors, values["eps"])
    grads = torch.autograd.grad(y, tensors, torch.tensor(values["dy"]))
    return [y.detach(), *grads]


def read_edits(task_name, most, seed=0):
    """Some edits of a task that change its numbers and keep their shapes, each with its reading."""
    task = find(task_name)
    right = results(task, solutions.solution(task.homework))
    texts = list(edited_texts(task))
    order = np.random.default_rng(seed).permutation(len(texts))
    made = []
    for at in order:
        text, line = texts[at]
        own = results(task, text)
        if own is None or any(own[k].shape != right[k].shape for k in right):
            continue
        wrong = {k for k in right if not np.allclose(own[k], right[k], equal_nan=True)}
        if wrong:
            made.append(_reading(task, text, line, wrong))
        if len(made) == most:
            break
    return made


def _reading(task, text, line, wrong):
    definitions = norm(**task.reads.norm)
    target = of_source(text)[task.entry]
    options = {"outputs": task.reads.outputs, "library": task.reads.library}
    verdict = verify(target, definitions, seconds=10, **options)
    kinds = {name: own.kind for name, own in verdict.outputs.items()} or {
        "": verdict.kind
    }
    found = equations_of(verdict, definitions)
    return Edited(task.name, line, wrong, kinds, found)


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
