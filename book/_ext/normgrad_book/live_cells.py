"""Cells that a reader writes in and Python answers, where they stand on the page: turns, and claims to be refuted.

Of each page a file says what these cells hold and what stands before them: the statements that bind names and need
no module that is absent in the browser. A turn whose answer is a function is read by `normgrad.verify` and not run.
Without scripts, on paper and in notebooks a page is what it is without this module.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

from docutils import nodes

from . import cells as page_cells

# The class of such a cell; boxes.js knows its scripts.
LIVE = "live-cell"
TURN = "your-turn"
AVAILABLE = ("sympy", "normgrad.prove", "normgrad.verify", "math", "itertools")
# What is not a module and is not there.
ABSENT = {"display", "get_ipython"}
VERDICTS = {"derive", "prove", "refute"}


def _names(statement, kind):
    """The names that a statement reads, or those that it gives a value."""
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, kind)}


def _bound(statement):
    """The names that a statement gives a value or changes."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        names = [name.asname or name.name for name in statement.names]
        return {name.partition(".")[0] for name in names}
    names = _names(statement, ast.Store)
    for node in ast.walk(statement):
        inside = isinstance(node, ast.Subscript | ast.Attribute)
        if inside and isinstance(node.ctx, ast.Store):
            names |= _names(node.value, ast.Load)
    return names


def _runs(statement):
    """Whether all modules that a statement imports are there."""
    modules = []
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom):
            modules.append(f"{node.module}.")
        elif isinstance(node, ast.Import):
            modules += [f"{name.name}." for name in node.names]
    return all(
        any(module.startswith(f"{there}.") for there in AVAILABLE) for module in modules
    )


def _is_verdict(statement):
    """Whether a statement names a verdict: no answer is made of one, and to find it takes long."""
    call = getattr(statement, "value", None)
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") in VERDICTS


def _is_live(cell):
    """Whether a reader may write in a cell: a turn, or one that ends with a claim to be refuted."""
    if not cell.visible:
        return False
    last = cell.tree.body[-1]
    refuted = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    refuted = refuted and getattr(last.value.func, "id", "") == "refute"
    return refuted or TURN in cell.tags


def _read_against(cell):
    """What `normgrad.verify` is asked of the last function of a turn, by the option `verify` of its cell, or nothing.

    The option has the arguments of `prove_kernel.read`: the definition, its flags, what the arguments are.
    """
    if "verify" not in cell.options:
        return None
    written = [node for node in cell.tree.body if hasattr(node, "name")]
    return {"name": written[-1].name, "confirmed": True} | cell.options["verify"]


def of_page(path) -> dict:
    """{"before": [[number of the cell, statement]], "cells": [{"place", "text", "read", "turn"}], "verify": whether
    they need `normgrad.verify`} of a page's source; a page without such cells has empty lists.
    """
    cells = page_cells.of_page(path)
    chosen = [cell for cell in cells if _is_live(cell)]
    used = set().union(*[_names(cell.tree, ast.Load) for cell in chosen])
    before, live, lost = [], [], set(ABSENT)
    for cell in cells:
        if cell in chosen and (question := _read_against(cell)):
            live.append(_entry(cell, question))
        elif cell in chosen and _runs(cell.tree):
            needed = _names(cell.tree, ast.Load) - _names(cell.tree, ast.Store)
            if not needed & lost:
                live.append(_entry(cell, None))
        for statement in cell.tree.body:
            bound = _bound(statement)
            verdict = _is_verdict(statement) and not bound & used
            absent = not _runs(statement) or _names(statement, ast.Load) & lost
            if verdict or absent:
                lost |= bound
            elif bound:
                lost -= bound
                before.append([cell.place, ast.unparse(statement)])
    last = max((entry["place"] for entry in live), default=0)
    before = [line for line in before if line[0] < last]
    texts = [text for _, text in before] + [entry["text"] for entry in live]
    verify = any(entry["read"] for entry in live)
    verify = verify or "normgrad.verify" in " ".join(texts)
    return {"before": before, "cells": live, "verify": verify}


def _entry(cell, question):
    turn = TURN in cell.tags
    return {"place": cell.place, "text": cell.source, "read": question, "turn": turn}


def note(app, doctree):
    """Mark the cells of a page, in the order in which its file has them."""
    env = app.env
    path = Path(env.doc2path(env.docname))
    if path.suffix != ".md" or "kernelspec" not in env.metadata[env.docname]:
        return
    page = of_page(path)
    marked, cells = [], iter(page["cells"])
    entry = next(cells, None)
    for container in doctree.findall(nodes.container):
        if entry and container.get("nb_element") == "cell_code":
            source = next(container.findall(nodes.literal_block)).astext()
            if source.rstrip("\n") == entry["text"]:
                container["classes"].append(LIVE)
                marked.append(entry)
                entry = next(cells, None)
    if marked:
        env.metadata[env.docname]["live_cells"] = page | {"cells": marked}


def write(app, folder):
    """A file for each page that has such cells, named as the page."""
    folder.mkdir()
    for docname, data in app.env.metadata.items():
        if "live_cells" in data:
            text = json.dumps(data["live_cells"], ensure_ascii=False)
            (folder / f"{Path(docname).name}.json").write_text(text, encoding="utf8")


def setup(app):
    app.connect("doctree-read", note)
