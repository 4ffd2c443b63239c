"""What the operator chapters ask of their readers, counted in the pages and in the notebooks that the site offers."""

import ast
from functools import cache

import page_cells
import pytest

cells = page_cells.page_cells
reader_work = pytest.importorskip("normgrad_book.reader_work")
reading_time = pytest.importorskip("normgrad_book.reading_time")
NOTEBOOKS = page_cells.ROOT / "_build/html/_sources/book"
LEAST = 5  # cells that derive, in each chapter
SHARE = 0.6  # of the key results, outputs of visible cells

each_chapter = pytest.mark.parametrize("chapter", reader_work.CHAPTERS)


@cache
def row_of(chapter):
    return next(row for row in reader_work.rows() if row[0] == chapter)


@each_chapter
def test_the_reader_derives(chapter):
    _, deriving, derived, *_ = row = row_of(chapter)
    shown, named = map(int, derived.split(" of "))
    assert deriving >= LEAST and shown >= SHARE * named > 0, row


@each_chapter
def test_the_reader_checks(chapter):
    """Differences for NumPy, torch's checks by name for torch's function and for the Triton kernel."""
    *_, differences, gradcheck, gradgradcheck, broken = row = row_of(chapter)
    assert differences >= 1 and gradcheck >= 2 and gradgradcheck >= 1 and broken == 0, row


@pytest.mark.site
@pytest.mark.skipif(not NOTEBOOKS.is_dir(), reason="no notebooks in _build/html: run `make book` first")
def test_notebooks_hold_the_cells_of_the_pages():
    assert reader_work.rows(NOTEBOOKS) == reader_work.rows()
    for members in reader_work.pages().values():
        for page in members:
            written = cells.of_page(page_cells.ROOT / f"book/{page.name}.md")
            offered = cells.of_notebook(NOTEBOOKS / f"{page.name}.ipynb")
            assert [one.source for one in offered] == [one.source for one in written], page.name


# -- the counts themselves


def cell(source, place=0, tags=()):
    return cells.Cell(place, source, frozenset(tags))


def test_what_cells_define_and_use():
    one = cell(
        "import numpy as np\nx = a[0]\nfor n in range(3):\n    x += n\ndef f(y):\n    return y + b\nlayer[x] = c"
    )
    assert one.defines == {"np", "x", "n", "f"} and one.uses == {"a", "b", "c", "layer"}
    assert one.changes == {"layer"}
    assert cell("x = x + 1").uses == {"x"} and cell("total = sum(n for n in numbers)").uses == {"numbers"}
    assert cell("%pip install a\nx = 1").defines == {"x"}


def test_cells_that_others_stand_on():
    page = [cell("a = 1", 0), cell("b = 2", 1), cell("d = {}\nd[a] = 1", 2), cell("d[b] = 2", 3), cell("print(d)", 4)]
    assert [one.place for one in cells.needed(page, lambda one: one.place == 4)] == [0, 1, 2, 3, 4]
    assert [one.place for one in cells.needed(page, lambda one: one.place == 2)] == [0, 2]
    hidden = [cell("a = 1", 0, ["hide-cell"]), cell("b = a", 1)]
    assert [(one.place, name) for one, name in cells.from_hidden(hidden)] == [(1, "a")]
    assert cells.from_hidden([*hidden, cell("a = 2", 2), cell("c = a", 3)])[1:] == []


@pytest.mark.parametrize(
    "source, found",
    [
        ("a = 1; b = 2", "more than one statement"),
        ("if a: b = 2", "more than one statement"),
        ("f(), g()", "calls joined by commas"),
        ("M, N = x.shape\nif a:\n    b = f(\n        c,\n    )\nelse:\n    b = 3", ""),
        ("def f(x):\n    return x\n\nclass A:\n    y = 1", ""),
    ],
)
def test_squeezed_lines_are_found(source, found):
    lines = reader_work.squeezed(cell(source))
    assert bool(lines) == bool(found) and all(found in line for line in lines)


def test_calls_of_torchs_checks_are_read():
    page = reader_work.Page("a", (cell("assert torch.autograd.gradcheck(Mine.apply, (x,))\ngradgradcheck(f, x)"),))
    assert page.checks == {"gradcheck": ["Mine.apply"], "gradgradcheck": ["f"]}
    other = reader_work.Page("a", (cell("contract.check_gradcheck('torch', case, spec)"),))
    assert not any(other.checks.values())


def test_the_model_of_reading():
    amount = reading_time.Amount(words=130, displays=1, display_lines=2, code_lines=60, figures=1)
    assert amount.minutes == 1 + 1 + 7 + 1


def test_what_is_read(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "---\njupytext: {}\n---\n# Two words\n\nThree more words, $a = b$ and {eq}`x`.\n\n$$\na \\\\\nb\n$$ (c)\n\n"
        "```{code-cell} ipython3\nx = 1\n\ny = 2\n```\n```{code-cell} ipython3\n:tags: [hide-cell]\nz = 1\n```\n"
        "```{code-cell} ipython3\nderive('a', 'b', d, s, t, u)\n```\n```{solution} ex\nMany words here.\n```\n"
    )
    held = reading_time.amount(page)
    assert (held.words, held.displays, held.display_lines, held.code_lines) == (8, 2, 4, 3)


def test_labels_are_read_from_calls():
    (call,) = cell("slope = derive('rms-rstd', 'claim', layer, a, b)").plain_calls("derive")
    assert cells.label_of(call) == "rms-rstd" and cells.label_of(ast.parse("define(x)").body[0].value) == ""
