"""How long a page takes to read: one model for all pages, printed on each and in tables.

    python -m normgrad_book.reading_time book/rms_norm.md ...

Words, displays, lines of code and figures have their time each. What is folded away (hidden cells, solutions, hints)
is not read on the way, and takes none.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.config import Config
from sphinx.directives.code import LiteralIncludeReader
from sphinx.util.docutils import SphinxDirective

from .cells import CELL, Cell, of_page

WORDS_A_MINUTE = 130
DISPLAY, DISPLAY_LINE, CODE_LINE, FIGURE = 30, 15, 7, 60  # seconds
HEADINGS = ("Page", "Minutes", "Words", "Displays", "Lines of code", "Figures")

FOLDED = re.compile(
    r"^(?P<fence>[`:]{3,})\{(?:solution|dropdown)\}.*?^(?P=fence)\s*$", re.M | re.S
)
DIRECTIVE = re.compile(
    r"^(?P<fence>[`:]{3,})\{(?P<name>[\w:.-]+)\} *(?P<arg>[^\n]*)\n(?P<body>.*?)^(?P=fence)\s*$",
    re.M | re.S,
)
DISPLAYED = re.compile(r"\$\$(.+?)\$\$( *\([\w:.-]+\))?", re.S)


@dataclass
class Amount:
    """What a page holds: words, displays and their lines, visible lines of code, figures."""

    words: int = 0
    displays: int = 0
    display_lines: int = 0
    code_lines: int = 0
    figures: int = 0

    @property
    def minutes(self) -> float:
        """The time by the model."""
        seconds = DISPLAY * self.displays + DISPLAY_LINE * self.display_lines
        seconds += CODE_LINE * self.code_lines + FIGURE * self.figures
        return self.words / WORDS_A_MINUTE + seconds / 60

    def display(self, lines: int) -> None:
        """Count one display of so many lines."""
        self.displays += 1
        self.display_lines += lines


def _lines(latex) -> int:
    return latex.count(r"\\") + 1


def _count_cell(amount, cell: Cell):
    if "figure" in cell.options.get("mystnb", {}):
        amount.figures += 1
    if cell.visible:
        amount.code_lines += len(cell.lines)
    _count_verdicts(amount, cell)


def _count_verdicts(amount, cell):
    """The displays of a cell that types in SymPy: its last line, or what that line names."""
    last = ast.unparse(cell.tree.body[-1]) if cell.tree.body else ""
    for line in cell.tree.body:
        call = getattr(line, "value", None)
        named = [ast.unparse(target) for target in getattr(line, "targets", ())]
        if not isinstance(call, ast.Call) or last not in (*named, ast.unparse(line)):
            continue
        verb = getattr(call.func, "id", "")
        if verb == "definitions":
            amount.display(len(call.args))
        elif verb == "derive":  # a name after a line is its reason
            chains = [arg.elts for arg in call.args if isinstance(arg, ast.Tuple)]
            steps = [line for chain in chains or [call.args] for line in chain[1:]]
            steps = [line for line in steps if not isinstance(line, ast.Name)]
            amount.display(len(steps))
        elif verb in ("prove", "refute"):
            amount.display(1)


def _count_directive(amount, directive, folder):
    from normgrad.ledger.formulas import formulas
    from normgrad.symbolic import equations

    name, arg, body = directive["name"], directive["arg"].strip(), directive["body"]
    if name == "math":
        amount.display(_lines(body))
    elif name == "equation":
        equation = (equations() | formulas()).get(arg)
        amount.display(_lines(equation.latex()) if equation else 1)
    elif name in ("figure", "image"):
        amount.figures += 1
    elif name == "literalinclude":
        amount.code_lines += _included(folder / arg, body)
    else:
        return body  # its text is read like any other
    return ""


def _included(path, options) -> int:
    """How many lines of a file are shown, empty ones aside."""
    chosen = dict(
        re.findall(
            r"^:(pyobject|lines|start-at|start-after|end-before): *(.+)", options, re.M
        )
    )
    shown, _ = LiteralIncludeReader(str(path), chosen, Config()).read()
    return len([line for line in shown.split("\n") if line.strip()])


def amount(path) -> Amount:
    """What a page's source holds."""
    path, total = Path(path), Amount()
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(encoding="utf8"), flags=re.S)
    for cell in of_page(path):
        _count_cell(total, cell)
    text = FOLDED.sub("", CELL.sub("", text))
    for _ in range(3):  # a directive may stand within another
        text = DIRECTIVE.sub(
            lambda match: _count_directive(total, match, path.parent), text
        )
    for shown in DISPLAYED.findall(text):
        total.display(_lines(shown[0]))
    text = re.sub(r"\$[^$\n]+\$", "formula", DISPLAYED.sub("", text))
    total.words = len(
        re.findall(
            r"[^\W_]+(?:['-]\w+)*",
            re.sub(r"\{[\w:.-]+\}|\(#?[\w./-]+\)|^:[\w-]+:.*$", " ", text, flags=re.M),
        )
    )
    return total


def minutes(path) -> int:
    """How many minutes a page takes, rounded."""
    return round(amount(path).minutes)


class ReadingTimes(SphinxDirective):
    """``{reading-times}``: the pages of the course and how long each takes."""

    def run(self):
        from .ledger_page import cell, table

        self.env.note_reread()
        rows = [
            nodes.row("", *[cell(nodes.Text(text)) for text in page])
            for page in times(self.env.srcdir)
        ]
        return [table(HEADINGS, rows)]


def times(folder) -> list[list[str]]:
    """What each page of the course holds and how long it takes, under HEADINGS."""
    rows = []
    contents = Path(folder, "_toc.yml").read_text(encoding="utf8")
    for name in re.findall(r"file: (\S+)", contents):
        path = Path(folder, f"{name}.md")
        if is_lesson(path):
            held = amount(path)
            title = re.search(r"^# (.+)$", path.read_text(encoding="utf8"), re.M)[1]
            counts = (held.words, held.displays, held.code_lines, held.figures)
            rows.append([title, f"{held.minutes:.0f}", *map(str, counts)])
    return rows


def plain_times(folder) -> str:
    """The same as a table in Markdown, for notebooks."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *times(folder)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def is_lesson(path) -> bool:
    """Whether a page is one that is read from the first line to the last, with cells of its own."""
    return path.read_text(encoding="utf8").startswith("---\njupytext") and not re.match(
        r"hw\d|homework|contract", path.stem
    )


def print_time(app, doctree):
    """The time, below the title of each lesson."""
    path = Path(app.env.doc2path(app.env.docname))
    if "kernelspec" in app.env.metadata[app.env.docname] and is_lesson(path):
        title = next(iter(doctree.findall(nodes.title)), None)
        if title is not None:
            text = f"Reading and running this page takes about {minutes(path)} minutes."
            line = nodes.paragraph("", text, classes=["reading-time"])
            title.parent.insert(title.parent.index(title) + 1, line)


def setup(app):
    app.add_directive("reading-times", ReadingTimes)
    app.connect("doctree-read", print_time)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        held = amount(name)
        print(f"{held.minutes:5.1f} minutes  {Path(name).stem:24} {held}")
