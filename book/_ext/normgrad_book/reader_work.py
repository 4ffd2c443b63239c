"""What the reader does in each operator chapter, counted: cells that derive, cells that check, and the rules of cells.

    python -m normgrad_book.reader_work [_build/html/_sources/book]

counts in the sources of the pages or, with the folder of the site's notebooks, in those.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .cells import Cell, from_hidden, label_of, of_notebook, of_page

# The operator chapters, each with what the names of its pages begin with.
CHAPTERS = {
    "L2": "l2_norm",
    "RMSNorm": "rms_norm",
    "LayerNorm": "layer_norm",
    "Residual add and norm": "residual",
    "Where eps stands": "eps",
    "Higher derivatives": "higher_derivatives",
}
DERIVES = ("derive", "derive_all", "derive_by_induction", "work_out", "prove", "refute", "judge", "D", "reverse")
SHOWS = ("derive", "derive_all", "derive_by_induction", "define")
COLUMNS = 80
BOOK = Path(__file__).parents[2]


@dataclass(frozen=True)
class Page:
    """One page of a chapter: its name and its code cells."""

    name: str
    cells: tuple[Cell, ...]

    @cached_property
    def deriving(self) -> list[Cell]:
        """Visible cells that differentiate or derive."""
        return [cell for cell in self.cells if cell.visible and cell.plain_calls(*DERIVES)]

    @cached_property
    def derived(self) -> set[str]:
        """The labels of the equations that are outputs of visible cells."""
        return {label_of(call) for cell in self.cells if cell.visible for call in cell.plain_calls(*SHOWS)} - {""}

    @cached_property
    def checks(self) -> dict[str, list[str]]:
        """torch's checks that are called by name in visible cells: check -> what is checked."""
        found: dict[str, list[str]] = {"gradcheck": [], "gradgradcheck": []}
        for cell in self.cells:
            for call in cell.calls(*found) if cell.visible else ():
                name = ast.unparse(call.func)
                if name.startswith(("torch.autograd.", "gradcheck", "gradgradcheck")):
                    found[name.split(".")[-1]].append(ast.unparse(call.args[0]))
        return found

    @cached_property
    def differences(self) -> int:
        """Visible cells that divide by twice a step: central differences, spelled out."""
        spelled = re.compile(r"/ \(2 \* \w+\)")
        return sum(bool(spelled.search(cell.source)) for cell in self.cells if cell.visible)

    @cached_property
    def broken_rules(self) -> list[str]:
        """What breaks a rule of visible cells, one line each."""
        found = [f"cell {cell.place} uses {name} from a hidden cell" for cell, name in from_hidden(list(self.cells))]
        for cell in self.cells:
            if cell.visible:
                found += [f"cell {cell.place}: {len(line)} columns: {line}" for line in long_lines(cell)]
                found += [f"cell {cell.place}: {text}" for text in squeezed(cell)]
        return found


def long_lines(cell: Cell) -> list[str]:
    """The lines that do not fit."""
    return [line for line in cell.source.split("\n") if len(line) > COLUMNS]


def squeezed(cell: Cell) -> list[str]:
    """Statements that are several: calls joined by commas, and more than one statement on a line."""
    found, text = [], cell.python.split("\n")
    for node in ast.walk(cell.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Tuple):
            if any(isinstance(part, ast.Call) for part in node.value.elts):
                found.append(f"calls joined by commas: {ast.unparse(node)}")
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                lines = [one.lineno for one in body]
                lines += [node.lineno] if name == "body" and isinstance(node, ast.stmt) else []
                twice = sorted({line for line in lines if lines.count(line) > 1})
                found += [f"more than one statement on a line: {text[line - 1].strip()}" for line in twice]
    return found


def pages(folder=None) -> dict[str, list[Page]]:
    """The pages of each chapter, from their sources or from the notebooks in a folder."""
    found = {}
    for chapter, first in CHAPTERS.items():
        paths = sorted(Path(folder).glob(f"{first}*.ipynb") if folder else BOOK.glob(f"{first}*.md"))
        read = of_notebook if folder else of_page
        found[chapter] = [Page(path.stem, tuple(read(path))) for path in paths]
    return found


def key_results() -> set[str]:
    """The labels of proved equations that the formula sheet or the homework names."""
    from normgrad.symbolic import equations

    sheet = (BOOK / "formula_sheet.md").read_text(encoding="utf8")
    named = set(re.findall(r"\{equation\} *(\S+)|\{eq\}`([^`]+)`", sheet))
    labels = {label for pair in named for label in pair if label}
    homework = BOOK.parent / "src/normgrad/homework/equations.json"
    labels |= set(json.loads(homework.read_text(encoding="utf8"))) if homework.is_file() else set()
    return {label for label, one in equations().items() if label in labels and one.kind != "definition"}


def shown_by(chapter: list[Page]) -> set[str]:
    """All labels that a chapter's pages show, by cells or by directives."""
    labels = set().union(*[page.derived for page in chapter])
    for page in chapter:
        text = (BOOK / f"{page.name}.md").read_text(encoding="utf8")
        labels |= set(re.findall(r"^`{3,}\{equation\} *(\S+)\n`{3,}", text, re.M))
    return labels


HEADINGS = (
    "Chapter", "Cells that derive", "Key results derived", "Differences", "gradcheck", "gradgradcheck", "Rules broken",
)  # fmt: skip


def rows(folder=None) -> list[tuple]:
    """One row a chapter, under HEADINGS."""
    keys, found = key_results(), []
    for chapter, members in pages(folder).items():
        named = keys & shown_by(members)
        derived = named & set().union(*[page.derived for page in members])
        checks = [sum(len(page.checks[name]) for page in members) for name in ("gradcheck", "gradgradcheck")]
        deriving = sum(len(page.deriving) for page in members)
        differences = sum(page.differences for page in members)
        rules = sum(len(page.broken_rules) for page in members)
        found.append((chapter, deriving, f"{len(derived)} of {len(named)}", differences, *checks, rules))
    return found


class ReaderWork(SphinxDirective):
    """``{reader-work}``: the table; ``{reader-work} checks``: what is checked by name, page by page."""

    optional_arguments = 1

    def run(self):
        from .ledger_page import cell, table

        self.env.note_reread()
        headings, body = HEADINGS, rows()
        if self.arguments:
            headings = ("Page", "gradcheck on", "gradgradcheck on")
            every = [page for members in pages().values() for page in members if any(page.checks.values())]
            body = [(page.name, *(", ".join(page.checks[name]) for name in page.checks)) for page in every]
        return [table(headings, [nodes.row("", *[cell(nodes.Text(str(each))) for each in row]) for row in body])]


def setup(app):
    app.add_directive("reader-work", ReaderWork)


if __name__ == "__main__":
    print(*HEADINGS, sep=" | ")
    for row in rows(*sys.argv[1:]):
        print(*row, sep=" | ")
    for members in pages(*sys.argv[1:]).values():
        for page in members:
            print(f"{page.name}: {page.checks}")
            for line in page.broken_rules:
                print("    ", line)
