"""The book by plain Sphinx of today, beside the site of `make book`: the same pages, numbers, proofs, texts and links.

An environment in _build/plain-sphinx, which lent_environment makes, holds what requirements-plain.txt pins; all else is
lent. Outputs are those that `make book` has kept, so nothing is executed. The site is _build/plain.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

from lent_environment import ROOT, environment, run

BOOK, PLAIN = ROOT / "_build/html", ROOT / "_build/plain"
PINS = ROOT / "requirements-plain.txt"
# Pages on which Sphinx itself speaks: its signatures, and the versions of the tools.
SPHINX = {"book/api.html"}
NUMBERED = re.compile(r'id="(equation-[\w-]+)"[^>]*>\s*<span class="eqno">\(([^)]+)\)')


class Article(HTMLParser):
    """The text of a page, and where its links within the site lead, without what the theme puts around.

    Headings lead to themselves under one of their names, formulas stand with or without space around: neither counts.
    """

    def __init__(self, text):
        super().__init__()
        self.text, self.links, self.depth = "", [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.depth += tag == "article"
        found = dict(attributes)
        address, kind = found.get("href") or "", found.get("class") or ""
        if self.depth and tag == "a" and address and "//" not in address and "headerlink" not in kind:
            self.links.append(address)

    def handle_endtag(self, tag):
        self.depth -= tag == "article"

    def handle_data(self, data):
        if self.depth:
            self.text += "".join(data.split())


def pages(site: Path) -> dict[str, str]:
    """{path: HTML} of the book's pages."""
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf8") for path in site.glob("book/*.html")}


def size(value) -> int:
    """How many things a value is: those of a list, else one."""
    return len(value) if isinstance(value, list) else 1


def compared(what: str, one: dict, other: dict) -> bool:
    """A line that says how many there are on the second site, and one for each key that differs; whether none does."""
    wrong = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    print(f"{what:20} {sum(map(size, other.values())):6}" + (f"  {len(wrong)} DIFFER" if wrong else "  the same"))
    for key in wrong:
        print(f"    {key}")
    return not wrong


def contents(site: Path) -> dict[str, dict]:
    """What of a site is compared: {what it is: {key: value}}."""
    html = pages(site)
    articles = {path: Article(text) for path, text in html.items() if path not in SPHINX}
    ledger = json.loads((site / "ledger.json").read_text(encoding="utf8"))
    return {
        "pages": dict.fromkeys(html, True),
        "numbered equations": {path: NUMBERED.findall(text) for path, text in html.items()},
        "entries of the ledger": {entry["label"]: entry for entry in ledger},
        "links": {path: article.links for path, article in articles.items()},
        "texts": {path: article.text for path, article in articles.items()},
        "notebooks": {path.name: path.read_bytes() for path in site.glob("_sources/book/*.ipynb")},
    }


def main() -> int:
    """0 where the two sites say the same."""
    if not (BOOK / "ledger.json").is_file():
        raise SystemExit(f"there is no site in {BOOK}: run `make book` first")
    python = environment(ROOT / "_build/plain-sphinx", ["--no-deps", "--requirement", str(PINS)])
    shutil.rmtree(PLAIN, ignore_errors=True)
    options = ["-c", "book", "-d", "_build/plain-doctrees", "-W", "--keep-going", "-n", "-E", "-q"]
    print(run(python, "-m", "sphinx", *options, ".", str(PLAIN)).stdout, end="")
    ours, theirs = contents(BOOK), contents(PLAIN)
    return 0 if all([compared(what, ours[what], theirs[what]) for what in ours]) else 1


if __name__ == "__main__":
    sys.exit(main())
