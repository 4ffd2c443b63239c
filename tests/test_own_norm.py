"""The page on a norm of one's own: the layers that it offers in place of its last one work to its end."""

import re

import page_cells
import pytest
from page_cells import ROOT, execute

pytest.importorskip("triton")

PAGE = ROOT / "book/own_norm.md"
CELLS = page_cells.page_cells.of_page(PAGE)
OFFERED = re.findall(
    r"^```\{code-block\} python\n(.*?)^```",
    PAGE.read_text(encoding="utf8"),
    re.M | re.S,
)
# Cells that nothing else stands on, and that take seconds.
SLOW = ("compile(",)


@pytest.fixture(scope="module")
def page():
    """The names that the page has defined before its reader's own layer, and that layer's cell with those after it."""
    position = next(at for at, cell in enumerate(CELLS) if "your-norm" in cell.tags)
    namespace = page_cells.as_on_a_page()
    for cell in CELLS[:position]:
        if not any(words in cell.source for words in SLOW):
            execute(cell, namespace)
    yield namespace, CELLS[position:]


def test_three_layers_are_offered():
    assert len(OFFERED) == 3


@pytest.mark.parametrize(
    "lines", OFFERED, ids=["mean square", "gated", "weighted softmax"]
)
def test_another_layer_works_to_the_end(page, lines):
    namespace, (first, *later) = page
    text = first.source
    execute(first, namespace, lines + text[text.index("mine = ") :])
    for cell in later:
        execute(cell, namespace)
