"""The page "Sources, line by line": every item of the three sources, each tied to an equation or a test that exists."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the book's packages are not installed")
ROOT = Path(__file__).parents[1]

from page_cells import derived  # noqa: E402

PAGE = (ROOT / "book/sources.md").read_text(encoding="utf8")
ROWS = dict(re.findall(r"^\| ([ABCP]\d+) \| (.*) \|$", PAGE, re.M))
ITEMS = [
    f"{source}{number}"
    for source, last in (("A", 44), ("B", 20), ("C", 40), ("P", 16))
    for number in range(1, last + 1)
]
PAGES = list((ROOT / "book").glob("*.md"))
# By a directive, or by the cell that derives it.
SHOWN = set(
    re.findall(
        r"^```\{equation\} *(\S+)\n```",
        "\n".join(page.read_text("utf8") for page in PAGES),
        re.M,
    )
)
SHOWN |= set().union(*map(derived, PAGES))


def labels(row):
    return re.findall(r"\{eq\}`([^`]+)`", row)


def named(text):
    return re.findall(r"\{test\}`([^`]+)`", text)


@cache
def functions(file):
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_item_has_one_row_in_its_order():
    assert re.findall(r"^\| ([ABCP]\d+) \|", PAGE, re.M) == list(ROWS) == ITEMS


@pytest.mark.parametrize("item", ITEMS)
def test_a_row_leads_to_an_equation_or_a_test(item):
    """An equation of the registry, hence proved or a definition, that a chapter shows under its number; or a test."""
    registered = import_module("normgrad.symbolic").equations()
    assert labels(ROWS[item]) or named(ROWS[item])
    assert [
        label
        for label in labels(ROWS[item])
        if label not in registered or label not in SHOWN
    ] == []
    for file, _, name in (test.partition("::") for test in named(ROWS[item])):
        assert name in functions(file), f"{file} has no {name}"
