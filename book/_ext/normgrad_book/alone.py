"""One page by itself, for those who write it: NORMGRAD_PAGE names it, and what points elsewhere is let be.

The numbers of its equations are not those of the book, and it has no notebook; all else is checked as in the book.
"""

from __future__ import annotations

import os

PAGE = os.environ.get("NORMGRAD_PAGE", "")
# What a page says of other pages cannot be known here.
ELSEWHERE = [
    "ref",
    "toc",
    "myst",
    "bibtex",
    "docutils",
    "py",
    "eq",
    "sphinx_exercise",
    "sphinx_proof",
]


def configure(app, config):
    config.include_patterns = [f"book/{PAGE}.md"]
    config.suppress_warnings = [*config.suppress_warnings, *ELSEWHERE]
    config.nitpicky = False


def setup(app):
    if PAGE:
        app.connect("config-inited", configure, priority=900)
