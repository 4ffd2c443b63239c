"""A reader breaks a cell of an operator chapter, and a later cell of the same page says so.

Every minus sign in the cell of the derivation, of the NumPy backward, of the torch function and of the Triton kernel is
turned into a plus, one at a time.
"""

import page_cells
import pytest
import torch
from page_cells import execute, minus_signs, turned

from normgrad.symbolic import NotProved

reader_work = pytest.importorskip("normgrad_book.reader_work")
TAGS = ("derivation", "numpy-backward", "torch-function", "triton-kernel")
# What a check raises; anything else would be a broken page, not a found mistake.
NOTICED = (AssertionError, NotProved, torch.autograd.gradcheck.GradcheckError)
FOLLOWING = 8  # how many of the cells that use the broken one are run
MAIN = {chapter: page_cells.ROOT / f"book/{pages[0]}.md" for chapter, pages in reader_work.CHAPTERS.items()}


def standing_on(cells, target):
    """The cells after the target that use what it defines, directly or through others."""
    changed, found = set(target.defines), []
    for cell in cells[target.place + 1 :]:
        if cell.uses & changed:
            found.append(cell)
            changed |= cell.defines | cell.changes
    return found[:FOLLOWING]


def noticed(target, after, namespace, source) -> str:
    """What the first check says that fails with the target's changed source; nothing where none does."""
    namespace = dict(namespace)
    try:
        execute(target, namespace, source)
        for cell in after:
            execute(cell, namespace)
    except NOTICED as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("page", MAIN.values(), ids=lambda page: page.stem)
def test_a_turned_sign_is_noticed(page, tag):
    cells = page_cells.page_cells.of_page(page)
    targets = [cell for cell in cells if tag in cell.tags]
    assert targets, f"{page.name}: no cell has the tag {tag}"
    if tag == "triton-kernel":
        pytest.importorskip("triton")
    target = targets[-1]
    after = standing_on(cells, target)
    wanted = {target.place, *[cell.place for cell in after]}
    with page_cells.as_on_a_page() as namespace:
        for cell in page_cells.page_cells.needed(cells, lambda one: one.place in wanted):
            if cell.place < target.place:
                execute(cell, namespace)
        before = dict(namespace)
        for cell in (target, *after):
            execute(cell, namespace)
        count = len(minus_signs(target.tree))
        assert count, f"{page.name}: the cell {tag} has no minus to turn"
        for which in range(count):
            source, was = turned(target, which)
            said = noticed(target, after, before, source)
            assert said, f"{page.name}, cell {tag}: {was} with a plus goes unnoticed"
