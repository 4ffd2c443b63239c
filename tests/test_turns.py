"""The turns of the pages, as a reader has them: typical answers and what they are told, and all that stands before."""

import json
import re

import pytest
from page_cells import ROOT
from tables import claims

pytest.importorskip("sphinx", reason="the book's packages are not installed")

import turns  # noqa: E402

from normgrad_book import live_cells  # noqa: E402

ANSWER = re.compile(r"^(mine = ).*?(?=^prove\()", re.M | re.S)
TERM = 3
_read = {}


def page(name):
    """A page's cells, by number; what stands before them is read once."""
    if _read.get("name") != name:
        data = live_cells.of_page(ROOT / f"book/{name}.md")
        cells = {cell["place"]: cell for cell in data["cells"]}
        turns.begin(json.dumps(data["before"]), "[]")
        _read.update(name=name, cells=cells)
    return _read["cells"]


def answer(name, place, line, level=TERM):
    text = page(name)[place]["text"]
    text = ANSWER.sub(lambda found: f"{found[1]}{line}\n", text)
    return json.loads(turns.check(place, text, level))


@pytest.mark.parametrize("cell, note, line", [*claims("turns.txt")])
def test_an_answer_gets_its_hint(cell, note, line):
    name, place = cell.split()
    line, _, words = line.partition(" -- ")
    told = answer(name, int(place), line)
    assert words in told["words"][-1].replace("*", "")
    assert (told["kind"] == "proved") == (words == "proved")
