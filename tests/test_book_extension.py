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


def test_repository_of_the_build_service_comes_first(checkout):
    root = checkout("git@github.com:someone/book.git")
    assert (
        repository.github_repository(root, environ={"GITHUB_REPOSITORY": "a/b"})
        == "a/b"
    )


def test_no_repository_at_all(tmp_path):
    assert repository.github_repository(tmp_path, environ={}) == ""
    assert repository.git(tmp_path / "missing", "rev-parse", "HEAD") == ""
    assert repository.site_address("") == ""


def test_addresses():
    assert repository.site_address("Some/book") == "https://some.github.io/book/"
    assert repository.site_address("some/some.github.io") == "https://some.github.io/"


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
        "normgrad/teaching/notebook.py",
        "normgrad_figures/style.py",
    } <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "normgrad",
        "normgrad_figures",
    }
    assert built[1].stat().st_size < 1e6


def test_local_version_tells_changed_files_from_those_of_the_commit(checkout, tmp_path):
    root = checkout()
    (root / "src").mkdir()
    assert wheel.local_version(root, root, "") == ""
    assert (
        wheel.local_version(root, root / "src", "1a2b3c4d5e6f7788") == "+g1a2b3c4d5e6f"
    )
    found = set()
    for text in ("x = 1", "x = 2"):
        (root / "src/a.py").write_text(text)
        found.add(wheel.local_version(root, root / "src", "1a2b3c4d5e6f7788"))
    assert len(found) == 2 and all(
        re.fullmatch(r"\+g1a2b3c4d5e6f\.d[0-9a-f]{8}", each) for each in found
    )


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


@pytest.mark.parametrize(
    "near", ["a/b", "a", "", "a/_sources", "_sources", "a/b/site/_sources"]
)
def test_first_cell_takes_the_wheel_that_lies_near(session, tmp_path, near):
    assert session(near=near or ".", site="https://a/_sources/") == [
        ["--force-reinstall", str(tmp_path / (near or ".") / WHEEL)]
    ]


def test_first_cell_takes_the_wheel_of_the_site(session):
    expected = "https://a/_sources/normgrad-0.1.0%2Bgabc-py3-none-any.whl"
    assert session(site="https://a/_sources/") == [["--force-reinstall", expected]]


def test_first_cell_says_in_a_sentence_what_it_lacks(session):
    with pytest.raises(
        ModuleNotFoundError,
        match=re.escape(f"Put {WHEEL} beside this notebook") + r"[^.]*\.$",
    ):
        session()


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


@pytest.mark.parametrize("older", ["0.1.0", "0.1.0+g123", "0.0.9"])
def test_first_cell_replaces_another_normgrad(session, older):
    assert session(installed=older, near="a") != []


def test_first_cell_says_when_another_normgrad_is_loaded(session):
    message = (
        r"normgrad 0\.1\.0\+g123 is loaded: restart the session to use 0\.1\.0\+gabc\."
    )
    with pytest.raises(RuntimeError, match=message):
        session(installed="0.1.0+g123", loaded="0.1.0+g123", near="a")


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


def test_first_cell_of_a_page_without_numbers_or_address(session):
    session(installed="0.1.0+gabc")
    assert "NORMGRAD_BOOK" not in os.environ and "NORMGRAD_NUMBERS" not in os.environ


