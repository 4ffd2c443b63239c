"""Pages beside the course have letters, as appendices have, and every page counts its own figures: Fig. B.1, (B.2).

After Z comes AA. What stands on a page without chapter and letter, as a homework, is Fig. 1.
"""

from __future__ import annotations

from string import ascii_uppercase

from docutils import nodes
from sphinx.addnodes import toctree

FURTHER = "Further"
LETTERS = [*ascii_uppercase, *(f"A{letter}" for letter in ascii_uppercase)]


def number_pages(app, env):
    """Give the pages of each part whose caption begins with FURTHER their letters, and all figures their numbers."""
    pages = [
        page
        for part in env.get_doctree(env.config.root_doc).findall(toctree)
        if str(part.get("caption")).startswith(FURTHER)
        for _, page in part["entries"]
    ]
    for page, letter in zip(pages, LETTERS, strict=False):
        title, *sections = env.tocs[page].findall(nodes.reference)
        title["secnumber"] = env.titles[page]["secnumber"] = (letter,)
        anchors = {section["anchorname"]: () for section in sections}
        env.toc_secnumbers[page] = {"": (letter,), **anchors}
    for page, kinds in env.toc_fignumbers.items():
        chapter = env.toc_secnumbers.get(page, {}).get("", ())
        for numbers in kinds.values():
            for position, label in enumerate(numbers, 1):
                numbers[label] = (*chapter, position)
    return []


def setup(app):
    # after Sphinx has counted through the whole book
    app.connect("env-get-updated", number_pages, priority=900)
