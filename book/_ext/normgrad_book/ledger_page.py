"""What readers see of the ledger: a badge beside each numbered equation, the page, and ledger.json."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from normgrad.ledger.entries import slack_in_words

KINDS = {
    "proved-for-every-n": "proved for every N",
    "proved-for-small-n": "proved for small N",
    "follows-from": "follows from",
    "numeric": "checked numerically",
    "cited": "cited",
    "definition": "definition",
}
JSON = "ledger.json"
FIELDS = ("kind", "claim", "error", "tolerance", "seconds", "follows_from", "because")
HEADINGS = ("Number", "Equation", "Evidence")


class LedgerNode(nodes.General, nodes.Element):
    """Stands for the ledger until all pages are read."""


class Ledger(SphinxDirective):
    """``{ledger}``: all equations of the book, by chapter."""

    def run(self):
        self.env.get_domain("ledger").data["page"] = self.env.docname
        return [LedgerNode()]


def anchor(label) -> str:
    return nodes.make_id(f"ledger-{label}")


def equation_id(label) -> str:
    return nodes.make_id(f"equation-{label}")


def number(env, equation) -> str:
    """The equation's number, as the page shows it."""
    figures = env.toc_fignumbers.get(equation.docname, {}).get("displaymath", {})
    return ".".join(map(str, figures.get(equation_id(equation.label), ())))


def evidence(env, entry) -> str:
    """How the equation is known, in words: the kind, and for one that follows from others their numbers and why."""
    sources = entry.get("follows_from")
    if not sources:
        return KINDS[entry["kind"]]
    equations = env.get_domain("ledger").equations()
    numbers = ", ".join(
        f"({number(env, equations[label])})" for label in sources if label in equations
    )
    return f"{KINDS[entry['kind']]} {numbers}: {entry['because']}"


def link(text, uri, **attributes):
    return nodes.reference("", text, internal=True, refuri=uri, **attributes)


def inline(text) -> list[nodes.Node]:
    """A claim as nodes: `code` and $math$ are marked, the rest is text."""
    marks = {"`": nodes.literal, "$": nodes.math}
    parts = re.split(r"(`[^`]+`|\$[^$]+\$)", text)
    line = [nodes.Text(part) for part in parts]
    line[1::2] = [marks[part[0]]("", part[1:-1]) for part in parts[1::2]]
    return line


# -- badges -------------------------------------------------------------------------


def add_badges(app, doctree, docname):
    """Below each numbered equation, a link to its row of the ledger; below one that is quoted, to the equation."""
    env, uri = app.env, app.builder.get_relative_uri
    domain = env.get_domain("ledger")
    entries, equations = domain.entries(), domain.equations()
    if app.builder.format != "html" or not domain.page:
        return
    for node in list(doctree.findall(nodes.math_block)):
        label = node.get("label") or node.get("shows")
        if label not in entries:
            continue
        entry, equation = entries[label][0], equations[label]
        classes = ["ledger-badge"]
        if node.get("label"):
            row = f"{uri(docname, domain.page)}#{anchor(label)}"
            kind = f"ledger-{entry['kind']}"
            badge = link("", row, classes=[kind], reftitle=entry["claim"])
            # the same words as in the notebook: for which sizes, where, and the label
            badge += inline(node.get("known") or evidence(env, entry))
        elif equation.docname != docname:
            home = f"{uri(docname, equation.docname)}#{equation_id(label)}"
            badge = link(f"({number(env, equation)})", home)
            classes.append("ledger-quoted")
        else:
            continue
        words = [nodes.Text(" · "), nodes.literal("", label), nodes.Text(" ")]
        line = nodes.paragraph("", "", badge, *words, classes=classes)
        line += button(env, equation)
        node.parent.insert(node.parent.index(node) + 1, line)


def button(env, equation) -> nodes.Node:
    """The control below an equation, which equations.js brings to life."""
    says = f"Copy or prove equation {number(env, equation)}"
    text = (
        f'<button type="button" class="equation-menu pst-js-only" aria-expanded="false" aria-label="{says}"'
        f' title="{says}" data-label="{equation.label}" data-page="{equation.docname}">&#x22EF;</button>'
    )
    return nodes.raw("", text, format="html")


# -- the page -----------------------------------------------------------------------


def cell(*children):
    return nodes.entry("", nodes.paragraph("", "", *children))


def measured(entry) -> list[str]:
    """The error beside its tolerance, and how long the proof or the check took, where the entry has them."""
    error, tolerance, seconds = (
        entry[key] for key in ("error", "tolerance", "seconds")
    )
    parts = (
        [] if error is None else [f"error {error:.1e}", f"tolerance {tolerance:.1e}"]
    )
    parts += [] if entry.get("slack") is None else [slack_in_words(entry["slack"])]
    return parts + ([] if seconds is None else [f"{seconds:.2g}\N{NO-BREAK SPACE}s"])


def rows(env, equation, own_entries, uri):
    """The equation's row, and one more for each further entry."""
    number_link = link(
        f"({number(env, equation)})", f"{uri}#{equation_id(equation.label)}"
    )
    head = cell(number_link, nodes.Text(" "), nodes.literal("", equation.label))
    for entry in own_entries:
        classes = [f"ledger-{entry['kind']}"]
        kind = nodes.inline("", "", *inline(evidence(env, entry)), classes=classes)
        measures = nodes.Text(", ".join(["", *measured(entry)]))
        claimed = cell(*inline(entry["claim"]))
        row = nodes.row("", head, claimed, cell(kind, measures))
        if entry is own_entries[0]:
            claimed += formula(equation)
            row["ids"].append(anchor(equation.label))
        yield row
        head = cell()


