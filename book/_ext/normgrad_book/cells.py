"""The code cells of a page or of a notebook: what they define, what they use, and which of them others stand on."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from myst_parser.parsers.directives import parse_directive_text

CELL = re.compile(
    r"^(?P<fence>`{3,})\{code-cell\}[^\n]*\n(?P<body>.*?)^(?P=fence)\s*$", re.M | re.S
)
HIDDEN = frozenset({"hide-input", "hide-cell", "remove-input", "remove-cell"})
MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.M)
BUILTIN = frozenset(dir(builtins)) | {"display", "get_ipython", "__name__", "__file__"}


@dataclass(frozen=True)
class Cell:
    """One code cell. Args: place: its number on the page; source: its code; tags, options: of the cell; line: where"""

    place: int
    source: str
    tags: frozenset = frozenset()
    options: dict = field(default_factory=dict, compare=False)
    line: int = 0

    @property
    def visible(self) -> bool:
        """Whether a reader sees the code without a click."""
        return not self.tags & HIDDEN

    @property
    def lines(self) -> list[str]:
        """The lines that are not empty."""
        return [line for line in self.source.split("\n") if line.strip()]

    @property
    def labels(self) -> list[str]:
        """The labels of the equations that the cell shows."""
        return [self.options["label"]] if "label" in self.options else []

    @cached_property
    def python(self) -> str:
        """The code without IPython's magics."""
        return MAGIC.sub(r"\1pass", self.source)

    @cached_property
    def tree(self) -> ast.Module:
        """The code as a syntax tree."""
        return ast.parse(self.python)

    @cached_property
    def defines(self) -> frozenset[str]:
        """The names that the cell gives a value."""
        table = symtable.symtable(self.python, "cell", "exec")
        return frozenset(
            s.get_name()
            for s in table.get_symbols()
            if s.is_assigned() or s.is_imported()
        )

    @cached_property
    def uses(self) -> frozenset[str]:
        """The names that the cell takes from cells before it."""
        found: set[str] = set()
        table = symtable.symtable(self.python, "cell", "exec")
        waiting = list(table.get_children())
        while waiting:
            inner = waiting.pop()
            waiting += inner.get_children()
            found |= {
                s.get_name()
                for s in inner.get_symbols()
                if s.is_global() and s.is_referenced()
            }
        found |= self._before_assignment()
        return frozenset(found - BUILTIN - (self.defines - self._before_assignment()))

    def _before_assignment(self):
        """Names that a statement of the cell itself reads before the cell has given them a value."""
        known: set[str] = set()
        found: set[str] = set()
        for statement in self.tree.body:
            table = symtable.symtable(ast.unparse(statement), "cell", "exec")
            read = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
            given = {
                s.get_name()
                for s in table.get_symbols()
                if s.is_assigned() or s.is_imported()
            }
            if isinstance(statement, ast.AugAssign) and isinstance(
                statement.target, ast.Name
            ):
                read.add(statement.target.id)
            # a block gives its names their values before it reads them; x = x + 1 does not
            found |= read - known - (given if hasattr(statement, "body") else set())
            known |= given
        return found - BUILTIN

    @cached_property
    def changes(self) -> frozenset[str]:
        """The names whose values the cell changes from within, as layer[y[k]] = ... does."""
        found = set()
        for node in ast.walk(self.tree):
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                while isinstance(target, ast.Subscript | ast.Attribute):
                    target = target.value
                    if isinstance(target, ast.Name):
                        found.add(target.id)
        return frozenset(found)


class _Cell:
    """A code cell, for MyST's reading of its options."""

    required_arguments, optional_arguments = 0, 1
    option_spec = {"options": True}
    has_content = True


def _options(body, where):
    """(options, code) of a cell's text, as MyST reads it.

    Raises:  ValueError for options that are no YAML, and for a label or a claim that YAML takes for no text
    """
    read = parse_directive_text(_Cell, "", body, validate_options=False)
    texts = [read.options.get(name, "") for name in ("label", "claim")]
    if read.warnings or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            f"{where}: the options of the cell are no YAML, in which a text with ': ' in it, or that begins with"
            ' a bracket, needs quotes: write :claim: "What holds: all of it."'
        )
    return read.options, "\n".join(read.body)


def of_page(path) -> list[Cell]:
    """The code cells of a chapter's source."""
    text = Path(path).read_text(encoding="utf8")
    cells = []
    for place, found in enumerate(CELL.finditer(text)):
        line = text.count("\n", 0, found.start()) + 1
        options, code = _options(found["body"], f"{Path(path).name}, line {line}")
        tags = frozenset(options.get("tags", ()))
        cells.append(Cell(place, code.rstrip("\n"), tags, options, line))
    return cells


def needed(cells: list[Cell], wanted) -> list[Cell]:
    """The cells that some cells need in order to run, themselves included, in order."""
    chosen: dict[int, Cell] = {}
    waiting = [cell for cell in cells if wanted(cell)]
    while waiting:
        cell = waiting.pop()
        if cell.place in chosen:
            continue
        chosen[cell.place] = cell
        for name in cell.uses | cell.changes - cell.defines:
            waiting += _makers(cells[: cell.place], name)
    return [chosen[place] for place in sorted(chosen)]


def _makers(before, name):
    """The last cell that defines a name, and those after it that change what it stands for."""
    for place in range(len(before) - 1, -1, -1):
        if name in before[place].changes:
            yield before[place]
        if name in before[place].defines:
            yield before[place]
            return
