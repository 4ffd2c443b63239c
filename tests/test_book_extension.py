"""The book's Sphinx extension: its rules one by one, and small books that must build or must not."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import normgrad
from normgrad.teaching.notebook import MARK

pytest.importorskip("myst_nb", reason="the book's packages are not installed")

ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "book/_ext"
sys.path.insert(0, str(EXTENSION))

from normgrad_book import (  # noqa: E402
    bootstrap,
    docstrings,
    execution,
    ledger,
    notebooks,
    plain_markdown,
    repository,
    wheel,
)

# -- execution ----------------------------------------------------------------------


def test_a_number_that_moves_executes_no_page_again(tmp_path):
    """An equation that goes to another page does, and so does any change of code."""
    folder = tmp_path / "src/normgrad/homework"
    folder.mkdir(parents=True)

    def key(places, code=""):
        (folder / "equations.json").write_text(json.dumps(places), encoding="utf8")
        (folder / "task.py").write_text(code, encoding="utf8")
        return execution.source_key(tmp_path)

    before = key({"rms-dx": ["rms_norm", "7.8"]})
    assert key({"rms-dx": ["rms_norm", "7.9"]}) == before
    assert key({"rms-dx": ["rms_norm_code", "7.8"]}) != before
    assert key({"rms-dx": ["rms_norm", "7.8"]}, "a = 1") != before


# -- repository ---------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    """A function that makes a repository with the given origin."""

    def make(origin=""):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        if origin:
            subprocess.run(
                ["git", "-C", tmp_path, "remote", "add", "origin", origin], check=True
            )
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


# -- the wheel ----------------------------------------------------------------------


def built_things():
    """What building a package leaves behind, wherever it lies in the checkout."""
    return {
        path
        for folder in ("", "src", "book/figures")
        for name in ("build", "dist", "*.egg-info", "*.whl")
        for path in (ROOT / folder).glob(name)
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(version, path) of a wheel of this checkout, for a commit that it is not at."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "normgrad-0.0.1-py3-none-any.whl").touch()
    before = built_things()
    version = wheel.build(ROOT, "1a2b3c4d5e6f7788", folder)
    assert built_things() == before, "building the wheel leaves files in the checkout"
    (path,) = folder.iterdir()  # the older one is gone
    return version, path


def test_wheel_names_the_commit_wherever_the_version_stands(built):
    version, path = built
    assert re.fullmatch(
        re.escape(normgrad.__version__) + r"\+g1a2b3c4d5e6f(\.d[0-9a-f]{8})?", version
    )
    assert (
        path.name == f"normgrad-{version}-py3-none-any.whl" == wheel.file_name(version)
    )
    with zipfile.ZipFile(path) as archive:
        assert (
            f'__version__ = "{version}"'
            in archive.read("normgrad/__init__.py").decode()
        )
        assert (
            f"\nVersion: {version}\n"
            in archive.read(f"normgrad-{version}.dist-info/METADATA").decode()
        )


def test_wheel_holds_the_package_and_the_figures_and_is_small(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = set(archive.namelist())
    assert {
        "normgrad/py.typed",
        "normgrad/symbolic/equations.json",
        "normgrad/teaching/notebook.py",
        "normgrad_figures/style.py",
    } <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "normgrad",
        "normgrad_figures",
    }
    assert built[1].stat().st_size < 1e6


# -- the first cell of a notebook ---------------------------------------------------

WHEEL = "normgrad-0.1.0+gabc-py3-none-any.whl"


@pytest.fixture
def session(monkeypatch, tmp_path):
    """A function that runs a first cell in a session with some normgrad, and returns what pip was asked to install."""

    def run(
        installed=None, loaded=None, editable=False, near="", works=True, **options
    ):
        state, asked = {"version": installed}, []

        def pip(command, **_):
            asked.append(command[command.index("--no-deps") + 1 :])
            state["version"] = (
                "0.1.0+gabc" if "NORMGRAD_SOURCE" not in os.environ else "0.2.0"
            )
            return SimpleNamespace(
                returncode=0 if works else 1, stdout="", stderr="no such thing"
            )

        def distribution(name):
            if state["version"] is None:
                raise importlib.metadata.PackageNotFoundError(name)
            direct = json.dumps({"dir_info": {"editable": True}}) if editable else None
            return SimpleNamespace(
                version=state["version"], read_text=lambda name: direct
            )

        class Loaded:
            """What `import normgrad` gives: the one that is loaded, else the one that is installed by then."""

            doctor = staticmethod(lambda: print("the doctor ran"))

            @property
            def __version__(self):
                return loaded or state["version"]

        (tmp_path / "a/b").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "a/b")
        if near:
            (tmp_path / near).mkdir(parents=True, exist_ok=True)
            (tmp_path / near / WHEEL).touch()
        monkeypatch.setattr(subprocess, "run", pip)
        monkeypatch.setattr(importlib.metadata, "distribution", distribution)
        monkeypatch.setitem(sys.modules, "normgrad", Loaded())
        exec(
            compile(bootstrap.bootstrap("0.1.0+gabc", **options), "first cell", "exec"),
            {},
        )
        return asked

    for name in ("NORMGRAD_SOURCE", "NORMGRAD_BOOK", "NORMGRAD_NUMBERS"):
        monkeypatch.setenv(name, "")  # so that what the cell sets is taken back
        monkeypatch.delenv(name)
    return run


OF_SITE = "https://a/_sources/normgrad-0.1.0%2Bgabc-py3-none-any.whl"


@pytest.mark.parametrize(
    "options, asked",
    [
        ({"near": "a/b", "site": "https://a/_sources/"}, f"{{0}}/a/b/{WHEEL}"),
        ({"near": "_sources", "site": "https://a/"}, f"{{0}}/_sources/{WHEEL}"),
        ({"near": "a/b/site/_sources"}, f"{{0}}/a/b/site/_sources/{WHEEL}"),
        ({"site": "https://a/_sources/"}, OF_SITE),
        ({"installed": "0.1.0", "near": "a"}, f"{{0}}/a/{WHEEL}"),
        ({"installed": "0.1.0+g123", "near": "a"}, f"{{0}}/a/{WHEEL}"),
    ],
)
def test_first_cell_installs_the_wheel_of_its_chapter(
    session, tmp_path, options, asked
):
    """The one that lies near comes first, then that of the site; another version is replaced."""
    assert session(**options) == [["--force-reinstall", asked.format(tmp_path)]]


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({}, ModuleNotFoundError, rf"Put {re.escape(WHEEL)} beside this notebook"),
        (
            {"installed": "0.1.0+g123", "loaded": "0.1.0+g123", "near": "a"},
            RuntimeError,
            r"normgrad 0\.1\.0\+g123 is loaded: restart the session to use 0\.1\.0\+gabc\.",
        ),
    ],
)
def test_first_cell_says_in_a_sentence_what_it_lacks(session, options, error, words):
    with pytest.raises(error, match=words):
        session(**options)


def test_first_cell_says_what_cannot_be_installed(session, capsys):
    with pytest.raises(
        ModuleNotFoundError,
        match="cannot be installed from https://a/.* download this chapter",
    ):
        session(site="https://a/", works=False)
    assert "no such thing" in capsys.readouterr().out


def test_first_cell_keeps_the_normgrad_of_its_chapter_and_no_other(session, capsys):
    assert session(installed="0.1.0+gabc") == []
    assert "the doctor ran" in capsys.readouterr().out


def test_first_cell_leaves_a_checkout_alone_and_says_so(session, capsys):
    assert session(installed="0.1.0", editable=True) == []
    assert "installed from a checkout" in capsys.readouterr().out


def test_first_cell_installs_what_the_reader_names(session, monkeypatch):
    monkeypatch.setenv("NORMGRAD_SOURCE", "some/folder")
    assert session(installed="0.1.0+gabc", editable=True) == [
        ["--force-reinstall", "some/folder"]
    ]


def test_first_cell_tells_the_session_where_the_book_is_and_its_numbers(session):
    numbers = ", ".join(f"label-{i} 7.{i}" for i in range(30))
    session(installed="0.1.0+gabc", pages="https://a/b/", numbers=numbers)
    assert (
        os.environ["NORMGRAD_BOOK"] == "https://a/b/"
        and os.environ["NORMGRAD_NUMBERS"] == numbers
    )


# -- the ledger's rules -------------------------------------------------------------


def equation(label, registered=False):
    return ledger.Numbered(
        label, "one", 7, "what the registry says" if registered else ""
    )


def entry(kind, docname="one", label="e"):
    return {"label": label, "kind": kind, "docname": docname}


@pytest.mark.parametrize(
    "equations, entries, message",
    [
        ([equation("e")], [], "the equation e has no ledger entry"),
        ([], [entry("numeric")], "the ledger entry e (numeric) has no equation"),
        (
            [equation("e")],
            [entry("proved-for-every-n")],
            "the equation e claims a proof but is typed by hand",
        ),
        (
            [equation("e")],
            [entry("numeric"), entry("proved-for-small-n")],
            "claims a proof but is typed by hand",
        ),
        (
            [equation("e")],
            [entry("definition"), entry("numeric")],
            "conflicting entries: definition, numeric",
        ),
        (
            [equation("e")],
            [entry("numeric", docname="two")],
            "the ledger entry e belongs in one",
        ),
    ],
)
def test_ledger_refuses(equations, entries, message):
    by_label = {"e": entries} if entries else {}
    problems = ledger.compare(
        {numbered.label: numbered for numbered in equations}, by_label
    )
    assert len(problems) == 1 and message in problems[0][2]


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
    assert docstrings.convert(["y = x * w        {eq}`ln-y`"]) == [
        "::",
        "",
        "    y = x * w",
        "",
        "See :eq:`ln-y`.",
        "",
    ]
    converted = docstrings.convert(["As in:", "", "    a = b", "", "    c = d", "Then"])
    assert converted == [
        "As in:",
        "",
        "::",
        "",
        "    a = b",
        "",
        "    c = d",
        "",
        "Then",
        "",
    ]
    assert docstrings.convert(["Prove lhs = rhs for every N."]) == [
        "Prove lhs = rhs for every N.",
        "",
    ]


def test_options_of_a_directive():
    assert plain_markdown.split_options([":a: b c", ":flag:", "", "x"]) == (
        {"a": "b c", "flag": ""},
        ["", "x"],
    )
    assert plain_markdown.split_options(["---", "a: b", "---", "x"]) == (
        {"a": "b"},
        ["x"],
    )


def test_notebook_keeps_what_runs_and_drops_what_is_for_the_page():
    plain = SimpleNamespace(
        convert=str.upper, caption=lambda name, text: f"{name}: {text}"
    )

    def cell(source, kind="code", **metadata):
        return {
            "cell_type": kind,
            "source": source,
            "metadata": metadata,
            "execution_count": 1,
            "outputs": [],
        }

    figure = {"figure": {"name": "fig-a", "caption": "A"}}
    cells = [
        cell("title", "markdown"),
        cell("glue", tags=["book-only"]),
        cell("1 / 0", tags=["raises-exception"]),
    ]
    cells += [cell("plot", mystnb=figure), cell("setup", tags=["remove-cell"])]
    plain_cells = notebooks.plain_notebook(
        {"cells": cells, "metadata": {"kernelspec": {}}}, plain, "first"
    )["cells"]
    sources = ["".join(plain_cell["source"]) for plain_cell in plain_cells]
    assert sources.pop(1) == "first"
    assert sources == ["TITLE", "1 / 0", "plot", "fig-a: A", "setup"]
    assert plain_cells[2]["metadata"] == {"tags": ["raises-exception"]}
    assert plain_cells[-1]["metadata"] == {
        "jupyter": {"source_hidden": True},
        "cellView": "form",
    }


REPORT = '<p><a href="./rms_norm.html#equation-rms-dx">rms-dx</a> on a page</p>'


@pytest.mark.parametrize(
    "site, shown",
    [
        (
            "https://a.github.io/b/book/",
            REPORT.replace("./", "https://a.github.io/b/book/"),
        ),
        ("", "<p>rms-dx on a page</p>"),
    ],
)
def test_links_of_a_report_lead_to_the_site_or_nowhere(site, shown):
    """A notebook lies beside no pages; the output of the page itself stays as it is."""
    output = {
        "output_type": "execute_result",
        "data": {"text/html": REPORT, "text/plain": "x"},
    }
    assert notebooks.relinked(output, site)["data"] == {
        "text/html": shown,
        "text/plain": "x",
    }
    assert output["data"]["text/html"] == REPORT
    stream = {"output_type": "stream", "text": "./rms_norm.html"}
    assert notebooks.relinked(stream, site) is stream


def test_a_cell_that_needs_triton_says_so():
    cell = notebooks.code_cell("x = 1\n", tags=["triton", "hide-input"])
    assert cell["source"] == f"{MARK}\nx = 1\n" and cell["metadata"]["tags"] == [
        "triton"
    ]
    assert notebooks.code_cell("x = 1")["source"] == "x = 1"


# -- small books --------------------------------------------------------------------

CONF = """
import sys
sys.path.insert(0, {extension!r})
extensions = ["myst_nb", "sphinx_proof", "sphinx_book_theme", "normgrad_book"]
numfig, nb_execution_mode, nb_execution_raise_on_error, nb_execution_show_tb = True, "cache", True, True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
root_doc, html_theme, exclude_patterns = "index", "sphinx_book_theme", ["_build"]
book_package = {root!r}
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

