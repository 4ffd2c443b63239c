"""The book's Sphinx extension: its rules one by one, and small books that must build or must not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("myst_nb", reason="the book's packages are not installed")

EXTENSION = Path(__file__).parents[1] / "book/_ext"
sys.path.insert(0, str(EXTENSION))

from normgrad_book import docstrings, ledger, notebooks, plain_markdown, repository  # noqa: E402

# -- repository ---------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    """A function that makes a repository with the given origin."""

    def make(origin=""):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        if origin:
            subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", origin], check=True)
        return tmp_path

    return make


@pytest.mark.parametrize(
    "origin, expected",
    [
        ("git@github.com:someone/book.git", "someone/book"),
        ("https://github.com/someone/book", "someone/book"),
        ("https://x:secret@github.com/someone/book.git", "someone/book"),
        ("https://example.org/someone/book.git", ""),
        ("../book", ""),
        ("", ""),
    ],
)
def test_repository_is_read_from_origin(checkout, origin, expected):
    assert repository.github_repository(checkout(origin), environ={}) == expected


def test_repository_of_the_build_service_comes_first(checkout):
    root = checkout("git@github.com:someone/book.git")
    assert repository.github_repository(root, environ={"GITHUB_REPOSITORY": "a/b"}) == "a/b"


def test_no_repository_at_all(tmp_path):
    assert repository.github_repository(tmp_path, environ={}) == ""
    assert repository.git(tmp_path / "missing", "rev-parse", "HEAD") == ""
    assert repository.site_address("") == repository.install_source("", "abc") == ""


def test_addresses():
    assert repository.site_address("Some/book") == "https://some.github.io/book/"
    assert repository.site_address("some/some.github.io") == "https://some.github.io/"
    assert repository.install_source("a/b", "abc") == "git+https://github.com/a/b@abc"


@pytest.mark.parametrize("source", ["git+https://github.com/a/b@abc", ""])
def test_bootstrap_installs_only_where_it_must(source):
    text = notebooks.bootstrap(source)
    compile(text.replace("%pip", "pass  #"), "bootstrap", "exec")
    assert text.count("%pip install --no-deps") == 1 and text.endswith("normgrad.doctor()")
    assert (source or "set NORMGRAD_SOURCE") in text


# -- the ledger's rules -------------------------------------------------------------


def equation(label, registered=False):
    return ledger.Numbered(label, "one", 7, "what the registry says" if registered else "")


def entry(kind, docname="one", label="e"):
    return {"label": label, "kind": kind, "docname": docname}


@pytest.mark.parametrize(
    "equations, entries, message",
    [
        ([equation("e")], [], "the equation e has no ledger entry"),
        ([], [entry("numeric")], "the ledger entry e (numeric) has no equation"),
        ([equation("e")], [entry("proved-for-every-n")], "the equation e claims a proof but is typed by hand"),
        ([equation("e")], [entry("numeric"), entry("proved-for-small-n")], "claims a proof but is typed by hand"),
        ([equation("e")], [entry("definition"), entry("numeric")], "conflicting entries: definition, numeric"),
        ([equation("e")], [entry("numeric", docname="two")], "the ledger entry e belongs in one"),
    ],
)
def test_ledger_refuses(equations, entries, message):
    by_label = {"e": entries} if entries else {}
    found = ledger.compare({each.label: each for each in equations}, by_label)
    assert len(found) == 1 and message in found[0][2]


@pytest.mark.parametrize(
    "registered, kinds",
    [
        (False, ["definition"]),
        (False, ["cited", "numeric"]),
        (False, ["numeric", "numeric"]),
        (True, ["proved-for-every-n"]),
        (True, ["proved-for-every-n", "proved-for-small-n", "numeric"]),
    ],
)
def test_ledger_accepts(registered, kinds):
    assert ledger.compare({"e": equation("e", registered=registered)}, {"e": [entry(kind) for kind in kinds]}) == []


# -- text ---------------------------------------------------------------------------


def test_docstring_sections_become_fields():
    lines = [
        "Head with **x** and `code`.",
        "",
        "Args:     x (M, N) the rows; all",
        "          of them",
        "          y: more",
    ]
    lines += ["Returns:  y"]
    assert docstrings.convert(lines) == [
        "Head with \\*\\*x\\*\\* and ``code``.",
        "",
        ":Args:",
        "    | x (M, N) the rows; all of them",
        "    | y: more",
        "",
        ":Returns:",
        "    | y",
        "",
    ]


def test_docstring_formulas_become_code_and_links():
    assert docstrings.convert(["y = x * w        {eq}`ln-y`"]) == ["::", "", "    y = x * w", "", "See :eq:`ln-y`.", ""]
    converted = docstrings.convert(["As in:", "", "    a = b", "", "    c = d", "Then"])
    assert converted == ["As in:", "", "::", "", "    a = b", "", "    c = d", "", "Then", ""]
    assert docstrings.convert(["Prove lhs = rhs for every N."]) == ["Prove lhs = rhs for every N.", ""]


def test_docstring_lists_stay_lists():
    assert docstrings.convert(["Two:", "- a", "  more", "- b"]) == ["Two:", "", "* a", "  more", "", "* b", ""]


def test_signatures_hold_no_paths():
    signature = "(module: M = <module 'a.b' from '/somewhere/a/b.py'>, x=1)"
    assert docstrings.process_signature(None, "", "", None, None, signature, None) == ("(module: M = a.b, x=1)", None)
    assert docstrings.process_signature(None, "", "", None, None, None, None) == (None, None)


def test_options_of_a_directive():
    assert plain_markdown.split_options([":a: b c", ":flag:", "", "x"]) == ({"a": "b c", "flag": ""}, ["", "x"])
    assert plain_markdown.split_options(["---", "a: b", "---", "x"]) == ({"a": "b"}, ["x"])


def test_notebook_keeps_what_runs_and_drops_what_is_for_the_page():
    plain = SimpleNamespace(convert=str.upper, caption=lambda name, text: f"{name}: {text}")

    def cell(source, kind="code", **metadata):
        return {"cell_type": kind, "source": source, "metadata": metadata, "execution_count": 1, "outputs": []}

    figure = {"figure": {"name": "fig-a", "caption": "A"}}
    cells = [cell("title", "markdown"), cell("glue", tags=["book-only"]), cell("1 / 0", tags=["raises-exception"])]
    cells += [cell("plot", mystnb=figure), cell("setup", tags=["remove-cell"])]
    made = notebooks.plain_notebook({"cells": cells, "metadata": {"kernelspec": {}}}, plain, "")["cells"]
    sources = ["".join(each["source"]) for each in made]
    assert "normgrad.doctor()" in sources.pop(1)
    assert sources == ["TITLE", "1 / 0", "plot", "fig-a: A", "setup"]
    assert made[2]["metadata"] == {"tags": ["raises-exception"]}
    assert made[-1]["metadata"] == {"jupyter": {"source_hidden": True}, "cellView": "form"}


REPORT = '<p><a href="./rms_norm.html#equation-rms-dx">rms-dx</a> on a page</p>'


@pytest.mark.parametrize(
    "site, shown",
    [
        ("https://a.github.io/b/book/", REPORT.replace("./", "https://a.github.io/b/book/")),
        ("", "<p>rms-dx on a page</p>"),
    ],
)
def test_links_of_a_report_lead_to_the_site_or_nowhere(site, shown):
    """A notebook lies beside no pages; the output of the page itself stays as it is."""
    output = {"output_type": "execute_result", "data": {"text/html": REPORT, "text/plain": "x"}}
    assert notebooks.relinked(output, site)["data"] == {"text/html": shown, "text/plain": "x"}
    assert output["data"]["text/html"] == REPORT
    stream = {"output_type": "stream", "text": "./rms_norm.html"}
    assert notebooks.relinked(stream, site) is stream


def test_bootstrap_says_where_the_book_is():
    assert "NORMGRAD_BOOK" not in notebooks.bootstrap("")
    assert 'setdefault("NORMGRAD_BOOK", "https://a/b/")' in notebooks.bootstrap("", "https://a/b/")


def test_what_a_student_writes_stays_marked():
    assert notebooks.code_cell("", tags=["homework", "hide-cell"])["metadata"]["tags"] == ["homework"]


# -- small books --------------------------------------------------------------------

CONF = """
import sys
sys.path.insert(0, {extension!r})
extensions = ["myst_nb", "sphinx_proof", "sphinx_book_theme", "normgrad_book"]
numfig, nb_execution_mode, nb_execution_raise_on_error, nb_execution_show_tb = True, "cache", True, True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
root_doc, html_theme, exclude_patterns = "index", "sphinx_book_theme", ["_build"]
"""
KERNEL = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3, language: python}\n---\n\n"
INDEX = "# Book\n\n```{toctree}\none\nledger\n```\n"
LEDGER = "# Ledger\n\n```{ledger}\n```\n"
ONE = """# One

