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
# over the book's 350 displays without the ledger's: off by 0.45 em in the mean.
AROUND, SUM, FRACTION, PLAIN = 2.1, 4.3, 3.75, 2.0
# What a formula within a line is made of, in this order: what is written as what, and how wide that is, in em; a fit
# over the book's 3,600: off by 0.23 em in the mean.
WRITTEN_AS = (
    (
        r"\\(?:le|ge|ne|leq|geq|neq|approx|equiv|sim|to|mapsto|in|ll|gg)(?![A-Za-z])",
        "=",
    ),
    (r"&[lg]t;", "="),
    (r"\\(?:times|cdot|pm|circ|odot)(?![A-Za-z])", "+"),
    (r"\\(?:exp|log|max|min|tanh)(?![A-Za-z])", "xxx"),
    (
        r"\\(?:mathrm|mathbf|mathsf|operatorname|text|left|right|Bigl?|Bigr)(?![A-Za-z])",
        "",
    ),
    (r"\\(?:hat|dot|tilde|bar)(?![A-Za-z])", ""),
    (r"\\[,;!]|\s", ""),
    (r"\\sum(?![A-Za-z])", "S"),
    (r"\\(?![td]?frac)[A-Za-z]+", "m"),
)
FRACTION_PARTS = re.compile(r"\\[td]?frac(\{[^{}]*\}|.)(\{[^{}]*\}|.)")
SCRIPTS = re.compile(r"[_^](\{[^{}]*\}|.)")
WIDTHS = (
    ("[=<>]", 1.85),
    (r"[+\-]", 1.46),
    ("S", 1.44),
    ("[A-RT-Z]", 0.98),
    ("m", 0.84),
)
AROUND_FORMULA, LETTER, SCRIPT_LETTER = 0.13, 0.58, 0.51


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


def wider(fraction) -> str:
    """The one of a fraction's two lines that has more letters."""
    return max(fraction[1], fraction[2], key=len)


def width(latex) -> float:
    """About how wide a formula within a line will be, in em."""
    written = latex
    for pattern, replacement in WRITTEN_AS:
        written = re.sub(pattern, replacement, written)
    while FRACTION_PARTS.search(written):
        written = FRACTION_PARTS.sub(wider, written)
    script = "".join(SCRIPTS.findall(written))
    letters = re.sub("[{}]", "", SCRIPTS.sub("", written))
    total = AROUND_FORMULA + SCRIPT_LETTER * len(re.sub("[{}]", "", script))
    for pattern, letter in WIDTHS:
        letters, count = re.subn(pattern, "", letters)
        total += letter * count
    return total + LETTER * len(letters)


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