$$
2 m = 2
$$ (twice)

```{code-cell} ipython3
:tags: [remove-cell]
from normgrad import ledger
display(ledger.follows("twice", "mean", "index-count", because="both sides of $m = 1$ are doubled"))
ledger.define("mean")
```

```{code-cell} ipython3
ledger.prove("index-count")
```

```{code-cell} ipython3
:tags: [derivation]
from normgrad.symbolic import delta, derive, dim, index, keep_as_typed, tensor, total
keep_as_typed()
N, k = dim("N"), index("k")
x = tensor("x", N)
derive("index-delta", "A sum against a delta renames the index.", None,
       total(N, lambda r: delta(k, r) * x[r]), (x[k], "the delta contracted"))
```
By {eq}`index-delta`.

:::{prf:theorem} Small
:label: small
See {prf:ref}`small`.
:::

```{literalinclude} code.py
:pyobject: f
```
"""
CODE = "x = 1\n\n\ndef f():\n    return x\n"


def write(folder, page):
    conf = CONF.format(extension=str(EXTENSION), root=str(ROOT))
    pages = {"conf.py": conf, "code.py": CODE, "index.md": INDEX, "ledger.md": LEDGER}
    for name, text in {**pages, "one.md": KERNEL + page}.items():
        (folder / name).write_text(text)


def build(folder):
    """(exit status, output) of a build as strict as the book's."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-n",
        "-a",
        "-E",
        "-q",
    ]
    command += [folder, folder / "_build/html"]
    environ = {**os.environ, "GITHUB_REPOSITORY": "someone/book"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environ
    )
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
    assert page.count('class="ledger-badge"') == 4
    assert (
        'href="ledger.html#ledger-index-count"' in page and "proved for every N" in page
    )
    assert 'href="ledger.html#ledger-mean"' in page


