"""Names of folded cells: what is inside instead of "Show code cell source"."""

from __future__ import annotations

import re

from docutils import nodes

# What a cell holds, by what stands in it; the first that fits. A comment in its first line says it best.
CONTENTS = {
    r"\A# (.+)": "{}",
    r"\bledger\.": "the ledger entries",
    r"normgrad_figures|^figures\.": "the code of the figure",
    r"^ *assert\b|\bassert_": "the checks",
    r"^(?:prove|derive|definitions)\(": "the derivation",
    r"^(?:def|class) (\w+)": "the code of {}",
    "": "the code",
}


def contents(source) -> str:
    """What a folded cell holds, in a few words."""
    matches = [(re.search(key, source, re.M), text) for key, text in CONTENTS.items()]
    match, text = next(pair for pair in matches if pair[0])
    count = len(source.strip().splitlines())
    lines = "line" if count == 1 else "lines"
    return f"{text.format(*match.groups())} ({count} {lines})"


def name_folded(app, doctree):
    """Put what a cell holds into the line that opens and the line that closes it."""
    for cell in doctree.findall(nodes.container):
        if cell.get("hide_mode") in ("input", "all"):
            inside = contents(next(cell.findall(nodes.literal_block)).astext())
            cell["prompt_show"] = f"Show {inside}"
            cell["prompt_hide"] = f"Hide {inside}"


def setup(app):
    app.connect("doctree-read", name_folded)
