"""The site as a whole: self-contained, without dead links, found by searching, and each page as a notebook."""

import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from built_site import A4_WIDTH, SITE, equations, pages

from normgrad.homework.equations import of_ledger, places

each_page = pytest.mark.parametrize("path", pages() or ["none"])
# The displays of the formula sheet that are wider than their place.
SHEET_TOO_WIDE = """() => [...document.querySelectorAll('.formula div.math')].filter(display => {
  const ends = [display.closest('.formula'), display].map(box => box.getBoundingClientRect().right);
  const formula = display.querySelector('mjx-math').getBoundingClientRect();
  return formula.width < 1 || formula.right > Math.min(...ends) + 1;
}).map(display => display.textContent)"""
# The equations whose badge leads to no row of the ledger, or whose row leads to no display.
ASTRAY = """async entries => {
  const pages = {}, read = async path => pages[path] ??= new DOMParser().parseFromString(
    await (await fetch(path)).text(), 'text/html');
  const leads = async ({label, chapter, url}) => {
    const page = await read(`/${chapter}.html`);
    const badge = page.querySelector(`p.ledger-badge:has(button[data-label="${label}"]) a`);
    const row = document.getElementById(badge.getAttribute('href').split('ledger.html#')[1]);
    const home = new URL(row.querySelector('a').href), place = page.getElementById(home.hash.slice(1));
    return home.pathname + home.hash === `/${url}` && [place, place.nextElementSibling].some(
      part => part.matches('div.math') || part.querySelector('div.math'));
  };
  const astray = [];
  for (const entry of entries) if (!await leads(entry).catch(() => false)) astray.push(entry.label);
  return astray;
}"""


class Anchors(HTMLParser):
    """A page's ids, and the addresses it refers to."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id"))
        self.links += [values[name] for name in ("href", "src") if values.get(name)]


@cache
def parsed(file):
    return Anchors(file.read_text(encoding="utf8"))


def on_disk(address):
    """The file of an address on the site."""
    path = SITE / unquote(urlsplit(address).path).lstrip("/")
    return path / "index.html" if path.is_dir() else path


@each_page
def test_links_resolve(path):
    """Every address within the site leads to a file, and to an anchor that is in it."""
    for link in parsed(SITE / path).links:
        target, fragment = urldefrag(urljoin(f"http://site/{path}", link))
        if urlsplit(target).hostname != "site" or urlsplit(target).scheme not in (
            "http",
            "https",
        ):
            continue
        file = on_disk(target)
        assert file.is_file(), link
        if fragment and file.suffix == ".html":
            assert unquote(fragment) in parsed(file).ids, link


def test_site_names_no_machine():
    """Neither pages nor notebooks hold the path of the checkout that they were built from."""
    root = str(SITE.parents[1])
    files = [
        path
        for kind in ("html", "ipynb", "json", "js")
        for path in SITE.rglob(f"*.{kind}")
    ]
    assert not [path for path in files if root in path.read_text(encoding="utf8")]


def test_listings_name_equations_by_their_numbers():
    """Docstrings name them by label; where a page shows the code, a reader has only the number."""
    shown = {path: (SITE / path).read_text(encoding="utf8") for path in pages()}
    assert [path for path, text in shown.items() if "{eq}" in text] == []


def test_every_page_counts_its_own_equations():
    """By its chapter in the course and by its letter elsewhere: (8.1), (8.2); (B.1)."""
    numbers = {}
    for entry in equations():
        page, _, position = entry["number"].partition(".")
        numbers.setdefault((entry["chapter"], page), []).append(int(position))
    assert len({page for _, page in numbers}) == len(numbers)
    for positions in numbers.values():
        assert positions == list(range(1, len(positions) + 1))


def test_badge_and_ledger_lead_to_each_other(read):
    """Each equation has one badge, which leads to its row of the ledger, and that to the equation."""
    texts = [(SITE / path).read_text(encoding="utf8") for path in pages()]
    badges = sum(text.count('<p class="ledger-badge">') for text in texts)
    assert badges == len(equations())
    page = read().open("book/ledger.html")
    assert page.evaluate(ASTRAY, equations()) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_formula_sheet_prints_on_one_page(read, scheme):
    """A4, nothing cut off, nothing of the site around it, no text below 7.5 pt, black on white."""
    page = read(scheme=scheme).open("book/formula_sheet.html")
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 1
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4_WIDTH, "height": 1000})
    assert page.locator(".formula div.math").count() > 10
    assert page.evaluate(SHEET_TOO_WIDE) == []
    for selector in (
        ".bd-sidebar-primary",
        ".bd-header-article",
        "footer",
        "p.ledger-badge",
    ):
        assert [
            element for element in page.locator(selector).all() if element.is_visible()
        ] == [], selector
    styles = "texts => texts.map(text => [parseFloat(getComputedStyle(text).fontSize), getComputedStyle(text).color])"
    for size, colour in page.locator("article p").evaluate_all(styles):
        assert size * 72 / 96 >= 7.5
        assert colour == "rgb(0, 0, 0)"


@each_page
def test_executed_chapters_offer_their_notebook(path):
    notebook = SITE / "_sources" / path.replace(".html", ".ipynb")
    links = [link for link in parsed(SITE / path).links if link.endswith(".ipynb")]
    offered = {
        on_disk(urljoin(f"http://site/{path}", link))
        for link in links
        if "://" not in link
    }
    assert offered == ({notebook} if notebook.is_file() else set())


def test_reports_give_the_numbers_that_the_pages_show():
    """`python -m normgrad.homework.equations _build/html/ledger.json` writes them again."""
    assert of_ledger(SITE / "ledger.json") == places()


@pytest.mark.parametrize("path", ["search.html", "book/eps.html"])
def test_search_icon_covers_no_letter(read, path):
    """On the page of results and in the box that Ctrl-K opens on a chapter."""
    page = read().open(path)
    page.keyboard.press("Control+k")
    box = page.locator("form.bd-search:visible")
    icon, field = box.locator("i").bounding_box(), box.locator("input")
    padding = field.evaluate("field => parseFloat(getComputedStyle(field).paddingLeft)")
    assert icon["x"] + icon["width"] < field.bounding_box()["x"] + padding
