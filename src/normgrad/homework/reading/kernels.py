"""What a student's kernels store, read from their text by `normgrad.verify`; no points depend on it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import partial

from ...mistakes.table import UNKNOWN
from ..hw4.gpu import module_text
from ..named import Diagnosis, named
from .child import in_child

# M and N of the launch that tells what each argument is: no number in it stands for two things.
SHAPE = (5, 1030)
SECONDS = 10
# {result: the label of its registered equation}
LABELS = {
    "residual_out": "res-forward",
    "y": "ln-forward",
    "dx": "res-dx-layer-norm",
    "dw": "ln-dw",
    "db": "ln-db",
}
HINT = "This was read from the kernel's text: look at the line, or at what its masks and addresses let through."
OF_NO_TENSOR = (
    "what it points to is no input and no result of the launcher, nor a copy of one"
)
# Of verify's reasons: a width that a launcher chooses has no place in a result.
OF_THE_BLOCK = "which the launcher chooses"
NORM = {"center": True, "bias": True, "residual": True, "dresidual_out": True}


def readings(exam, trial) -> list[Diagnosis]:
    """What is wrong with the results of a launcher's kernels, or cannot be read. Args: trial: of SHAPE"""
    program = exam.student.program(exam.task.entry)
    if isinstance(program, str):
        results = exam.oracle.results
        shown = in_child(partial(_of_launcher, program, exam.task.entry, results))
        if shown:
            return shown
    op, layout = exam.oracle.read_as
    request = replace(exam.oracle.request(trial, layout=layout), op=op)
    outcome = exam.student.call(exam.task.entry, request)
    shown = []
    for launch in outcome.facts.get("launches", ()):
        arguments = launch["arguments"].values()
        if any("input" in argument for argument in arguments):
            results, eps = exam.oracle.results, trial.spec.eps
            shown += in_child(partial(_of_launch, launch, results, eps))
    return shown


OF_LANES = re.compile(r"next_power_of_2|cdiv\(")
MADE = {"empty", "zeros", "ones", "full"}


def on_a_gpu(text) -> str:
    """A launcher's text, line for line, whose tensors are made where a GPU would have them; homework has none."""
    calls = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("torch"), made)) if made in MADE:
                if "device" not in [keyword.arg for keyword in node.keywords]:
                    calls.append((node.end_lineno - 1, node.end_col_offset - 1))
    lines = [line.encode() for line in text.split("\n")]
    for line, column in sorted(calls, reverse=True):
        before, after = lines[line][:column], lines[line][column:]
        comma = b"" if before.rstrip().endswith((b",", b"(")) else b", "
        lines[line] = before + comma + b'device="cuda"' + after
    return b"\n".join(lines).decode()


def _of_launcher(program, entry, results) -> list[Diagnosis]:
    """What is wrong with the results of a function that launches kernels, read with them.

    [] where it is not read, and where a result depends on how many lanes a tile has: a kernel alone says more of that.
    """
    from ...verify import norm
    from ...verify.programs import verify_function
    from .beliefs import diagnoses
    from .equations import equations_of

    definitions = norm(**NORM)
    verdict = verify_function(
        on_a_gpu(program), definitions, results, "torch", entry, SECONDS, run=False
    )
    shown = []
    for equation in equations_of(verdict, definitions):
        if OF_LANES.search(equation.yours):
            return []
        shown += diagnoses(equation, LABELS.get(equation.output, ""))
    return shown


