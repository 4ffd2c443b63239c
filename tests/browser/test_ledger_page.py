"""The ledger shows what a reader asks for, by kind, chapter and words, by keyboard; without scripts it shows all."""

from built_site import SITE, equations

PAGE = "book/ledger.html"
SHOWN = """() => [...document.querySelectorAll('article tr[id^=ledger-]')].filter(row => row.checkVisibility())
  .map(row => row.querySelector('code').textContent)"""

# Further entries of an equation that are there without it, or the other way round.
TORN = """() => [...document.querySelectorAll('article tbody tr + tr:not([id])')].filter(row =>
  row.hidden !== row.previousElementSibling.hidden).map(row => row.textContent)"""


def choose(page, name, value):
    """Choose by keyboard alone."""
    options = page.locator(f"select[name={name}] option").evaluate_all(
        "all => all.map(one => one.value)"
    )
    page.locator(f"select[name={name}]").focus()
    page.keyboard.press("Home")
    for _ in range(options.index(value)):
        page.keyboard.press("ArrowDown")


def test_each_kind_shows_its_equations(read):
    page, entries = read().open(PAGE), equations()
    whole = page.evaluate(SHOWN)
    assert whole == [entry["label"] for entry in entries]
    for kind in {entry["kind"] for entry in entries}:
        choose(page, "kind", kind)
        shown = set(page.evaluate(SHOWN))
        assert (
            {entry["label"] for entry in entries if entry["kind"] == kind}
            <= shown
            < set(whole)
        )
        assert (
            page.locator("output[name=shown]").inner_text()
            == f"{len(shown)} of {len(whole)} equations"
        )
        assert page.evaluate(TORN) == []


def test_without_scripts_all_of_it_stands_there(chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((SITE / PAGE).as_uri())
    assert page.locator("article tr[id^=ledger-]:visible").count() == len(equations())
    assert not page.locator("form.ledger-filter").is_visible()
    context.close()
