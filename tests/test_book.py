"""What the book's sources must hold, checked without building it."""

import re
from importlib import import_module, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

from page_cells import broken_rules, from_hidden  # noqa: E402

from normgrad_book import cells  # noqa: E402

PAGES = sorted((ROOT / "book").glob("*.md"))
TEXT = {page: page.read_text(encoding="utf8") for page in PAGES}


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def registered():
    formulas = import_module("normgrad.ledger.formulas").formulas()
    return import_module("normgrad.symbolic").equations() | formulas


def typed_labels(text):
    """The labels of equations that are written by hand."""
    return re.findall(r"\$\$ *\(([\w:.-]+)\) *$", text, re.M) + re.findall(
        r"^```\{math\}\n(?::[^\n]*\n)*?:label: *(\S+)", text, re.M
    )


def canonical(name):
    return re.sub("[-_.]+", "-", name).lower()


def test_lock_is_complete():
    """Whatever the pinned packages need here is pinned as well, but for torch's CUDA libraries, which torch pins."""
    requirements = pytest.importorskip("packaging.requirements")
    lines = [
        line
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if "==" in line
    ]
    pinned = {canonical(line.split("==")[0]) for line in lines}
    for name in sorted(
        pinned - {"triton"}
    ):  # triton needs nothing and is not everywhere
        needs = [
            requirements.Requirement(text) for text in metadata.requires(name) or ()
        ]
        needs = [
            need
            for need in needs
            if need.marker is None or need.marker.evaluate({"extra": ""})
        ]
        missing = {canonical(need.name) for need in needs} - pinned
        assert not [
            need for need in missing if not need.startswith(("cuda-", "nvidia-"))
        ], name


@each_page
def test_latex_is_plain(page):
    """No macros, which notebooks lack; no `\\top`, which loses its bar as a superscript; no numbers by hand."""
    assert not re.findall(
        r"\\(?:top|newcommand|renewcommand|def|tag|label|DeclareMathOperator)\b",
        TEXT[page],
    )
    assert not re.findall(
        r"^\\begin\{(?:align|equation|gather|eqnarray)\}", TEXT[page], re.M
    )


@each_page
def test_visible_cells_can_be_read_and_changed(page):
    """They use nothing from hidden ones, fit into 80 columns, and hold one statement a line."""
    assert broken_rules(cells.of_page(page)) == []


def cell(source, place=0, tags=()):
    return cells.Cell(place, source, frozenset(tags))


def test_what_cells_define_and_use():
    parsed = cell(
        "import numpy as np\nx = a[0]\nfor n in range(3):\n    x += n\ndef f(y):\n    return y + b\nlayer[x] = c"
    )
    assert parsed.defines == {"np", "x", "n", "f"} and parsed.uses == {
        "a",
        "b",
        "c",
        "layer",
    }
    assert parsed.changes == {"layer"}
    assert cell("x = x + 1").uses == {"x"} and cell(
        "total = sum(n for n in numbers)"
    ).uses == {"numbers"}
    assert cell("%pip install a\nx = 1").defines == {"x"}


def test_cells_that_others_stand_on():
    page = [
        cell("a = 1", 0),
        cell("b = 2", 1),
        cell("d = {}\nd[a] = 1", 2),
        cell("d[b] = 2", 3),
        cell("print(d)", 4),
    ]
    assert [
        cell.place for cell in cells.needed(page, lambda cell: cell.place == 4)
    ] == [0, 1, 2, 3, 4]
    assert [
        cell.place for cell in cells.needed(page, lambda cell: cell.place == 2)
    ] == [0, 2]
    hidden = [cell("a = 1", 0, ["hide-cell"]), cell("b = a", 1)]
    assert [(cell.place, name) for cell, name in from_hidden(hidden)] == [(1, "a")]
    assert from_hidden([*hidden, cell("a = 2", 2), cell("c = a", 3)])[1:] == []


def test_docstrings_cite_equations_that_exist():
    labels = {
        *registered(),
        *(label for text in TEXT.values() for label in typed_labels(text)),
    }
    for path in sorted((ROOT / "src").rglob("*.py")):
        cited = re.findall(r"\{eq\}`([^`]+)`", path.read_text(encoding="utf8"))
        assert not [label for label in cited if label not in labels], path.name


def test_every_registered_equation_is_shown_once():
    shown = re.findall(r"^```\{equation\} *(\S+)\n```", "\n".join(TEXT.values()), re.M)
    for page in PAGES:
        shown += [label for cell in cells.of_page(page) for label in cell.labels]
    assert sorted(shown) == sorted(registered())