def _of_launch(launch, results, eps) -> list[Diagnosis]:
    from ...verify import T, norm, verify
    from ...verify.proposal import propose
    from ...verify.source import source_of
    from .beliefs import diagnoses
    from .equations import equations_of
    from .tasks import is_one_pass

    definitions = norm(**NORM)
    name, text = launch["kernel"], module_text(launch["described"])
    binding, grid = propose(source_of(text, name)[0], name)
    launched = bound(launch["arguments"], results, eps)
    # what is read is known by where it lies, but for what a forward saved
    saved = T("mean"), T("rstd")
    guessed = {
        argument: meaning
        for argument, meaning in binding.items()
        if type(meaning) is not T or meaning in saved
    }
    binding = guessed | launched
    free = {own for own, what in launch["arguments"].items() if not what}
    text = without_stores(text, name, free - binding.keys())
    try:
        verdict = verify(text, binding, grid, definitions, kernel=name, seconds=SECONDS)
    except ValueError as reason:
        return [_unread(name, f"not read: {reason}")]
    outputs = {
        getattr(binding.get(argument), "after", argument): own
        for argument, own in verdict.outputs.items()
    }
    shown, lines = [], text.split("\n")
    for equation in equations_of(replace(verdict, outputs=outputs), definitions):
        shown += diagnoses(equation, LABELS.get(equation.output, ""))
    proved = [own for own in outputs.values() if own and own.stored is not None]
    if any(is_one_pass(own.stored, definitions) for own in proved):
        shown.append(named("one-pass-variance"))
    reasons = {}
    for output, own in (outputs or {"": verdict}).items():
        if own.why and not own.kind.startswith("proved"):
            words = f"{own.kind}: {_without_bindings(own.why)}"
            if own.line:
                words += f" ({lines[own.line - 1].strip()})"
            reasons.setdefault(words, []).append(output)
    for words, names in reasons.items():
        shown.append(_unread(f"{name} {', '.join(names)}".strip(), words))
    return shown


def without_stores(text, name, pointers) -> str:
    """A kernel's text, line for line, without its stores to some pointers, such as those to partial sums."""
    (kernel,) = [
        node for node in ast.walk(ast.parse(text)) if getattr(node, "name", "") == name
    ]
    pointers, lines = set(pointers), text.split("\n")
    for node in ast.walk(kernel):
        used = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        if not {part.id for part in used} & pointers:
            continue
        if isinstance(node, ast.Assign):
            pointers |= {part.id for part in used if isinstance(part.ctx, ast.Store)}
        elif isinstance(node, ast.Expr):
            first, last = node.lineno - 1, node.end_lineno
            gone = [" " * node.col_offset + "pass", *[""] * (last - first - 1)]
            lines[first:last] = gone
    return "\n".join(lines)


def _without_bindings(why) -> str:
    """A reason of verify's in a student's words: there is nothing to bind."""
    if "bind pointers as" in why:
        return OF_NO_TENSOR
    return re.sub("[;:] bind .*", "", why)


def _unread(subject, words) -> Diagnosis:
    title = f"{subject} is {words}"
    if OF_THE_BLOCK in words:
        diagnosis = named("padding-counted", title=title)
        if "mean" not in re.findall(r"\w+", subject):
            diagnosis.equation = "kern-padded-variance"
        return diagnosis
    # Beside what is named, only what differs is shown.
    wrong = words if words.startswith("wrong") else ""
    return Diagnosis(UNKNOWN, title, HINT, difference=wrong)


def bound(arguments, results, eps) -> dict:
    """{argument: what it is to `verify`} as far as a launch tells.

    Args:  arguments: of a launch's facts; results: of the launcher, in their order; eps: a number
    """
    from ...verify import FLOAT, WHOLE, M, N, Out, T
    from ...verify import eps as eps_symbol

    rows, columns = SHAPE
    numbers, binding = {rows: M, columns: N, eps: eps_symbol, 1: 1}, {}
    strides = {
        argument["number"]: name
        for name, argument in arguments.items()
        if argument.get("number", 0) > columns
    }
    for name, argument in arguments.items():
        if argument.get("input", "").isidentifier():
            stride = strides.get(argument["stride"])
            binding[name] = T(argument["input"], None, stride)
        elif argument.get("result", len(results)) < len(results):
            binding[name] = Out(results[argument["result"]])
        elif "dtype" in argument:
            binding[name] = FLOAT
        elif argument.get("number") in numbers:
            binding[name] = numbers[argument["number"]]
        elif argument.get("block", 0) >= columns:
            binding[name] = WHOLE
    return binding
