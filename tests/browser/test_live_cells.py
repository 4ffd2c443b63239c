"""The cells of a page that a reader writes in: what is loaded when, wrong lines and right ones, by touch."""

import json

import pytest
from built_site import SITE

PAGE = "book/rms_norm.html"
FOLDER = SITE / "_static/workbench"
QUESTION = "prove(diff(r[k], q[j]), mine, hints=2)"
RIGHT = "(KroneckerDelta(k, j) - r[k] * r[j]) / s"
# Python starts in seconds, where nothing else runs.
PATIENCE = 120_000
MOST_BYTES = 9_000_000


@pytest.fixture(scope="module")
def pages():
    """What the site knows of the page's cells; none where it was built without Node."""
    told = (FOLDER / "here.js").read_text(encoding="utf8")
    if missing := json.loads(told[told.index("{") : told.rindex("}") + 1])["missing"]:
        pytest.skip(f"no Pyodide on this site: {missing}")
    return json.loads((FOLDER / "pages/rms_norm.json").read_text(encoding="utf8"))


class Cell:
    """The second turn of the page, as a reader handles it."""

    def __init__(self, page, act="click"):
        page.set_default_timeout(PATIENCE)
        self.page, self.act = page, act
        turns = page.locator(".live-cell.tag_your-turn")
        self.box = turns.nth(1)
        self.box.scroll_into_view_if_needed()
        self.box.locator("textarea").wait_for()

    def press(self, name):
        """Press a button and wait for the answer; its paragraphs."""
        button = self.box.get_by_role("button", name=name)
        getattr(button, self.act)()
        run = self.box.get_by_role("button", name="check", exact=True).element_handle()
        self.page.wait_for_function("run => !run.disabled", arg=run)
        return self.box.locator(".turn-found > p, .turn-found > pre").all_inner_texts()

    def check(self, line):
        self.box.locator("textarea").fill(f"mine = {line}\n{QUESTION}")
        return self.press("check")


def asked(page):
    """The names of the files that were asked of the workbench."""
    names = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    files = [name.partition("?")[0] for name in names if "/workbench/" in name]
    return {file.rpartition("/")[2] for file in files}


def test_nothing_is_loaded_before_a_cell_is_near(read, pages):
    page = read().open("book/own_norm.html")
    assert page.locator(".live-cell").count()
    assert asked(page) == {"boxes.js"}


def test_a_turn_is_answered_where_it_stands(read, pages):
    reader, sizes = read(), []
    reader.page.on(
        "requestfinished",
        lambda request: (
            "/workbench/" in request.url
            and sizes.append(request.sizes()["responseBodySize"])
        ),
    )
    page = reader.open(PAGE)
    cell = Cell(page)
    assert len(page.locator(".live-cell").all()) == len(pages["cells"])
    wrong, point = cell.press("check")
    assert wrong == "not true for every size" and "N = 2" in point
    assert 0 < sum(sizes) < MOST_BYTES
    assert "only a factor is wrong" in cell.press("hint")[-1]
    assert "multiply it by" in cell.press("hint")[-1]
    cell.press("hint")
    answer = cell.box.locator("xpath=following-sibling::details").first
    assert answer.evaluate("details => details.open")
    assert "the question itself" in cell.check("diff(r[k], q[j])")[0]
    assert "**" in cell.check("r[k]^2")[0]
    (right,) = cell.check(RIGHT)
    assert right.startswith("proved for every")
    page.reload()
    again = Cell(page)
    assert RIGHT in again.box.locator("textarea").input_value()
    again.press("start over")
    assert again.box.locator("textarea").input_value() == pages["cells"][1]["text"]


def test_a_claim_prints_what_the_build_printed(read, pages):
    page = read().open(PAGE)
    cell = page.locator(".live-cell:not(.tag_your-turn)").first
    built = cell.locator(".cell_output p").last.inner_text()
    cell.scroll_into_view_if_needed()
    page.set_default_timeout(PATIENCE)
    cell.get_by_role("button", name="run", exact=True).click()
    cell.locator(".turn-found > p").first.wait_for()
    refuted, point = cell.locator(".turn-found > p").all_inner_texts()
    assert refuted.startswith("refuted: left")
    assert point == built and "N = 2" in point
    assert not cell.locator(".cell_output").is_visible()
    page.emulate_media(media="print")
    assert cell.locator(".cell_output").is_visible()
    assert cell.locator(".cell_input").is_visible()
    assert not cell.locator("textarea").is_visible()


def test_on_a_phone_nothing_is_loaded_before_a_tap(read, pages):
    page = read(390, 844, touch=True).open(PAGE)
    cell = Cell(page, "tap")
    assert "worker.mjs" not in " ".join(asked(page))
    assert "9 MB" in cell.box.locator("[role=status]").inner_text()
    (right,) = cell.check(RIGHT)
    assert right.startswith("proved for every")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    height = "e => e.getBoundingClientRect().height"
    button = cell.box.get_by_role("button", name="check", exact=True)
    assert button.evaluate(height) >= 44
