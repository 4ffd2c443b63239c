"""What a live cell asks Python: what the reader's text comes to, after what stands before it on the page."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache

import sympy
from workbench import WRITTEN_ALIKE, trouble

from normgrad.prove.hints import ANSWER
from normgrad.prove.verbs import definitions
from normgrad.prove.verdict import Verdict, unproved

LAST = "_last"


class Page:
    """A page's statements, run as far as its cells need them; the names that stand before each cell."""

    def __init__(self, text):
        self.statements = list(json.loads(text))
        self.names = {"sum": _sum}
        self.before = {}

    def scope(self, number):
        """The names before a cell. What the page defines was proved when the page was built."""
        if number not in self.before:
            lines = []
            while self.statements and self.statements[0][0] < number:
                lines.append(self.statements.pop(0)[1])
            with unproved():
                _run("\n".join(lines), self.names, f"<the page before {number}>")
            self.before[number] = dict(self.names)
        return dict(self.before[number])


pages: list[Page] = []


def begin(before: str, places: str) -> None:
    """Read a page. Args: before: its statements, as JSON; places: the numbers of its live cells, as JSON"""
    pages[:] = [Page(before)]
    for number in json.loads(places):
        pages[0].scope(number)


def _sum(items, start=0):
    """Python's sum, which for a tensor of SymPy would never end."""
    if isinstance(items, sympy.Basic):
        raise TypeError(f"'{items}' object is not iterable")
    return sum(items, start)


def _run(text, scope, name):
    """Run a text as a cell; the value of its last line, if that is an expression."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    tree = ast.parse(text, name)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        value = tree.body[-1].value
        last = ast.Assign([ast.Name(LAST, ast.Store())], value)
        tree.body[-1] = ast.copy_location(last, tree.body[-1])
    scope.pop(LAST, None)
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), scope)  # noqa: S102 - the reader's own text, in the reader's browser
    return scope.get(LAST)


def check(number: int, text: str, level: int) -> str:
    """JSON {kind, latex, words, more}: what a cell prints, with hints up to a level; more: whether there are others.

    kind is "proved", "refuted", "shown" or "error"; words are Markdown, a paragraph each.
    """
    name = f"<the cell {number}>"
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            value = _run(text, pages[0].scope(number), name)
            if isinstance(value, Verdict) and value.hints:
                value.hints = max(value.hints, level)
            answer = _answer(value)
    except Exception as error:
        answer = {"kind": "error", "latex": "", "words": [trouble(error, name)]}
    if printed.getvalue():
        answer["words"].insert(0, printed.getvalue().rstrip())
    return json.dumps({"more": False} | answer)


# What the functions of the pages use; a line before the reader's first. Where torch is imported, arrays are torch's.
NUMPY = "import numpy as np\n"
TORCH = "import torch, triton, triton.language as tl\n"


def read(text: str, question: str) -> str:
    """What `normgrad.verify` says of a text with a function, as `prove_kernel.answer` has it; nothing is run.

    Of the text its functions and classes are read: what follows them on a page checks them by running.

    Args:  question: {name, definition, flags} as JSON
    """
    from prove_kernel import answer

    lines = text.splitlines()
    with contextlib.suppress(SyntaxError):
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                for line in range(node.lineno - 1, node.end_lineno):
                    lines[line] = ""
    functions = "\n".join(lines)
    imports = NUMPY if "np." in functions else TORCH
    asked = json.loads(question) | {"text": imports + functions}
    report = json.loads(answer(json.dumps(asked)))
    for part in (report, report.get("verdict", {})):
        if part.get("line"):
            part["line"] -= 1
    return json.dumps(report)


def _answer(value):
    """What is shown of the value of a cell's last line."""
    if isinstance(value, Verdict):
        kind = "refuted" if value.refusal or value.question else "proved"
        counterexample = value.refusal and value.refusal.counterexample
        more = bool(value.hints and counterexample and value.hints < ANSWER)
        words = list(value.words)
        return {"kind": kind, "latex": value.latex, "words": words, "more": more}
    if isinstance(value, definitions):
        return {"kind": "shown", "latex": value.latex, "words": []}
    if isinstance(value, sympy.Basic):
        return {"kind": "shown", "latex": sympy.latex(value), "words": []}
    if isinstance(value, bool):
        value = f"{value}: {WRITTEN_ALIKE}"
    words = [] if value is None else [str(value)]
    return {"kind": "shown", "latex": "", "words": words}
