"""The gradients that a student's forward has, worked out from its text, beside what backward returns."""

from __future__ import annotations

import ast
from inspect import getsource

import numpy as np

from ...mistakes.table import UNKNOWN
from ..named import Diagnosis, named
from ..sandbox.student import Given, Request
from . import rerun
from .child import in_child

SECONDS = 5
WAYS, NEAR = 3, 1e-6  # directions, and how near differences of four points come
SEARCH = 2.0  # seconds of the processor for a change of the text
LONGEST = 300  # characters of an expression that is still read by a person
HINT = "Both were read from your text. Which step of forward does the difference leave out, or take twice?"
CHANGED = (
    "One change of this line makes your gradient that of your forward. It was found by trying, with the inputs that "
    "yours draws; which of the two was meant otherwise is yours to say."
)


def readings(program, inputs) -> list[Diagnosis]:
    """One Diagnosis for each gradient that is another one than forward's; [] where the two cannot be read.

    Args:  program: the text of a solution, or the class itself; inputs: what the student's code draws
    """
    roles = _roles(list(inputs.arrays.values()))
    if roles is None:
        return []
    return in_child(lambda: _read(program, roles, inputs.library))


def explained(operator, inputs, dy, grads, name, named_already) -> list[Diagnosis]:
    """What a wrong gradient takes for a constant, and a change of the text with which it is right.

    Args:  operator: of the student; grads: its gradients; name: of the input whose gradient is wrong
           named_already: what the numbers tell: a path is looked for without it, a change where nothing is swapped
    """
    if not named_already:
        diagnoses = _missing_path(operator, inputs, dy, grads, name)
        return diagnoses or _change(operator, inputs, dy, name)
    if "results-swapped" in {own.misconception for own in named_already}:
        return []
    return _change(operator, inputs, dy, name)


def _rerun(function, operator, inputs, arrays, options):
    """The outcome of a function of `rerun` with the student's operator and arrays."""
    arguments = []
    for key, array in arrays.items():
        arguments.append(Given(key, array, kind=inputs.library))
    options |= {
        "source": getsource(rerun),
        "run": function.__name__,
        "ways": WAYS,
    }
    request = Request("program", tuple(arguments), options)
    return operator.exam.student.call(operator.exam.task.entry, request)


def _missing_path(operator, inputs, dy, grads, name):
    """What a gradient takes for a constant: it is that of forward while one value, or two, are held."""
    arrays = {"dy": dy, **inputs.arrays}
    ways = [operator.like(inputs.arrays[name]) for _ in range(WAYS)]
    arrays |= {f"way {k}": way for k, way in enumerate(ways)}
    outcome = _rerun(rerun.held, operator, inputs, arrays, {"moved": name})
    if outcome.values is None:
        return []
    slopes = outcome.values[0].numbers
    claimed = np.array([(grads[name] * way).sum() for way in ways])
    size = np.abs(claimed).max() + np.abs(slopes[0]).max()
    same = (np.abs(slopes - claimed) <= NEAR * size).all(1)
    if same[0] or not outcome.facts["repeats"]:  # differences are off, or no formula
        return []
    for case in np.flatnonzero(same):
        sites = outcome.facts["sites"][case]
        if not sites[0][0]:
            title = f"The gradient for {name} is right where {sites[0][1]} is 1"
            return [named("factor-left-out", homework="hw7", title=title)]
        texts = " and ".join(f"{text[:60]} (line {line})" for line, text in sites)
        title = f"The way from {name} to y through {texts} is left out"
        return [named("path-missing", title=title)]
    return []


def _change(operator, inputs, dy, name):
    """A change of one place of the text with which the gradient for an input is right."""
    arrays = {"dy": dy, **inputs.arrays}
    for key, array in inputs.arrays.items():
        for k in range(WAYS):
            arrays[f"way {k} of {key}"] = operator.like(array)
    options = {
        "moved": name,
        "inputs": list(inputs.arrays),
        "near": NEAR,
        "seconds": SEARCH,
    }
    facts = _rerun(rerun.nearest, operator, inputs, arrays, options).facts
    if "line" not in facts:
        return []
    title = f"The gradient for {name} is right with one change of line {facts['line']}"
    words = f"{facts['part']} stands where {facts['right']} makes the gradient right"
    return [
        Diagnosis(
            UNKNOWN,
            title,
            CHANGED,
            implemented=facts["old"],
            right=facts["new"],
            difference=words,
        )
    ]


def _roles(arrays) -> list[str] | None:
    """What each input is: a matrix, a number for each column or for each row; None for what is none of them."""
    shapes = {array.shape for array in arrays if array.ndim == 2}
    if len(shapes) != 1:
        return None
    ((rows, columns),) = shapes
    roles = {(rows, columns): "(M, N)", (rows,): "(M,)", (columns,): "(N,)"}
    of_inputs = [roles.get(array.shape) for array in arrays]
    return None if rows == columns or None in of_inputs else of_inputs


def _read(program, roles, library):
    from ...symbolic.proof import lettered
    from ...verify.functions import parameters_of
    from ...verify.programs import gradient_of, verify_function
    from ...verify.verdict import REFUTED

    if isinstance(program, str):
        text = as_functions(program)
        forward, backward = (text, "forward"), (text, "backward")
        inputs = parameters_of(*forward).names
    else:
        forward, backward = program.forward, (program.backward, "")
        inputs = parameters_of(forward).names
    names = inputs + parameters_of(*backward).names[1:]
    verdict = verify_function(
        backward[0],
        forward,
        [gradient_of(name, ()) for name in inputs],
        library=library,
        name=backward[1],
        seconds=SECONDS,
        run=False,
        **dict(zip(names, 2 * roles, strict=True)),
    )
    diagnoses = []
    for name, own in verdict.outputs.items():
        if own.kind == REFUTED:
            (yours,) = lettered(own.stored)
            terms = " + ".join(lettered(*own.difference)).replace("+ -", "- ")
            diagnoses.append(
                Diagnosis(
                    UNKNOWN,
                    f"{name} is not the gradient of forward, for every M and N",
                    HINT,
                    implemented=_short(f"{name} = {yours}"),
                    difference=_short(f"yours less what forward has: {terms}"),
                )
            )
    return diagnoses


def _short(text) -> str:
    return text if len(text) <= LONGEST else ""


def as_functions(text: str) -> str:
    """A solution's text with the functions of its Operator as functions of the module."""
    tree, statements = ast.parse(text), []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            statements.append(node)
            continue
        for function in node.body:
            if isinstance(function, ast.FunctionDef):
                function.decorator_list = []
                statements.append(function)
    tree.body = statements
    return ast.unparse(_OfModule().visit(tree))


class _OfModule(ast.NodeTransformer):
    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Operator":
            return ast.Name(node.attr, node.ctx)
        return node
