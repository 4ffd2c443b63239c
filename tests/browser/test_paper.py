"""Every page on paper: nothing is cut off, numbers stay with their formulas, and it is black on white."""

import re

import pytest
from test_site import A4_WIDTH, each_page

# What is wider than its place or than the paper.
CUT = """width => [...document.querySelectorAll('article :is(pre, mjx-container, table, img)')].filter(box => {
  const frame = box.getBoundingClientRect(), style = getComputedStyle(box);
  return box.checkVisibility() && frame.width > 1 && (frame.right > width + 1 ||
    style.overflowX !== 'visible' && box.scrollWidth > box.clientWidth + 1 || box.matches('mjx-container') &&
    box.querySelector('mjx-math')?.getBoundingClientRect().right > width + 1);
}).map(box => `${box.tagName} ${box.closest('[id]')?.id}: ${box.textContent.slice(0, 80)}`)"""
# Boxes with a frame and nothing legible in them.
EMPTY = """() => [...document.querySelectorAll('article :is(details, .admonition, .cell)')].filter(box =>
  box.checkVisibility() && box.getBoundingClientRect().height > 8 && !box.innerText.trim() &&
  !box.querySelector('img, svg')).map(box => box.outerHTML.slice(0, 120))"""
PARTED = """() => [...document.querySelectorAll('div.math')].filter(display =>
  getComputedStyle(display).breakInside !== 'avoid').map(display => display.id)"""


@each_page
def test_nothing_is_cut_off_on_paper(read, path):
    page = read(A4_WIDTH, 1000, "dark").open(path)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(CUT, A4_WIDTH) == []
    assert page.evaluate(EMPTY) == []
    assert page.evaluate(PARTED) == []
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    for other in (".bd-sidebar-primary", ".bd-header-article", "button.equation-menu", ".copybtn"):
        assert not any(found.is_visible() for found in page.locator(other).all()), other


@pytest.mark.parametrize("path", ["book/layer_norm_theorem.html", "book/layer_norm.html"])
def test_a_chapter_is_printed(read, path):
    """The browser's own way to paper, from the first to the last page."""
    paper = read().open(path).pdf(format="A4")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 25
