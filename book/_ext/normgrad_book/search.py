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
from .ledger_page import claim, equation_id, number, reading_order

NAMES = "book/search_names.json"
SCRIPT = "_static/search_objects.js"


def _plain(text) -> str:
    return text.replace("$", "").replace("`", "").replace("\\", "")


def _equations(app, docname) -> list[dict]:
    """Every numbered equation of a page: where it is, and the words that it is found by."""
    domain = app.env.get_domain("ledger")
    entries = domain.entries()
    page = app.builder.get_target_uri(docname)
    places = []
    for equation in domain.data["equations"].get(docname, ()):
        label = equation.label
        says = ""
        if label in entries:
            says = _plain(claim(equation, entries[label][0]))
        places.append(
            {
                "label": label,
                "number": number(app.env, equation),
                "says": says,
                "page": app.env.titles[docname].astext(),
                "address": f"{page}#{equation_id(label)}",
            }
        )
    return places


def _sections(app, docname) -> list[dict]:
    """A page and its sections, by their headings."""
    page = app.env.titles[docname].astext()
    places = []
    for link in app.env.tocs[docname].findall(nodes.reference):
        if link["refuri"] != docname:
            continue
        anchor = link["anchorname"]
        place = {"title": link.astext()}
        if anchor:
            place["page"] = page
        place["address"] = app.builder.get_target_uri(docname) + anchor
        places.append(place)
    return places


def places(app) -> list[dict]:
    """The pages in the order of reading, each with its sections and its equations."""
    found = []
    for docname in reading_order(app.env):
        found += _sections(app, docname) + _equations(app, docname)
    return found


def names(app, addresses) -> dict[str, str]:
    """{name: the label or the address that it leads to}; an exercise's address is added to the places.

    Raises:  ExtensionError for a name that leads nowhere
    """
    file = Path(app.srcdir) / NAMES
    if not file.exists():
        return {}
    labels = app.env.get_domain("ledger").equations()
    leads = {}
    for name, target in json.loads(file.read_text(encoding="utf8")).items():
        docname, _, anchor = target.partition("#")
        if target in labels:
            leads[name] = target
            continue
        if docname not in app.env.found_docs:
            if PAGE:
                continue
            raise ExtensionError(
                f"{NAMES}: {name} leads to {target}, which is no label and no page"
            )
        address = app.builder.get_target_uri(docname)
        if anchor:
            address = f"{address}#{anchor}"
        if address not in addresses:
            addresses[address] = {
                "title": title(app.env, docname, anchor, name),
                "page": app.env.titles[docname].astext(),
                "address": address,
            }
        leads[name] = address
    return leads


def title(env, docname, anchor, name) -> str:
    """The heading of what has an anchor and is no section, as an exercise."""
    for node in env.get_doctree(docname).findall(
        lambda node: anchor in getattr(node, "attributes", {}).get("ids", ())
    ):
        heading = next(iter(node.findall(nodes.title)), None)
        return heading.astext() if heading is not None else env.titles[docname].astext()
    raise ExtensionError(
        f"{NAMES}: {name} leads to {docname}#{anchor}, and there is no such anchor"
    )


def write(app, error):
    """The script that the search page loads."""
    if error or app.builder.name != "html":
        return
    addresses = {place["address"]: place for place in places(app)}
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