def test_a_cell_is_an_equation(book):
    """Numbered, referred to, with its badge and label; the notebook's output has the number and the label too."""
    page = (book / "one.html").read_text()
    assert (
        'id="equation-index-delta"' in page
        and 'href="#equation-index-delta">(4)</a>' in page
    )
    badge = page[page.index('href="ledger.html#ledger-index-delta"') :]
    assert re.search(r"proved for every .*?N.*? · .*?index-delta", badge[:600], re.S)
    assert r"\tag" not in page and "the delta contracted" in page
    notebook = json.loads((book / "_sources/one.ipynb").read_text())
    cells = [
        cell
        for cell in notebook["cells"]
        if "derivation" in cell["metadata"].get("tags", ())
    ]
    (output,) = [cell["outputs"][0]["data"] for cell in cells]
    assert r"\tag{4}" in "".join(
        output["text/markdown"]
    ) and "`index-delta`" in "".join(output["text/markdown"])
    assert "".join(output["text/plain"]).startswith(
        "(4) index-delta: proved for every N"
    )


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            '(x[k], "the delta contracted"))',
            "x[k], 2 * x[k], x[k])",
            "index-delta, step 2",
        ),
        (
            '(x[k], "the delta contracted"))',
            "x[k], total(N, lambda r: delta(r, k) * x[r]))",
            "another equation index-delta than equations.json has",
        ),
        (
            "A sum against a delta renames",
            "A delta renames",
            "another equation index-delta than equations.json has",
        ),
    ],
)
def test_a_changed_derivation_fails_every_build(tmp_path, old, new, message):
    write(tmp_path, ONE.replace(old, new))
    for _ in range(2):
        status, output = build(tmp_path)
        assert status != 0 and message in output


