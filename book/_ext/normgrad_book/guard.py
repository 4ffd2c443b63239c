r"""Outputs whose labels or entries are not their own cell's: what haste and copying leave on a page.

A label typed into an output would number a formula that nothing derived, and an entry shown by another cell would put
a badge where its check does not stand. Either fails the build.
"""

from __future__ import annotations

import ast
import re

from sphinx.transforms import SphinxTransform

from normgrad.ledger.entries import MIME
from normgrad.prove.verdict import REFUTED

from .cells import MAGIC, of_page
from .derived import verdicts
from .execution import executed_notebook

JUDGE = ("prove", "derive", "refute")
LABEL = re.compile(r"\\(?:tag|label)\s*\{([^{}]*)\}")
SHOWN = ("text/latex", "text/markdown", "text/html")


def cell_problems(cell) -> list[str]:
    """What is wrong with the outputs of a code cell of an executed notebook."""
    typed = texts("".join(cell["source"]))
    problems = verdict_problems(cell)
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        shown = "\n".join("".join(data.get(kind, "")) for kind in SHOWN)
        for label in sorted(set(LABEL.findall(shown))):
            problems.append(
                f"an output has the label {label}, which no derivation gave it"
            )
        for entry in data.get(MIME, ()):
            if entry["label"] not in typed:
                problems.append(
                    f"the entry {entry['label']} is shown by a cell that does not name it"
                )
    return problems


def verdict_problems(cell) -> list[str]:
    """A label without exactly one verdict and a claim, a false verdict, and one that no reader sees."""
    stated, options = verdicts(cell), cell["metadata"]
    label, problems = options.get("label", ""), []
    if label and len(stated) != 1:
        problems.append(f"the cell {label} has {len(stated)} verdicts, and needs one")
    if label and any(verdict["kind"] == REFUTED for verdict in stated):
        problems.append(f"the cell {label} refutes what it labels")
    if label and not options.get("claim"):
        problems.append(f"the cell {label} has no claim")
    if "your-turn" in options.get("tags", ()):
        return problems
    problems += [
        f"a verdict is false{f' in the cell {label}' if label else ''}: {' '.join(verdict['words'])}"
        for verdict in stated
        if not verdict["true"]
    ]
    return problems


def unseen(cell) -> list[str]:
    """The calls of a cell's lines whose verdict is neither shown, nor asserted, nor named in the last line."""
    *lines, last = ast.parse(MAGIC.sub(r"\1pass", "".join(cell["source"]))).body
    shown = {node.id for node in ast.walk(last) if isinstance(node, ast.Name)}
    lost = []
    for line in lines:
        call = getattr(line, "value", None)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in JUDGE:
            targets = {ast.unparse(target) for target in getattr(line, "targets", ())}
            lost += [] if targets & shown else [ast.unparse(call)]
    return lost


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
        cells = executed_notebook(self.env, docname)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        for cell in code:
            messages = cell_problems(cell)
            if "your-turn" not in cell["metadata"].get("tags", ()):
                messages += [f"a verdict is not shown: {call}" for call in unseen(cell)]
            for message in messages:
                self.env.get_domain("ledger").note_problem(docname, 0, message)


def check_options(app, env, docnames):
    """Refuse options of cells that are no YAML, in the words of `make equations`, before any page is executed."""
    for docname in env.found_docs:
        of_page(env.doc2path(docname))


def setup(app):
    app.connect("env-before-read-docs", check_options, priority=1)
    app.add_transform(Guard)
