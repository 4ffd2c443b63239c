"""The book by plain Sphinx, for when Jupyter Book 1 cannot be had; `_config.yml` and `_toc.yml` say it all.

    sphinx-build -c book -d _build/plain-doctrees -W --keep-going -n -E . _build/plain

Outputs come from the cache that `make book` fills, and go into it. requirements-plain.txt has the versions, and
tests/plain_sphinx.py compares the two sites.
"""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
# What Jupyter Book's keys are called in Sphinx; a key that is not here stops the build.
NAMES = {
    "title": "html_title",
    "author": "author",
    "copyright": "copyright",
    "exclude_patterns": "exclude_patterns",
    "bibtex_bibfiles": "bibtex_bibfiles",
    "execute.execute_notebooks": "nb_execution_mode",
    "execute.timeout": "nb_execution_timeout",
    "execute.raise_on_error": "nb_execution_raise_on_error",
    "execute.stderr_output": "nb_output_stderr",
    "parse.myst_enable_extensions": "myst_enable_extensions",
    "html.favicon": "html_favicon",
}
# Of Jupyter Book itself: its own extension, and comments by a service, which it brings along and the book does not use.
DROPPED = {"jupyter_book", "sphinx_comments"}
# Paths that Sphinx reads from where this file lies, and Jupyter Book from the top.
FROM_HERE = ("html_static_path", "templates_path", "html_favicon", "bibtex_bibfiles")

# What Jupyter Book sets where `_config.yml` says nothing.
html_theme = "sphinx_book_theme"
html_theme_options = {"search_bar_text": "Search this book...", "home_page_in_toc": True}
html_sourcelink_suffix = ""
numfig = True
suppress_warnings = ["myst.domains"]


def from_the_top(value):
    """A path, or each of a list, as an absolute one."""
    return [from_the_top(each) for each in value] if isinstance(value, list) else str(ROOT / value)


def settings(book):
    """{name in Sphinx: value} of what `_config.yml` holds. KeyError where it has a key that nothing here reads."""
    book = dict(book)
    own = book.pop("sphinx")
    flat = {}
    for key, value in book.items():
        flat |= {f"{key}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    if unknown := [*(set(flat) - set(NAMES)), *(set(own) - {"recursive_update", "local_extensions", "config"})]:
        raise KeyError(f"_config.yml has {', '.join(sorted(unknown))}, which book/conf.py does not read")
    found = {NAMES[key]: value for key, value in flat.items()} | own["config"]
    found["project"] = found["html_title"]
    found["extensions"] = [one for one in found["extensions"] if one not in DROPPED]
    found["html_theme_options"] = html_theme_options | found["html_theme_options"]
    return found | {name: from_the_top(found[name]) for name in FROM_HERE}


CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
sys.path += [str(ROOT / folder) for folder in CONFIG["sphinx"]["local_extensions"].values()]
globals().update(settings(CONFIG))
