"""What the theme's own HTML lacks for readers who hear a page: names of its buttons, and lists that are lists."""

from __future__ import annotations

TOGGLE = '<summary><span class="toctree-toggle" role="presentation">'
NAMED = TOGGLE.replace("<summary>", '<summary aria-label="Its pages">')
# Links that lead back stand between the works, and no list may hold those.
BIBLIOGRAPHY = {
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
}


def mend(app, pagename, templatename, context, doctree):
    """Put them in, into the page and into the table of contents beside it."""
    body = context.get("body", "")
    for lacking, mended in BIBLIOGRAPHY.items():
        body = body.replace(lacking, mended)
    context["body"] = body
    if contents := context.get("generate_toctree_html"):
        context["generate_toctree_html"] = lambda *args, **more: str(
            contents(*args, **more)
        ).replace(TOGGLE, NAMED)


def setup(app):
    # after the theme's own
    app.connect("html-page-context", mend, priority=900)
