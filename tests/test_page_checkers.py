"""The checkers that stand in the pages and run a reader's program: each names what is wrong with it."""

import builtins

import page_cells
import pytest
from tables import claims, edits


@pytest.mark.parametrize("heading, note, line", [*claims("page_checkers.txt")])
def test_a_checker_names_what_is_wrong(heading, note, line, monkeypatch):
    name, defined = heading.split()
    cells = page_cells.page_cells.of_page(page_cells.ROOT / f"book/{name}.md")
    target = [cell for cell in cells if defined in cell.defines][-1]
    if "triton" in target.tags:
        pytest.importorskip("triton")
    places = {target.place, target.place + 1}
    text, _, words = line.partition(" -- ")
    changed = target.python
    for old, new in edits(text):
        assert changed.count(old) == 1
        changed = changed.replace(old, new)
    printed = []
    namespace = page_cells.as_on_a_page()
    monkeypatch.setattr(builtins, "print", lambda *said: printed.append(f"{said}"))
    needed = page_cells.page_cells.needed(cells, lambda cell: cell.place in places)
    for cell in needed:
        if cell is target:
            printed.clear()
        page_cells.execute(cell, namespace, changed if cell is target else None)
    assert words in " ".join(printed)
