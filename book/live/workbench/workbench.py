"""What the workbench asks Python: a registered equation as a cell, and what the claims of a cell come to."""

from __future__ import annotations

import ast
import importlib.util
import json
import linecache
import re
import sys
import types

import sympy

from normgrad.prove.verbs import definitions
from normgrad.prove.verdict import Verdict
from normgrad.symbolic import equation
from normgrad.symbolic.calculus import index_ranges
from normgrad.symbolic.chains import DEFINITION
from normgrad.symbolic.proof import as_latex
from normgrad.symbolic.registry import entries

IMPORTS = "from sympy import *\nfrom normgrad.prove import *\n"
CELL = "<the cell>"
INDICES = "integer, positive"
FUNCTION = "function"
# Derivative stays as typed; that what `diff` makes of a long loss is equal to it takes seconds to prove
VERBS = {"Partial": "Derivative", "Local": "local"}
WIDE = 76


def stand_in() -> None:
    """A class of units that no expression has: `simplify` asks for SymPy's, which this site leaves out."""
    if importlib.util.find_spec("sympy.physics"):
        return
    for name in ("sympy.physics", "sympy.physics.units"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["sympy.physics.units"].Quantity = type("Quantity", (sympy.Expr,), {})


stand_in()


class _InSymPy(ast.NodeTransformer):
    """An entry's expression as one types it in a cell. Args: declared: names that are declared; bound: {(index, what
    it runs to): the symbol}, of all expressions before it"""

    def __init__(self, declared, bound):
        self.declared, self.bound = declared, bound

    def visit_Call(self, call):
        name = getattr(call.func, "id", "")
        if name == "Sum":
            for limit in call.args[1:]:
                self._rename(call, limit)
        self.generic_visit(call)
        if name in VERBS:
            return ast.Call(ast.Name(VERBS[name]), call.args[:2], [])
        order, function = 0, call.func
        while isinstance(function, ast.Call):
            order, function = order + 1, function.args[0]
        if not order:
            return call
        ((value,), name) = call.args, function.id
        text = f"{name}(u).diff(u, {order}).subs(u, {ast.unparse(value)})"
        return ast.parse(text, mode="eval").body

    def _rename(self, call, limit):
        """Give a summed index its symbol: one that runs to nothing else."""
        index, size = limit.elts[0].id, ast.unparse(limit.elts[2])
        if index in self.declared:
            return
        taken = {*self.declared, *self.bound.values()}
        free = (name for name in (index, *"rstuvabc") if name not in taken)
        symbol = self.bound.get((index, size)) or next(free)
        self.bound[index, size] = symbol
        for node in ast.walk(call):
            if isinstance(node, ast.Name) and node.id == index:
                node.id = symbol


def _tuple(sizes):
    return sizes if ", " in sizes else f"{sizes},"


def _declaration(group, items, names):
    """The lines that declare the names of one kind."""
    if group == FUNCTION:
        return [f'{item} = Function("{names.get(item, item)}")' for item in items]
    assumptions = ", ".join(
        f"{word.removeprefix('not ')}={not word.startswith('not ')}"
        for word in group.split(", ")
        if word
    )
    by_shape: dict[str, list[str]] = {}
    for item in items:
        name, _, shape = item.removesuffix("]").partition("[")
        by_shape.setdefault(shape if "[" in item else None, []).append(name)
    lines = []
    for shape, found in by_shape.items():
        kind = ""
        if shape is not None:
            kind = f"cls=IndexedBase, shape=({_tuple(shape)}), "
        spelled = " ".join(names.get(name, name) for name in found)
        lines.append(f'{", ".join(found)} = symbols("{spelled}", {kind}{assumptions})')
    return lines


def statement(label: str) -> str:
    """A registered equation as the text of a cell: its symbols, its definitions, its claims.

    Raises:  ValueError for an unknown label
    """
    registered = equation(label)
    entry = entries()[label]
    names, bound = entry.get("names", {}), {}
    groups = {
        group: re.findall(r"\w+(?:\[[^]]*\])?", items)
        for group, items in entry["symbols"].items()
    }
    declared = {item.partition("[")[0] for items in groups.values() for item in items}
    typed = _InSymPy(declared, bound)

    def read(side):
        return ast.unparse(typed.visit(ast.parse(side, mode="eval")))

    lines = []
    defined = set()
    for line in entry["definitions"]:
        head, formula = line.split(" = ")
        name, _, indices = head.removesuffix("]").partition("[")
        defined.add(name)
        spelled = f'"{names.get(name, name)}"'
        parts = [spelled, *filter(None, indices.split(", ")), read(formula)]
        parts += _shape(registered, name, names)
        lines.append(_called(f"{name} = define", parts))
    if entry["kind"] == DEFINITION:
        heads = [line.partition("[")[0] for line in entry["equation"]]
        lines.append(f"definitions({', '.join(heads)})")
    for line in [] if entry["kind"] == DEFINITION else entry["equation"]:
        left, *others = map(read, line.split(" = "))
        for right in others:
            lines.append(_called("prove", [left, right]))
            left = right
    summed = dict.fromkeys(bound.values())
    groups[INDICES] = [*groups.get(INDICES, ()), *summed]
    text = [f"# {entry['claim']}", IMPORTS]
    order = sorted(groups, key=lambda group: (group != INDICES, group))
    for group in order:
        inputs = [
            item for item in groups[group] if item.partition("[")[0] not in defined
        ]
        text += _declaration(group, inputs, names) if inputs else []
    if any(".subs(u, " in line for line in lines):
        text.append('u = symbols("u", real=True)')
    if any("sigmoid(" in line for line in lines):
        text.append("from normgrad.symbolic import sigmoid")
    return "\n".join([*text, "", *lines]) + "\n"


def _shape(registered, name, names):
    """What a definition's indices run to, where its formula does not say it."""
    for head, formula in registered.defs:
        indices = getattr(head, "indices", ())
        label = (
            str(getattr(head, "base", head)) if not indices else str(head.base.label)
        )
        if label == names.get(name, name) and set(indices) - set(index_ranges(formula)):
            return [f"shape=({_tuple(', '.join(map(str, head.base.shape)))})"]
    return []


def _called(function, parts):
    """A call on one line, or with an argument a line."""
    text = f"{function}({', '.join(parts)})"
    if len(text) <= WIDE:
        return text
    return "\n    ".join([f"{function}(", *[f"{part}," for part in parts]]) + "\n)"


def _answers(value):
    """(kind, text, LaTeX) of what a line of the cell comes to."""
    if isinstance(value, Verdict) and value.refusal:
        kind = "refuted" if value.refusal.counterexample else "undecided"
        yield kind, value.known.removeprefix("not refuted: "), ""
    elif isinstance(value, Verdict):
        words = "\n".join(proof.certificate() for proof in value.proofs)
        lines = f"{value.latex} \\\\ {as_latex(value.known)}"
        yield "proved", words, f"\\begin{{gathered}}\n{lines}\n\\end{{gathered}}"
    elif isinstance(value, definitions):
        yield "shown", "", value.latex
    elif isinstance(value, bool):
        yield "shown", f"{value}: {WRITTEN_ALIKE}", ""
    elif isinstance(value, sympy.Basic):
        yield "shown", "", sympy.latex(value)
    elif value is not None:
        yield "shown", str(value), ""


class _Shown(ast.NodeTransformer):
    """Shows the value of every line that is an expression, where it stands."""

    def visit_Expr(self, line):
        call = ast.Call(ast.Name("show", ast.Load()), [line.value], [])
        self.generic_visit(line)
        return ast.copy_location(ast.Expr(ast.copy_location(call, line)), line)


A_SUM = "Sum(x[r], (r, 1, N))"
DELTA = (
    "what is 1 where two indices are equal, and 0 elsewhere, is KroneckerDelta(k, j)"
)
# {what Python says of a habit that SymPy's expressions do not have: what helps}
HABITS = {
    r"for \^": "a power is written **, as in x[j]**2; ^ is another operation",
    r"object is not iterable": f"the sum over an index is {A_SUM}; Python's sum adds the items of a list",
    r"Base' object is not callable": "a tensor has square brackets: its entry is x[j]",
    r"'Name' object is not callable": "a name is no function here: two factors have * "
    f"between them, and a mean is {A_SUM} / N",
    r"(?<!Base)(?<!Name)' object is not callable": "two factors have * between them",
    r"object is not subscriptable": "it is a single quantity here, and has no index",
    r"has no attribute '(sum|mean)'": f"the sum over an index is {A_SUM}",
    r"type '\w+' is not subscriptable": "a function has round brackets, as KroneckerDelta(k, j)",
    r"'bool' and|and 'bool'": DELTA,
    r"invalid syntax": "is a * missing between two factors, or a bracket?",
    r"invalid decimal literal": "two factors have * between them, as in 2 * x[j]",
    r"name '\w+' is not defined": "it is none of this page's names so far",
    r"missing 1 required positional argument: 'rhs'": "prove takes both sides, as prove(left, right)",
    r"after line continuation": "this is Python, not LaTeX: a fraction is a / b, an entry x[j]",
    r"No module named": "here are SymPy and the package's proofs; the notebook has the others",
    r"got ellipsis": "the line is still empty",
    r"got str|: a reason stands after": "an expression has no quotation marks",
    r"got [tT]uple": "a comma makes two expressions of a line; a product has *, a decimal a point",
    r"specify dummy variables|Invalid limits given": f"a sum is {A_SUM}, and its index is an index "
    "of the page, as r, no tensor",
}
WRITTEN_ALIKE = "== asks whether both sides are written alike; whether they are equal says prove(left, right)"


def trouble(error: Exception, name: str) -> str:
    """An error in one line, with the line of the text that raised it. Args: name: of the text, as it was compiled"""
    line = getattr(error, "lineno", None)
    trail = error.__traceback__
    while trail:
        if trail.tb_frame.f_code.co_filename == name:
            line = trail.tb_lineno
        trail = trail.tb_next
    where = f"line {line}: " if line else ""
    said = f"{where}{type(error).__name__}: {error}"
    helps = [words for habit, words in HABITS.items() if re.search(habit, str(error))]
    return ": ".join([said, *helps])


def judge(text: str) -> str:
    """Run the text of a cell and say what its lines come to.

    Args:    text: Python, whose lines that are expressions are shown, as the last line of a notebook's cell is
    Returns: JSON: a list of {kind, text, latex}; kind is "proved", "refuted", "undecided", "shown" or "error"
    """
    answers = []

    def show(value):
        answers.extend(_answers(value))

    def printing(*words):
        answers.append(("shown", " ".join(map(str, words)), ""))

    linecache.cache[CELL] = (len(text), None, text.splitlines(keepends=True), CELL)
    scope = {"show": show, "print": printing}
    try:
        tree = ast.fix_missing_locations(_Shown().visit(ast.parse(text, CELL)))
        exec(compile(tree, CELL, "exec"), scope)  # noqa: S102 - the reader's own text, in the reader's browser
    except Exception as error:
        answers.append(("error", trouble(error, CELL), ""))
    if not answers:
        answers.append(("error", "nothing was claimed: call prove(left, right)", ""))
    found = [
        {"kind": kind, "text": words, "latex": shown} for kind, words, shown in answers
    ]
    return json.dumps(found)
