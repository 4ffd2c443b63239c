"""The ledger: every numbered equation has an entry made by an executed check, and every entry an equation.

Entries travel in the outputs of executed cells, so they survive the execution cache. They are collected as each page
is read, compared with the equations of all pages before any is written, and what is wrong fails the build at its end.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.domains import Domain
from sphinx.errors import ExtensionError

from normgrad.ledger.entries import MIME, Entry
from normgrad.ledger.formulas import formulas
from normgrad.symbolic.registry import entries

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
    """What each page contributes, kept by Sphinx from build to build; a domain is purged and merged per page."""

    name = "ledger"
    label = "Ledger"
    data_version = 3
    initial_data = {"equations": {}, "entries": {}, "problems": {}, "page": ""}

    @property
    def page(self) -> str:
        """The page that shows the ledger, or nothing."""
        return self.data["page"]

    def clear_doc(self, docname):
        for part in ("equations", "entries", "problems"):
            self.data[part].pop(docname, None)
        if self.page == docname:
            self.data["page"] = ""

    def merge_domaindata(self, docnames, otherdata):
        for part in ("equations", "entries", "problems"):
            self.data[part].update(
                {
                    name: otherdata[part][name]
                    for name in docnames
                    if name in otherdata[part]
                }
            )
        self.data["page"] = self.page or otherdata["page"]

    def note_problem(self, docname, line, message):
        self.data["problems"].setdefault(docname, []).append((line, message))

    def process_doc(self, env, docname, document):
        """Collect the page's numbered equations and the entries that its executed cells made."""
        equations = []
        for node in document.findall(nodes.math_block):
            if not node.get("label"):
                continue
            if (
                "amsmath" in node["classes"]
            ):  # numbered by LaTeX's environment, under a random label
                self.note_problem(
                    docname, node.line, "a numbered equation has no label"
                )
                continue
            latex = " ".join(node.astext().split())
            claim, kind = node.get("claim", ""), node.get("kind", "")
            equations.append(
                Numbered(node["label"], docname, node.line or 0, claim, latex, kind)
            )
        self.data["equations"][docname] = equations
        if "kernelspec" in env.metadata[docname]:
            self.data["entries"][docname] = entries_of(executed_notebook(env, docname))

    def equations(self) -> dict[str, Numbered]:
        """All numbered equations by label; Sphinx itself warns of a label that is used twice."""
        pages = self.data["equations"]
        return {
            equation.label: equation
            for docname in sorted(pages)
            for equation in pages[docname]
        }

    def entries(self) -> dict[str, list[dict]]:
        """The entries of each label, in the order of the cells, each with its chapter; the first is the main one."""
        by_label = {}
        for docname in sorted(self.data["entries"]):
            for entry in self.data["entries"][docname]:
                by_label.setdefault(entry["label"], []).append(
                    {**entry, "docname": docname}
                )
        return by_label


def entries_of(notebook) -> list[dict]:
    """The entries in a notebook's outputs, those of hidden and removed outputs included."""
    outputs = [
        output for cell in notebook["cells"] for output in cell.get("outputs", ())
    ]
    entries = [
        entry for output in outputs for entry in output.get("data", {}).get(MIME, ())
    ]
    for label, (claim, verdict) in labelled(notebook).items():
        seconds = verdict["seconds"]
        entries.append(asdict(Entry(label, verdict["kind"], claim, seconds=seconds)))
    return entries


def compare(equations, entries) -> list[tuple[str, int, str]]:
    """(page, line, message) for each equation and entry that do not match."""
    problems = []
    for label, equation in equations.items():
        where = (equation.docname, equation.line)
        if label not in entries:
            problems.append((*where, f"the equation {label} has no ledger entry"))
            continue
        kinds = {entry["kind"] for entry in entries[label]}
        if "definition" in kinds and len(kinds) > 1:
            problems.append(
                (
                    *where,
                    f"the equation {label} has conflicting entries: {', '.join(sorted(kinds))}",
                )
            )
        if equation.kind and equation.kind not in kinds:
            problems.append(
                (
                    *where,
                    f"the equation {label} has no entry of its kind, {equation.kind}",
                )
            )
        if not equation.claim and any(kind.startswith("proved") for kind in kinds):
            problems.append(
                (
                    *where,
                    f"the equation {label} claims a proof but is typed by hand: use {{equation}}",
                )
            )
        elif not equation.claim and label in registered():
            message = f"the equation {label} is one of the package but is typed by hand: use {{equation}}"
            problems.append((*where, message))
        problems += [
            (*where, message) for message in compare_shown(equation, entries[label])
        ]
    for label, own_entries in entries.items():
        for entry in own_entries:
            if label not in equations:
                problems.append(
                    (
                        entry["docname"],
                        0,
                        f"the ledger entry {label} ({entry['kind']}) has no equation",
                    )
                )
            elif entry["docname"] != equations[label].docname:
                home = equations[label].docname
                message = (
                    f"the ledger entry {label} belongs in {home}, beside its equation"
                )
                problems.append((entry["docname"], 0, message))
    return problems + compare_reasons(equations, entries)


