"""Figures that move: one classic script each, which puts the live figure in place of the picture on the page.

A figure whose name begins with `fig-live-` is one. Its script is what this module writes from definitions, what all
such figures share, and `book/live/NAME.js`. A classic script also runs where the site is opened from a disk; without
scripts, and on paper, the picture `book/live/NAME.svg` stands on the page.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes

from normgrad.symbolic import equation
from normgrad.teaching.bytes import BANDWIDTHS

from .live_functions import COTANGENTS, FUNCTIONS, written

PREFIX = "fig-live-"
FOLDER = "book/live"
STYLE = "live/live.css"


def equations() -> dict[str, dict]:
    """The cotangents of LayerNorm's graph as LaTeX, first and last expression of each."""
    chains = {name: equation(f"ln-graph-{name}") for name in COTANGENTS}
    return {"EQUATIONS": {name: chain.ends().latex() for name, chain in chains.items()}}


# What a figure knows besides its functions: the constants of its script.
DATA = {
    "graph": equations,
    "bytes": lambda: {"BANDWIDTHS": BANDWIDTHS},
}


def script(root, name) -> str:
    """The whole script of a figure."""
    constants = DATA.get(name, dict)()
    data = [
        f"const {key} = {json.dumps(value, ensure_ascii=False)};"
        for key, value in constants.items()
    ]
    parts = [
        (Path(root) / FOLDER / f"{part}.js").read_text(encoding="utf8")
        for part in ("shared", name)
    ]
    return "\n".join(
        ["(() => {", '"use strict";', written(name), *data, *parts, "})();", ""]
    )


def write(app):
    """The scripts and their style, before any page asks for them."""
    if app.builder.format != "html" or not (Path(app.srcdir) / FOLDER).is_dir():
        return
    target = Path(app.outdir) / "_static/live"
    target.mkdir(parents=True, exist_ok=True)
    style = Path(app.srcdir) / FOLDER / "live.css"
    (target / style.name).write_text(style.read_text(encoding="utf8"), encoding="utf8")
    for name in FUNCTIONS:
        (target / f"{name}.js").write_text(script(app.srcdir, name), encoding="utf8")


def load(app, pagename, templatename, context, doctree):
    """A page loads the scripts of its own figures and no others."""
    if not doctree:
        return
    for figure in doctree.findall(nodes.figure):
        for name in figure["ids"]:
            if name.startswith(PREFIX):
                app.add_css_file(STYLE)
                script_name = f"live/{name.removeprefix(PREFIX)}.js"
                app.add_js_file(script_name, loading_method="defer")


def setup(app):
    app.connect("builder-inited", write)
    app.connect("html-page-context", load)
