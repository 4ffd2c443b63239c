"""A reader breaks a cell of an operator chapter, and a later cell of the same page says so.

Every minus sign in the cell of the derivation, of the NumPy backward, of the torch function and of the Triton kernel is
turned into a plus, one at a time; in a cell without a minus, every plus into a minus.
"""

import page_cells
import pytest
from page_cells import CHAPTERS, execute, pages_of, signs, turned
from torch.autograd.gradcheck import GradcheckError

from normgrad.prove.claim import CannotJudge
from normgrad.prove.verdict import Verdict
from normgrad.symbolic import NotProved

TAGS = ("derivation", "numpy-backward", "torch-function", "triton-kernel")
# What a check raises; anything else would be a broken page, not a found mistake.
NOTICED = (AssertionError, NotProved, CannotJudge, GradcheckError)
FOLLOWING = 8  # how many of the cells that use the broken one are run


def standing_on(cells, target):
    """The cells after the target that use what it defines, directly or through others."""
    changed, later = set(target.defines), []
    for cell in cells[target.place + 1 :]:
        if cell.uses & changed:
            later.append(cell)
            changed |= cell.defines | cell.changes
    return later[:FOLLOWING]


def noticed(target, after, namespace, source) -> str:
    """What the first check says that fails with the target's changed source; nothing where none does."""
    namespace = page_cells.copied(namespace)
    try:
        verdicts = [execute(target, namespace, source)]
        for cell in after:  # a verdict of the reader's own is false to begin with
            value = execute(cell, namespace)
            verdicts += [] if "your-turn" in cell.tags else [value]
    except NOTICED as refusal:
        # a cell that prints what is wrong asserts without a message
        return repr(refusal)
    false = [value for value in verdicts if isinstance(value, Verdict) and not value]
    return repr(false[0]) if false else ""


def tagged():
    """(page, tag, cell) for the last cell of each page with each of the tags."""
    for page in [page for chapter in CHAPTERS for page in pages_of(chapter)]:
        cells = page_cells.page_cells.of_page(page)
        for tag in TAGS:
            if tagged_cells := [cell for cell in cells if tag in cell.tags]:
                yield pytest.param(page, tag, tagged_cells[-1], id=f"{page.stem}-{tag}")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapter_can_be_broken_in_four_ways(chapter):
    cells = [
        cell
        for page in pages_of(chapter)
        for cell in page_cells.page_cells.of_page(page)
    ]
    assert set(TAGS) <= set().union(*[cell.tags for cell in cells])


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize(("page", "tag", "target"), list(tagged()))
def test_a_turned_sign_is_noticed(page, tag, target):
    if "triton" in target.tags:
        pytest.importorskip("triton")
    cells = page_cells.page_cells.of_page(page)
    places = {target.place, *[cell.place for cell in standing_on(cells, target)]}
    needed = page_cells.page_cells.needed(cells, lambda cell: cell.place in places)
    after = [cell for cell in needed if cell.place > target.place]
    namespace = page_cells.as_on_a_page()
    for cell in needed:
        if cell.place < target.place:
            execute(cell, namespace)
    before = page_cells.copied(namespace)
    for cell in (target, *after):
        execute(cell, namespace)
    count = len(signs(target.tree))
    assert count, f"{page.stem}: the cell {tag} has no sign to turn"
    for which in range(count):
        source, was = turned(target, which)
        said = noticed(target, after, before, source)
        assert said, f"{page.stem}, cell {tag}: the other sign in {was} goes unnoticed"