def test_ledger_page_links_back(book):
    page = (book / "ledger.html").read_text()
    for label in ("mean", "index-count", "twice"):
        assert (
            f'id="ledger-{label}"' in page
            and f'href="one.html#equation-{label}"' in page
        )
        assert f'id="equation-{label}"' in (book / "one.html").read_text()


def test_ledger_is_written_for_programs(book):
    mean, count, twice, delta = json.loads((book / "ledger.json").read_text())
    assert (
        mean["label"] == "mean"
        and mean["kind"] == "definition"
        and mean["chapter"] == "one"
    )
    assert delta["label"] == "index-delta" and delta["number"] == "4"
    assert count["url"] == "one.html#equation-index-count" and count["seconds"] > 0
    fields = {
        "label",
        "number",
        "chapter",
        "kind",
        "claim",
        "error",
        "tolerance",
        "seconds",
        "url",
    }
    assert set(count) == set(twice) == fields | {"follows_from", "because"}
    assert twice["kind"] == "follows-from" and twice["follows_from"] == [
        "mean",
        "index-count",
    ]
    assert count["follows_from"] == [] and count["because"] == ""


def test_chapter_offers_notebook_and_colab(book):
    page = (book / "one.html").read_text()
    assert 'href="_sources/one.ipynb"' in page
    assert (
        "https://colab.research.google.com/github/someone/book/blob/gh-pages/_sources/one.ipynb"
        in page
    )
    assert "colab" not in (book / "ledger.html").read_text()


