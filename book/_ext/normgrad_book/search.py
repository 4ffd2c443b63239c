"""What the search finds first: equations by label, number and words, and the names that others give to things.

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


def objects(app) -> list[dict]:
    """Every numbered equation: its title, where it is, and the words it is found by."""
    domain = app.env.get_domain("ledger")
    entries, found = domain.entries(), []
    for docname in reading_order(app.env):
        for one in domain.data["equations"].get(docname, ()):
            says = (
                _plain(claim(one, entries[one.label][0]))
                if one.label in entries
                else ""
            )
            shown, page = number(app.env, one), app.env.titles[docname].astext()
            address = f"{app.builder.get_target_uri(docname)}#{equation_id(one.label)}"
            found.append(
                {
                    "label": one.label,
                    "number": shown,
                    "says": says,
                    "page": page,
                    "address": address,
                }
            )
    return found


def places(app) -> dict[str, dict]:
    """{name: its place} of the names that lead to a section, an exercise or a page, and {name: label} of the others."""
    env, found, file = app.env, {}, Path(app.srcdir) / NAMES
    known = env.get_domain("ledger").equations()
    for name, target in (
        json.loads(file.read_text(encoding="utf8")).items() if file.exists() else ()
    ):
        docname, _, anchor = target.partition("#")
        if target in known:
            found[name] = {"label": target}
        elif docname in env.found_docs:
            found[name] = {
                "title": title(env, docname, anchor, name),
                "page": env.titles[docname].astext(),
            }
            found[name]["address"] = app.builder.get_target_uri(docname) + (
                f"#{anchor}" if anchor else ""
            )
        elif not PAGE:
            raise ExtensionError(
                f"{NAMES}: {name} leads to {target}, which is no label and no page"
            )
    return found


def title(env, docname, anchor, name) -> str:
    """The heading of what stands at an anchor."""
    if not anchor:
        return env.titles[docname].astext()
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
    found = {"equations": objects(app), "names": places(app)}
    text = f"window.normgradObjects = {json.dumps(found, ensure_ascii=False)};\n"
    (Path(app.outdir) / SCRIPT).write_text(text, encoding="utf8")


def load(app, pagename, templatename, context, doctree):
    """The search page, and no other, loads the objects."""
    if pagename == "search":
        app.add_js_file("search_objects.js", priority=900)
        app.add_js_file("search.js", priority=901, defer="defer")


def setup(app):
    app.connect("html-page-context", load)
    app.connect("build-finished", write)
