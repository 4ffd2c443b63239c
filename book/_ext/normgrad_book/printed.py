"""The {printed} role: a number in a sentence, checked to be in the output of a cell of the page."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.util.docutils import ReferenceRole

from .execution import executed_notebook


def outputs(notebook) -> str:
    """All that the cells of an executed notebook print and show as text."""
    texts = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            texts.append(output.get("text", ""))
            texts.append(output.get("data", {}).get("text/plain", ""))
    return "\n".join(map("".join, texts))


def is_printed(number, text) -> bool:
    """Whether a text has a number, or words with one, that is not a piece of a longer number."""
    return bool(re.search(rf"(?<![\d.]){re.escape(number)}(?!\.?\d)", text))


class Printed(ReferenceRole):
    """``{printed}`93` ``, or ``{printed}`93 <naive: 93>` ``, which finds it beside other words of the output."""

    def run(self):
        notebook = executed_notebook(self.env, self.env.docname)
        if self.title not in self.target or not is_printed(
            self.target, outputs(notebook)
        ):
            message = (
                f"no cell prints {self.target}, of which a sentence says {self.title}"
            )
            self.env.get_domain("ledger").note_problem(
                self.env.docname, self.lineno, message
            )
        return [nodes.Text(self.title)], []


def setup(app):
    app.add_role("printed", Printed())
