"""MathJax from the site itself: the parts of the offline package that the book uses, in one script, and its fonts.

Formulas are typeset as they come into view. MathJax's menu is left out, which is a third of it and puts every formula
into the order of the tab key; what it is used for, copying LaTeX, is a button at each equation.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

# startup comes first: it waits for nothing, and starts when the script has run to its end.
PARTS = ("startup", "core", "input/tex-base", "input/tex/extensions/ams", "output/chtml", "output/chtml/fonts/tex")
PARTS += ("a11y/assistive-mml", "ui/lazy")
SCRIPT = "mathjax/mathjax.js"
FONTS = "output/chtml/fonts/woff-v2"


def configure(app, config):
    """Point the pages to the script; the path is relative to _static."""
    config.mathjax_path = SCRIPT


def copy(app, error):
    """Put the script and its fonts into the finished site."""
    if error or app.builder.format != "html":
        return
    source = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
    target = Path(app.outdir) / "_static/mathjax"
    shutil.copytree(source / FONTS, target / FONTS, dirs_exist_ok=True)
    parts = [(source / f"{part}.js").read_text(encoding="utf8") for part in PARTS]
    (Path(app.outdir) / "_static" / SCRIPT).write_text(";\n".join(parts), encoding="utf8")


def setup(app):
    app.connect("config-inited", configure)
    # before MathJax, whose settings it completes
    app.add_js_file("mathematics.js", priority=400, defer="defer")
    app.connect("build-finished", copy)
