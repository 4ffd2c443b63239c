r"""Outputs whose labels or entries are not their own cell's: what haste and copying leave on a page.

A label typed into an output would number a formula that nothing derived, and an entry shown by another cell would put
a badge where its check does not stand. Either fails the build.
"""

from __future__ import annotations

import ast
import re

from sphinx.transforms import SphinxTransform

from normgrad.ledger.entries import MIME
from normgrad.symbolic.derive import STATEMENT

from .execution import executed_notebook

LABEL = re.compile(r"\\(?:tag|label)\s*\{([^{}]*)\}")
SHOWN = ("text/latex", "text/markdown", "text/html")


def cell_problems(cell) -> list[str]:
    """What is wrong with the outputs of a code cell of an executed notebook."""
    typed = texts("".join(cell["source"]))
    problems = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        derived = data.get(STATEMENT, {}).get("label")
        shown = "\n".join("".join(data.get(kind, "")) for kind in SHOWN)
        for label in sorted(set(LABEL.findall(shown)) - {derived}):
            problems.append(
                f"an output has the label {label}, which no derivation gave it"
            )
        for entry in data.get(MIME, ()):
            if entry["label"] not in typed:
                problems.append(
                    f"the entry {entry['label']} is shown by a cell that does not name it"
                )
    return problems


def texts(source) -> list[str]:
    """The texts in a cell's code; the whole of it where it is not Python, as with a magic."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [source]
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


class Guard(SphinxTransform):
    """Looks at a page's outputs before the page's labels are collected."""

    default_priority = 490

    def apply(self, **kwargs):
        docname = self.env.docname
        if "kernelspec" not in self.env.metadata[docname]:
            return
        for cell in executed_notebook(self.env, docname)["cells"]:
            for message in cell_problems(cell) if cell["cell_type"] == "code" else ():
                self.env.get_domain("ledger").note_problem(docname, 0, message)


def setup(app):
    app.add_transform(Guard)
