"""The solution.py of each homework: with its marks, as the reference, and as the starter, without what is marked."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
SOLUTION = "solution.py"
# What stands between these lines of a solution.py is the reference's; a starter has none of it.
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = "raise NotImplementedError"


def marked(name: str) -> str:
    """The text of a homework's solution.py, with its marks."""
    return (HERE / name / SOLUTION).read_text(encoding="utf8")


def solution(name: str) -> str:
    """The text of a homework's reference solution."""
    lines = marked(name).split("\n")
    return _tidy(line for line in lines if line.strip() not in (BEGIN, END))


def starter(name: str) -> str:
    """The text of a homework's stubs."""
    lines, inside = [], False
    for line in marked(name).split("\n"):
        mark = line.strip()
        if mark == BEGIN and line != BEGIN:
            lines.append(line.replace(BEGIN, STUB))
        inside = mark == BEGIN or inside and mark != END
        if not inside and mark != END:
            lines.append(line)
    return _tidy(lines)


def _tidy(lines) -> str:
    """A text with at most two empty lines in a row, and one end."""
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).rstrip("\n") + "\n"