$$
m = 1
$$ (mean)

By {eq}`index-count` and [the ledger](ledger.md):

```{equation} index-count
```

```{code-cell} ipython3
:tags: [remove-cell]
from normgrad.checks import ledger
ledger.define("mean")
```

```{code-cell} ipython3
ledger.prove("index-count")
```

:::{prf:theorem} Small
:label: small
See {prf:ref}`small`.
:::

```{literalinclude} code.py
:pyobject: f
```
"""
CODE = "x = 1\n\n\ndef f():\n    return x\n"


def write(folder, one):
    pages = {"conf.py": CONF.format(extension=str(EXTENSION)), "code.py": CODE, "index.md": INDEX, "ledger.md": LEDGER}
    for name, text in {**pages, "one.md": KERNEL + one}.items():
        (folder / name).write_text(text)


def build(folder):
    """(exit status, output) of a build as strict as the book's."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-a", "-E", "-q"]
    command += [folder, folder / "_build/html"]
    environ = {**os.environ, "GITHUB_REPOSITORY": "someone/book"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environ)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    write(folder, ONE)
    status, output = build(folder)
    assert status == 0, output
    return folder / "_build/html"


def test_equations_carry_badges(book):
    page = (book / "one.html").read_text()
    assert page.count('class="ledger-badge"') == 2
    assert 'href="ledger.html#ledger-index-count"' in page and "proved for every N" in page
    assert 'href="ledger.html#ledger-mean"' in page