def test_mathjax_is_served_by_the_site(book):
    assert (book / "_static/mathjax/mathjax.js").is_file()
    assert 'src="_static/mathjax/mathjax.js' in (book / "one.html").read_text()


def test_notebook_is_executed_and_plain(book):
    notebook = json.loads((book / "_sources/one.ipynb").read_text())
    text = "\n".join(
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
    )
    assert "{equation}" not in text and ":::" not in text and "{prf:ref}" not in text
    assert "\\tag{1}" in text and "\\tag{2}" in text
    assert (
        "$$\n\nBy [(2)](https://someone.github.io/book/one.html#equation-index-count) and [the ledger](https"
        in text
    )
    assert (
        "```python\ndef f():\n    return x\n```" in text
        and "> **Theorem 1 (Small).**" in text
    )
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    first = "".join(code[0]["source"])
    assert (
        first.endswith("normgrad.doctor()")
        and 'SITE = "https://someone.github.io/book/_sources/"' in first
    )
    assert (
        '"NORMGRAD_NUMBERS"] = "mean 1, index-count 2, twice 3, index-delta 4"' in first
    )
    assert (
        book / "_sources" / re.search(r'^WHEEL = "(.+)"$', first, re.M)[1]
    ).is_file()
    assert code[-1]["outputs"][0]["data"]["text/plain"]


