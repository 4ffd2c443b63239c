"""Writes src/normgrad/symbolic/equations.json again: what the cells of the pages derive, in the words of the cells.

`make equations` does it. The cells run unproved, so that all pages take seconds; the build proves what they derive. Two
kinds of entries come from elsewhere: those of the operator's family, which is code, and those marked `typed` in the
file, which no cell derives and a page shows by `{equation}`; any other entry that no cell derives goes.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import re
from importlib import import_module
from pathlib import Path

from sympy.core.parameters import global_parameters

from normgrad.prove.verdict import unproved
from normgrad.symbolic import Derivation, as_written, registry
from normgrad.symbolic.derivations import family
from normgrad.symbolic.written import entry, equation_of

from .cells import needed, of_page

BOOK = Path(__file__).parents[2]
# What a reader derives in an exercise.
READERS_OWN = ("", "mine")
SHOWN = re.compile(r"^```\{equation\} ([\w:.-]+)\n(?!:unnumbered:|:ends:)", re.M)


def of_the_book(cell) -> bool:
    """Whether a cell derives an equation of the book: what a reader is asked to finish is the reader's own."""
    return bool(cell.labels) and "your-turn" not in cell.tags


def deriving_pages() -> list[Path]:
    """The pages whose cells derive or define equations of the book."""
    pages = sorted(BOOK.glob("*.md"))
    return [page for page in pages if any(map(of_the_book, of_page(page)))]


@contextlib.contextmanager
def as_on_a_page():
    """A namespace for the cells of one page; the switches that cells turn are turned back."""
    evaluate = global_parameters.evaluate
    try:
        yield {
            "__name__": "__main__",
            "display": lambda *shown: None,
            "__builtins__": __builtins__,
        }
    finally:
        global_parameters.evaluate = evaluate


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


@contextlib.contextmanager
def recorded(proved=True):
    """The list of what derive and define return meanwhile, proved or not."""
    derive = import_module("normgrad.symbolic.derive")
    outputs, finished = [], derive._finished

    def record(equation, kind=derive.Derivation):
        output = finished(equation, kind) if proved else kind(equation, 0.0)
        outputs.append(output)
        return output

    derive._finished = record
    try:
        with contextlib.nullcontext() if proved else unproved():
            yield outputs
    finally:
        derive._finished = finished


def derivations(page, proved=True) -> list:
    """Everything that the cells of a page derive or define for the book, in order."""
    with as_on_a_page() as namespace, recorded(proved) as outputs:
        for cell in needed(of_page(page), of_the_book):
            before = len(outputs)
            value = execute(cell, namespace)
            if cell.in_sympy and of_the_book(cell):
                equation = value.equation(cell.options["label"], cell.options["claim"])
                outputs.append(Derivation(equation, 0.0))
            elif not of_the_book(cell):  # later cells need it for something else
                del outputs[before:]
    return [output for output in outputs if output.label not in READERS_OWN]


def shown() -> dict[str, str]:
    """{label: page} of the equations that pages show by `{equation}` with a number."""
    return {
        label: page.stem
        for page in sorted(BOOK.glob("*.md"))
        for label in SHOWN.findall(page.read_text(encoding="utf8"))
    }


def typed() -> dict[str, dict]:
    """The entries of the equations that no cell derives."""
    pages, written = shown(), {}
    with as_written():
        for equation in family.equations():
            written[equation.label] = entry(equation, pages.get(equation.label, ""))
    for label, old in registry.entries().items():
        if old.get("typed") and label in pages:
            new = entry(equation_of(label, old), pages[label])
            written[label] = new | {"typed": True}
    return written


def derived() -> dict[str, dict]:
    """The entries of the equations that cells derive, which a page that quotes them sees as it runs.

    Raises:  ValueError for a label that two cells derive
    """
    written, waiting = {}, deriving_pages()
    while waiting:
        later = []
        for page in waiting:
            try:
                outputs = derivations(page, proved=False)
            except registry.Unknown:  # it quotes a page that has not run
                later.append(page)
                continue
            for output in outputs:
                if output.label in written:
                    raise ValueError(f"{output.label}: two cells derive it")
                new = entry(output.equation.ends(), page.stem)
                written[output.label] = new
                registry.put(output.label, new)
        if len(later) == len(waiting):
            derivations(later[0], proved=False)
        waiting = later
    return written


def text() -> str:
    """The whole file, page by page."""
    cells = derived()
    written = cells | {
        label: new for label, new in typed().items() if label not in cells
    }
    ordered = sorted(written.items(), key=lambda item: item[1]["page"])
    return json.dumps(dict(ordered), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    registry.FILE.write_text(text(), encoding="utf8")
