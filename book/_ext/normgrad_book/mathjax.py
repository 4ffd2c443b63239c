"""MathJax from the site itself: the parts of the offline package that the book uses, in one script, and its fonts.

Formulas are typeset as they come into view. MathJax's menu is left out, which is a third of it and puts every formula
into the order of the tab key; what it is used for, copying LaTeX, is a button at each equation.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

# startup comes first: it waits for nothing, and starts when the script has run to its end.
PARTS = (
    "startup",
    "core",
    "input/tex-base",
    "input/tex/extensions/ams",
    "output/chtml",
    "output/chtml/fonts/tex",
)
PARTS += ("a11y/assistive-mml", "ui/lazy")
SCRIPT = "mathjax/mathjax.js"
FONTS = "output/chtml/fonts/woff-v2"
DISPLAY = re.compile(
    r'<div class="([^"]*\bmath notranslate nohighlight)"([^>]*)>(.*?)</div>', re.S
)
INLINE = re.compile(
    r'(<span class="math notranslate nohighlight")>\\\((.*?)\\\)</span>([.,;:)?!]*)',
    re.S,
)
# What MathJax makes of a display, in em: around it, and for a row with a sum, with a fraction, and with neither; a fit
# over the displays of seven chapters, four of five of which it meets within half a line.
AROUND, SUM, FRACTION, PLAIN = 1.73, 4.91, 3.86, 2.05
LETTER, SCRIPT_LETTER = 0.62, 0.42


def configure(app, config):
    """Point the pages to the script; the path is relative to _static."""
    config.mathjax_path = SCRIPT


def copy(app, error):
    """Put the script and its fonts into the finished site."""
    if error or app.builder.format != "html":
        return
    source = (
        Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
        / "static/mathjax"
    )
    target = Path(app.outdir) / "_static/mathjax"
    shutil.copytree(source / FONTS, target / FONTS, dirs_exist_ok=True)
    parts = [(source / f"{part}.js").read_text(encoding="utf8") for part in PARTS]
    (Path(app.outdir) / "_static" / SCRIPT).write_text(
        ";\n".join(parts), encoding="utf8"
    )


def height(latex) -> float:
    """How high a display will be, in em."""
    rows = re.split(r"\\\\(?:\[[^\]]*\])?", latex)
    return AROUND + sum(
        SUM if r"\sum" in row else FRACTION if r"\frac" in row else PLAIN
        for row in rows
    )


def width(latex) -> float:
    """About how wide a formula within a line will be, in em: letters, and smaller ones in indices and exponents."""
    plain = re.sub(
        r"\\(?:mathrm|mathbf|mathsf|operatorname|text|hat|dot|tilde|left|right|[,;!])|\s",
        "",
        latex,
    )
    plain = re.sub(r"&\w+;|\\[A-Za-z]+", "m", plain)
    script = "".join(re.findall(r"[_^](\{[^{}]*\}|.)", plain))
    letters = re.sub(r"[_^](\{[^{}]*\}|.)|[{}]", "", plain)
    return LETTER * len(letters) + SCRIPT_LETTER * len(script.strip("{}"))


def reserve(app, pagename, templatename, context, doctree):
    """Every formula has its size before it is typeset, so that a page does not move under its reader."""

    def sized(match):
        return f'<div class="{match[1]}"{match[2]} style="--height: {height(match[3]):.1f}em">{match[3]}</div>'

    def wide(match):
        formula = (
            f'{match[1]} style="--width: {width(match[2]):.1f}em">\\({match[2]}\\)'
        )
        return f'<span class="with-stop">{formula}</span>{match[3]}</span>'

    context["body"] = INLINE.sub(wide, DISPLAY.sub(sized, context.get("body", "")))


def setup(app):
    app.connect("config-inited", configure)
    app.connect("html-page-context", reserve)
    # before MathJax, whose settings it completes
    app.add_js_file("mathematics.js", priority=400, defer="defer")
    app.connect("build-finished", copy)
