"""Equations that cells derive: a cell has a label and a claim among its options, and its only verdict gets them.

The output itself is what Jupyter shows a reader, so that page, notebook and a cell that is run again look alike.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms import SphinxTransform

from normgrad.prove.verdict import REFUTED, STATEMENT
from normgrad.symbolic.registry import entries

from .execution import executed_notebook
from .ledger_page import equation_id, inline, number


def verdicts(cell) -> list[dict]:
    """What the outputs of a cell state."""
    data = [output.get("data", {}) for output in cell.get("outputs", ())]
    return [part[STATEMENT] for part in data if STATEMENT in part]


def labelled(notebook) -> dict[str, tuple[str, dict]]:
    """{label: (claim, verdict)} of the cells whose options have a label."""
    return {
        cell["metadata"]["label"]: (cell["metadata"].get("claim", ""), verdict)
        for cell in notebook["cells"]
        if "label" in cell["metadata"]
        for verdict in verdicts(cell)
        if verdict["kind"] != REFUTED  # the page is refused
    }


def strong(words) -> list[nodes.Node]:
    """A line of Markdown as nodes: **bold**, `code` and $math$ are marked."""
    line = []
    for place, part in enumerate(words.split("**")):
        marked = inline(part)
        line += [nodes.strong("", "", *marked)] if place % 2 else marked
    return line


class Derived(SphinxTransform):
    """Gives the displays of derivations their labels, before Sphinx collects the labels of the page."""

    default_priority = 500

    def apply(self, **kwargs):
        if "kernelspec" not in self.env.metadata[self.env.docname]:
            return
        notebook = executed_notebook(self.env, self.env.docname)
        for container in self.document.findall(nodes.container):
            if container.get("nb_element") != "cell_code":
                continue
            cell = notebook["cells"][container["cell_index"]]
            blocks = list(container.findall(nodes.math_block))
            for verdict in verdicts(cell):
                node = next(block for block in blocks if not block.get("judged"))
                node["judged"] = True
                label = cell["metadata"].get("label")
                if label and verdict["kind"] != REFUTED:
                    self.number(node, label)
                    node["claim"] = cell["metadata"].get("claim", "")
                    node["kind"] = verdict["kind"]
                    node["known"] = "".join(verdict["words"]).strip("*")
                    self.compare(label, node["claim"], verdict)
                    continue
                place = node.parent.index(node) + 1
                for words in reversed(verdict["words"]):
                    line = nodes.paragraph("", "", *strong(words), classes=["verdict"])
                    node.parent.insert(place, line)

    def compare(self, label, claim, verdict):
        """Note what equations.json has instead of a cell's equation."""
        entry = entries().get(label, {})
        stated = {"claim": claim, "kind": verdict["kind"], "latex": verdict.get("ends")}
        differing = [key for key in stated if stated[key] != entry.get(key)]
        if differing:
            message = (
                f"the cell derives another equation {label} than equations.json has, run `make equations`:"
                f" {', '.join(differing)}"
            )
            self.env.get_domain("ledger").note_problem(self.env.docname, 0, message)

    def number(self, node, label):
        domain = self.env.get_domain("math")
        domain.note_equation(self.env.docname, label, location=node)
        node["label"], node["number"], node["nowrap"] = (
            label,
            domain.get_equation_number_for(label),
            False,
        )
        if entry := entries().get(label):
            node["claim"], node["kind"] = entry["claim"], entry["kind"]
        node["ids"].append(equation_id(label))
        self.document.note_explicit_target(node, node)


def number_of(env):
    """A function from labels to the numbers of the book."""
    known = env.get_domain("ledger").equations()
    return lambda label: number(env, known[label]) if label in known else ""


def prefer_latex(app, config):
    """A page shows the formula itself; the words below it are the page's own badge."""
    config.nb_mime_priority_overrides = [
        *config.nb_mime_priority_overrides,
        ("html", "text/latex", 75),
    ]


def setup(app):
    app.connect("config-inited", prefer_latex)
    app.add_transform(Derived)
