"""What a live cell asks Python: what the reader's text comes to, after what stands before it on the page."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import linecache
import re

import sympy
from workbench import DELTA, WRITTEN_ALIKE, trouble

from normgrad.prove.claim import CannotJudge
from normgrad.prove.hints import ANSWER
from normgrad.prove.names import SPELLINGS, DefinedBase, Name
from normgrad.prove.verbs import definitions
from normgrad.prove.verdict import LONGEST, Verdict, unproved

LAST = "_last"


class Page:
    """A page's statements, run as far as its cells need them; the names that stand before each cell."""

    def __init__(self, text):
        self.statements = list(json.loads(text))
        # Rational is what a refused decimal is advised to be
        self.names = {"sum": _sum, "Rational": sympy.Rational}
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
    SPELLINGS.clear()
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
    printed, scope = io.StringIO(), pages[0].scope(number)
    try:
        _check_choices(ast.parse(text, name))
        with contextlib.redirect_stdout(printed):
            value = _run(text, scope, name)
            if isinstance(value, Verdict) and value.hints:
                value.hints = max(value.hints, level)
            answer = _answer(value)
    except Exception as error:
        words = _shown_alike(error, text, scope) or trouble(error, name)
        answer = {"kind": "error", "latex": "", "words": [words]}
    if printed.getvalue():
        answer["words"].insert(0, printed.getvalue().rstrip())
    return json.dumps({"more": False} | answer)


def _check_choices(tree):
    """Refuses `1 - 1/N if k == j else -1/N`, of which Python takes the second way: two indices are no number yet."""
    for node in ast.walk(tree):
        match node:
            case ast.IfExp(test=ast.Compare(ast.Name(), [ast.Eq()], [ast.Name()])):
                words = f"Python decides {ast.unparse(node.test)} once, as False"
                raise CannotJudge(f"{words}: {DELTA}")


def _shown_alike(error, text, scope):
    """Which names of the page are meant, where two are shown alike or one was typed as it is shown; or nothing."""
    shown = {name: str(value) for name, value in scope.items() if _is_symbol(value)}
    if isinstance(error, NameError):
        missing = getattr(error, "name", "")
        typed = [name for name, spelling in shown.items() if spelling == missing]
        words = f"{missing} is not the name of anything here: what is shown as {missing} is typed"
        return f"{words} {typed[-1]}" if typed else ""
    found = re.match(r"(?:line \d+: )?(\w+): stands for two things", str(error))
    if not isinstance(error, CannotJudge) or not found:
        return ""
    alike = [name for name, spelling in shown.items() if spelling == found[1]]
    inputs, typed = _inputs(_question(text, scope)), _names_of_question(text)
    meant = [name for name in alike if scope[name] in inputs or name in typed]
    if len(meant) != 1 or len(alike) < 2:
        return ""
    others = {name for name in alike if scope[name] != scope[meant[0]]}
    wrong = {scope[name] for name in others}
    names = [
        name
        for name, value in scope.items()
        if isinstance(value, Name | DefinedBase)
        and scope[meant[0]] in _inputs(value)
        and not wrong & _inputs(value)
        and name not in typed
    ]
    # a question that is a name by itself is no part of its answer
    is_name = isinstance(_asked(text), ast.Name)
    names = ", ".join(dict.fromkeys([*meant * (not is_name), *names]))
    others = " and ".join(sorted(others))
    words = f"{others} and {meant[0]} are both shown as {found[1]}, and this question has {meant[0]}"
    answer = f"write the answer with {names}, and" if names else "write the answer"
    return f"{words}: {answer} with nothing that is made of {others}"


def _is_symbol(value):
    return isinstance(value, sympy.Symbol | sympy.IndexedBase)


def _inputs(value):
    """What a name, or an expression, depends on."""
    value = value.label if isinstance(value, DefinedBase) else value
    return getattr(value, "free_symbols", set())


def _asked(text):
    """The first argument of the call in a cell's last line."""
    return ast.parse(text).body[-1].value.args[0]


def _question(text, scope):
    with contextlib.suppress(Exception):
        code = compile(ast.Expression(_asked(text)), "<the question>", "eval")
        return eval(code, scope)
    return None


def _names_of_question(text):
    nodes = ast.walk(_asked(text))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


# What the functions of the pages use; a line before the reader's first.
IMPORTS = {
    "tl": "import torch, triton, triton.language as tl\n",
    "torch": "import torch, triton, triton.language as tl\n",
    "np": "import numpy as np\n",
}
MEANS = {
    "tl": "here a mean is tl.sum(x, axis=0) / N",
    "torch": "here a mean is x.mean(1, keepdim=True)",
    "np": "here a mean is x.mean(-1, keepdims=True)",
}
# {what is said of a function: what helps}
READING = {
    r"Triton has no \*\* of tensors": "a reciprocal root is 1 / tl.sqrt(x)",
    r"which rows these are": "a program has the row tl.program_id(0), which begins at row * N, or in a loop "
    "the rows of range(tl.program_id(0), M, tl.num_programs(0)): what is read and stored at others is not known here",
    r"which columns these are": "a row's columns are cols, and what is no matrix, as a weight, is read at cols alone",
    r"depends on BLOCK": "a sum over a block adds the lanes past the end, too, and BLOCK is not N: what a masked "
    "load puts there is 0, and what is made of it need not be",
    r"has no value here": "what a loop adds up is written +=",
    r"do not fit together": "a sum or a mean over the columns keeps its axis with keepdims=True, in torch keepdim=True",
    r"BitXor": "a power is written **",
    r"language\.mean|attribute mean": MEANS["tl"],
    r"attribute sum|name sum": "the sum of a row is tl.sum(x, axis=0)",
}
PROVED = "proved"
# a literal of a function below this is its eps
SMALL = 0.01


