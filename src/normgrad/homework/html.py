"""The report as HTML for a notebook: self-contained rows that take the notebook's own colours and width.

Text and lines use the surrounding colour, so the report is legible in light and dark themes whatever chooses them; the
three colours of the marks have enough contrast on both.
"""

from __future__ import annotations

import os
import re
from html import escape

from .equations import BOOK, shown

GOOD, BAD, GREY = "#009E73", "#D55E00", "#808080"
LINE = "border-top:1px solid color-mix(in srgb, currentColor 22%, transparent)"


def html(report) -> str:
    """The report as one HTML fragment."""
    body = (
        _stub(report)
        if report.stub
        else "".join([_stages(report), *_diagnoses(report), _notes(report)])
    )
    return (
        '<div class="normgrad-report" '
        'style="font:inherit;color:inherit;max-width:52em;line-height:1.45;text-align:left">'
        f"{_head(report)}{body}</div>"
    )


def code(text) -> str:
    """Text in the font of code."""
    style = "font-family:monospace;font-size:.95em;background:none;color:inherit;padding:0;overflow-wrap:anywhere"
    return f'<code style="{style}">{escape(text)}</code>'


def _head(report):
    share = report.points / report.max_points
    color = GOOD if report.passed else GREY if report.stub else BAD
    bar = (
        f'<div style="height:6px;border-radius:3px;background:color-mix(in srgb, currentColor 15%, transparent);'
        f'margin:.4em 0 .6em"><div style="height:6px;border-radius:3px;width:{100 * share:.0f}%;'
        f'background:{color}"></div></div>'
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1em">'
        f"<strong>{escape(report.task)}</strong><span>{report.points} of {report.max_points} points</span></div>{bar}"
    )


def _stub(report):
    return (
        f"<p style='margin:.4em 0'>Not implemented yet: write {code(report.of.entry)}, then check again. "
        f"The signature is {code(report.of.signature)}.</p>"
    )


def _stages(report):
    rows = []
    for stage, message in report.rows():
        color, mark, word = (GOOD, "✓", "passed") if stage.full else (GREY, "○", "passed, no points yet") \
            if stage.passed else (BAD, "✗", "failed")  # fmt: skip
        faded = "opacity:.75" if stage.full else ""
        rows.append(
            f'<div role="listitem" style="display:flex;gap:.6em;padding:.3em 0;{LINE}">'
            f'<span style="color:{color};font-weight:bold;flex:0 0 1em" role="img" aria-label="{word}">{mark}</span>'
            '<div style="flex:1;min-width:0;display:flex;flex-wrap:wrap;gap:0 1em">'
            f'<span style="flex:0 0 11em">{escape(stage.name)}</span>'
            f'<span style="flex:1 1 20em;min-width:0;{faded};overflow-wrap:anywhere">{_broken(message)}</span></div>'
            f'<span style="white-space:nowrap">{stage.points} / {stage.max_points}</span></div>'
        )
    return f'<div role="list">{"".join(rows)}</div>'


def _broken(message):
    """A message with the student's own line in the font of code."""
    message = re.sub(
        r"(?<=\de)-(?=\d)", "\u2011", message
    )  # no line ends within a number
    text, found, rest = message.partition(" Line ")
    number, colon, line = rest.partition(": ")
    if found and re.fullmatch(r"\d+(?: in [\w<>.]+)?", number) and colon:
        return f"{escape(text)}<br>Line {escape(number)}: {code(line)}"
    return escape(message)


def _diagnoses(report):
    boxes = []
    for parts in report.explained():
        lines = []
        if parts["new"]:
            lines = (
                [f"<strong>{escape(parts['title'])}</strong>"]
                if "title" in parts
                else []
            )
            lines.append(escape(parts["hint"]))
            boxes.append([])
        if "implemented" in parts:
            lines.append(_formulas(parts))
        if "equation" in parts:
            lines.append(f"Equation {_link(parts['equation'], parts['page'])}")
        boxes[-1] += lines
    for lines in boxes:
        yield (
            f'<div style="border-left:4px solid {BAD};padding:.1em 0 .1em .8em;margin:.8em 0">'
            + "<br>".join(lines).replace("</table><br>", "</table>").replace("<br><table", "<table") + "</div>"
        )  # fmt: skip


def _formulas(parts):
    cell = '<td style="padding:.1em .8em .1em 0;vertical-align:top;text-align:left">'
    rows = [
        f'<tr style="background:none">{cell}{words}</td>{cell}{code(parts[name])}</td></tr>'
        for name, words in (("implemented", "yours"), ("right", "needed"), ("difference", "differs")) if parts.get(name)
    ]  # fmt: skip
    style = "border-collapse:collapse;font:inherit;color:inherit;margin:.3em 0"
    return f'<table style="{style}">{"".join(rows)}</table>'


def _link(label, page):
    where = f" on the page {escape(page)} of the book" if page else ""
    if (
        not page or BOOK not in os.environ
    ):  # a link that leads nowhere would be worse than the page's name
        return escape(shown(label)) + where
    href = f"{os.environ[BOOK]}{page}.html#equation-{label.lower()}"
    return f'<a href="{escape(href, quote=True)}">{escape(shown(label))}</a>{where}'


def _notes(report):
    style = "margin:.4em 0;opacity:.85;white-space:pre-wrap;overflow-wrap:anywhere"
    points, deducted = report.deducted
    pieces = [f'<p style="{style}">{escape(deducted)} −{points}</p>'] * bool(points)
    for words, _, printed in (note.partition("\n") for note in report.notes):
        below = f"<br>{code(printed)}" if printed else ""
        pieces.append(f'<p style="{style}">{escape(words)}{below}</p>')
    return "".join(pieces)
