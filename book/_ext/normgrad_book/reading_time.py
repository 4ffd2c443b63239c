"""How long a page takes to read, and to do: one model for all pages, printed on each and in a table.

Words, displays, lines of code and figures have their time each. Solutions and hints are folded away and take half of
theirs, since some readers open them; hidden cells and the words that a cell prints take none. To do a page is to write
its turns, to change the claims that it refutes, and to solve its exercises.
"""

from __future__ import annotations

import re
from collections import Counter

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .ledger_page import cell, reading_order, table

WORDS_A_MINUTE = 130
# Seconds of one display, of each line of it, of a visible line of code, of a figure.
SECONDS = {"display": 30, "line of a display": 15, "line of code": 7, "figure": 60}
# Minutes to do one; nobody was timed.
TASKS = {"turn": 5, "refuted claim": 2, "exercise": 20}
HEADINGS = ("Page", "Minutes to read", "Minutes to do")
WORD = re.compile(r"[^\W_]+(?:['-]\w+)*")
# A homework takes as long as it takes; the contract is a report.
NO_LESSON = re.compile(r"book/(?:intro|hw\d|homework|contract)")


class ReadingTimesNode(nodes.General, nodes.Element):
    """Stands for the table until all pages are read."""


class ReadingTimes(SphinxDirective):
    """``{reading-times}``: the pages of the course and how long each takes."""

    def run(self):
        return [ReadingTimesNode()]


def amounts(node) -> Counter:
    """How much there is to read below a node of a page."""
    if isinstance(node, nodes.Text):
        return Counter(word=len(WORD.findall(node)))
    if is_hidden_code(node):
        return Counter()
    if isinstance(node, nodes.math_block):
        return Counter({"display": 1, "line of a display": len(lines_of(node))})
    if isinstance(node, nodes.literal_block):
        return Counter({"line of code": len(lines_of(node))})
    if isinstance(node, nodes.math):
        return Counter(word=1)
    children = node.children
    if node.get("nb_element") == "mime_bundle":
        children = children[:1]  # the others show the same
    held = sum(map(amounts, children), Counter())
    if task := task_of(node):
        held[task] += 1
    if isinstance(node, nodes.image):
        held["figure"] += 1
    if node.get("nb_element") == "cell_code_output":
        held["word"] = held["line of code"] = 0
    if node.tagname == "solution_node" or node.get("design_component") == "dropdown":
        for part in held.keys() - TASKS.keys():
            held[part] /= 2
    return held


def task_of(node) -> str | None:
    """The kind of task that a node is, None of most."""
    if node.tagname in ("exercise_node", "exercise_enumerable_node"):
        return "exercise"
    if node.get("nb_element") != "cell_code":
        return None
    if "tag_your-turn" in node["classes"]:
        return "turn"
    source = next(iter(node.findall(nodes.literal_block)), None)
    is_refuted = source is not None and "refute(" in source.astext()
    return "refuted claim" if is_refuted else None


def lines_of(block) -> list[str]:
    """The lines of a display or of code, empty ones left out."""
    separator = r"\\\\" if isinstance(block, nodes.math_block) else "\n"
    return [line for line in re.split(separator, block.astext()) if line.strip()]


def is_hidden_code(node) -> bool:
    """Whether a node is a hidden cell, or the hidden source of one."""
    hidden = {"cell_code": ("all",), "cell_code_source": ("input", "all")}
    mode = node.get("hide_mode") or node.parent and node.parent.get("hide_mode")
    return mode in hidden.get(node.get("nb_element"), ())


def minutes(held) -> float:
    """The time to read, by the model."""
    seconds = sum(SECONDS[part] * held[part] for part in SECONDS)
    return held["word"] / WORDS_A_MINUTE + seconds / 60


def minutes_to_do(held) -> int:
    """The time to do the tasks, by the model."""
    return sum(TASKS[task] * held[task] for task in TASKS)


def sentence(held) -> str:
    """What stands below the title of a page."""
    reading = f"Reading takes about {minutes(held):.0f} minutes"
    tasks = [task for task in TASKS if held[task]]
    if not tasks:
        return f"{reading}."
    counts = [f"{held[task]} {task}{'s' * (held[task] > 1)}" for task in tasks]
    rates = [f"{TASKS[task]}" for task in tasks]
    doing = f"{listed(counts)} about {minutes_to_do(held)} more"
    return f"{reading}; {doing}, at an assumed {listed(rates)} minutes each."


def listed(parts: list[str]) -> str:
    """Parts with commas, the last with `and`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def print_time(app, doctree):
    """The time, below the title of each lesson."""
    docname = app.env.docname
    metadata = app.env.metadata[docname]
    title = next(iter(doctree.findall(nodes.title)), None)
    if title is None or "kernelspec" not in metadata or NO_LESSON.match(docname):
        return
    held = metadata["amounts"] = amounts(doctree)
    line = nodes.paragraph("", sentence(held), classes=["reading-time"])
    title.parent.insert(title.parent.index(title) + 1, line)


def times(env) -> list[tuple[str, str]]:
    """(title, minutes to read, minutes to do) of each page."""
    rows = []
    for docname in reading_order(env):
        if held := env.metadata[docname].get("amounts"):
            title = env.titles[docname].astext()
            rows.append((title, f"{minutes(held):.0f}", f"{minutes_to_do(held)}"))
    return rows


def plain_times(env) -> str:
    """The same as a table in Markdown, for notebooks."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *times(env)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill_times(app, doctree, docname):
    """Replace the page's placeholder, now that every page is read."""
    for node in list(doctree.findall(ReadingTimesNode)):
        rows = [
            nodes.row("", *[cell(nodes.Text(text)) for text in line])
            for line in times(app.env)
        ]
        node.replace_self(table(HEADINGS, rows))


def setup(app):
    app.add_node(ReadingTimesNode)
    app.add_directive("reading-times", ReadingTimes)
    app.connect("doctree-read", print_time)
    app.connect("doctree-resolved", fill_times)
