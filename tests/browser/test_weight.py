"""Pages for slow lines: what one loads is little, and it does not move while its formulas are typeset.

`python tests/browser/test_weight.py` writes the table of budgets again, each a tenth above what there is.
"""

import gzip
import json
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from built_site import SITE, pages

# What a first visit loads besides fonts and pictures, compressed, in kB: what most pages share, and what a page adds.
BUDGETS = Path(__file__).with_name("budgets.json")
SHARED = "what most pages share"


class Loaded(HTMLParser):
    """The scripts and style sheets that a page loads."""

    def __init__(self, text):
        super().__init__()
        self.addresses = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "script" and values.get("src"):
            self.addresses.add(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "preload"):
            self.addresses.add(values["href"])


@cache
def loaded(path):
    """The files that a page loads, itself among them."""
    text = (SITE / path).read_text(encoding="utf8")
    there = {
        urlsplit(urljoin(f"http://site/{path}", address)).path
        for address in Loaded(text).addresses
    }
    return {SITE / path, *(SITE / file.lstrip("/") for file in there)}


@cache
def weights():
    """{page: kB}, and what they share."""
    users = Counter(file for path in pages() for file in loaded(path))
    shared = {file for file, count in users.items() if count > len(pages()) / 2}
    parts = {SHARED: shared} | {path: loaded(path) - shared for path in pages()}
    return {
        name: sum(len(gzip.compress(file.read_bytes())) for file in files) / 1e3
        for name, files in parts.items()
    }


@pytest.mark.parametrize("name", [SHARED, *pages()])
def test_a_page_keeps_to_its_budget(name):
    assert weights()[name] <= json.loads(BUDGETS.read_text(encoding="utf8")).get(
        name, 0
    )


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "path", ["book/layer_norm.html", "book/residual.html", "book/rms_norm_code.html"]
)
def test_a_page_stands_still_while_it_loads_and_is_scrolled(read, path, width):
    reader = read(width)
    reader.page.add_init_script("""
        window.shift = 0;
        const add = list => list.getEntries().forEach(one => { shift += one.hadRecentInput ? 0 : one.value; });
        new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});""")
    reader.page.goto(f"{reader.address}/{path}", wait_until="load")
    reader.page.evaluate(
        "MathJax.startup.promise.then(() => new Promise(done => setTimeout(done, 1500)))"
    )
    assert reader.page.locator("mjx-math").count()
    height = reader.page.evaluate("document.documentElement.scrollHeight")
    for depth in range(0, height, 800):
        reader.page.evaluate("depth => scrollTo(0, depth)", depth)
        reader.page.wait_for_timeout(50)
    assert reader.page.evaluate("shift") < 0.1


if __name__ == "__main__":
    table = {name: round(1.1 * weight + 0.5) for name, weight in weights().items()}
    BUDGETS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf8")
