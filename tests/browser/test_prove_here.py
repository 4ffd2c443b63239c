"""Proofs in the page: every registered equation, a changed sign, what it weighs, and where it cannot run."""

import json

import pytest
from built_site import SITE

from normgrad.symbolic import equation, equations
from normgrad.symbolic.chains import DEFINITION

PAGE = "book/proving.html"
WORKBENCH = SITE / "_static/workbench"
MOST_BYTES = 9_000_000
# Parts of the registry, of which one is proved in the browser; all of it takes minutes.
PARTS = 8
FETCHED = """() => performance.getEntriesByType('resource')
  .filter(one => one.initiatorType === 'fetch').map(one => one.name)"""
# Python starts in seconds, where nothing else runs.
PATIENCE = 120_000


@pytest.fixture
def bench(read):
    """A function that opens the workbench; none where the site was built without Node."""
    told = (WORKBENCH / "here.js").read_text(encoding="utf8")
    if missing := json.loads(told[told.index("{") : told.rindex("}") + 1])["missing"]:
        pytest.skip(f"no Pyodide on this site: {missing}")

    def open_(label=""):
        page = read().open(PAGE + (f"?label={label}" if label else ""))
        page.set_default_timeout(PATIENCE)
        come_to(page)
        return page

    return open_


def come_to(page):
    """Scroll to the workbench, whose scripts come then."""
    page.locator(".workbench").scroll_into_view_if_needed()
    page.wait_for_selector(".workbench.live")


def press(page, name):
    """Press a button of the workbench and wait for the answer."""
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_function("!document.querySelector('.workbench button').disabled")
    return page.locator(".workbench-found")


def test_an_equation_is_proved_changed_and_refuted(bench):
    page = bench()
    sizes = []
    page.on(
        "requestfinished",
        lambda request: sizes.append(request.sizes()["responseBodySize"]),
    )
    answer = press(page, "prove")
    assert answer.locator(".workbench-proved").count() == 1
    assert page.locator(".workbench-found mjx-container").count() == 1
    assert 0 < sum(sizes) < MOST_BYTES
    cell = page.locator(".workbench textarea")
    text = cell.input_value()
    assert "- r[k] * r[j]" in text
    cell.fill(text.replace("- r[k] * r[j]", "+ r[k] * r[j]"))
    answer = press(page, "prove")
    assert "N = " in answer.locator(".workbench-refuted").inner_text()
    cell.fill("x = (")
    assert "line 1: SyntaxError" in press(page, "prove").inner_text()


def test_the_address_names_the_equation(bench):
    """The cell opens with it, and nothing else is loaded before the first press of a button."""
    page = bench("ln-dx")
    page.wait_for_function("document.querySelector('.workbench textarea').value")
    fetched = page.evaluate(FETCHED)
    # beside it the page's live cells have what stands before them
    names = [name.rpartition("/")[2] for name in fetched]
    assert [name for name in names if name != "proving.json"] == ["ln-dx.py"]
    assert equation("ln-dx").claim in page.locator(".workbench textarea").input_value()
    assert "9 MB" in page.locator(".workbench [role=status]").inner_text()
    page.locator(".workbench input").fill("ln-dxx")
    press(page, "load")
    assert (
        "which no registered equation has"
        in page.locator(".workbench [role=status]").inner_text()
    )


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=pytest.mark.sampled(of=PARTS, key="part", turn=part))
        for part in range(PARTS)
    ],
)
def test_every_equation_is_proved_in_the_browser(bench, part):
    page = bench()
    page.evaluate("""() => {
      window.worker = new Worker(new URL('../_static/workbench/worker.mjs', location), {type: 'module'});
      window.asked = (ask, text) => new Promise((resolve) => {
        worker.onmessage = ({data}) => 'id' in data && resolve(data);
        worker.postMessage({id: 1, ask: `workbench.${ask}`, given: [text]});
      });
    }""")
    labels = [
        label
        for label, statement in equations().items()
        if statement.kind != DEFINITION
    ]
    for label in labels[part::PARTS]:
        text = page.evaluate("label => asked('statement', label)", label)["answer"]
        answer = page.evaluate("text => asked('judge', text)", text)
        kinds = [statement["kind"] for statement in json.loads(answer["answer"])]
        assert kinds == ["proved"] * len(equation(label).ends().steps), (label, answer)


def test_from_a_disk_it_says_that_it_cannot_run(chromium):
    page = chromium.new_page()
    page.goto((SITE / PAGE).as_uri(), wait_until="domcontentloaded")
    come_to(page)
    page.wait_for_selector(".workbench .live-words")
    assert (
        "Python cannot run here: this page was opened from a disk"
        in page.locator(".workbench").inner_text()
    )
    page.close()
