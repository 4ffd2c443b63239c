"""Every equation as an object: what the button below it copies and shows.

Its LaTeX; its code in NumPy and torch, and its proof rule by rule, both from the object that is proved; the homework
that needs it and its place on the formula sheet. All of it is one script a page, which the first click fetches.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from sympy import Indexed, Symbol, evaluate, preorder_traversal

from normgrad.homework import homeworks
from normgrad.symbolic import Defs, equation, source, tensor, trace
from normgrad.symbolic.calculus import free_letters, index_ranges
from normgrad.symbolic.chains import DEFINITION, PROVED
from normgrad.symbolic.notation import Partial, name_of
from normgrad.symbolic.registry import entries

from . import copied, workbench
from .equations import SHEET
from .ledger_page import chapters

FOLDER = "_static/equations"
DIALECTS = ("numpy", "torch")
WORKBENCH = "book/proving"
# A line that is longer, in letters of LaTeX, nobody reads: the rule stands there, and how long it is.
LONGEST_LINE = 2_500
# A claim that unfolds into more parts keeps the rules busy for longer than a build may wait; one of those may.
MOST_PARTS = 260
WORTH_IT = ("ln-dx",)


# -- code ---------------------------------------------------------------------------


def _head(chain, taken):
    """The name that a chain gets in code: y[i, j], dx[k] for a gradient, dy_dx[k, j] for a Jacobian, else result."""
    start = chain[0]
    if isinstance(start, Indexed | Symbol) and name_of(start) not in taken:
        return start
    label, order = "result", []
    if isinstance(start, Partial):
        ends = [end for end in start.args[:2] if isinstance(end, Indexed)]
        label = "_".join(f"d{name_of(end).label}" for end in ends) or label
        order = [letter for end in ends for letter in end.indices]
    letters = sorted(set().union(*map(free_letters, chain)), key=str)
    letters = [
        letter for letter in dict.fromkeys([*order, *letters]) if letter in letters
    ]
    names = {str(getattr(name, "label", name)) for name in taken}
    numbered = [f"result{number}" for number in range(1, len(names) + 1)]
    spare = [name for name in [label, "result", *numbered] if name not in names]
    label = spare[0]
    if not letters:
        return Symbol(label, real=True)
    ranges = index_ranges(*chain)
    return tensor(label, *[ranges[letter] for letter in letters])[tuple(letters)]


def definitions(equation):
    """(definitions, outputs) that say what an equation computes: of each chain the last side without a derivative."""
    if equation.kind == DEFINITION:
        return equation.defs, [chain[0] for chain in equation.chains]
    ends = []
    for chain in equation.chains:
        computed = [side for side in chain if not side.has(Partial)]
        ends += [(chain, side) for side in computed[-1:]]
    defs, outputs, taken = Defs(), [], set()
    for name, formula in equation.defs.reached(*[end for _, end in ends]):
        defs[name] = formula
        taken |= {name_of(name), *map(name_of, formula.atoms(Indexed, Symbol))}
    for _, end in ends:
        taken |= set(map(name_of, end.atoms(Indexed, Symbol)))
    for chain, end in ends:
        name = _head(chain, taken)
        defs[name] = end
        taken.add(name_of(name))
        outputs.append(name)
    return defs, outputs


def code(equation, dialect) -> str:
    """A module of one function that computes the equation; nothing where it is not about arrays of numbers."""
    name = equation.label.replace("-", "_")
    with evaluate(True):
        try:
            defs, outputs = definitions(equation)
            try:
                return copied.function(defs, outputs, dialect, name)
            except NotImplementedError:  # not about the entries of one row
                text = source(defs, outputs, dialect, name)
        except (NotImplementedError, ValueError):
            return ""  # an opaque function, a derivative: no array code
    return "" if "(*, )" in text else f"import {dialect}\n\n\n{text}"


# -- proofs -------------------------------------------------------------------------


def _parts(equation, chain):
    ends = chain[0], chain[-1]
    with evaluate(True):
        unfolded = [equation.defs.unfold(end) for end in ends]
        return sum(1 for side in unfolded for _ in preorder_traversal(side))


def proof(equation) -> list[list[str]]:
    """The rows (rule, LaTeX) of the proof that the ends of each chain are equal; none where it is not by the rules."""
    if equation.kind != PROVED:
        return []
    rows = []
    for chain in equation.chains:
        if equation.label not in WORTH_IT and _parts(equation, chain) > MOST_PARTS:
            return []
        ends = chain[0], chain[-1], equation.defs
        steps = trace(*ends, equation.defs.differing(*ends[:2]))
        if not steps.proved:
            steps = trace(*ends)
        body = steps.latex().removeprefix("\\begin{aligned}\n")
        for line in body.removesuffix("\n\\end{aligned}").split(" \\\\\n"):
            rule, _, shown = line.partition("&")
            rule = rule.removeprefix("\\text{").split("}")[0]
            if len(shown) > LONGEST_LINE:
                shown = rf"\text{{(a line of {len(shown)} letters)}}"
            rows.append([rule, shown.strip()])
    return rows


# -- the build ----------------------------------------------------------------------


def made(label) -> dict:
    """{numpy, torch, proof} of a registered equation."""
    statement = equation(label)
    parts = {dialect: code(statement, dialect) for dialect in DIALECTS}
    return parts | {"proof": proof(statement)}


def all_made(app, labels) -> dict[str, dict]:
    """{label: its object} of registered equations.

    Objects are kept beside the outputs of cells, under keys of all that they depend on: of the code in the file's name,
    of an equation's entry within it.
    """
    code_key = workbench.key(
        *sorted((Path(app.srcdir) / "src/normgrad/symbolic").rglob("*.py")),
        Path(__file__),
        Path(copied.__file__),
    )
    file = Path(app.outdir).parent / f".jupyter_cache/equations-{code_key}.json"
    stored = json.loads(file.read_text(encoding="utf8")) if file.exists() else {}
    objects = {}
    for label in entries().keys() & labels:
        key = workbench.key(json.dumps(entries()[label]))
        objects[label] = stored[key] = stored.get(key) or made(label)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(stored), encoding="utf8")
    return objects


def tasks() -> dict[str, list[str]]:
    """{label: the homeworks with a task that needs the equation}."""
    needed = {}
    for name, homework in homeworks().items():
        for label in {label for task in homework.tasks for label in task.equations}:
            needed.setdefault(label, []).append(name)
    return needed


def links(app, label, needed, sheet, provable) -> list[list[str]]:
    """[text, address from the top of the site] of where an equation stands besides its own page.

    Args:  needed: as tasks; sheet, provable: the labels on the formula sheet, and those that the workbench takes
    """
    uri, targets = app.builder.get_target_uri, []
    for name in needed.get(label, ()):
        if f"book/{name}" in app.env.found_docs:
            number = name.removeprefix("hw")
            targets.append([f"Homework {number}", uri(f"book/{name}")])
    if label in sheet:
        targets.append(
            ["Formula sheet", f"{uri(SHEET)}#{nodes.make_id(f'sheet-{label}')}"]
        )
    if label in provable:
        address = f"{uri(WORKBENCH)}?label={label}#prove-it-here"
        targets.append(["Prove it here", address])
    return targets


def write(app, error):
    """The script of each page with equations."""
    if error or app.builder.name != "html":
        return
    pages = chapters(app.env)
    objects = all_made(app, app.env.get_domain("ledger").equations())
    targets = tasks(), sheet_labels(app.env), provable(app)
    for docname, equations in pages.items():
        shown = {}
        for numbered in equations:
            derivation = numbered.latex
            ends = entries().get(numbered.label, {}).get("latex", [derivation])
            parts = {"latex": "\n".join(ends), **objects.get(numbered.label, {})}
            shown[numbered.label] = {key: text for key, text in parts.items() if text}
            shown[numbered.label]["links"] = links(app, numbered.label, *targets)
            if parts["latex"] != derivation:
                shown[numbered.label]["derivation"] = derivation
        file = Path(app.outdir) / FOLDER / f"{docname}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(shown, ensure_ascii=False)
        file.write_text(f"normgradEquations({text});\n", encoding="utf8")


def sheet_labels(env) -> set[str]:
    """The labels of the equations that the formula sheet shows again."""
    if SHEET not in env.found_docs:
        return set()
    displays = env.get_doctree(SHEET).findall(nodes.math_block)
    return {node["shows"] for node in displays if node.get("shows")}


def provable(app) -> set[str]:
    """The labels that the workbench takes, where the book has one."""
    if not workbench.wanted(app, WORKBENCH):
        return set()
    return {label for label, entry in entries().items() if entry["kind"] == PROVED}


def setup(app):
    app.connect("build-finished", write)
