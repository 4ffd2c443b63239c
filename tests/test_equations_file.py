"""What is written of the pages' cells: every label once, whatever the order of pages, and nothing of a reader's own."""

import pytest
from page_cells import equations_file

from normgrad.symbolic import registry
from normgrad.symbolic.registry import proved
from normgrad.symbolic.symbols import N
from normgrad.symbolic.written import entry

CELL = """```{code-cell} ipython3
%s
```
"""
DERIVING = """from normgrad.symbolic import derive, dim, equation, keep_as_typed
keep_as_typed()
N = dim("N")
derive("%s", "What holds.", None, %s)"""
DOUBLED = DERIVING % ("doubled", "N + N, 2 * N")
QUOTING = DERIVING % ("quoting", 'N + N + N, equation("doubled").chain[-1] + N')


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


def test_what_a_reader_derives_is_not_written(book):
    turn = ":tags: [your-turn]\n" + DERIVING % ("turn", "N, N")
    book(a=[turn, DERIVING % ("mine", "N, N"), DOUBLED])
    assert list(equations_file.derived()) == ["doubled"]


def test_an_equation_that_no_cell_derives_stays_while_a_page_shows_it(book, tmp_path):
    """Of three entries: one is typed and shown, one is typed and shown again only, one was a cell's."""
    entries = book()
    for label, more in (("kept", "typed"), ("again", "typed"), ("gone", "page")):
        equation = proved(label, "What holds.", None, N, N)
        entries[label] = entry(equation, "a") | {more: True, "latex": ["N"]}
    shown = "```{equation} kept\n```\n```{equation} again\n:ends:\n```\n"
    (tmp_path / "b.md").write_text(shown + "```{equation} gone\n```\n")
    kept = {
        label: new
        for label, new in equations_file.typed().items()
        if not label.startswith("norm-")
    }
    assert list(kept) == ["kept"]
    assert kept["kept"]["page"] == "b" and kept["kept"]["latex"] == ["N = N"]
