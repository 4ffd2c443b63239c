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
PASSED, UNEARNED, FAILED = (
    (GOOD, "✓", "passed"),
    (GREY, "○", "passed, no points yet"),
    (BAD, "✗", "failed"),
)
REPORT = """<div class="normgrad-report" \
style="font:inherit;color:inherit;max-width:52em;line-height:1.45;text-align:left">\
<div style="display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1em">\
<strong>{task}</strong><span>{points} of {most} points</span></div>\
<div style="height:6px;border-radius:3px;background:color-mix(in srgb, currentColor 15%, transparent);\
margin:.4em 0 .6em"><div style="height:6px;border-radius:3px;width:{share:.0f}%;background:{color}"></div></div>\
{body}</div>"""
STUB = """<p style="margin:.4em 0">Not implemented yet: write {entry}, then check again. \
The signature is {signature}.</p>"""
STAGE = """<div role="listitem" style="display:flex;gap:.6em;padding:.3em 0;\
border-top:1px solid color-mix(in srgb, currentColor 22%, transparent)">\
<span style="color:{color};font-weight:bold;flex:0 0 1em" role="img" aria-label="{word}">{mark}</span>\
<div style="flex:1;min-width:0;display:flex;flex-wrap:wrap;gap:0 1em">\
<span style="flex:0 0 11em">{name}</span>\
<span style="flex:1 1 20em;min-width:0;overflow-wrap:anywhere;opacity:{opacity}">{message}</span></div>\
<span style="white-space:nowrap">{points} / {most}</span></div>"""
BOX = """<div style="border-left:4px solid {color};padding:.1em 0 .1em .8em;margin:.8em 0">{body}</div>"""
NOTE = """<p style="margin:.4em 0;opacity:.85;white-space:pre-wrap;overflow-wrap:anywhere">{body}</p>"""
TABLE = """<table style="border-collapse:collapse;font:inherit;color:inherit;margin:.3em 0">{body}</table>"""
CELL = '<td style="padding:.1em .8em .1em 0;vertical-align:top;text-align:left">'
ROW = f'<tr style="background:none">{CELL}{{words}}</td>{CELL}{{formula}}</td></tr>'
CODE = """<code style="font-family:monospace;font-size:.95em;background:none;color:inherit;padding:0;\
overflow-wrap:anywhere">{}</code>"""
FORMULAS = (
    ("implemented", "yours"),
    ("right", "needed"),
    ("difference", "differs"),
)


def html(report) -> str:
    """The report as one HTML fragment."""
    color = BAD
    if report.passed:
        color = GOOD
    elif report.stub:
        color = GREY
    body = "".join([_stages(report), *_diagnoses(report), *_notes(report)])
    if report.stub:
        task = report.of
        body = STUB.format(entry=code(task.entry), signature=code(task.signature))
    return REPORT.format(
        task=escape(report.task),
        points=report.points,
        most=report.max_points,
        share=100 * report.points / report.max_points,
        color=color,
        body=body,
    )


def code(text) -> str:
    """Text in the font of code."""
    return CODE.format(escape(text))


def _stages(report):
    rows = []
    for stage, message in report.rows():
        color, mark, word = FAILED
        if stage.passed:
            color, mark, word = PASSED if stage.full else UNEARNED
        rows.append(
            STAGE.format(
                color=color,
                mark=mark,
                word=word,
                name=escape(stage.name),
                opacity=1 - 0.25 * stage.full,
                message=_broken(message),
                points=stage.points,
                most=stage.max_points,
            )
        )
    return f'<div role="list">{"".join(rows)}</div>'


def _broken(message):
    """A message with the student's own line in the font of code."""
    # No line ends within a number.
    message = re.sub(r"(?<=\de)-(?=\d)", "\u2011", message)
    line = re.search(r" (Line \d+(?: in [\w<>.]+)?): (.*)", message, re.S)
    if not line:
        return escape(message)
    text = escape(message[: line.start()])
    return f"{text}<br>{escape(line[1])}: {code(line[2])}"


def _diagnoses(report):
    boxes = []
    for parts in report.explained():
        if parts["new"]:
            title = [f"<strong>{escape(parts['title'])}</strong>"] if "title" in parts else []  # fmt: skip
            boxes.append([*title, escape(parts["hint"])])
        if "implemented" in parts:
            rows = [
                ROW.format(words=words, formula=code(parts[name]))
                for name, words in FORMULAS
                if parts.get(name)
            ]
            boxes[-1].append(TABLE.format(body="".join(rows)))
        if "equation" in parts:
            boxes[-1].append(f"Equation {_link(parts['equation'], parts['page'])}")
    for lines in boxes:
        body = re.sub("(</table>)<br>|<br>(?=<table)", r"\1", "<br>".join(lines))
        yield BOX.format(color=BAD, body=body)


def _link(label, page):
    where = f" on the page {escape(page)} of the book" if page else ""
    # A link that leads nowhere would be worse than the page's name.
    if not page or BOOK not in os.environ:
        return escape(shown(label)) + where
    href = f"{os.environ[BOOK]}{page}.html#equation-{label.lower()}"
    return f'<a href="{escape(href, quote=True)}">{escape(shown(label))}</a>{where}'


def _notes(report):
    points, deducted = report.deducted
    if points:
        yield NOTE.format(body=f"{escape(deducted)} −{points}")
    for note in report.notes:
        words, _, printed = note.partition("\n")
        below = f"<br>{code(printed)}" if printed else ""
        yield NOTE.format(body=escape(words) + below)