def formula(equation) -> nodes.Node:
    """The equation itself, without its number, which stands in front of it."""
    latex = equation.latex
    return nodes.math_block(latex, latex, nowrap=False, number=None, label=None)


def table(headings, body, *classes):
    """A table of rows in a wrapper of our own, which scrolls where the screen is too narrow."""
    widths = [nodes.colspec(colwidth=1) for _ in headings]
    head = nodes.thead(
        "", nodes.row("", *(cell(nodes.Text(text)) for text in headings))
    )
    group = nodes.tgroup("", *widths, head, nodes.tbody("", *body), cols=len(headings))
    return nodes.container("", nodes.table("", group), classes=["wide-table", *classes])


def reading_order(env) -> list[str]:
    """All pages, in the order of the table of contents."""
    return list(env.collect_relations())


def chapters(env) -> dict[str, list]:
    """{page: its equations that have an entry} of each page with some, in the order of the table of contents."""
    domain = env.get_domain("ledger")
    entries, pages = domain.entries(), {}
    for docname in reading_order(env):
        for equation in domain.data["equations"].get(docname, {}).values():
            if equation.label in entries:
                pages.setdefault(docname, []).append(equation)
    return pages


def summary(entries, uri):
    """How many equations there are of each kind, by their main entry."""
    counts = Counter(own_entries[0]["kind"] for own_entries in entries)
    items = [
        nodes.list_item("", nodes.paragraph("", f"{shown}: {counts[kind]}"))
        for kind, shown in KINDS.items()
        if counts[kind]
    ]
    total = f"{len(entries)} numbered equations, also as a file for programs, "
    lead = nodes.paragraph("", total, link("ledger.json", uri), nodes.Text(":"))
    return [lead, nodes.bullet_list("", *items)]


def options(whole, names) -> str:
    every = [("", whole), *names]
    return "".join(
        f'<option value="{escape(value)}">{escape(shown)}</option>'
        for value, shown in every
    )


def controls(kinds, chapters) -> nodes.Node:
    """What shows some of the rows, by their kind, chapter and words; ledger.js brings it to life."""
    text = (
        '<form class="ledger-filter pst-js-only" role="search" aria-label="Equations of the ledger">'
        f'<label>Kind <select name="kind">{options("all kinds", kinds)}</select></label>'
        f'<label>Chapter <select name="chapter">{options("all chapters", chapters)}</select></label>'
        '<label>Words <input name="words" type="search" autocomplete="off"></label>'
        '<button type="reset">Show all</button> <output name="shown"></output></form>'
    )
    return nodes.raw("", text, format="html")


def heading(app, docname) -> str:
    """The number and the title of a chapter."""
    section = app.env.toc_secnumbers.get(docname, {}).get("", ())
    return ". ".join(
        filter(None, [".".join(map(str, section)), app.env.titles[docname].astext()])
    )


def fill_ledger(app, doctree, docname):
    """Replace the page's placeholder, now that every page is read."""
    env, entries = app.env, app.env.get_domain("ledger").entries()
    for node in list(doctree.findall(LedgerNode)):
        pages, headings, tables = chapters(env), [], []
        numbered = [
            entries[equation.label] for page in pages.values() for equation in page
        ]
        for page, equations in pages.items():
            uri = app.builder.get_relative_uri(docname, page)
            headings.append((page, heading(app, page)))
            body = []
            for equation in equations:
                body += rows(env, equation, entries[equation.label], uri)
            rubric = nodes.rubric("", "", link(heading(app, page), uri))
            tables += [rubric, table(HEADINGS, body, "with-equations")]
        kinds = {entry["kind"] for own_entries in numbered for entry in own_entries}
        shown = [item for item in KINDS.items() if item[0] in kinds]
        file = relative_uri(app.builder.get_target_uri(docname), JSON)
        top = [*summary(numbered, file), controls(shown, headings)]
        node.replace_self([*top, *tables])


def load(app, pagename, templatename, context, doctree):
    """The ledger, and no other page, loads the script of its controls."""
    if pagename == app.env.get_domain("ledger").page:
        app.add_js_file("ledger.js", loading_method="defer")


def listing(app) -> list[dict]:
    """The main entry of each equation, in the order of the table of contents, and where the equation is."""
    entries, records = app.env.get_domain("ledger").entries(), []
    for docname, equations in chapters(app.env).items():
        page = app.builder.get_target_uri(docname)
        for equation in equations:
            label, main = equation.label, entries[equation.label][0]
            record = {"label": label, "number": number(app.env, equation)}
            record |= {"chapter": docname} | {key: main.get(key) for key in FIELDS}
            records.append(record | {"url": f"{page}#{equation_id(label)}"})
    return records


def write_json(app, error):
    """ledger.json: the main entry of each equation, for programs."""
    if error or app.builder.name != "html":
        return
    text = json.dumps(listing(app), indent=1, ensure_ascii=False) + "\n"
    (Path(app.outdir) / JSON).write_text(text, encoding="utf8")


def setup(app):
    app.add_node(LedgerNode)
    app.add_directive("ledger", Ledger)
    app.connect("doctree-resolved", fill_ledger)
    app.connect("doctree-resolved", add_badges)
    app.connect("html-page-context", load)
    app.connect("build-finished", write_json)
