"""The code cells of the book's pages, run in this process: the same cells that readers run."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import sys
from importlib import import_module
from pathlib import Path

from sympy.core.parameters import global_parameters

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book/_ext"))

from normgrad_book import cells as page_cells  # noqa: E402
from normgrad_book.cells import label_of  # noqa: E402, F401
from normgrad_book.reader_work import SHOWS  # noqa: E402

PAGES = sorted((ROOT / "book").glob("*.md"))


def deriving_pages():
    """The pages whose cells derive or define equations of the book."""
    return [page for page in PAGES if any(cell.plain_calls(*SHOWS) for cell in page_cells.of_page(page))]


def execute(cell, namespace, source=None):
    """Run one cell; what it prints is swallowed. Triton reads a kernel's source from linecache."""
    name = f"<cell {cell.place}>"
    text = cell.python if source is None else source
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, name, "exec"), namespace)


@contextlib.contextmanager
def as_on_a_page():
    """A namespace for the cells of one page; the switches that cells turn are turned back."""
    evaluate = global_parameters.evaluate
    try:
        yield {"__name__": "__main__", "display": lambda *shown: None, "__builtins__": __builtins__}
    finally:
        global_parameters.evaluate = evaluate


@contextlib.contextmanager
def recorded():
    """The list of what derive and define return meanwhile."""
    derive = import_module("normgrad.symbolic.derive")
    made, finished = [], derive._finished

    def record(*arguments):
        made.append(finished(*arguments))
        return made[-1]

    derive._finished = record
    try:
        yield made
    finally:
        derive._finished = finished


def derivations(page):
    """Everything that the cells of a page derive or define, in order."""
    cells = page_cells.of_page(page)
    with as_on_a_page() as namespace, recorded() as made:
        for cell in page_cells.needed(cells, lambda one: bool(one.plain_calls(*SHOWS))):
            execute(cell, namespace)
    return [one for one in made if one.label]


class Turned(ast.NodeTransformer):
    """Turns one minus of a cell into a plus: minus number `which`, counted as ast.walk meets them."""

    def __init__(self, node):
        self.node, self.text = node, ast.unparse(node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if node is self.node:
            return ast.copy_location(ast.BinOp(node.left, ast.Add(), node.right), node)
        return node


def minus_signs(tree):
    """The subtractions of a cell, those in subscripts left out."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)]
    return [node for node in found if id(node) not in inside]


def position(node):
    """Where an expression stands in its cell."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def turned(cell, which):
    """(source with one minus turned, the expression that it was)."""
    tree = ast.parse(cell.python)
    change = Turned(minus_signs(tree)[which])
    return ast.unparse(ast.fix_missing_locations(change.visit(tree))), change.text
