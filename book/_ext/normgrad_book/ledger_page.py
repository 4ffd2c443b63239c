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


def claim(equation, entry) -> str:
    """What the entry claims; where it only repeats its kind, what the registry says of the equation."""
    return (
        equation.claim
        if equation.claim and entry["claim"] == entry["kind"]
        else entry["claim"]
    )


def known(env, entry) -> str:
    """How the equation is known, in words: the kind, and for one that follows from others their numbers and why."""
    named = entry.get("follows_from") or ()
    if not named:
        return KINDS[entry["kind"]]
    equations = env.get_domain("ledger").equations()
    numbers = ", ".join(
        f"({number(env, equations[label])})" for label in named if label in equations
    )
    return f"{KINDS[entry['kind']]} {numbers}: {entry['because']}"


def link(text, uri, **attributes):
    return nodes.reference("", text, internal=True, refuri=uri, **attributes)


def inline(text) -> list[nodes.Node]:
    """A claim as nodes: `code` and $math$ are marked, the rest is text."""
    parts = re.split(r"`([^`]+)`|\$([^$]+)\$", text)
    marked = []
    for plain, code, math in zip(
        parts[::3], [*parts[1::3], None], [*parts[2::3], None], strict=True
    ):
        marked += [nodes.Text(plain)] if plain else []
        marked += [nodes.literal("", code)] if code else []
        marked += [nodes.math("", math)] if math else []
    return marked


# -- badges -------------------------------------------------------------------------


def add_badges(app, doctree, docname):
    """Below each numbered equation, a link to its row of the ledger; below one that is quoted, to the equation."""
    domain = app.env.get_domain("ledger")
    entries, equations = domain.entries(), domain.equations()
    if app.builder.format != "html" or not domain.page:
        return
    for node in list(doctree.findall(nodes.math_block)):
        label = node.get("label") or node.get("shows")
        if label not in entries:
            continue
        equation = equations[label]
        classes = ["ledger-badge"]
        if node.get("label"):
            badge = _kind(app, docname, node, entries[label][0])
        elif equation.docname != docname:
            badge = _where_it_is(app, docname, equation)
            classes.append("ledger-quoted")
        else:
            continue
        parts = (
            badge,
            nodes.Text(" · "),
            nodes.literal("", label),
            nodes.Text(" "),
            button(app.env, equation),
        )
        line = nodes.paragraph("", "", *parts, classes=classes)
        node.parent.insert(node.parent.index(node) + 1, line)


def _kind(app, docname, node, entry):
    """What the ledger says of an equation, with a link to its row."""
    page = app.builder.get_relative_uri(docname, app.env.get_domain("ledger").page)
    uri = f"{page}#{anchor(entry['label'])}"
    badge = link("", uri, classes=[f"ledger-{entry['kind']}"], reftitle=entry["claim"])
    # the same words as in the notebook: for which sizes, where, and the label
    badge += inline(node.get("known") or known(app.env, entry))
    return badge


def _where_it_is(app, docname, equation):
    """The number of an equation of another page, with a link to it."""
    page = app.builder.get_relative_uri(docname, equation.docname)
    uri = f"{page}#{equation_id(equation.label)}"
    return link(f"({number(app.env, equation)})", uri)


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
    shown = link(f"({number(env, equation)})", f"{uri}#{equation_id(equation.label)}")
    head, ids = (
        cell(shown, nodes.Text(" "), nodes.literal("", equation.label)),
        [anchor(equation.label)],
    )
    for entry in own_entries:
        kind = nodes.inline(
            "", "", *inline(known(env, entry)), classes=[f"ledger-{entry['kind']}"]
        )
        evidence = cell(kind, nodes.Text(", ".join(["", *measured(entry)])))
        claimed = cell(*inline(claim(equation, entry)))
        if ids:
            claimed += formula(equation)
        yield nodes.row("", head, claimed, evidence, ids=ids)
        head, ids = cell(), []


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
    order, waiting = [], [env.config.root_doc]
    while waiting:
        docname = waiting.pop(0)
        if docname not in order:
            order.append(docname)
            waiting = env.toctree_includes.get(docname, []) + waiting
    return order


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


def chapter(app, docname, equations, entries, fromdocname):
    """The rubric and the table of one chapter."""
    uri = app.builder.get_relative_uri(fromdocname, docname)
    body = [
        row
        for equation in equations
        for row in rows(app.env, equation, entries[equation.label], uri)
    ]
    return [
        nodes.rubric("", "", link(heading(app, docname), uri)),
        table(HEADINGS, body, "with-equations"),
    ]


def fill_ledger(app, doctree, docname):
    """Replace the page's placeholder, now that every page is read."""
    domain = app.env.get_domain("ledger")
    for node in list(doctree.findall(LedgerNode)):
        entries = {
            label: own_entries
            for label, own_entries in domain.entries().items()
            if label in domain.equations()
        }
        content = summary(
            list(entries.values()),
            relative_uri(app.builder.get_target_uri(docname), JSON),
        )
        numbered = {
            page: domain.data["equations"].get(page, ())
            for page in reading_order(app.env)
        }
        shown = {
            page: [equation for equation in all_ if equation.label in entries]
            for page, all_ in numbered.items()
        }
        chapters = [page for page in shown if shown[page]]
        there = {
            entry["kind"] for own_entries in entries.values() for entry in own_entries
        }
        kinds = [item for item in KINDS.items() if item[0] in there]
        content.append(
            controls(kinds, [(page, heading(app, page)) for page in chapters])
        )
        for page in chapters:
            content += chapter(app, page, shown[page], entries, docname)
        node.replace_self(content)


def load(app, pagename, templatename, context, doctree):
    """The ledger, and no other page, loads the script of its controls."""
    if pagename == app.env.get_domain("ledger").page:
        app.add_js_file("ledger.js", loading_method="defer")


def rewrite(app, env):
    """The ledger is written again by every build, whichever page changed."""
    domain = env.get_domain("ledger")
    return [domain.page] if domain.page else []


def write_json(app, error):
    """ledger.json: the main entry of each equation, for programs."""
    if error or app.builder.name != "html":
        return
    domain = app.env.get_domain("ledger")
    entries, written = domain.entries(), []
    for docname in reading_order(app.env):
        for equation in domain.data["equations"].get(docname, ()):
            url = f"{app.builder.get_target_uri(docname)}#{equation_id(equation.label)}"
            for main in entries.get(equation.label, ())[:1]:
                fields = {key: main.get(key) for key in FIELDS} | {
                    "claim": claim(equation, main)
                }
                names = {
                    "label": equation.label,
                    "number": number(app.env, equation),
                    "chapter": docname,
                }
                written.append({**names, **fields, "url": url})
    text = json.dumps(written, indent=1, ensure_ascii=False) + "\n"
    (Path(app.outdir) / JSON).write_text(text, encoding="utf8")


def setup(app):
    app.add_node(LedgerNode)
    app.add_directive("ledger", Ledger)
    app.connect("env-updated", rewrite)
    app.connect("doctree-resolved", fill_ledger)
    app.connect("doctree-resolved", add_badges)
    app.connect("html-page-context", load)
    app.connect("build-finished", write_json)
