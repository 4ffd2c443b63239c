"""Writes src/normgrad/symbolic/equations.json again: what the cells of the pages derive, in the words of the cells.

`make equations` does it. The cells run unproved, so that all pages take seconds; the build proves what they derive. The
entries of the operator's family come from code; any other entry that no cell derives goes.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import re
from pathlib import Path

from sympy import evaluate

from normgrad.prove.verdict import unproved
from normgrad.symbolic import Equation, registry
from normgrad.symbolic.derivations import family
from normgrad.symbolic.written import entry

from .cells import needed, of_page

BOOK = Path(__file__).parents[2]
SHOWN = re.compile(r"^```\{equation\} ([\w:.-]+)\n(?!:unnumbered:|:ends:)", re.M)


def of_the_book(cell) -> bool:
    """Whether a cell derives an equation of the book: what a reader is asked to finish is the reader's own."""
    return bool(cell.labels) and "your-turn" not in cell.tags


def deriving_pages() -> list[Path]:
    """The pages whose cells derive or define equations of the book."""
    pages = sorted(BOOK.glob("*.md"))
    return [page for page in pages if any(map(of_the_book, of_page(page)))]


def as_on_a_page() -> dict:
    """A namespace for the cells of one page."""
    return {
        "__name__": "__main__",
        "display": lambda *shown: None,
        "__builtins__": __builtins__,
    }


def execute(cell, namespace, source=None):
    """The value of one cell's last line; what it prints is swallowed. Texts of cells are read from linecache."""
    name = f"<cell {cell.place}>"
    text = cell.python if source is None else source
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    tree = ast.parse(text)
    value = ast.Constant(None)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        value = tree.body.pop().value
    last = ast.fix_missing_locations(ast.Expression(value))
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, name, "exec"), namespace)
        return eval(compile(last, name, "eval"), namespace)


def derivations(page, proved=True) -> list[Equation]:
    """Everything that the cells of a page derive or define for the book, in order; proved or not."""
    namespace, equations = as_on_a_page(), []
    with contextlib.nullcontext() if proved else unproved():
        for cell in needed(of_page(page), of_the_book):
            value = execute(cell, namespace)
            if of_the_book(cell):
                options = cell.options
                equations.append(value.equation(options["label"], options["claim"]))
    return equations


def from_code() -> dict[str, dict]:
    """The entries of the operator's family, which a page shows by `{equation}`."""
    pages = {
        label: page.stem
        for page in sorted(BOOK.glob("*.md"))
        for label in SHOWN.findall(page.read_text(encoding="utf8"))
    }
    with evaluate(False):
        return {
            equation.label: entry(equation, pages.get(equation.label, ""))
            for equation in family.equations()
        }


def derived() -> dict[str, dict]:
    """The entries of the equations that cells derive, which a page that quotes them sees as it runs.

    Raises:  ValueError for a label that two cells derive
    """
    written, waiting = {}, deriving_pages()
    while waiting:
        later = []
        for page in waiting:
            try:
                equations = derivations(page, proved=False)
            except registry.Unknown:  # it quotes a page that has not run
                later.append(page)
                continue
            for equation in equations:
                label = equation.label
                if label in written:
                    raise ValueError(f"{label}: two cells derive it")
                written[label] = entry(equation.ends(), page.stem)
                registry.put(label, written[label])
        if len(later) == len(waiting):
            derivations(later[0], proved=False)
        waiting = later
    return written


def text() -> str:
    """The whole file, page by page."""
    written = derived() | from_code()
    ordered = sorted(written.items(), key=lambda item: item[1]["page"])
    return json.dumps(dict(ordered), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    registry.FILE.write_text(text(), encoding="utf8")