def test_deleted_check_fails_every_build(book, tmp_path):
    write(tmp_path, ONE.replace('ledger.define("mean")', "pass"))
    for _ in range(2):
        status, output = build(tmp_path)
        assert status != 0 and "the equation mean has no ledger entry" in output


def test_everything_wrong_is_named_at_once(tmp_path):
    wrong = ONE.replace("{equation} index-count", "{math}\n:label: index-count\n1 = 1")
    wrong = wrong.replace('ledger.define("mean")', 'ledger.define("mean", "stray")')
    wrong = wrong.replace('"twice", "mean"', '"twice", "means"')
    write(
        tmp_path,
        wrong
        + "\n```{equation} nonesuch\n```\n\n\\begin{align}\n1 = 1\n\\end{align}\n",
    )
    status, output = build(tmp_path)
    assert status != 0
    for message in (
        "the equation index-count claims a proof but is typed by hand",
        "the ledger entry stray (definition) has no equation",
        "the equation twice follows from means, which is no equation",
        "'nonesuch', which no registered equation has",
        "a numbered equation has no label",
    ):
        assert message in output


def test_false_proof_fails_every_build(tmp_path):
    wrong = 'ledger.check("tolerance-sum", {"t": [1.0, 1.0], "fl": 3.0, "u": 2.0**-24}, "two ones are three")'
    write(
        tmp_path,
        ONE.replace(
            'ledger.prove("index-count")', f"from normgrad import ledger\n{wrong}"
        ),
    )
    for _ in range(2):
        status, output = build(tmp_path)
        assert (
            status != 0
            and "tolerance-sum: error 1.000e+00 exceeds the tolerance" in output
        )


def test_an_equation_needs_an_entry_of_its_kind():
    equations = {
        "e": ledger.Numbered("e", "one", 7, claim="it holds", kind="proved-for-every-n")
    }
    proof = {"label": "e", "kind": "proved-for-small-n", "docname": "one"}
    (problem,) = ledger.compare(equations, {"e": [proof]})
    assert "the equation e has no entry of its kind, proved-for-every-n" in problem[2]
    assert (
        ledger.compare(
            equations, {"e": [proof, {**proof, "kind": "proved-for-every-n"}]}
        )
        == []
    )


def follows(label, *sources):
    return {
        "label": label,
        "kind": "follows-from",
        "docname": "one",
        "follows_from": list(sources),
    }


def test_an_equation_follows_from_equations_that_are_there_and_not_from_itself():
    equations = {label: equation(label) for label in "abc"}
    entries = {
        "a": [entry("cited", label="a")],
        "b": [follows("b", "a")],
        "c": [follows("c", "a", "b")],
    }
    assert ledger.compare(equations, entries) == []
    (problem,) = ledger.compare(equations, entries | {"c": [follows("c", "a", "d")]})
    assert "the equation c follows from d, which is no equation" in problem[2]
    circle = ledger.compare(equations, entries | {"b": [follows("b", "c")]})
    assert [
        f"the equation {label} follows from itself" in refusal[2]
        for label, refusal in zip("bc", circle, strict=True)
    ]


