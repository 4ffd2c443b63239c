"""What a page claims in formulas that nothing checks: displays without a label, and equalities within a line.

`python -m normgrad_book.unchecked book/*.md` lists them, each with its page and line. A display whose sentence cites a
source is marked as quoted, and so is one in a block quote.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .cells import CELL

DISPLAY = re.compile(r"\$\$(?P<body>.*?)\$\$[ \t]*(?P<label>\([\w:.-]+\))?", re.S)
INLINE = re.compile(r"(?<![$\\`])\$(?P<body>[^$\n]+)\$(?!\$)")
CLAIM = re.compile(r"(?<![<>!:])=|\\(?:le|ge|approx|ne|propto)\b")
# A name and one thing that it is: as M = 3, or c = 1 / N. More than that is a claim.
SHORT = re.compile(r"^[^=]{1,24}=\s*(?:[-+]?[\d.]+|[^=+\s]{1,16}(?:\s*[/^]\s*[^=+\s]{1,12})?)$")
BLOCK = re.compile(r"^```(?:bash|python|text)?\n.*?^```", re.M | re.S)
LIMIT = re.compile(r"_\{[^{}]*=[^{}]*\}")  # where a sum begins
QUOTED = re.compile(r"\{cite(?::\w+)?\}|\bsource 00\d\b|^>", re.M)


def unchecked(text: str) -> list[tuple[int, str, str]]:
    """(line, kind, formula) for every claim of a page's prose that has no ledger entry; kind: display or inline."""
    prose = CELL.sub(lambda found: "\n" * found[0].count("\n"), text)
    prose = BLOCK.sub(lambda found: "\n" * found[0].count("\n"), prose)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    found = []
    for display in DISPLAY.finditer(prose):
        before = prose[prose.rfind("\n\n", 0, display.start()) + 1 : display.start()]
        if CLAIM.search(LIMIT.sub("", display["body"])) and not display["label"] and not QUOTED.search(before):
            found.append((prose.count("\n", 0, display.start()) + 1, "display", _one_line(display["body"])))
    rest = DISPLAY.sub(lambda one: "\n" * one[0].count("\n"), prose)
    for number, line in enumerate(rest.split("\n"), start=1):
        if not QUOTED.search(line):
            formulas = [one["body"] for one in INLINE.finditer(line) if _claims(one["body"])]
            found += [(number, "inline", _one_line(formula)) for formula in formulas]
    return sorted(found)


def _claims(body):
    return bool(CLAIM.search(LIMIT.sub("", body))) and not SHORT.match(body.strip())


def _one_line(body):
    return " ".join(body.split())


def main(paths) -> int:
    """Print the list, and how many of each kind there are."""
    counts = {"display": 0, "inline": 0}
    for path in map(Path, paths):
        for line, kind, formula in unchecked(path.read_text(encoding="utf8")):
            counts[kind] += 1
            print(f"{path.name}:{line}: {kind}: {formula}")
    print(f"unchecked: {counts['display']} displays, {counts['inline']} equalities within lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