def test_first_cell_installs_triton_only_where_the_chapter_needs_it():
    assert "triton" not in bootstrap.bootstrap("1").lower()
    text = bootstrap.bootstrap("1", triton=True)
    assert (
        text.index("pip_install(wanted)")
        < text.index("notebook.start()")
        < text.index("normgrad.doctor()")
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
    assert (
        ledger.compare(
            {"e": equation("e", registered=registered)},
            {"e": [entry(kind) for kind in kinds]},
        )
        == []
    )


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


def test_docstring_lists_stay_lists():
    assert docstrings.convert(["Two:", "- a", "  more", "- b"]) == [
        "Two:",
        "",
        "* a",
        "  more",
        "",
        "* b",
        "",
    ]


def test_signatures_hold_no_paths():
    signature = "(module: M = <module 'a.b' from '/somewhere/a/b.py'>, x=1)"
    assert docstrings.process_signature(None, "", "", None, None, signature, None) == (
        "(module: M = a.b, x=1)",
        None,
    )
    assert docstrings.process_signature(None, "", "", None, None, None, None) == (
        None,
        None,
    )


def test_signatures_can_be_read_as_python():
    """Sphinx splits one that cannot at all its commas, those within a type too."""
    signature, returns = "(names: dict[str, int] = <factory>, x=1)", "None"
    assert docstrings.process_signature(
        None, "", "", None, None, signature, returns
    ) == (
        "(names: dict[str, int] = ..., x=1)",
        "None",
    )


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
    made = notebooks.plain_notebook(
        {"cells": cells, "metadata": {"kernelspec": {}}}, plain, "first"
    )["cells"]
    sources = ["".join(each["source"]) for each in made]
    assert sources.pop(1) == "first"
    assert sources == ["TITLE", "1 / 0", "plot", "fig-a: A", "setup"]
    assert made[2]["metadata"] == {"tags": ["raises-exception"]}
    assert made[-1]["metadata"] == {
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


def test_what_a_student_writes_stays_marked():
    assert notebooks.code_cell("", tags=["homework", "hide-cell"])["metadata"][
        "tags"
    ] == ["homework"]


def test_a_cell_that_needs_triton_says_so():
    cell = notebooks.code_cell("x = 1\n", tags=["triton", "hide-input"])
    assert cell["source"] == f"{MARK}\nx = 1\n" and cell["metadata"]["tags"] == [
        "triton"
    ]
    assert notebooks.code_cell("x = 1")["source"] == "x = 1"


@pytest.mark.parametrize(
    "source, tags, expected",
    [
        ("x = 1", [], False),
        ("x = 1", ["triton"], True),
        ("import triton", [], True),
        ("f(backend='triton')", [], True),
    ],
)
def test_a_notebook_with_kernels_sees_to_triton(source, tags, expected):
    text = {"cell_type": "markdown", "source": "triton", "metadata": {}}
    code = {"cell_type": "code", "source": source, "metadata": {"tags": tags}}
    assert notebooks.needs_triton({"cells": [text, code]}) is expected


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
from normgrad.symbolic import contract, delta, derive, dim, index, keep_as_typed, tensor, total
keep_as_typed()
N, k = dim("N"), index("k")
x = tensor("x", N)
derive("index-delta", "A sum against a delta renames the index.", None,
       total(N, lambda r: delta(k, r) * x[r]), contract, x[k])
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


def write(folder, one):
    conf = CONF.format(extension=str(EXTENSION), root=str(ROOT))
    pages = {"conf.py": conf, "code.py": CODE, "index.md": INDEX, "ledger.md": LEDGER}
    for name, text in {**pages, "one.md": KERNEL + one}.items():
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
    (made,) = [cell["outputs"][0]["data"] for cell in cells]
    assert r"\tag{4}" in "".join(made["text/markdown"]) and "`index-delta`" in "".join(
        made["text/markdown"]
    )
    assert "".join(made["text/plain"]).startswith("(4) index-delta: proved for every N")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("contract, x[k])", "contract, 2 * x[k], x[k])", "index-delta, step 2"),
        (
            "contract, x[k])",
            "contract, x[k], total(N, lambda r: delta(r, k) * x[r]))",
            "derives index-delta is not",
        ),
        (
            "A sum against a delta renames",
            "A delta renames",
            "derives index-delta is not the statement",
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
    known = {
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
    assert set(count) == set(twice) == known | {"follows_from", "because"}
    assert twice["kind"] == "follows-from" and twice["follows_from"] == [
        "mean",
        "index-count",
    ]
    assert count["follows_from"] == [] and count["because"] == ""


def test_an_equation_that_follows_from_others_names_their_numbers(book):
    words = "follows from (1), (2): both sides of"
    assert (
        words in (book / "one.html").read_text()
        and words in (book / "ledger.html").read_text()
    )
    assert "ledger-follows-from" in (book / "one.html").read_text()


def test_chapter_offers_notebook_and_colab(book):
    page = (book / "one.html").read_text()
    assert 'href="_sources/one.ipynb"' in page
    assert (
        "https://colab.research.google.com/github/someone/book/blob/gh-pages/_sources/one.ipynb"
        in page
    )
    assert "colab" not in (book / "ledger.html").read_text()


def test_a_site_of_no_repository_says_how_to_get_the_button():
    app = SimpleNamespace(
        config=SimpleNamespace(book_repository=""),
        env=SimpleNamespace(
            metadata={"book/one": {"kernelspec": {}}},
            found_docs={"book/one", notebooks.HOW},
        ),
        builder=SimpleNamespace(
            get_relative_uri=lambda start, end: f"{end} from {start}"
        ),
    )
    context = {"header_buttons": []}
    notebooks.offer_notebook(app, "book/one", "", context, None)
    (group,) = context["header_buttons"]
    assert [each["url"] for each in group["buttons"]] == [
        f"{notebooks.HOW} from book/one#colab-button"
    ]
    assert "\n(colab-button)=\n" in (ROOT / f"{notebooks.HOW}.md").read_text(
        encoding="utf8"
    )


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
    made = {"label": "e", "kind": "proved-for-small-n", "docname": "one"}
    (found,) = ledger.compare(equations, {"e": [made]})
    assert "the equation e has no entry of its kind, proved-for-every-n" in found[2]
    assert (
        ledger.compare(equations, {"e": [made, {**made, "kind": "proved-for-every-n"}]})
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
    (found,) = ledger.compare(equations, entries | {"c": [follows("c", "a", "d")]})
    assert "the equation c follows from d, which is no equation" in found[2]
    circle = ledger.compare(equations, entries | {"b": [follows("b", "c")]})
    assert [
        f"the equation {label} follows from itself" in each[2]
        for label, each in zip("bc", circle, strict=True)
    ]


def test_the_kinds_of_the_package_are_those_of_the_page():
    from normgrad.ledger import WORDS
    from normgrad_book import ledger_page

    assert ledger_page.KINDS == WORDS


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
TYPED_PROOF = "$$\n\\sum_{r=1}^{N} \\delta_{rr} = N + 1\n$$ (index-trace)\n\n"
# name: (a page, what the build says of it)
MISTAKES = {
    "a label typed into Math": (
        CELL % (IMPORTS + "Math(r'\\sum_{r=1}^{N} 1 = N + 1 \\tag{index-count}')"),
        "an output has the label index-count, which no derivation gave it",
    ),
    "a label typed into Markdown": (
        CELL % (IMPORTS + "Markdown('$$ N = N + 1 \\\\tag{mean} $$')"),
        "an output has the label mean, which no derivation gave it",
    ),
    "an entry in another cell": (
        CELL % "from normgrad import ledger\nmade = ledger.define('mean')"
        + "\n"
        + CELL % "made",
        "the entry mean is shown by a cell that does not name it",
    ),
    "a proof beside a typed formula": (
        TYPED_PROOF + CELL % (IMPORTS + "ledger.prove('index-trace')"),
        "the equation index-trace claims a proof but is typed by hand",
    ),
    "a reason beside a typed formula": (
        "$$\nJ_{kj} = -J_{jk}\n$$ (l2-hessian)\n\n"
        + CELL
        % (
            IMPORTS
            + "ledger.follows('l2-hessian', 'l2-hessian-x', because='it is symmetric')"
        ),
        "the equation l2-hessian is one of the package but is typed by hand",
    ),
    "a claim as a definition": (
        "$$\n2 m = 3\n$$ (claimed)\n\n" + CELL % (IMPORTS + "ledger.define('claimed')"),
        "the equation claimed claims something and is no definition: its left side is no symbol",
    ),
    "a definition of what it uses": (
        "$$\nm_{k} = m_{k} + 1\n$$ (circular)\n\n"
        + CELL % (IMPORTS + "ledger.define('circular')"),
        "the equation circular claims something and is no definition: m stands on both sides",
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
        f"mistake{place}": MISTAKES[name][0]
        for place, name in enumerate(MISTAKES)
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
    "place, mistake", list(enumerate(MISTAKES)), ids=list(MISTAKES)
)
def test_a_mistake_is_refused_on_its_page(mistaken, place, mistake):
    message = MISTAKES[mistake][1]
    lines = [line for line in mistaken.splitlines() if message in line]
    assert any(f"mistake{place}.md" in line for line in lines), mistaken


def test_a_label_that_is_used_twice_fails(tmp_path):
    write(tmp_path, ONE + "\n```{equation} index-count\n```\n")
    status, output = build(tmp_path)
    assert status != 0 and "duplicate label of equation index-count" in output