def test_a_formula_typed_by_hand_must_be_the_one_that_was_written_down():
    typed = ledger.Numbered("e", "one", 7, latex=r"a = b")
    assert ledger.compare_typed({"e": typed}, {"e": " a =  b"}) == []
    assert (
        "the equation e, typed by hand"
        in ledger.compare_typed({"e": typed}, {"e": "a = -b"})[0][2]
    )
    assert (
        "the equation e, typed by hand" in ledger.compare_typed({"e": typed}, {})[0][2]
    )
    assert (
        "f is not an equation typed by hand"
        in ledger.compare_typed({}, {"f": "a"})[0][2]
    )
    proved = ledger.Numbered("e", "one", 7, claim="it holds", latex="a = b")
    assert ledger.compare_typed({"e": proved}, {}) == []


# -- mistakes that put a formula under a badge, a number or a label that is not its own ------

IMPORTS = """from IPython.display import Markdown, Math
from normgrad import ledger
"""
CELL = "```{code-cell} ipython3\n%s\n```\n"
TYPED_PROOF = "$$\n\\sum_{r=1}^{N} \\delta_{rr} = N + 1\n$$ (index-partial-x)\n\n"
# name: (a page, what the build says of it)
MISTAKES = {
    "a label typed into Math": (
        CELL % (IMPORTS + "Math(r'\\sum_{r=1}^{N} 1 = N + 1 \\tag{index-count}')"),
        "an output has the label index-count, which no derivation gave it",
    ),
    "a proof beside a typed formula": (
        TYPED_PROOF + CELL % (IMPORTS + "ledger.prove('index-partial-x')"),
        "the equation index-partial-x claims a proof but is typed by hand",
    ),
    "a claim as a definition": (
        "$$\n2 m = 3\n$$ (claimed)\n\n" + CELL % (IMPORTS + "ledger.define('claimed')"),
        "the equation claimed claims something and is no definition: its left side is no symbol",
    ),
    "a display without a label": (
        "One sees that\n\n$$\n\\begin{aligned}\nq_{j} &= x_{j} - \\mathrm{mean} \\\\\n"
        "m &= x w + m\n\\end{aligned}\n$$\n",
        "m = x w + m: nothing checks it",
    ),
    "numbers of another formula": (
        "$$\n\\left| t - s \\right| \\le u\n$$ (tolerance-sum)\n\n"
        + CELL
        % (
            IMPORTS
            + "ledger.check('tolerance-sum', {'t': [1.0, 1.0], 'fl': 2.0, 'u': 2.0**-24}, 'c')"
        ),
        "the equation tolerance-sum is not the formula that the numbers were put into",
    ),
}
SYMPY = """from sympy import IndexedBase, Sum, diff, symbols
from normgrad.prove import define, prove, refute
N, j, r = symbols("N j r", integer=True, positive=True)
x = symbols("x", cls=IndexedBase, shape=(N,), real=True)
mean = define("mean", Sum(x[r], (r, 1, N)) / N)
"""
MEAN = ":label: ln-entry-mean\n:claim: Every entry contributes 1/N to the mean.\n"
TURN = ":tags: [your-turn]\n"
IN_SYMPY = "prove(diff(mean, x[j]), 1 / N)"
MISTAKES |= {
    "a false verdict": (
        CELL % (SYMPY + "prove(diff(mean, x[j]), 1)"),
        "a verdict is false: **refuted**: left − right is",
    ),
    "a claim that is not refuted": (
        CELL % (SYMPY + IN_SYMPY.replace("prove", "refute")),
        "a verdict is false: **not refuted: proved for every $N$**",
    ),
    "a label without a verdict": (
        CELL % (MEAN + SYMPY + IN_SYMPY + ".rhs"),
        "the cell ln-entry-mean has 0 verdicts, and needs one",
    ),
    "a label on a refutation": (
        CELL
        % (MEAN.replace("mean", "jacobian", 1) + SYMPY + "refute(diff(mean, x[j]), 1)"),
        "the cell ln-entry-jacobian refutes what it labels",
    ),
    "a label without a claim": (
        CELL % (":label: ln-entry-rstd\n" + SYMPY + IN_SYMPY),
        "the cell ln-entry-rstd has no claim",
    ),
    "a verdict that nobody sees": (
        CELL % (SYMPY + IN_SYMPY + "\nmean"),
        "a verdict is not shown: prove(diff(mean, x[j]), 1 / N)",
    ),
    "a verdict in a variable": (
        CELL % (SYMPY + "slope = " + IN_SYMPY + "\nmean"),
        "a verdict is not shown: prove(diff(mean, x[j]), 1 / N)",
    ),
    "another statement under a label": (
        CELL % (MEAN + SYMPY + "prove(2 * diff(mean, x[j]), 2 / N)"),
        "another equation ln-entry-mean than equations.json has",
    ),
}