def read(text: str, question: str) -> str:
    """What `normgrad.verify` says of a text with a function, as `prove_kernel.answer` has it; nothing is run.

    Of the text its functions and classes are read: what follows them on a page checks them by running.

    Args:  question: {name, definition, flags} as JSON
    """
    from prove_kernel import answer

    lines, functions = text.splitlines(), []
    with contextlib.suppress(SyntaxError):
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                functions.append(node)
                continue
            for line in range(node.lineno - 1, node.end_lineno):
                lines[line] = ""
    library = _library(functions)
    fault = _fault(functions, json.loads(question)["name"], library)
    if fault:
        return json.dumps({"error": fault[0], "line": fault[1]})
    asked = json.loads(question) | {"text": IMPORTS[library] + "\n".join(lines)}
    report = _a_line_up(json.loads(answer(json.dumps(asked))))
    if said := report.get("verdict"):
        helps = [
            words for habit, words in READING.items() if re.search(habit, said["why"])
        ]
        said["why"] = "; ".join(filter(None, [said["why"], *_outputs(said), *helps]))
        # a difference that is longer says nothing to a reader
        said["latex"] = said["latex"] if len(said["latex"]) <= LONGEST else ""
    return json.dumps(report)


def _one_less(found):
    """Lines in words, each a line up."""
    return re.sub(r"\d+", lambda line: str(int(line[0]) - 1), found[0])


def _a_line_up(value, key=""):
    """An answer with the lines of the reader's text, before which the imports stand."""
    if isinstance(value, dict):
        return {name: _a_line_up(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_a_line_up(part) for part in value]
    if isinstance(value, str):
        return re.sub(r"\blines? \d+(, \d+)*", _one_less, value)
    return value - 1 if key == "line" and value else value


def _outputs(said):
    """Which results of a refuted function are right, where not all are wrong."""
    right = [
        name for name, one in said["outputs"].items() if one["kind"].startswith(PROVED)
    ]
    wrong = [name for name, one in said["outputs"].items() if one["kind"] == "refuted"]
    if right and wrong:
        yield f"right: {', '.join(right)}; wrong: {', '.join(wrong)}"


def _library(functions):
    """The library that functions are written with: Triton's and torch's are imported together, NumPy without them."""
    used = {
        node.id
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
    }
    return next((name for name in ("tl", "torch", "np") if name in used), "torch")


def _fault(functions, name, library):
    """(a sentence, its line) on a name that has no value, on a missing return, or on another eps than the forward's."""
    for function in functions:
        if found := _undefined(functions, function, library):
            return found
    asked = [function for function in functions if function.name == name]
    if not asked:
        return None
    parts = asked[0].body if isinstance(asked[0], ast.ClassDef) else functions
    parts = [part for part in parts if isinstance(part, ast.FunctionDef)]
    forward = [part for part in parts if part.name == "forward"]
    gradient = [part for part in parts if part.name in ("backward", name)]
    kernel = any("jit" in ast.unparse(mark) for mark in asked[0].decorator_list)
    for part in [] if kernel else forward + gradient:
        if not any(isinstance(node, ast.Return) for node in ast.walk(part)):
            return f"{part.name} returns nothing: it ends without return", part.lineno
    if forward and gradient:
        return _other_eps(forward[0], gradient[0])
    return None


def _undefined(functions, function, library):
    """On the first name of a function that neither it nor the text binds."""
    bound = {node.name for node in functions} | {*dir(builtins)}
    bound |= {"np"} if library == "np" else {"torch", "triton", "tl"}
    loaded = []
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                loaded.append(node)
            else:
                bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {
                (name.asname or name.name).partition(".")[0] for name in node.names
            }
    for node in sorted(loaded, key=lambda node: (node.lineno, node.col_offset)):
        if node.id not in bound:
            words = f"{node.id} is not defined here"
            if node.id in ("np", "mean"):
                numpy = any("keepdims" in ast.unparse(part) for part in functions)
                words = f"{words}: {MEANS['np' if numpy else library]}"
            return words, node.lineno
    return None


def _other_eps(forward, gradient):
    """On a gradient whose eps is not that of the forward: it is the gradient of another function."""
    (first, named), (second, again) = map(_eps_of, (forward, gradient))
    line = gradient.lineno
    where = f"of another function than {forward.name}'s"
    if first and second and not first & second:
        values = f"eps is {min(second):g} in {gradient.name} and {min(first):g} in {forward.name}"
        return f"{values}: this is the gradient {where}", line
    if named and second and not again:
        values = f"{gradient.name} adds {min(second):g} where {forward.name} adds eps"
        return f"{values}: this is the gradient {where}", line
    rooted = re.search(r"sqrt|\*\* ?-?0?\.5", ast.unparse(gradient))
    if (first or named) and rooted and not second and not again:
        values = f"{gradient.name} takes a root without eps, and {forward.name} adds eps under its root"
        return f"{values}: this is the gradient {where}", line
    return None


def _eps_of(function):
    """(the small literals of a function, whether its text has the name eps)."""
    small = {
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and 0 < node.value < SMALL
    }
    names = {
        getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(function)
    }
    return small, "eps" in names


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
