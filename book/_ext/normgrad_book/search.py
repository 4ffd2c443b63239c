"""What the search finds first: equations, sections and pages, and the names that others give to things.

`book/search_names.json` says where a name leads: a label, or page#anchor. Beside the site stands one script with all of
it, so that the search page works from a folder, too.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from .alone import PAGE
from .ledger_page import listing, reading_order

NAMES = "book/search_names.json"
SCRIPT = "_static/search_objects.js"


MARKUP = str.maketrans("", "", "$`\\")


def _sections(app, docname) -> list[dict]:
    """A page and its sections, by their headings."""
    page = app.env.titles[docname].astext()
    sections = []
    for link in app.env.tocs[docname].findall(nodes.reference):
        if link["refuri"] != docname:
            continue
        anchor = link["anchorname"]
        section = {"title": link.astext()}
        if anchor:
            section["page"] = page
        section["address"] = app.builder.get_target_uri(docname) + anchor
        sections.append(section)
    return sections


def places(app) -> list[dict]:
    """The pages in the order of reading, each with its sections and its equations."""
    records, shown = listing(app), []
    for docname in reading_order(app.env):
        shown += _sections(app, docname)
        shown += [
            {
                "label": record["label"],
                "number": record["number"],
                "says": record["claim"].translate(MARKUP),
                "page": app.env.titles[docname].astext(),
                "address": record["url"],
            }
            for record in records
            if record["chapter"] == docname
        ]
    return shown


def names(app, addresses) -> dict[str, str]:
    """{name: the label or the address that it leads to}; an exercise's address is added to the places.

    Raises:  ExtensionError for a name that leads nowhere
    """
    file = Path(app.srcdir) / NAMES
    if not file.exists():
        return {}
    labels = app.env.get_domain("ledger").equations()
    targets = {}
    for name, target in json.loads(file.read_text(encoding="utf8")).items():
        docname, mark, anchor = target.partition("#")
        if target in labels:
            targets[name] = target
        elif docname in app.env.found_docs:
            targets[name] = app.builder.get_target_uri(docname) + mark + anchor
            if targets[name] not in addresses:
                addresses[targets[name]] = {
                    "title": title(app.env, docname, anchor, name),
                    "page": app.env.titles[docname].astext(),
                    "address": targets[name],
                }
        elif not PAGE:
            raise ExtensionError(
                f"{NAMES}: {name} leads to {target}, which is no label and no page"
            )
    return targets


def title(env, docname, anchor, name) -> str:
    """The heading of what has an anchor and is no section, as an exercise."""
    for node in env.get_doctree(docname).findall(nodes.Element):
        if anchor in node["ids"]:
            headings = [*node.findall(nodes.title), env.titles[docname]]
            return headings[0].astext()
    raise ExtensionError(
        f"{NAMES}: {name} leads to {docname}#{anchor}, and there is no such anchor"
    )


def write(app, error):
    """The script that the search page loads."""
    if error or app.builder.name != "html":
        return
    addresses = {shown["address"]: shown for shown in places(app)}
    leads = names(app, addresses)
    objects = {"places": list(addresses.values()), "names": leads}
    text = f"window.normgradObjects = {json.dumps(objects, ensure_ascii=False)};\n"
    (Path(app.outdir) / SCRIPT).write_text(text, encoding="utf8")


def load(app, pagename, templatename, context, doctree):
    """The search page, and no other, loads the objects."""
    if pagename == "search":
        app.add_js_file("search_objects.js", priority=900)
        app.add_js_file("search.js", priority=901, defer="defer")


def setup(app):
    app.connect("html-page-context", load)
    app.connect("build-finished", write)
