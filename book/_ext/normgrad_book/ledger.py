"""The ledger: every numbered equation has an entry made by an executed check, and every entry an equation.

Entries travel in the outputs of executed cells, so they survive the execution cache. They are collected as each page
is read, compared with the equations of all pages before any is written, and what is wrong fails the build at its end.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from docutils import nodes
from sphinx.domains import Domain
from sphinx.errors import ExtensionError

from normgrad.ledger.entries import MIME, Entry
from normgrad.ledger.formulas import formulas
from normgrad.symbolic.registry import entries as registry_entries

from .alone import PAGE
from .derived import labelled
from .execution import executed_notebook

# Formulas typed by hand cannot be proved, so a slip of the keyboard would go unseen. Each is written here once more.
TYPED = "book/typed_formulas.json"
# The left side of a definition: one symbol, with indices or with what it is a function of.
SYMBOL = re.compile(
    r"(?P<name>\\(?:mathrm|hat|dot|tilde|operatorname)\{[^{}]*\}|\\[A-Za-z]+|[A-Za-z])'*"
    r"(?:_\{[^{}]*\}|_\w)?(?:\^\{\*\})?(?:\([^()]*\))?\s*="
)
UNCHECKED = "give it a label, show it by {equation}, or write '% quoted' above it"
RELATION = re.compile(r"=|\\(?:le|ge|approx|ne|propto)(?![A-Za-z])")


@dataclass(frozen=True)
class Numbered:
    """One numbered equation: where it stands and, when {equation} rendered it, the registry's claim and kind."""

    label: str
    docname: str
    line: int
    claim: str = ""
    latex: str = ""
    kind: str = ""


class LedgerDomain(Domain):
    """What each page contributes, kept by Sphinx from build to build; a domain is purged per page."""

    name = "ledger"
    label = "Ledger"
    data_version = 5
    initial_data = {"equations": {}, "entries": {}, "problems": {}, "page": ""}

    @property
    def page(self) -> str:
        """The page that shows the ledger, or nothing."""
        return self.data["page"]

    def clear_doc(self, docname):
        for part in ("equations", "entries", "problems"):
            self.data[part].pop(docname, None)

    def note_problem(self, docname, line, message):
        self.data["problems"].setdefault(docname, []).append((line, message))

    def process_doc(self, env, docname, document):
        """Collect the page's numbered equations and the entries that its executed cells made."""
        equations = self.data["equations"][docname] = {}
        for node in document.findall(nodes.math_block):
            label, latex = node.get("label"), " ".join(node.astext().split())
            if not label and is_unchecked(node):
                message = f"{latex}: nothing checks it: {UNCHECKED}"
                self.note_problem(docname, node.line, message)
            elif label and "amsmath" in node["classes"]:
                # numbered by LaTeX's environment, under a random label
                message = "a numbered equation has no label"
                self.note_problem(docname, node.line, message)
            elif label:
                claim, kind = node.get("claim", ""), node.get("kind", "")
                where = label, docname, node.line or 0
                equations[label] = Numbered(*where, claim, latex, kind)
        if "kernelspec" in env.metadata[docname]:
            self.data["entries"][docname] = entries_of(executed_notebook(env, docname))

    def equations(self) -> dict[str, Numbered]:
        """All numbered equations by label; Sphinx itself warns of a label that is used twice."""
        return dict(ChainMap(*self.data["equations"].values()))

    def entries(self) -> dict[str, list[dict]]:
        """The entries of each label, in the order of the cells, each with its chapter; the first is the main one."""
        by_label = {}
        for docname in sorted(self.data["entries"]):
            for entry in self.data["entries"][docname]:
                by_label.setdefault(entry["label"], []).append(
                    {**entry, "docname": docname}
                )
        return by_label


def is_unchecked(display) -> bool:
    """Whether a display without a label claims something, and is neither a cell's output nor {equation} nor quoted."""
    above = display.previous_sibling()
    if isinstance(above, nodes.comment) and above.astext() == "quoted":
        return False
    node = display
    while node := node.parent:
        if isinstance(node, nodes.block_quote) or node.get("nb_element"):
            return False
    without_indices = re.sub(r"_\{[^{}]*\}", "", display.astext())
    return "shows" not in display and bool(RELATION.search(without_indices))


def entries_of(notebook) -> list[dict]:
    """The entries in a notebook's outputs, those of hidden and removed outputs included."""
    entries = [
        entry
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        for entry in output.get("data", {}).get(MIME, ())
    ]
    for label, (claim, verdict) in labelled(notebook).items():
        seconds = verdict["seconds"]
        entries.append(asdict(Entry(label, verdict["kind"], claim, seconds=seconds)))
    return entries


