"""What someone who does not know the site came for, from the front page on: found, and in how many actions.

An action is a click, a key, or a word that is typed. Each task begins on the front page; the most actions that it may
take are what it takes now.
"""

import json
import re

import pytest


class Stranger:
    """A reader whose actions are counted."""

    def __init__(self, page):
        self.page, self.actions = page, 0
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def click(self, target):
        target.first.click()
        self.actions += 1

    def press(self, key):
        self.page.keyboard.press(key)
        self.actions += 1

    def type(self, text):
        self.page.keyboard.type(text)
        self.actions += 1

    def button(self, name):
        self.click(self.page.get_by_role("button", name=name))

    def search(self, words):
        """The first thing that the site finds by name."""
        self.button("Search")
        self.type(words)
        self.press("Enter")
        self.page.wait_for_url("**/search.html?*")
        self.click(self.page.locator(".search-objects a"))

    def equation(self):
        """What stands below the equation that the reader has come to."""
        label = self.page.url.partition("#equation-")[2]
        self.click(self.page.locator(f'button.equation-menu[data-label="{label}"]'))
        return self.page.locator(".equation-panel")

    def copied(self):
        return self.page.evaluate("navigator.clipboard.readText()")


@pytest.fixture
def stranger(read):
    reader = read()
    reader.page.goto(f"{reader.address}/index.html")
    reader.page.wait_for_url("**/book/intro.html")
    return Stranger(reader.page)


def test_dx_of_layer_norm_as_latex(stranger):
    stranger.search("dx of LayerNorm")
    stranger.equation()
    stranger.button("Copy LaTeX")
    assert re.search(r"\\mathrm\{dx\}.*rstd", stranger.copied())
    assert stranger.actions <= 6


def test_dx_of_layer_norm_as_python(stranger):
    stranger.search("dx of LayerNorm")
    stranger.equation()
    stranger.button("Copy NumPy")
    assert re.search(r"^def ln_dx\(", stranger.copied(), re.M)
    compile(stranger.copied(), "copied", "exec")
    assert stranger.actions <= 6


def test_the_notebook_of_layer_norm(stranger):
    stranger.search("dx of LayerNorm")
    stranger.button("Download this page")
    with stranger.page.expect_download() as found:
        stranger.click(stranger.page.get_by_role("link", name=".ipynb"))
    assert any(
        "rstd" in "".join(cell["source"])
        for cell in json.loads(found.value.path().read_text())["cells"]
    )
    assert stranger.actions <= 6


def test_what_differs_in_flux(stranger):
    from playwright.sync_api import expect

    stranger.search("Flux")
    row = stranger.page.locator("tr", has_text="Flux").first
    # formulas are typeset as they come into view
    expect(row).to_have_text(re.compile("s\\s*\\+\\s*\N{GREEK SMALL LETTER EPSILON}"))
    assert row.is_visible()
    assert stranger.actions <= 4


def test_the_proof_of_dx(stranger):
    stranger.search("dx of LayerNorm")
    panel = stranger.equation()
    stranger.button("See the proof")
    # formulas are typeset as they come into view
    panel.locator(".proof-step").first.scroll_into_view_if_needed()
    stranger.page.wait_for_selector(".equation-proof mjx-math")
    assert "differentiate" in panel.inner_text()
    assert stranger.actions <= 6


def test_the_homework_of_dx(stranger):
    stranger.search("dx of LayerNorm")
    panel = stranger.equation()
    stranger.click(panel.get_by_role("link", name=re.compile(r"^Homework \d")))
    stranger.page.wait_for_url(re.compile(r"book/hw\d\.html"))
    assert stranger.actions <= 6


def test_layer_norm_on_paper(stranger):
    stranger.page.add_init_script("window.print = () => { window.printed = true; }")
    stranger.search("dx of LayerNorm")
    stranger.button("Download this page")
    stranger.button(".pdf")
    assert stranger.page.evaluate("printed")
    assert len(re.findall(rb"/Type\s*/Page\b", stranger.page.pdf(format="A4"))) >= 3
    assert stranger.actions <= 6
