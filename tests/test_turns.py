"""The turns of the pages, as a reader has them: typical answers and what they are told, and all that stands before."""

import json
import re

import pytest
import yaml
from page_cells import ROOT
from tables import claims, edits

pytest.importorskip("sphinx", reason="the book's packages are not installed")

import turns  # noqa: E402

from normgrad_book import live_cells  # noqa: E402

ANSWER = re.compile(r"^(mine = |left, right = ).*?(?=^prove\()", re.M | re.S)
TERM = 3
_read = {}


def page(name):
    """A page's turns in order; what stands before them is read once."""
    if _read.get("name") != name:
        data = live_cells.of_page(ROOT / f"book/{name}.md")
        cells = [cell for cell in data["cells"] if cell["turn"]]
        turns.begin(json.dumps(data["before"]), "[]")
        _read.update(name=name, cells=cells)
    return _read["cells"]


def turn(heading):
    """The cell that a heading of a table means, as "rms_norm 2": the page's second turn."""
    name, number = heading.split()
    return page(name)[int(number) - 1]


def answer(cell, line, level=TERM):
    text = ANSWER.sub(lambda found: f"{found[1]}{line}\n", cell["text"])
    return json.loads(turns.check(cell["place"], text, level))


@pytest.mark.parametrize("heading, note, line", [*claims("turns.txt")])
def test_an_answer_gets_its_hint(heading, note, line):
    line, _, words = line.partition(" -- ")
    told = answer(turn(heading), line)
    assert words in told["words"][-1].replace("*", "")
    assert (told["kind"] == "proved") == (words == "proved")


def verdict(cell, text):
    """(verdict, its words) on the text of a turn that is read."""
    told = json.loads(turns.read(text, json.dumps(cell["read"])))
    if "error" in told:
        return {"kind": "error"}, told["error"]
    found = told["verdict"]
    parts = [found["kind"], found["claim"], found["why"], found["counterexample"]]
    return found, " ".join(filter(None, parts))


READ = [*claims("turns_read.txt")]
TABLED = [*claims("turns.txt"), *READ]


@pytest.mark.parametrize("heading, note, line", READ)
def test_a_function_is_read(heading, note, line):
    cell = turn(heading)
    text, _, words = line.partition(" -- ")
    changed = cell["text"]
    for old, new in edits(text):
        assert changed.count(old) == 1
        changed = changed.replace(old, new)
    found, told = verdict(cell, changed)
    assert words in told
    assert found["kind"].startswith("proved") == words.startswith("proved")


@pytest.mark.parametrize("heading", dict.fromkeys(heading for heading, *_ in READ))
def test_what_a_function_is_given_as_is_wrong(heading):
    cell = turn(heading)
    found, _ = verdict(cell, cell["text"])
    assert found["kind"] in ("refuted", "wrong in itself")


COURSE = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))["parts"][0]


@pytest.mark.parametrize("chapter", COURSE["chapters"], ids=lambda row: row["file"])
def test_a_turn_of_the_course_has_a_right_answer_and_three_wrong_ones(chapter):
    path = ROOT / f"{chapter['file']}.md"
    turns_there = [cell for cell in live_cells.of_page(path)["cells"] if cell["turn"]]
    assert turns_there
    for number in range(1, len(turns_there) + 1):
        heading = f"{path.stem} {number}"
        lines = [line for name, _, line in TABLED if name == heading]
        right = [line for line in lines if " -- proved" in line]
        assert right and len(lines) - len(right) >= 3, heading


@pytest.mark.parametrize(
    "line, words",
    [
        ("sum(r[t], (t, 1, N))", "is Sum(x[r], (r, 1, N))"),
        ("sum(r)", "is Sum(x[r], (r, 1, N))"),
        ("r[k]^2", "a power is written **"),
        ("r(k)", "a tensor has square brackets"),
        ("L2(r[k]) / s", "a name is no function here: two factors have *"),
        ("1 / s (r[k] - r[j])", "two factors have * between them"),
        ("2(r[k])", "two factors have * between them"),
        ("2r[k] / s", "two factors have * between them, as in 2 * x[j]"),
        ("s[k] * r[k]", "a single quantity here, and has no index"),
        ("r[k], s", "a comma makes two expressions"),
        ("...", "the line is still empty"),
        ("'r[k] / s'", "no quotation marks"),
        ("Sum(r[t])", "a sum is Sum(x[r], (r, 1, N))"),
        ("Sum(r[t], t, 1, N)", "a sum is Sum(x[r], (r, 1, N))"),
        ("Sum(r[k], (q, 1, N))", "its index is an index of the page, as r, no tensor"),
        ("u / s", "'u' is not defined: it is none of this page's names"),
        ("(KroneckerDelta(k, j) - r[k] * r[t]) / s", "$t$ is free on the right side"),
    ],
)
def test_a_habit_is_named(line, words):
    assert words in answer(page("rms_norm")[1], line)["words"][0]


@pytest.mark.parametrize(
    "heading, line, words",
    [
        (
            "residual 2",
            "diff(L, x[i, j])",
            "answer with any_L, and with nothing that is made of L",
        ),
        ("residual 3", "alpha * diff(any_L, x[i, j])", "answer with L_p"),
        ("eps 2", "1 + eps / s", "s and size are both shown as s, and this question"),
        ("eps_practice 1", "sigma * w", "what is shown as w is typed weight"),
        ("eps_practice 1", "b / sigma", "shown as b is typed bias"),
        ("rms_norm 3", "rstd[i] * c1[j] * wdy[i, j]", " in c1[j]"),
    ],
)
def test_a_name_of_another_layer_is_told_from_the_question_s(heading, line, words):
    assert words in answer(turn(heading), line)["words"][0]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "book").glob("*.md")), ids=lambda path: path.stem
)
def test_all_that_stands_before_a_cell_runs(path):
    data = live_cells.of_page(path)
    places = [cell["place"] for cell in data["cells"] if not cell["read"]]
    turns.begin(json.dumps(data["before"]), json.dumps(places))
    _read.clear()
