"""Every equation as an object: what the button below it copies and shows.

Its LaTeX; its code in NumPy and torch, and its proof rule by rule, both from the object that is proved; the homework
that needs it and its place on the formula sheet. All of it is one script a page, which the first click fetches.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
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
from .ledger_page import reading_order

FOLDER = "_static/equations"
DIALECTS = ("numpy", "torch")
SHEET, WORKBENCH = "book/formula_sheet", "book/proving"
# A line that is longer, in letters of LaTeX, nobody reads: the rule stands there, and how long it is.
LONGEST_LINE = 2_500
# A claim that unfolds into more parts keeps the rules busy for longer than a build may wait; one of those may.
MOST_PARTS = 260
WORTH_IT = ("ln-dx",)
# Fewer objects are made before another process has loaded what it needs.
WORTH_A_PROCESS = 50


# -- code ---------------------------------------------------------------------------


def _head(chain, taken):
    """The name that a chain gets in code: y[i, j], dx[k] for a gradient, dy_dx[k, j] for a Jacobian, else result."""
    start = chain[0]
    letters = sorted(set().union(*map(free_letters, chain)), key=str)
    label = "result"
    if isinstance(start, Indexed | Symbol) and name_of(start) not in taken:
        return start
    if isinstance(start, Partial):
        of, by = start.args[:2]
        first = [*getattr(of, "indices", ()), *getattr(by, "indices", ())]
        letters = list(
            dict.fromkeys([*[one for one in first if one in letters], *letters])
        )
        parts = [
            getattr(name_of(one), "label", one)
            for one in (of, by)
            if isinstance(one, Indexed)
        ]
        label = "_".join(f"d{part}" for part in parts) or label
    names = {str(getattr(one, "label", one)) for one in taken}
    spare = ["result", *[f"result{place}" for place in range(1, len(names) + 1)]]
    label = next(one for one in [label, *spare] if one not in names)
    if not letters:
        return Symbol(label, real=True)
    ranges = index_ranges(*chain)
    return tensor(label, *[ranges[letter] for letter in letters])[tuple(letters)]


def definitions(equation):
    """(definitions, outputs) that say what an equation computes: of each chain the last side without a derivative."""
    if equation.kind == DEFINITION:
        return equation.defs, [chain[0] for chain in equation.chains]
    ends = [
        (chain, next((e for e in reversed(chain) if not e.has(Partial)), None))
        for chain in equation.chains
    ]
    ends = [(chain, end) for chain, end in ends if end is not None]
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
    try:
        with evaluate(True):
            defs, outputs = definitions(equation)
            try:
                return copied.function(defs, outputs, dialect, name)
            except NotImplementedError:  # not about the entries of one row
                text = source(defs, outputs, dialect, name)
    except (
        NotImplementedError,
        ValueError,
    ):  # an opaque function, a derivative: no array code
        return ""
    return "" if "(*, )" in text else f"import {dialect}\n\n\n{text}"


# -- proofs -------------------------------------------------------------------------


def _parts(equation, chain):
    with evaluate(True):
        return sum(
            sum(1 for _ in preorder_traversal(equation.defs.unfold(e)))
            for e in (chain[0], chain[-1])
        )


def proof(equation) -> list[list[str]]:
    """The rows (rule, LaTeX) of the proof that the ends of each chain are equal; none where it is not by the rules."""
    if equation.kind != PROVED:
        return []
    rows = []
    for chain in equation.chains:
        if equation.label not in WORTH_IT and _parts(equation, chain) > MOST_PARTS:
            return []
        ends = chain[0], chain[-1], equation.defs
        found = trace(*ends, equation.defs.differing(*ends[:2]))
        found = found if found.proved else trace(*ends)
        body = (
            found.latex()
            .removeprefix("\\begin{aligned}\n")
            .removesuffix("\n\\end{aligned}")
        )
        for line in body.split(" \\\\\n"):
            rule, _, shown = line.partition("&")
            rule = rule.removeprefix("\\text{").split("}")[0]
            long = len(shown) > LONGEST_LINE
            rows.append(
                [
                    rule,
                    rf"\text{{(a line of {len(shown)} letters)}}"
                    if long
                    else shown.strip(),
                ]
            )
    return rows


# -- the build ----------------------------------------------------------------------


def made(label) -> dict:
    """{numpy, torch, proof} of a registered equation."""
    one = equation(label)
    return {dialect: code(one, dialect) for dialect in DIALECTS} | {"proof": proof(one)}


def kept_in(app) -> Path:
    """Where objects are kept, beside the outputs of cells, under a key of all that they depend on."""
    key = workbench.key(
        *sorted((Path(app.srcdir) / "src/normgrad/symbolic").rglob("*.py")),
        Path(__file__),
        Path(copied.__file__),
    )
    return Path(app.outdir).parent / f".jupyter_cache/equations-{key}.json"


def kept(app) -> dict[str, dict]:
    """{label: its object} of those that were made before, of the entries as they are."""
    path, objects = kept_in(app), {}
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf8"))
        for label, entry in entries().items():
            if digest(entry) in stored:
                objects[label] = stored[digest(entry)]
    return objects


def digest(entry) -> str:
    """A key of all that the object of an entry depends on, besides the code."""
    return workbench.key(json.dumps(entry))


def make_ahead(app, env, docnames):
    """Start to make what is missing in other processes: Sphinx reads and writes pages in one."""
    found = kept(app)
    text = "".join(
        Path(env.doc2path(name)).read_text(encoding="utf8")
        for name in sorted(env.found_docs)
    )
    missing = [label for label in entries() if label in text and label not in found]
    if len(missing) >= WORTH_A_PROCESS:
        # spawned: chapters were executed from threads of this process, and such a one cannot be forked safely
        app.objects_pool = ProcessPoolExecutor(
            os.cpu_count(), multiprocessing.get_context("spawn")
        )
        app.objects_ahead = {
            label: app.objects_pool.submit(made, label) for label in missing
        }


def stop(app, error):
    """Leave what nobody waits for, as where the build failed."""
    if hasattr(app, "objects_pool"):
        app.objects_pool.shutdown(cancel_futures=True)


def all_made(app, labels) -> dict[str, dict]:
    """{label: its object} of registered equations."""
    found, ahead = kept(app), getattr(app, "objects_ahead", {})
    for label in entries():
        if label in labels and label not in found:
            found[label] = ahead[label].result() if label in ahead else made(label)
    kept_in(app).parent.mkdir(parents=True, exist_ok=True)
    stored = {digest(entries()[label]): objects for label, objects in found.items()}
    kept_in(app).write_text(json.dumps(stored), encoding="utf8")
    return found


def tasks() -> dict[str, list[str]]:
    """{label: the homeworks with a task that needs the equation}."""
    found = {}
    for name, homework in homeworks().items():
        for label in dict.fromkeys(
            label for task in homework.tasks for label in task.equations
        ):
            found.setdefault(label, []).append(name)
    return found


def sheet_id(label) -> str:
    """The anchor of an equation on the formula sheet."""
    return nodes.make_id(f"sheet-{label}")


def links(app, label, known) -> list[list[str]]:
    """[text, address from the top of the site] of where an equation stands besides its own page."""
    uri, there = app.builder.get_target_uri, app.env.found_docs
    needed = [name for name in known["tasks"].get(label, ()) if f"book/{name}" in there]
    found = [
        [f"Homework {name.removeprefix('hw')}", uri(f"book/{name}")] for name in needed
    ]
    if label in known["sheet"]:
        found.append(["Formula sheet", f"{uri(SHEET)}#{sheet_id(label)}"])
    if label in known["provable"]:
        found.append(["Prove it here", f"{uri(WORKBENCH)}?label={label}#prove-it-here"])
    return found


def write(app, error):
    """The script of each page with equations."""
    if error or app.builder.name != "html":
        return
    domain = app.env.get_domain("ledger")
    found = all_made(app, domain.equations())
    sheet = {node["shows"] for node in sheet_displays(app.env)}
    known = {"tasks": tasks(), "sheet": sheet, "provable": provable(app)}
    folder = Path(app.outdir) / FOLDER
    for docname in reading_order(app.env):
        shown = {}
        for one in domain.data["equations"].get(docname, ()):
            more = found.get(one.label, {})
            filled = {key: value for key, value in more.items() if value}
            ends = entries().get(one.label, {}).get("latex", [one.latex])
            shown[one.label] = {
                "latex": "\n".join(ends),
                **filled,
                "links": links(app, one.label, known),
            }
            if shown[one.label]["latex"] != one.latex:
                shown[one.label]["derivation"] = one.latex
        if shown:
            target = folder / f"{docname}.js"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(
                f"normgradEquations({json.dumps(shown, ensure_ascii=False)});\n",
                encoding="utf8",
            )


def sheet_displays(env):
    """The displays of the formula sheet that show an equation again."""
    if SHEET not in env.found_docs:
        return []
    return [
        node
        for node in env.get_doctree(SHEET).findall(nodes.math_block)
        if node.get("shows")
    ]


def provable(app) -> set[str]:
    """The labels that the workbench takes, where the book has one."""
    if not workbench.wanted(app, WORKBENCH):
        return set()
    return {label for label, entry in entries().items() if entry["kind"] == PROVED}


def anchor_sheet(app, doctree):
    """An anchor at each formula of the sheet, for the links that lead there."""
    if app.env.docname == SHEET:
        for node in doctree.findall(nodes.math_block):
            if node.get("shows"):
                node["ids"].append(sheet_id(node["shows"]))


def setup(app):
    app.connect("doctree-read", anchor_sheet)
    app.connect("env-before-read-docs", make_ahead)
    app.connect("build-finished", write)
    app.connect("build-finished", stop, priority=990)