@cache
def registered() -> frozenset[str]:
    """The labels of all equations and formulas of the package."""
    return frozenset(entries()) | frozenset(formulas())


def compare_shown(equation, own_entries) -> list[str]:
    """What is wrong where an entry speaks of the formula itself: a number of another one, a definition that claims."""
    problems = []
    for entry in own_entries:
        if entry["kind"] == "numeric" and equation.kind in ("", "numeric"):
            if " ".join(entry.get("formula", "").split()) != equation.latex:
                problems.append(
                    f"the equation {equation.label} is not the formula that the numbers were put into"
                )
        typed = entry["kind"] == "definition" and equation.latex and not equation.claim
        if typed and (why := not_a_definition(equation.latex, entry)):
            problems.append(
                f"the equation {equation.label} claims something and is no definition: {why}"
            )
    return problems


def not_a_definition(latex, entry) -> str:
    """Why a display that was typed is no definition; nothing when it is one."""
    if symbol := entry.get("defines"):
        return "" if symbol in latex else f"{symbol} is not in it"
    left = SYMBOL.match(re.sub(r"\\begin\{aligned\}|&", "", latex).strip())
    if not left:
        return "its left side is no symbol that would get its meaning there"
    right = latex.split("=", 1)[1] if "=" in latex else ""
    again = re.search(rf"(?<![A-Za-z\\]){re.escape(left['name'])}(?![A-Za-z])", right)
    return f"{left['name']} stands on both sides" if again else ""


def compare_reasons(equations, entries) -> list[tuple[str, int, str]]:
    """(page, line, message) for each equation that follows from one that is not there, or in a circle from itself."""
    problems = []
    reasons = {label: sources(own_entries) for label, own_entries in entries.items()}
    for label, own_entries in entries.items():
        where = (
            own_entries[0]["docname"],
            equations[label].line if label in equations else 0,
        )
        missing = [
            source for source in reasons[label] if source not in equations and not PAGE
        ]
        problems += [
            (*where, f"the equation {label} follows from {one}, which is no equation")
            for one in missing
        ]
        reached, waiting = set(), list(reasons[label])
        while waiting:
            source = waiting.pop()
            if source not in reached:
                reached.add(source)
                waiting += reasons.get(source, ())
        if label in reached:
            circle = ", ".join(sorted(reached))
            problems.append(
                (
                    *where,
                    f"the equation {label} follows from itself, by way of {circle}",
                )
            )
    return problems


def sources(own_entries) -> list[str]:
    """The labels that an equation follows from, by all its entries."""
    return [
        source for entry in own_entries for source in entry.get("follows_from") or ()
    ]


def compare_typed(equations, typed) -> list[tuple[str, int, str]]:
    """(page, line, message) for each formula typed by hand that differs from its second writing, {label: LaTeX}."""
    problems = []
    by_hand = {
        label: equation for label, equation in equations.items() if not equation.claim
    }
    for label, equation in by_hand.items():
        if equation.latex != " ".join(typed.get(label, "").split()):
            message = f"the equation {label}, typed by hand, is not the one in {TYPED}: {equation.latex}"
            problems.append((equation.docname, equation.line, message))
    for label in typed:
        if label not in by_hand:
            problems.append(
                (
                    TYPED.removesuffix(".json"),
                    0,
                    f"{label} is not an equation typed by hand",
                )
            )
    return problems


def problems(domain) -> list[str]:
    """Everything that is wrong with the ledger, one line each, naming the page and the label."""
    lines = [
        (docname, *problem)
        for docname, of_page in domain.data["problems"].items()
        for problem in of_page
    ]
    equations, typed = domain.equations(), Path(domain.env.srcdir) / TYPED
    lines += compare(equations, domain.entries())
    if typed.exists():
        lines += compare_typed(equations, json.loads(typed.read_text(encoding="utf8")))
    lines = [one for one in lines if not PAGE or one[0] == f"book/{PAGE}"]
    return [
        f"{docname}.md" + (f":{line}" if line else "") + f": {message}"
        for docname, line, message in sorted(lines)
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
