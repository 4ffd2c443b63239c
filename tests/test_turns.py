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


RMS_KERNEL = """x * tl.rsqrt(tl.sum(x * x, axis=0) / N + EPS)
    y = y * tl.load(weight_ptr + tl.arange(0, N))"""


@pytest.mark.parametrize(
    "name, place, old, new",
    [
        ("rms_norm_code", 4, "(x_hat * dy).mean", "(x_hat * weight * dy).mean"),
        ("layer_norm_code", 3, "(x_hat * dy).mean", "(x_hat * weight * dy).mean"),
        ("write_kernel", 13, "x  # your lines", RMS_KERNEL),
    ],
)
def test_a_function_is_read(name, place, old, new):
    cell = page(name)[place]
    assert old in cell["text"]

    def verdict(text):
        return json.loads(turns.read(text, json.dumps(cell["read"])))["verdict"]

    refuted = verdict(cell["text"])
    assert refuted["kind"] == "refuted" and "fails at M=2" in refuted["counterexample"]
    assert verdict(cell["text"].replace(old, new))["kind"].startswith("proved")
    unread = verdict(cell["text"].replace(old, "unknown(x)"))
    assert cell["text"].splitlines()[unread["line"] - 1].count(old) == 1


@pytest.mark.parametrize(
    "line, words",
    [
        ("sum(r[t], (t, 1, N))", "is Sum(x[r], (r, 1, N))"),
        ("sum(r)", "is Sum(x[r], (r, 1, N))"),
        ("r[k]^2", "a power is written **"),
        ("r(k)", "two factors have * between them"),
        ("u / s", "'u' is not defined: it is none of this page's names"),
        ("(KroneckerDelta(k, j) - r[k] * r[t]) / s", "$t$ is free on the right side"),
    ],
)
def test_a_habit_is_named(line, words):
    assert words in answer("rms_norm", 6, line)["words"][0]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "book").glob("*.md")), ids=lambda path: path.stem
)
def test_all_that_stands_before_a_cell_runs(path):
    data = live_cells.of_page(path)
    places = [cell["place"] for cell in data["cells"] if not cell["read"]]
    turns.begin(json.dumps(data["before"]), json.dumps(places))
    _read.clear()
