"""What the page *Prove a kernel* asks Python: what a text offers to be checked, and what that is. Nothing is run."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from sympy import Add, Indexed, Rational, S, Symbol, evaluate

from normgrad.symbolic.notation import tensor
from normgrad.symbolic.render import latex
from normgrad.symbolic.symbols import M, N, eps, i, j
from normgrad.symbolic.witness import Explicit
from normgrad.verify import cross_entropy, log_softmax, norm, proposal, softmax, verify
from normgrad.verify.definitions import entry
from normgrad.verify.entries import NUMBA, TRITON, entries
from normgrad.verify.header import parameters
from normgrad.verify.programs import parameters_of
from normgrad.verify.request import argument_of, axes_of, parsed, requests_of, written
from normgrad.verify.source import source_of
from normgrad.verify.values import NotRead, unfollowed
from normgrad.verify.verdict import NOT_READ, Verdict, refused

LONGEST = 300_000
SECONDS = 20
# {a word of the menu: its title, whether a weight and a bias are usual, the other arguments of norm}
NORMS = {
    "rms": ("RMSNorm", True, False, {}),
    "layer": ("LayerNorm", True, True, {"center": True}),
    "l2": ("L2 norm, eps in the root", False, False, {"reduce": "sum"}),
    "l2_clamp": (
        "L2 norm, the larger of norm and eps",
        False,
        False,
        {"reduce": "sum", "placement": "clamp"},
    ),
    "add_rms": ("add + RMSNorm", True, False, {"residual": True}),
    "add_layer": ("add + LayerNorm", True, True, {"center": True, "residual": True}),
}
# {a word of the menu: its title, what makes the definitions}
EXPONENTIALS = {
    "softmax": ("softmax", softmax),
    "log_softmax": ("log-softmax", log_softmax),
    "cross_entropy": ("cross entropy of each row", cross_entropy),
}
# what a reader has in place of a norm
FORWARD, REFERENCE = "forward", "reference"
OTHERS = {
    FORWARD: "the gradients of its own forward",
    REFERENCE: "a function of mine",
}
# the name of a form's line beside those of arguments
GRID, RETURNS = "grid", "returns"
# of the numbers of a table: as few as tell them apart
DIGITS = (4, 7, 12)
LINES = re.compile(r"\blines? (\d+(?:, \d+)*)")


def menu() -> list[dict]:
    """The definitions that a reader may choose."""
    rows = [
        {"name": name, "title": title, "weight": weight, "bias": bias}
        for name, (title, weight, bias, _) in NORMS.items()
    ]
    titles = {name: title for name, (title, _) in EXPONENTIALS.items()} | OTHERS
    return rows + [{"name": name, "title": title} for name, title in titles.items()]


def examples(table: str) -> list[dict]:
    """The texts of kernels.txt."""
    found = []
    for part in re.split("^=== ", table, flags=re.M)[1:]:
        head, text = part.split("\n", 1)
        keys = ("title", "name", "definition", "kind", "pattern")
        words = [word.strip() for word in head.split("|", len(keys) - 1)]
        found.append(dict(zip(keys, words, strict=True), text=text.strip() + "\n"))
    return found


def answer(question: str) -> str:
    """What a text comes to, as JSON.

    Args:    question: the arguments of `read`, as JSON
    Returns: {"entries": what the text offers, "name": which of them is meant} and one of "verdict", "form", which the
             reader is to fill in, or "error", a sentence, with its "line"
    """
    return json.dumps(read(**json.loads(question)))


def read(
    text: str,
    name: str = "",
    definition: str = "rms",
    flags: dict | None = None,
    reference: str = "",
    fields: dict | None = None,
    confirmed: bool = False,
    row: dict | None = None,
) -> dict:
    """The answer to a question.

    Args:  name: of the function, "" for the likeliest; definition: of menu(); flags: what norm is told, as {"bias":
           True}; reference: the text of a forward, for the definition "reference"; fields: {a line of the form: what
           stands in it}; confirmed: whether the reader has seen and confirmed the form of a bare kernel; row: {x: its
           numbers}, of a page that has one row and no eps: what is told is of this row
    """
    text = text.removeprefix("\ufeff")  # the mark at the beginning of some files
    if not text.strip():
        return {"error": "The box is empty: paste a kernel or a function."}
    if len(text) > LONGEST:
        words = f"This text has {len(text):,} characters"
        return {"error": f"{words}, and the box takes {LONGEST:,}."}
    try:
        found = {entry.name: entry for entry in entries(text)}
    except (SyntaxError, ValueError) as reason:
        line = getattr(reason, "lineno", None)
        return {"error": f"This is not Python: {_sentence(str(reason))}.", "line": line}
    if not found:
        words = "This text has no function, class or kernel that can be checked: one "
        return {"error": words + "takes an argument, and returns or stores a result."}
    entry = found.get(name) or next(iter(found.values()))
    shown = [{"name": e.name, "kind": e.kind, "line": e.line} for e in found.values()]
    result = {"entries": shown, "name": entry.name}
    filled = {key: words for key, words in (fields or {}).items() if words.strip()}
    result["form"] = _form(text, entry, fields or {})
    if entry.kind == TRITON and not confirmed:
        return result
    try:
        defined = _definitions(entry.kind, definition, flags or {}, reference)
        check = _of_kernel if entry.kind == TRITON else _of_function
        verdict = check(text, entry.name, defined, filled)
    except NotRead as reason:
        verdict = refused(reason)
    except (SyntaxError, TypeError, ValueError) as reason:
        return result | {"error": _sentence(str(reason))}
    except Exception as reason:  # a reader is told, and nothing is claimed
        verdict = Verdict(NOT_READ, why=unfollowed(reason))
    shown = data(verdict)
    return result | {"verdict": _of_row(shown, verdict, row) if row else shown}


def _of_row(shown, verdict, row):
    """A verdict as a page tells it that has one row, its s, and no eps: s is sqrt(v + eps), at 0 of which all holds."""
    shown["kind"] = shown["kind"].replace("every M and N", "every N")
    shown["claim"] = shown["claim"].replace("[i, j]", "[j]")
    with evaluate(False):
        terms = [_in_row(term) for term in verdict.difference]
    shown["latex"] = _formula(terms)
    if verdict.case is not None:
        # what has no value there, or a size of its own, is told in general
        with suppress(KeyError, TypeError, ValueError):
            at = _at_row(verdict.case, row)
            shown["counterexample"] = at or shown["counterexample"]
    return shown


def _in_row(e):
    """An expression without the index of the row, and with s for the reciprocal of rstd."""
    rstd = 1 / Symbol("s", positive=True)
    parts = {
        part: tensor(str(part.base), N)[part.indices[-1]] for part in e.atoms(Indexed)
    }
    return e.xreplace(parts | {entry("rstd"): rstd})


def _at_row(case, row):
    """Where the sides of a refutation differ at a row without eps, in words; "" where they do not."""
    size = len(row["x"])
    entries = Explicit(case.defs, {M: 1, N: size})
    point = {eps: S.Zero}
    for name, numbers in row.items():
        for k, number in enumerate(numbers, 1):
            point[entries.entry(entry(name), {i: 1, j: k})] = Rational(number)

    def values(e):
        places = [entries.entry(e, {i: 1, j: k}) for k in range(1, size + 1)]
        return [place.xreplace(point) for place in places]

    stored, defined = values(case.stored), values(case.defined)
    if stored == defined:
        return ""
    given = " and ".join(
        f"{name} = {_listed(map(Rational, numbers))}" for name, numbers in row.items()
    )
    s = values(1 / entry("rstd"))[0]
    return f"at {given}, s = {s}: your dx is {_listed(stored)}, the gradient is {_listed(defined)}"


def _listed(numbers):
    return f"({', '.join(f'{float(number):.4g}' for number in numbers)})"


def _of_kernel(text, name, defined, filled):
    """The verdict on a bare kernel by its binding."""
    axes = axes_of(filled.pop(GRID, ""))
    binding = {key: parsed(words, key) for key, words in filled.items()}
    return verify(text, binding, axes, defined, kernel=name, seconds=SECONDS)


def _of_function(text, name, defined, filled):
    """The verdict on a function or a class by what its arguments and results are."""
    outputs = filled.pop(RETURNS, None)
    inputs = {key: argument_of(key, words) for key, words in filled.items()}
    if outputs is not None:
        inputs["outputs"] = re.findall(r"\w+", outputs)
    return verify(text, defined, name=name, seconds=SECONDS, **inputs)


def _sentence(words):
    """What is wrong with a question, as a reader of the page can mend it."""
    if words.startswith("outputs: got None"):
        return "The text has no name for what it returns: write it below, as y or as dx, dw, and check again."
    words = re.sub("^program: got a text that is (not Python: )?", "", words)
    words = re.sub(r" \(<unknown>, line (\d+)\)$", r", line \1", words)
    return re.sub("; say which tensor .*", ": say below which tensor it is.", words)


def _definitions(kind, definition, flags, reference):
    """What the menu means to verify."""
    if kind == NUMBA:
        words = "A kernel in loops is read where Python runs: see the page "
        raise ValueError(words + "The text of a kernel, proved.")
    if kind == TRITON and definition in OTHERS:
        words = "A kernel by itself has no forward: choose a definition, or check the "
        raise ValueError(words + "function that launches it.")
    if definition == FORWARD:
        return None
    if definition == REFERENCE:
        if not reference.strip():
            raise ValueError("The box of your function is empty.")
        names = [entry.name for entry in entries(reference)]
        if not names:
            raise ValueError("The box of your function has no function in it.")
        return reference, names[0]
    if definition in EXPONENTIALS:
        return EXPONENTIALS[definition][-1]()
    return norm(**NORMS[definition][-1] | flags)


def _form(text, entry, fields):
    """The lines of a form, [name, what stands there]; of a kernel as it is proposed, of a function empty."""
    try:
        if entry.kind == TRITON:
            source, kernel = source_of(text, entry.name)
            names, _ = parameters(source.function(kernel))
            binding, grid = proposal.propose(source, kernel)
            lines = {
                name: written(binding[name]) if name in binding else ""
                for name in names
            }
            lines |= {GRID: ", ".join(map(str, grid))}
            # what a comment above the kernel says goes before what names propose
            for request in requests_of(text)[0]:
                if request.name == entry.name:
                    lines = dict.fromkeys(names, "") | {GRID: request.grid or ""}
                    lines |= request.bound
        else:
            found = parameters_of(text, entry.name)
            lines = dict.fromkeys(found.names, "")
            if not found.is_class:
                lines[RETURNS] = ""
    except (NotRead, TypeError, ValueError):
        return []
    return [[name, fields.get(name, words)] for name, words in lines.items()]


def data(verdict: Verdict) -> dict:
    """A verdict as the page shows it: as JSON, with a formula, a table and the lines that it names."""
    shown = verdict.data()
    shown["latex"] = _formula(verdict.difference)
    shown["table"] = _table(shown["replay"])
    shown["lines"] = _lines(shown)
    for name, output in verdict.outputs.items():
        shown["outputs"][name] = data(output)
    return shown


def _formula(terms):
    try:
        with evaluate(False):
            return latex(Add(*terms)) if terms else ""
    except ValueError:  # a number and a tensor would read alike: it is shown as text
        return ""


def _table(replay):
    """The rows of a small case that fails: [name, its numbers, those of a row of a tensor in one line]."""
    if replay is None:
        return []
    rows = {**replay["sizes"], **replay["inputs"]}
    table = [[name, _numbers(value)] for name, value in rows.items()]
    output, sides = replay["output"], (replay["stored"], replay["defined"])
    for digits in DIGITS:
        stored, defined = [_numbers(side, digits) for side in sides]
        if stored != defined:
            break
    table.append([f"{output}, the program", stored])
    table.append([f"{output}, the definition", defined])
    return table


def _numbers(value, digits=6):
    if isinstance(value, list):
        between = "\n" if isinstance(value[0], list) else ", "
        return between.join(_numbers(part, digits) for part in value)
    return "no value" if value is None else f"{float(value):.{digits}g}"


def _lines(shown):
    """The lines of the text that a verdict names."""
    if shown["why"].startswith("definitions"):
        return []
    found = {shown["line"], *[condition["line"] for condition in shown["where"]]}
    for words in (shown["claim"], shown["why"], *shown["assumptions"]):
        for numbers in LINES.findall(words):
            found.update(map(int, numbers.split(", ")))
    for output in shown["outputs"].values():
        found.update(_lines(output))
    return sorted(found - {None})
