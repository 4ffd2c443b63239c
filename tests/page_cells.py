"""The code cells of the book's pages, run in this process: the same cells that readers run."""

from __future__ import annotations

import ast
import copy
import json
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the book's packages are not installed")

ROOT = Path(__file__).parents[1]

from normgrad.teaching.notebook import MARK  # noqa: E402
from normgrad_book import cells as page_cells  # noqa: E402
from normgrad_book import equations_file  # noqa: E402, F401
from normgrad_book.equations_file import (  # noqa: E402, F401
    as_on_a_page,
    deriving_pages,
    execute,
    of_the_book,
)
from normgrad_book.equations_file import derivations as all_derivations  # noqa: E402

derivations = cache(all_derivations)

PAGES = sorted((ROOT / "book").glob("*.md"))


# The operator chapters, each with what the names of its pages begin with.
CHAPTERS = {
    "RMSNorm": "rms_norm",
    "LayerNorm": "layer_norm",
    "Residual add and norm": "residual",
    "Where eps stands": "eps",
    "Higher derivatives": "higher_derivatives",
}
COLUMNS = 80


def pages_of(chapter):
    """The pages of an operator chapter."""
    return [page for page in PAGES if page.stem.startswith(CHAPTERS[chapter])]


def derived(page):
    """The labels of the equations that are outputs in view; a cell whose input alone is hidden shows its output."""
    folded = {"hide-cell", "remove-cell"}
    shown = [cell for cell in page_cells.of_page(page) if not folded & cell.tags]
    return {label for cell in shown for label in cell.labels}


def of_notebook(path):
    """The code of a notebook that the site offers, cell by cell, the one that installs the package left out."""
    notebook = json.loads(path.read_text(encoding="utf8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"][1:]
    return ["".join(cell["source"]).removeprefix(f"{MARK}\n") for cell in code]


def from_hidden(cells):
    """(visible cell, name) for each name that a visible cell uses and only a hidden one defines."""
    hidden = []
    for cell in cells:
        for name in sorted(cell.uses) if cell.visible else ():
            makers = [
                before for before in cells[: cell.place] if name in before.defines
            ]
            if makers and not makers[-1].visible:
                hidden.append((cell, name))
    return hidden


def broken_rules(cells):
    """What breaks a rule of visible cells: a name from a hidden cell, a long line, several statements on one line."""
    broken = [
        f"cell {cell.place} uses {name} from a hidden cell"
        for cell, name in from_hidden(cells)
    ]
    for cell in cells:
        if cell.visible:
            lines = [line for line in cell.source.split("\n") if len(line) > COLUMNS]
            broken += [
                f"cell {cell.place}: {len(line)} columns: {line}" for line in lines
            ]
            broken += [f"cell {cell.place}: {text}" for text in squeezed(cell)]
    return broken


def squeezed(cell):
    """Statements that are several: calls joined by commas, and more than one statement on a line."""
    messages = []
    text = cell.python.split("\n")
    for node in ast.walk(cell.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Tuple):
            if any(isinstance(part, ast.Call) for part in node.value.elts):
                messages.append(f"calls joined by commas: {ast.unparse(node)}")
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                lines = [statement.lineno for statement in body]
                lines += (
                    [node.lineno]
                    if name == "body" and isinstance(node, ast.stmt)
                    else []
                )
                twice = sorted({line for line in lines if lines.count(line) > 1})
                messages += [
                    f"more than one statement on a line: {text[line - 1].strip()}"
                    for line in twice
                ]
    return messages


def copied(namespace):
    """A namespace whose definitions can be added to without those of the original."""
    new = dict(namespace)
    for name, value in namespace.items():
        if isinstance(getattr(value, "_lines", None), dict):
            new[name] = copy.copy(value)
            new[name]._lines = dict(value._lines)
    return new


class Turned(ast.NodeTransformer):
    """Turns the sign of one subtraction or addition."""

    def __init__(self, node):
        self.node, self.text = node, ast.unparse(node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if node is self.node:
            sign = ast.Add() if isinstance(node.op, ast.Sub) else ast.Sub()
            return ast.copy_location(ast.BinOp(node.left, sign, node.right), node)
        return node


def signs(tree):
    """The subtractions of a cell or, where there is none, its additions; those in subscripts left out."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        for part in ast.walk(node.slice)
    }
    operations = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and id(node) not in inside
    ]
    minus, plus = (
        [node for node in operations if isinstance(node.op, sign)]
        for sign in (ast.Sub, ast.Add)
    )
    return minus or plus


def position(node):
    """Where an expression stands in its cell."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def turned(cell, which):
    """(source with one sign turned, the expression that it was)."""
    tree = ast.parse(cell.python)
    change = Turned(signs(tree)[which])
    return ast.unparse(ast.fix_missing_locations(change.visit(tree))), change.text