def compare(equations, entries, typed=None) -> list[tuple[str, int, str]]:
    """(page, line, message) for each equation and entry that do not match.

    Args:  equations, entries: as LedgerDomain has them; typed: {label: LaTeX} of the formulas typed by hand, or None
    """
    problems = []
    for label, equation in equations.items():
        own_entries = entries.get(label, [])
        messages = [*against_entries(equation, own_entries)]
        if typed is not None and not equation.claim:
            messages += against_typed(equation, typed)
        problems += [
            (equation.docname, equation.line, f"the equation {label} {message}")
            for message in messages
        ]
    for label, own_entries in entries.items():
        for entry in own_entries:
            name, home = f"the ledger entry {label}", entry["docname"]
            if label not in equations:
                problems.append((home, 0, f"{name} ({entry['kind']}) has no equation"))
            elif home != equations[label].docname:
                message = (
                    f"{name} belongs in {equations[label].docname}, beside its equation"
                )
                problems.append((home, 0, message))
    return problems + compare_reasons(equations, entries)


def against_entries(equation, own_entries) -> Iterator[str]:
    """What is wrong between an equation and its entries."""
    kinds = {entry["kind"] for entry in own_entries}
    if not kinds:
        yield "has no ledger entry"
        return
    if "definition" in kinds and len(kinds) > 1:
        yield f"has conflicting entries: {', '.join(sorted(kinds))}"
    if equation.kind and equation.kind not in kinds:
        yield f"has no entry of its kind, {equation.kind}"
    if "numeric" in kinds and equation.kind in ("", "numeric"):
        checked = {
            " ".join(entry.get("formula", "").split())
            for entry in own_entries
            if entry["kind"] == "numeric"
        }
        if checked != {equation.latex}:
            yield "is not the formula that the numbers were put into"
    if equation.claim:
        return
    if any(kind.startswith("proved") for kind in kinds):
        yield "claims a proof but is typed by hand: use {equation}"
    elif equation.label in registry_entries() or equation.label in formulas():
        yield "is one of the package but is typed by hand: use {equation}"
    if "definition" in kinds and equation.latex:
        reason = not_a_definition(equation.latex)
        if reason:
            yield f"claims something and is no definition: {reason}"


def not_a_definition(latex) -> str:
    """Why a display that was typed is no definition; nothing when it is one."""
    left = SYMBOL.match(re.sub(r"\\begin\{aligned\}|&", "", latex).strip())
    if not left:
        return "its left side is no symbol that would get its meaning there"
    right = latex.partition("=")[2]
    again = re.search(rf"(?<![A-Za-z\\]){re.escape(left['name'])}(?![A-Za-z])", right)
    return f"{left['name']} stands on both sides" if again else ""


def against_typed(equation, typed) -> Iterator[str]:
    """Where a formula typed by hand differs from its second writing."""
    if equation.latex != " ".join(typed.get(equation.label, "").split()):
        yield f"typed by hand, is not the one in {TYPED}: {equation.latex}"


def compare_reasons(equations, entries) -> list[tuple[str, int, str]]:
    """(page, line, message) for each equation that follows from one that is not there, or in a circle from itself."""
    reasons = {
        label: [
            source
            for entry in own_entries
            for source in entry.get("follows_from") or ()
        ]
        for label, own_entries in entries.items()
    }
    wrong = [
        (label, f"follows from {source}, which is no equation")
        for label, sources in reasons.items()
        for source in sources
        if source not in equations and not PAGE
    ]
    try:
        TopologicalSorter(reasons).prepare()
    except CycleError as error:
        circle = error.args[1]
        wrong.append((circle[0], f"follows from itself, by way of {', '.join(circle)}"))
    return [
        (entries[label][0]["docname"], 0, f"the equation {label} {message}")
        for label, message in wrong
    ]


def problems(domain) -> list[str]:
    """Everything that is wrong with the ledger, one line each, naming the page and the label."""
    typed = Path(domain.env.srcdir) / TYPED
    writings = json.loads(typed.read_text(encoding="utf8")) if typed.exists() else None
    lines = compare(domain.equations(), domain.entries(), writings)
    for docname, messages in domain.data["problems"].items():
        lines += [(docname, *problem) for problem in messages]
    return [
        f"{docname}.md" + (f":{line}" if line else "") + f": {message}"
        for docname, line, message in sorted(lines)
        if not PAGE or docname == f"book/{PAGE}"
    ]


def refuse(app, error):
    """Fail the build, each time and not only when the page at fault is read again."""
    if error is None and (wrong := problems(app.env.get_domain("ledger"))):
        raise ExtensionError(
            "the equation ledger does not hold:\n  " + "\n  ".join(wrong)
        )


def configure(app, config):
    """myst-nb warns of each output with a MIME type that it cannot show; the text beside ours is what it shows."""
    config.suppress_warnings = [*config.suppress_warnings, "mystnb.unknown_mime_type"]


def setup(app):
    app.connect("config-inited", configure)
    app.add_domain(LedgerDomain)
    # Late, so that the pages are there to look at when the build fails.
    app.connect("build-finished", refuse, priority=900)
