r"""What a page may not do: show a formula under a badge, a number or a label that no check of the package gave it.

Numbers and badges are for outputs of `derive`, `define` and `ledger`. A label typed into another output, a bundle that
was put together by hand, an output that was changed after it was made, a piece of HTML that looks like an equation:
each fails the build. None of this keeps out who rewrites the package; it keeps out what happens by haste or by habit.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from docutils import nodes
from sphinx.transforms import SphinxTransform

from normgrad.entries import MIME, sealed
from normgrad.symbolic import equations
from normgrad.symbolic.derive import STATEMENT

from .execution import executed_notebook

TAG = re.compile(r"\\(?:tag|label)\s*\{([^{}]*)\}")
# What makes HTML look like an equation or a badge of the book.
LOOKS = re.compile(
    r"""\\tag|\\\[|\$\$|\\begin\{|<math\b|class=["'][^"'<>]*ledger-|id=["']?equation-|math notranslate"""
)
BY_HAND = re.compile(
    r"application/vnd\.normgrad|\b(?:MIME|STATEMENT)\b|_repr_mimebundle_|publish_display_data|\braw\s*=\s*True"
    r"|\b(?:Entry|Entries|Derivation|Scratch)\s*\("
)
# Assigning to what prints or proves, from within a page.
PATCHED = re.compile(r"^\s*(?:\w+\.)+(?:latex|prove|measure|known|side_conditions|sealed)\s*=(?!=)", re.M)
SHOWN = ("text/latex", "text/markdown", "text/html")


def text_of(data, kind) -> str:
    """One form of an output, as one text."""
    return "".join(data.get(kind, ""))


def cell_problems(cell) -> list[str]:
    """What is wrong with a code cell of an executed notebook, and with its outputs."""
    source = "".join(cell["source"])
    found = []
    for pattern, what in ((BY_HAND, "makes an output by hand"), (PATCHED, "changes how formulas are shown")):
        found += [f"a cell {what}: {match[0].strip()}" for match in [pattern.search(source)] if match]
    words = _strings(source)
    found += [f"a cell types a label: {text.strip()[:60]}" for text in words if TAG.search(text)]
    for output in cell.get("outputs", ()):
        found += output_problems(output.get("data", {}), words)
    return found


def _strings(source) -> list[str]:
    """The texts in a cell's code; where it is no Python, as with a magic, the whole."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [source]
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def output_problems(data, words) -> list[str]:
    """What is wrong with one output. Args: data: its forms by MIME type; words: the texts in the code of its cell"""
    found = []
    entries, made = data.get(MIME, ()), data.get(STATEMENT, {})
    for entry in entries:
        if not sealed(entry):
            found.append(f"the entry {entry.get('label')} was made by hand or changed: its seal is not its own")
        if entry.get("label") not in words:
            found.append(f"the entry {entry.get('label')} is made by a cell that does not name it")
    if made and not (sealed(made) and made.get("shown") == text_of(data, "text/latex")):
        found.append(f"the derivation {made.get('label')} was made by hand or changed: its seal is not its own")
    for label in sorted({label for kind in SHOWN for label in TAG.findall(text_of(data, kind))} - {made.get("label")}):
        found.append(f"an output has the label {label}, which no derivation gave it")
    if made:
        found += statement_problems(made["label"], text_of(data, "text/latex"))
    if LOOKS.search(text_of(data, "text/html")):
        found.append("an output has HTML that looks like an equation or a badge of the book")
    return found


def statement_problems(label, shown) -> list[str]:
    """Whether a derivation shows the ends of the statement that the package has under its label."""
    statement = equations().get(label)
    if statement is None:
        return []  # that it is no statement is said elsewhere
    text = plain(shown)
    place = 0
    for chain in statement.ends().chains:
        one = plain(type(statement).latex(_alone(statement, chain)))
        first, last = one.split("=", 1) if "=" in one else (one, "")
        for part in (f"{first}=", f"={last}"):
            found = text.find(part, place)
            if found < 0:
                return [f"what is shown as {label} is not its statement: {part} is not there"]
            place = found + len(part) - (1 if part.endswith("=") else 0)
    return [] if text.endswith(f"={last}") else [f"what is shown as {label} does not end as its statement does"]


def _alone(statement, chain):
    return replace(statement, chains=(chain,), whys=(), wide=False)


def plain(text) -> str:
    r"""A display without its layout, reasons and label, every bound letter as #."""
    text = _without_reasons(TAG.sub("", text.replace("$$", "")))
    text = re.sub(r"\\begin\{aligned\}|\\end\{aligned\}|\\\\(?:\[\w+\])?|\\q?quad|\\,|\\cdot|[&\s]", "", text)
    letters = set(re.findall(r"\\sum_\{([^{}=]+(?:_\{\d+\})?)=1\}", text))
    text = re.sub(r"\\sum_\{([^{}=]+(?:_\{\d+\})?)=1\}", r"\\sum_{#:1}", text)

    def subscript(found):
        return "_{" + "".join("#" if sign in letters else sign for sign in found[1]) + "}"

    return re.sub(r"_\{([^{}\\]*)\}", subscript, text)


def _without_reasons(text):
    """A display without the words in small type behind its lines."""
    while (start := text.find(r"{\small")) >= 0:
        end, depth = start, 0
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        text = text[:start] + text[end:]
    return text


class Guard(SphinxTransform):
    """Looks at a page's cells, outputs and raw HTML before the page's labels are collected."""

    default_priority = 490

    def apply(self, **kwargs):
        docname = self.env.docname
        domain = self.env.get_domain("ledger")
        if "kernelspec" in self.env.metadata[docname]:
            for cell in executed_notebook(self.env, docname)["cells"]:
                for message in cell_problems(cell) if cell["cell_type"] == "code" else ():
                    domain.note_problem(docname, 0, message)
        for node in self.document.findall(nodes.raw):
            if "html" in node.get("format", "") and LOOKS.search(node.astext()):
                domain.note_problem(docname, node.line or 0, "raw HTML that looks like an equation or a badge")


def setup(app):
    app.add_transform(Guard)
