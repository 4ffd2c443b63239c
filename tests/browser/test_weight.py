"""Pages for slow lines: what one loads is little, and it does not move while its formulas are typeset."""

import gzip
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from built_site import SITE
from test_site import each_page

# What a first visit loads besides fonts and pictures, compressed, in bytes.
MOST = 400_000


class Loaded(HTMLParser):
    """The scripts and style sheets that a page loads."""

    def __init__(self, text):
        super().__init__()
        self.addresses = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "script" and found.get("src"):
            self.addresses.add(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "preload"):
            self.addresses.add(found["href"])


@each_page
def test_a_page_is_light(path):
    text = (SITE / path).read_text(encoding="utf8")
    loaded = {urlsplit(urljoin(f"http://site/{path}", address)).path for address in Loaded(text).addresses}
    files = [SITE / path, *[SITE / one.lstrip("/") for one in loaded]]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < MOST


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("path", ["book/layer_norm.html", "book/residual.html", "book/rms_norm_further.html"])
def test_a_page_stands_still_while_it_loads(read, path, width):
    reader = read(width)
    reader.page.add_init_script("""
        window.shift = 0;
        const add = list => list.getEntries().forEach(one => { shift += one.hadRecentInput ? 0 : one.value; });
        new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});""")
    reader.page.goto(f"{reader.address}/{path}", wait_until="load")
    reader.page.evaluate("MathJax.startup.promise.then(() => new Promise(done => setTimeout(done, 1500)))")
    assert reader.page.locator("mjx-math").count()
    assert reader.page.evaluate("shift") < 0.1
