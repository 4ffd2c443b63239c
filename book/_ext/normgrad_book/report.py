"""The execution report: what each chapter took, on which versions, and what a GPU run found."""

from __future__ import annotations

import json
import platform
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.util.docutils import SphinxDirective

from .execution import LIBRARIES, version
from .ledger_page import cell, link, reading_order, table

GPU_RESULTS = "src/normgrad/bench/results/gpu_tests.json"
TOOLS = ("jupyter-book", "sphinx", "myst-nb")


class ExecutionTimes(nodes.General, nodes.Element):
    """Stands for the table of times until all chapters are read."""


class ExecutionReport(SphinxDirective):
    """``{execution-times}``: the chapters and how long their cells took when they were last executed."""

    def run(self):
        self.env.note_reread()
        return [ExecutionTimes()]


class Versions(SphinxDirective):
    """``{versions}``: Python and the packages that the outputs depend on. No date, so that builds compare equal."""

    def run(self):
        shown = [("Python", platform.python_version())] + [(name, version(name)) for name in (*LIBRARIES, *TOOLS)]
        rows = [nodes.row("", cell(nodes.Text(name)), cell(nodes.Text(number))) for name, number in shown]
        return [table(("Package", "Version"), rows)]


class GpuRun(SphinxDirective):
    """``{gpu-run}``: the recorded run of the GPU tests, or a plain statement that there is none."""

    def run(self):
        path = Path(self.env.srcdir) / GPU_RESULTS
        self.env.note_dependency(str(path))
        if not path.is_file():
            return [nodes.paragraph("", "No GPU run has been recorded.")]
        recorded = json.loads(path.read_text(encoding="utf8"))
        rows = [
            nodes.row("", cell(nodes.Text(key.replace("_", " "))), cell(nodes.Text(str(value))))
            for key, value in recorded.items()
            if not isinstance(value, (dict, list))
        ]
        return [table(("", ""), rows)]


def fill_times(app, doctree, docname):
    for node in list(doctree.findall(ExecutionTimes)):
        data = NbMetadataCollector.get_doc_data(app.env)
        rows, total = [], 0.0
        for each in reading_order(app.env):
            executed = data.get(each, {}).get("exec_data")
            if executed and executed["runtime"] is not None:
                total += executed["runtime"]
                uri = app.builder.get_relative_uri(docname, each)
                time = nodes.Text(f"{executed['runtime']:.1f}")
                rows.append(nodes.row("", cell(link(app.env.titles[each].astext(), uri)), cell(time)))
        rows.append(nodes.row("", cell(nodes.strong("", "All")), cell(nodes.strong("", f"{total:.1f}"))))
        node.replace_self(table(("Chapter", "Seconds"), rows))


def setup(app):
    app.add_node(ExecutionTimes)
    app.add_directive("execution-times", ExecutionReport)
    app.add_directive("versions", Versions)
    app.add_directive("gpu-run", GpuRun)
    app.connect("doctree-resolved", fill_times)
