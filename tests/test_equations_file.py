"""equations.json is what the pages' cells derive, and a page is executed again when what it quotes has changed."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from normgrad.symbolic import registry

pytest.importorskip("myst_nb", reason="the book's packages are not installed")

import nbformat  # noqa: E402
from jupyter_cache import get_cache  # noqa: E402
from jupyter_cache.base import CacheBundleIn  # noqa: E402
from page_cells import equations_file  # noqa: E402

from normgrad_book import execution  # noqa: E402

EXTENSION = Path(__file__).parents[1] / "book/_ext"
CELL = """```{code-cell} ipython3
%s
```
"""
DERIVING = """:label: %s
:claim: What holds.
from sympy import symbols
from normgrad.prove import prove
from normgrad.symbolic import equation
N = symbols("N", integer=True, positive=True)
prove(%s)"""
DOUBLED = DERIVING % ("doubled", "N + N, 2 * N")
QUOTING = DERIVING % ("quoting", 'N + N + N, equation("doubled").chain[-1] + N')


def test_the_file_is_what_the_cells_derive():
    """Each entry is read back as the very equation of its cell, or it would not be written.

    In a process of its own, as `make equations` has it: the letters of sums depend on what was proved before.
    """
    code = (
        "from normgrad_book import equations_file; print(equations_file.text(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(EXTENSION)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == registry.FILE.read_text(encoding="utf8"), "make equations"


# -- small books


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A function that makes a book of pages, {name: its cells}, with nothing registered."""
    entries = {}
    monkeypatch.setattr(equations_file, "BOOK", tmp_path)
    monkeypatch.setattr(registry, "entries", lambda: entries)

    def make(**pages):
        for name, cells in pages.items():
            text = "".join(CELL % cell for cell in cells)
            (tmp_path / f"{name}.md").write_text(text, encoding="utf8")
        return entries

    return make


def test_a_page_may_quote_an_equation_of_a_later_one(book):
    book(a=[QUOTING], b=[DOUBLED])
    derived = equations_file.derived()
    assert {label: new["page"] for label, new in derived.items()} == {
        "doubled": "b",
        "quoting": "a",
    }
    assert derived["quoting"]["equation"] == ["N + N + N = 2*N + N"]


def test_an_unknown_equation_and_a_label_of_two_cells_are_refused(book):
    book(a=[QUOTING])
    with pytest.raises(ValueError, match="got 'doubled', which no registered equation"):
        equations_file.derived()
    book(a=[DOUBLED], b=[DOUBLED])
    with pytest.raises(ValueError, match="doubled: two cells derive it"):
        equations_file.derived()


COLON = DERIVING.replace("What holds.", "What holds: %s.") % ("colon", "all", "N, N")


@pytest.mark.parametrize(
    "cell", [COLON, COLON.replace("What holds: all.", "[a, b]")], ids=["colon", "list"]
)
def test_a_claim_that_yaml_takes_for_something_else_is_refused_with_the_fix(book, cell):
    book(a=[cell])
    with pytest.raises(ValueError, match=r"a.md, line 1: .*write :claim: \"What holds"):
        equations_file.derived()
    book(a=[cell.replace("What holds: all.", '"What holds: all."')])
    if cell is COLON:
        assert equations_file.derived()["colon"]["claim"] == "What holds: all."


def test_what_a_reader_derives_is_not_written(book):
    turn = ":tags: [your-turn]\n" + DERIVING % ("turn", "N, N")
    book(a=[turn, DOUBLED])
    assert list(equations_file.derived()) == ["doubled"]


# -- what is executed again


def test_a_page_is_executed_again_when_an_equation_that_it_quotes_changes(
    tmp_path, monkeypatch
):
    """Of two pages that quote one equation each, the one whose equation has changed."""
    pages = {"counts": "index-count", "renames": "index-delta"}
    for docname, label in pages.items():
        (tmp_path / f"{docname}.md").write_text(f'`equation("{label}")`.')
    cell = nbformat.v4.new_code_cell
    monkeypatch.setattr(
        execution,
        "read_notebook",
        lambda env, docname: nbformat.v4.new_notebook(cells=[cell(pages[docname])]),
    )
    env = SimpleNamespace(doc2path=lambda docname: tmp_path / f"{docname}.md")
    cache = get_cache(tmp_path / "cache")

    def executed():
        chapters = execution.unexecuted(env, pages, cache)
        for path, notebook, key in chapters:
            bundle = CacheBundleIn(notebook, str(path), data={"quoted": key})
            cache.cache_notebook_bundle(bundle, check_validity=False)
        return [path.stem for path, _, _ in chapters]

    assert executed() == ["counts", "renames"]
    assert executed() == []
    changed = registry.entries()["index-delta"] | {"claim": "Another."}
    monkeypatch.setitem(registry.entries(), "index-delta", changed)
    assert executed() == ["renames"]
    assert executed() == []
