"""What the theme's own HTML lacks: names of its buttons and lists that are lists, and a page's description.

A search engine shows the description below a page's title.
"""

from __future__ import annotations

import re
from html import escape, unescape

from docutils import nodes

TOGGLE = '<summary><span class="toctree-toggle" role="presentation">'
NAMED = TOGGLE.replace("<summary>", '<summary aria-label="Its pages">')
# Links that lead back stand between the works, and no list may hold those.
BIBLIOGRAPHY = {
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
}
# What a cell prints; a longer line than any of a table or a program is prose, which wraps.
PRINTED = re.compile(
    r'(<div class="output [^"]*"><div class="highlight"><pre)>(.*?)</pre>', re.S
)
LONGEST_ROW = 104


def _mark_prose(match):
    text = unescape(re.sub("<[^>]+>", "", match[2]))
    if max(map(len, text.splitlines()), default=0) <= LONGEST_ROW:
        return match[0]
    return f'{match[1]} class="prose">{match[2]}</pre>'


def mend(app, pagename, templatename, context, doctree):
    """Put them in, into the page and into the table of contents beside it."""
    body = PRINTED.sub(_mark_prose, context.get("body", ""))
    for lacking, mended in BIBLIOGRAPHY.items():
        body = body.replace(lacking, mended)
    context["body"] = body
    if contents := context.get("generate_toctree_html"):
        context["generate_toctree_html"] = lambda *args, **more: str(
            contents(*args, **more)
        ).replace(TOGGLE, NAMED)


# What a search engine shows of a description, in characters.
LONGEST_DESCRIPTION = 160


def describe(app, pagename, templatename, context, doctree):
    """The page's first paragraph outside of boxes, cut at the end of a word, in its head."""
    if not doctree:
        return
    texts = [
        " ".join(paragraph.astext().split())
        for paragraph in doctree.findall(nodes.paragraph)
        if paragraph.parent.tagname == "section" and not paragraph["classes"]
    ]
    text = "".join(texts[:1])
    if len(text) > LONGEST_DESCRIPTION:
        text = text[:LONGEST_DESCRIPTION].rpartition(" ")[0] + " ..."
    meta = f'<meta name="description" content="{escape(text)}">\n'
    context["metatags"] = context.get("metatags", "") + meta


def setup(app):
    app.connect("html-page-context", describe)
    # after the theme's own
    app.connect("html-page-context", mend, priority=900)