def test_ledger_page_links_back(book):
    page = (book / "ledger.html").read_text()
    for label in ("mean", "index-count"):
        assert f'id="ledger-{label}"' in page and f'href="one.html#equation-{label}"' in page
        assert f'id="equation-{label}"' in (book / "one.html").read_text()


def test_ledger_is_written_for_programs(book):
    mean, count = json.loads((book / "ledger.json").read_text())
    assert mean["label"] == "mean" and mean["kind"] == "definition" and mean["chapter"] == "one"
    assert count["url"] == "one.html#equation-index-count" and count["seconds"] > 0
    assert set(count) == {"label", "number", "chapter", "kind", "claim", "error", "tolerance", "seconds", "url"}


def test_chapter_offers_notebook_and_colab(book):
    page = (book / "one.html").read_text()
    assert 'href="_sources/one.ipynb"' in page
    assert "https://colab.research.google.com/github/someone/book/blob/gh-pages/_sources/one.ipynb" in page
    assert "colab" not in (book / "ledger.html").read_text()


def test_mathjax_is_served_by_the_site(book):
    assert (book / "_static/mathjax/tex-chtml-full.js").is_file()
    assert 'src="_static/mathjax/tex-chtml-full.js' in (book / "one.html").read_text()


def test_notebook_is_executed_and_plain(book):
    notebook = json.loads((book / "_sources/one.ipynb").read_text())
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    assert "{equation}" not in text and ":::" not in text and "{prf:ref}" not in text
    assert "\\tag{1}" in text and "\\tag{2}" in text
    assert "$$\n\nBy [(2)](https://someone.github.io/book/one.html#equation-index-count) and [the ledger](https" in text
    assert "```python\ndef f():\n    return x\n```" in text and "> **Theorem 1 (Small).**" in text
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert "".join(code[0]["source"]).endswith("normgrad.doctor()")
    assert code[-1]["outputs"][0]["data"]["text/plain"]


def test_deleted_check_fails_every_build(book, tmp_path):
    write(tmp_path, ONE.replace('ledger.define("mean")', "pass"))
    for _ in range(2):
        status, output = build(tmp_path)
        assert status != 0 and "the equation mean has no ledger entry" in output


def test_everything_wrong_is_named_at_once(tmp_path):
    wrong = ONE.replace("{equation} index-count", "{math}\n:label: index-count\n1 = 1")
    wrong = wrong.replace('ledger.define("mean")', 'ledger.define("mean", "stray")')
    write(tmp_path, wrong + "\n```{equation} nonesuch\n```\n\n\\begin{align}\n1 = 1\n\\end{align}\n")
    status, output = build(tmp_path)
    assert status != 0
    for message in (
        "the equation index-count claims a proof but is typed by hand",
        "the ledger entry stray (definition) has no equation",
        "'nonesuch', which no registered equation has",
        "a numbered equation has no label",
    ):
        assert message in output


def test_false_proof_fails_every_build(tmp_path):
    write(tmp_path, ONE.replace('ledger.prove("index-count")', 'ledger.check("index-count", 2, 1, "two is one")'))
    for _ in range(2):
        status, output = build(tmp_path)
        assert status != 0 and "index-count: error 2.000e+00 exceeds the tolerance" in output


def test_an_equation_needs_an_entry_of_its_kind():
    equations = {"e": ledger.Numbered("e", "one", 7, claim="it holds", kind="proved-for-every-n")}
    made = {"label": "e", "kind": "proved-for-small-n", "docname": "one"}
    (found,) = ledger.compare(equations, {"e": [made]})
    assert "the equation e has no entry of its kind, proved-for-every-n" in found[2]
    assert ledger.compare(equations, {"e": [made, {**made, "kind": "proved-for-every-n"}]}) == []


def test_a_formula_typed_by_hand_must_be_the_one_that_was_written_down():
    typed = ledger.Numbered("e", "one", 7, latex=r"a = b")
    assert ledger.compare_typed({"e": typed}, {"e": " a =  b"}) == []
    assert "the equation e, typed by hand" in ledger.compare_typed({"e": typed}, {"e": "a = -b"})[0][2]
    assert "the equation e, typed by hand" in ledger.compare_typed({"e": typed}, {})[0][2]
    assert "f is not an equation typed by hand" in ledger.compare_typed({}, {"f": "a"})[0][2]
    proved = ledger.Numbered("e", "one", 7, claim="it holds", latex="a = b")
    assert ledger.compare_typed({"e": proved}, {}) == []
