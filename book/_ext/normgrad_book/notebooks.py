"""Each executed chapter as a notebook of plain Markdown, and the buttons that offer it.

The notebook that the theme itself would offer keeps MyST's directives and roles, which Jupyter and Colab show as code.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
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
FOLDED_TAGS = {"hide-input", "remove-input", "hide-cell", "remove-cell"}
# Jupyter's way to fold a cell's source, and Colab's.
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}


def is_notebook(env, docname) -> bool:
    return "kernelspec" in env.metadata.get(docname, {})


def relinked(output, site):
    """An output whose links to pages beside its own lead to the site, or are plain text where it has no address."""
    data = output.get("data", {})
    link = re.compile(f'<a href="{re.escape(BOOK)}([^"]*)">(.*?)</a>', re.S)
    if not link.search(data.get("text/html", "")):
        return output
    form = rf'<a href="{site}\1">\2</a>' if site else r"\2"
    html = link.sub(form, data["text/html"])
    return output | {"data": data | {"text/html": html}}


def code_cell(cell, site):
    """A code cell with what Jupyter needs of its tags, and links as readers have them."""
    tags, source = cell["metadata"].get("tags", ()), cell["source"]
    metadata = FOLDED.copy() if FOLDED_TAGS & {*tags} else {}
    kept = [tag for tag in tags if tag in KEPT_TAGS]
    if kept:
        metadata["tags"] = kept
    if "triton" in tags and source:
        source = f"{MARK}\n{source}"
    outputs = [relinked(output, site) for output in cell["outputs"]]
    count = cell["execution_count"]
    return new_code_cell(
        source, execution_count=count, outputs=outputs, metadata=metadata
    )


def convert(cell, plain, site, number):
    """The cells that one cell of the executed chapter becomes."""
    metadata = cell["metadata"]
    if "book-only" in metadata.get("tags", ()):
        return
    if cell["cell_type"] == "markdown":
        yield new_markdown_cell(plain.convert(cell["source"]).strip("\n"))
    elif cell["cell_type"] == "code":
        if label := metadata.get("label"):
            claim = plain.convert(f"`{label}`: {metadata.get('claim', '')}")
            yield new_markdown_cell(f"({number(label)}) {claim}")
        yield code_cell(cell, site)
        if figure := metadata.get("mystnb", {}).get("figure"):
            caption = plain.caption(figure.get("name"), figure.get("caption", ""))
            yield new_markdown_cell(caption)


def needs_triton(executed) -> bool:
    """Whether some cell is marked to need Triton, or names it."""
    return any(
        "triton" in cell["source"] or "triton" in cell["metadata"].get("tags", ())
        for cell in executed["cells"]
        if cell["cell_type"] == "code"
    )


def plain_notebook(executed, plain, setup, site, number):
    """A chapter as executed by myst-nb, as the notebook that readers get; cell ids are numbers, for stable files.

    Arguments:  setup, the source of the cell that goes before all others; site, the address of the chapter's folder;
                number, a function from the label of an equation to its number
    """
    cells = []
    for cell in executed["cells"]:
        cells += [new for new in convert(cell, plain, site, number) if new["source"]]
    types = [cell["cell_type"] for cell in cells]
    first = types.index("code") if "code" in types else len(cells)
    cells.insert(first, new_code_cell(setup, metadata=FOLDED))
    for position, cell in enumerate(cells):
        cell["id"] = f"cell-{position}"
    metadata = {
        "kernelspec": executed["metadata"]["kernelspec"],
        "language_info": {"name": "python"},
    }
    return new_notebook(cells=cells, metadata=metadata)


def folder_on_site(app, docname) -> str:
    """The address of the folder that a page lies in, with its slash, or nothing where the site has no address."""
    base = app.config.html_baseurl.rstrip("/")
    folder = f"{base}/{docname}".rpartition("/")[0]
    return f"{folder}/" if base else ""


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
    env, version = app.env, app.config.book_wheel
    wheels, number = folder_on_site(app, "_sources/"), number_of(env)
    for docname in sorted(filter(partial(is_notebook, env), env.found_docs)):
        executed, site = executed_notebook(env, docname), folder_on_site(app, docname)
        triton = needs_triton(executed)
        setup = bootstrap(version, wheels, site, triton)
        plain = PlainMarkdown(app, docname)
        notebook = plain_notebook(executed, plain, setup, site, number)
        target = Path(app.outdir) / f"_sources/{docname}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.from_dict(notebook), target)


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
