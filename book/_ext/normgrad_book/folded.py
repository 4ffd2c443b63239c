"""Names of folded cells: what is inside instead of "Show code cell source"."""

from __future__ import annotations

import re

from docutils import nodes

# What a cell holds, by what stands in it; the first that fits.
CONTENTS = {
    r"\bledger\.": "ledger entries",
    "normgrad_figures": "code of the figure",
    r"^ *assert\b": "checks",
    "": "code",
}


def contents(source) -> str:
    """What a folded cell holds, in a few words."""
    patterns = [pattern for pattern in CONTENTS if re.search(pattern, source, re.M)]
    count = len(source.strip().splitlines())
    lines = "line" if count == 1 else "lines"
    return f"the {CONTENTS[patterns[0]]} ({count} {lines})"


def name_folded(app, doctree):
    """Put what a cell holds into the line that opens and the line that closes it."""
    for cell in doctree.findall(nodes.container):
        if cell.get("hide_mode") in ("input", "all"):
            inside = contents(next(cell.findall(nodes.literal_block)).astext())
            cell["prompt_show"] = f"Show {inside}"
            cell["prompt_hide"] = f"Hide {inside}"


def setup(app):
    app.connect("doctree-read", name_folded)
