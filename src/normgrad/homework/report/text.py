"""The report as text of 80 columns: what a student reads in the shell, late."""

from __future__ import annotations

import re
import textwrap

from ..equations import shown
from .stage import AS_ABOVE, FOLLOWS

WIDTH = 80
SIGN = re.compile(r"(?<=[:,] )([-+]) (?=\S)")


def _wrap(text, indent, first=None, width=WIDTH):
    """Wrapped lines; no line ends between a sign and the term that it belongs to."""
    wrapped = textwrap.wrap(
        SIGN.sub("\\1\N{NO-BREAK SPACE}", text), width, initial_indent=indent if first is None else first,
        subsequent_indent=indent, break_long_words=True, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]


def lines(report):
    """The lines of one report."""
    task = report.of
    points = f"{report.points} of {report.max_points} points"
    yield f"{task.name}".ljust(WIDTH - len(points)) + points
    if report.stub:
        yield from _wrap(f"Not implemented yet: write {task.entry}, then check again. The signature:", "  ")
        yield from _wrap(task.signature, "      ", "    ")
        return
    for stage, words in report.rows():
        mark = "ok  " if stage.full else "    " if stage.passed else "--  "
        short = words in (FOLLOWS, AS_ABOVE)
        *names, name = _wrap(f"{stage.name} ({words})" if short else stage.name, "      ", f"  {mark}", WIDTH - 6)
        yield from names
        yield name.ljust(WIDTH - 5) + f"{stage.points}/{stage.max_points}".rjust(5)
        if not stage.full and not short:
            yield from _wrap(words, "        ")
    yield from diagnosis_lines(report)
    for note in report.notes:
        words, *printed = note.split("\n")
        yield from _wrap(words, "  ")
        yield from (f"    {line}"[:WIDTH] for line in printed)


def diagnosis_lines(report):
    """The lines of all diagnoses."""
    for parts in report.explained():
        yield from _diagnosis(parts)


def _diagnosis(parts):
    if parts["new"]:
        yield ""
        yield from _wrap(parts["title"] if "title" in parts else parts["hint"], "     ", "  => ")
        if "title" in parts:
            yield from _wrap(parts["hint"], "     ")
    for name, words in (("implemented", "yours:"), ("right", "needed:"), ("where", "where")):
        if parts.get(name):
            yield from _wrap(parts[name], "               ", f"     {words:10}")
    if "equation" in parts:
        page = f", page {parts['page']} of the book" if parts["page"] else ""
        yield f"     equation: {shown(parts['equation'])}{page}"


def text(reports) -> str:
    """Several reports and their sum, for the shell."""
    blocks = [str(report) for report in reports]
    earned, most = sum(report.points for report in reports), sum(report.max_points for report in reports)
    total = f"{earned} of {most} points"
    return "\n\n".join([*blocks, f"{'total':{WIDTH - len(total)}}{total}"])
