"""Each executed chapter as a notebook of plain Markdown, and the buttons that offer it.

The notebook that the theme itself would offer keeps MyST's directives and roles, which Jupyter and Colab show as code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sphinx.util.osutil import relative_uri

from normgrad.teaching.notebook import MARK

from . import wheel
from .alone import PAGE
from .bootstrap import bootstrap
from .derived import number_of
from .execution import BOOK, executed_notebook
from .plain_markdown import PlainMarkdown

# Tags that Jupyter and its runners know, and the mark of what a student writes; the others concern the page alone.
KEPT_TAGS = ("raises-exception", "skip-execution", "homework", "triton", "your-turn")
KEPT_TAGS += ("derivation", "numpy-backward", "torch-function", "triton-kernel")


def is_notebook(env, docname) -> bool:
    return "kernelspec" in env.metadata.get(docname, {})


def relinked(output, site):
    """An output whose links to pages beside its own lead to the site, or are plain text where it has no address."""
    html = "".join(output.get("data", {}).get("text/html", ()))
    link = re.compile(f'<a href="{re.escape(BOOK)}([^"]*)">(.*?)</a>', re.S)
    if not link.search(html):
        return output
    plain = link.sub(rf'<a href="{site}\1">\2</a>' if site else r"\2", html)
    return output | {"data": output["data"] | {"text/html": plain}}


def code_cell(source, execution_count=None, outputs=(), tags=()):
    metadata = (
        {"tags": kept} if (kept := [tag for tag in tags if tag in KEPT_TAGS]) else {}
    )
    if {"hide-input", "remove-input", "hide-cell", "remove-cell"} & set(tags):
        metadata |= {
            "jupyter": {"source_hidden": True},
            "cellView": "form",
        }  # Jupyter's way to say so, and Colab's
    cell = {
        "cell_type": "code",
        "execution_count": execution_count,
        "outputs": list(outputs),
        "metadata": metadata,
    }
    return cell | {
        "source": f"{MARK}\n{source}" if "triton" in tags and source else source
    }


def markdown_cell(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source.strip("\n")}


def convert(cell, plain, site="", number=lambda label: ""):
    """The cells that one cell of the executed chapter becomes."""
    metadata = cell["metadata"]
    if "book-only" in metadata.get("tags", ()):
        return
    if cell["cell_type"] == "markdown":
        yield markdown_cell(plain.convert(cell["source"]))
    elif cell["cell_type"] == "code":
        outputs = [relinked(output, site) for output in cell["outputs"]]
        if label := metadata.get("label"):
            named = f"({number(label)}) " if number(label) else ""
            claim = metadata.get("claim", "")
            yield markdown_cell(plain.convert(f"{named}`{label}`: {claim}"))
        yield code_cell(
            cell["source"], cell["execution_count"], outputs, metadata.get("tags", ())
        )
        if figure := metadata.get("mystnb", {}).get("figure"):
            yield markdown_cell(
                plain.caption(figure.get("name"), figure.get("caption", ""))
            )


def needs_triton(executed) -> bool:
    """Whether some cell is marked to need Triton, or names it."""
    cells = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    return any(
        "triton" in cell["source"] or "triton" in cell["metadata"].get("tags", ())
        for cell in cells
    )


def plain_notebook(executed, plain, setup, pages="", number=lambda label: ""):
    """A chapter as executed by myst-nb, as the notebook that readers get; cell ids are numbers, for stable files.

    Arguments:  setup, the source of the cell that goes before all others; pages, the address of the chapter's folder;
                number, a function from the label of an equation to its number
    """
    cells = [
        new
        for cell in executed["cells"]
        for new in convert(cell, plain, pages, number)
        if new["source"]
    ]
    first = next(
        (i for i, cell in enumerate(cells) if cell["cell_type"] == "code"), len(cells)
    )
    cells.insert(first, code_cell(setup, tags=["hide-input"]))
    for i, cell in enumerate(cells):
        cell |= {"id": f"cell-{i}", "source": cell["source"].splitlines(keepends=True)}
        cells[i] = cell
    metadata = {
        "kernelspec": executed["metadata"]["kernelspec"],
        "language_info": {"name": "python"},
    }
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def folder_on_site(app, docname) -> str:
    """The address of the folder that a page lies in, with its slash, or nothing where the site has no address."""
    base, folder = app.config.html_baseurl.rstrip("/"), docname.rpartition("/")[0]
    return f"{base}/{folder}/" if base and folder else f"{base}/" if base else ""


def build_wheel(app, env):
    """The wheel that the notebooks install, before the pages that link it are written."""
    if app.builder.name != "html" or PAGE:
        return
    root = Path(app.config.book_package or app.srcdir)
    folder = Path(app.outdir) / "_sources"
    app.config.book_wheel = wheel.build(root, app.config.book_commit, folder)


def write_notebooks(app, error):
    """Beside Sphinx's copies of the sources, where the theme's download menu and Colab look for them."""
    if error or app.builder.name != "html" or PAGE:
        return
    folder = Path(app.outdir) / "_sources"
    version = app.config.book_wheel
    wheels, number = folder_on_site(app, "_sources/"), number_of(app.env)
    for docname in sorted(app.env.found_docs):
        if is_notebook(app.env, docname):
            executed, pages = (
                executed_notebook(app.env, docname),
                folder_on_site(app, docname),
            )
            setup = bootstrap(
                version,
                wheels,
                pages,
                needs_triton(executed),
            )
            notebook = plain_notebook(
                executed, PlainMarkdown(app, docname), setup, pages, number
            )
            target = folder / f"{docname}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            text = (
                json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
                + "\n"
            )
            target.write_text(text, encoding="utf8")


def offer_notebook(app, pagename, templatename, context, doctree):
    """The download, and Colab where a repository is known; elsewhere the package's wheel.

    Runs at priority 500 after the theme's prep_header_buttons, which is registered earlier, and before its
    add_header_buttons (501), which reads what is set here.
    """
    if not is_notebook(app.env, pagename):
        return
    context["ipynb_source"] = f"{pagename}.ipynb"
    if app.config.book_repository:
        base = f"https://colab.research.google.com/github/{app.config.book_repository}/blob"
        words = {"text": "Open in Colab", "tooltip": "Run this chapter in Google Colab"}
        url = f"{base}/{app.config.book_site_branch}/_sources/{pagename}.ipynb"
        icon = "_static/images/logo_colab.png"
    elif app.config.book_wheel:
        words = {
            "text": "The package (.whl)",
            "tooltip": "Download it into the folder of the notebook, which installs it",
        }
        here = app.builder.get_target_uri(pagename)
        name = wheel.file_name(app.config.book_wheel)
        url = relative_uri(here, "_sources/" + name)
        icon = "fas fa-box"
    else:
        return
    button = {"type": "link", "icon": icon, "url": url, **words}
    # A group, because the theme's style scales the logo only inside one.
    group = {
        "type": "group",
        "label": "launch-buttons",
        "icon": "fas fa-rocket",
        "tooltip": "Run this chapter",
    }
    context["header_buttons"].append(group | {"buttons": [button]})


def setup(app):
    app.add_config_value("book_wheel", "", "", str)
    app.connect("env-updated", build_wheel)
    app.connect("html-page-context", offer_notebook, priority=500)
    # After the ledger is found to hold: an equation that nobody registered has no plain form either.
    app.connect("build-finished", write_notebooks, priority=950)
