"""MathJax from the site itself: the two parts of the offline package that the book uses, 1.7 of its 24 MB."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

SCRIPT = "tex-chtml-full.js"
FONTS = "output/chtml/fonts/woff-v2"


def configure(app, config):
    """Point the pages to the copy; the path is relative to _static."""
    config.mathjax_path = f"mathjax/{SCRIPT}"


def copy(app, error):
    """Put the script and its fonts into the finished site."""
    if error or app.builder.format != "html":
        return
    source = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
    target = Path(app.outdir) / "_static/mathjax"
    shutil.copytree(source / FONTS, target / FONTS, dirs_exist_ok=True)
    shutil.copy2(source / SCRIPT, target / SCRIPT)


def setup(app):
    app.connect("config-inited", configure)
    app.connect("build-finished", copy)
