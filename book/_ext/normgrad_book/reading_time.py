"""How long a page takes to read: one model for all pages, printed below the title of each.

Words, displays, lines of code and figures have their time each. What is folded away (hidden cells, solutions, hints)
is not read on the way, and takes none; nor do the words that a cell prints.
"""

from __future__ import annotations

import re
from collections import Counter

from docutils import nodes

WORDS_A_MINUTE = 130
# Seconds of one display, of each line of it, of a visible line of code, of a figure.
SECONDS = {"display": 30, "line of a display": 15, "line of code": 7, "figure": 60}
WORD = re.compile(r"[^\W_]+(?:['-]\w+)*")
# A homework takes as long as it takes; the contract is a report.
NO_LESSON = re.compile(r"book/(?:intro|hw\d|homework|contract)")


def amounts(node) -> Counter:
    """How much there is to read below a node of a page."""
    if is_folded(node):
        return Counter()
    if isinstance(node, nodes.math_block):
        return Counter({"display": 1, "line of a display": len(lines_of(node))})
    if isinstance(node, nodes.literal_block):
        return Counter({"line of code": len(lines_of(node))})
    if isinstance(node, nodes.math):
        return Counter(word=1)
    if isinstance(node, nodes.Text):
        return Counter(word=len(WORD.findall(node)))
    children, is_output = node.children, False
    if isinstance(node, nodes.Element):
        if node.get("nb_element") == "mime_bundle":
            children = children[:1]  # the others show the same
        is_output = node.get("nb_element") == "cell_code_output"
    held = sum(map(amounts, children), Counter())
    if isinstance(node, nodes.image):
        held["figure"] += 1
    if is_output:
        held["word"] = held["line of code"] = 0
    return held


def lines_of(block) -> list[str]:
    """The lines of a display or of code, empty ones left out."""
    separator = r"\\\\" if isinstance(block, nodes.math_block) else "\n"
    return [line for line in re.split(separator, block.astext()) if line.strip()]


def is_folded(node) -> bool:
    """Whether a node shows nothing before it is clicked: a solution, a dropdown, a hidden cell, its hidden source."""
    if not isinstance(node, nodes.Element):
        return False
    hidden = {"cell_code": ("all",), "cell_code_source": ("input", "all")}
    mode = node.get("hide_mode") or node.parent and node.parent.get("hide_mode")
    return (
        node.tagname == "solution_node"
        or node.get("design_component") == "dropdown"
        or mode in hidden.get(node.get("nb_element"), ())
    )


def minutes(held) -> float:
    """The time by the model."""
    seconds = sum(SECONDS[part] * held[part] for part in SECONDS)
    return held["word"] / WORDS_A_MINUTE + seconds / 60


def print_time(app, doctree):
    """The time, below the title of each lesson."""
    docname = app.env.docname
    metadata = app.env.metadata[docname]
    title = next(iter(doctree.findall(nodes.title)), None)
    if title is None or "kernelspec" not in metadata or NO_LESSON.match(docname):
        return
    time = minutes(amounts(doctree))
    text = f"Reading and running this page takes about {time:.0f} minutes."
    line = nodes.paragraph("", text, classes=["reading-time"])
    title.parent.insert(title.parent.index(title) + 1, line)


def setup(app):
    app.connect("doctree-read", print_time)