@pytest.fixture(scope="module")
def in_sympy(tmp_path_factory):
    """A site whose page types its derivations in SymPy."""
    folder = tmp_path_factory.mktemp("in_sympy")
    cells = [
        MEAN + SYMPY + f"slope = {IN_SYMPY}\nslope",
        "refute(diff(mean, x[j]), 1)",
        TURN + "prove(diff(mean, x[j]), 2)",
        f"assert {IN_SYMPY}",
    ]
    text = "# One\n\nBy {eq}`ln-entry-mean`:\n" + "".join(CELL % cell for cell in cells)
    write(folder, text)
    status, output = build(folder)
    assert status == 0, output
    return folder / "_build/html"


def test_label_and_claim_are_options_of_a_cell_in_sympy(in_sympy):
    """The equation has number, badge and ledger entry; a verdict without label has its words below it."""
    page = (in_sympy / "one.html").read_text()
    assert 'id="equation-ln-entry-mean"' in page
    assert 'href="#equation-ln-entry-mean">(1)</a>' in page
    badge = page[page.index('href="ledger.html#ledger-ln-entry-mean"') :]
    assert re.search(r"proved for every .*?N.*? · .*?ln-entry-mean", badge[:700], re.S)
    assert page.count('<p class="verdict">') == 4
    assert page.count("<strong>refuted</strong>: left − right is") == 2
    entries = json.loads((in_sympy / "ledger.json").read_text())
    (entry,) = [each for each in entries if each["label"] == "ln-entry-mean"]
    assert entry["kind"] == "proved-for-every-n" and entry["claim"].startswith("Every")


def test_a_notebook_in_sympy_has_label_and_claim_above_the_cell(in_sympy):
    notebook = json.loads((in_sympy / "_sources/one.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    place = next(n for n, source in enumerate(sources) if source.startswith("(1) "))
    assert sources[place] == (
        "(1) `ln-entry-mean`: Every entry contributes 1/N to the mean."
    )
    cells = notebook["cells"][place + 1 :]
    (cell,) = [each for each in cells if "slope = prove" in "".join(each["source"])]
    assert "label" not in "".join(cell["source"])
    (output,) = cell["outputs"]
    assert "**proved for every $N$**" in "".join(output["data"]["text/markdown"])


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory, request):
    """What the build says of a book in which every page has another mistake, of those that are tested in this run."""
    folder = tmp_path_factory.mktemp("mistaken")
    write(folder, ONE)
    tried = {
        item.callspec.params.get("mistake")
        for item in request.session.items
        if hasattr(item, "callspec")
    }
    pages = {
        f"mistake{number}": MISTAKES[name][0]
        for number, name in enumerate(MISTAKES)
        if name in tried
    }
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(f"{KERNEL}# A page\n\n{text}")
    (folder / "index.md").write_text(
        INDEX.replace("one\n", "one\n" + "".join(f"{name}\n" for name in pages))
    )
    status, output = build(folder)
    assert status != 0
    return output


@pytest.mark.parametrize(
    "number, mistake", list(enumerate(MISTAKES)), ids=list(MISTAKES)
)
def test_a_mistake_is_refused_on_its_page(mistaken, number, mistake):
    message = MISTAKES[mistake][1]
    lines = [line for line in mistaken.splitlines() if message in line]
    assert any(f"mistake{number}.md" in line for line in lines), mistaken
