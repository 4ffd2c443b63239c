"""Each page as readers meet it: on every screen, in both themes, for those who hear it, and on paper.

A page is loaded once, on one screen, and on another one with another commit; on other screens it is then shown as to a
reader who turns the phone or changes the theme.
"""

import re

import pytest
from built_site import A4_WIDTH, pages

WIDTHS = {"desktop": (1280, 900), "tablet": (768, 1024), "phone": (390, 844)}
SCREENS = [(name, scheme) for name in WIDTHS for scheme in ("light", "dark")]
# A while after the article has another width, mathematics.js has broken formulas anew, and the theme has put into the
# order of the tab key what scrolls; a while after the theme was changed, the last colour has followed.
FITTED = """() => !window.MathJax ||
  document.documentElement.dataset.fitted === String(document.querySelector('article').clientWidth)"""
# What scrolls is reached by keyboard: the theme sees to it 300 ms after a window has another size.
REACHED = """() => [...document.querySelectorAll('article pre, .pst-scrollable-table-container')].every(box =>
  box.tabIndex === 0 || box.scrollWidth <= box.clientWidth) &&
  !document.getAnimations().some(one => one instanceof CSSTransition && one.playState === 'running')"""

# Badges and equation numbers, as rectangles, and the displays they belong to.
OVERLAPS = """() => {
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const found = [];
  for (const badge of document.querySelectorAll('p.ledger-badge a')) {
    const display = badge.closest('p').previousElementSibling;
    for (const part of display.querySelectorAll('mjx-math, .eqno')) {
      const clipped = part.getBoundingClientRect(), frame = display.getBoundingClientRect();
      const seen = {left: clipped.left, right: clipped.right, top: clipped.top,
                    bottom: Math.min(clipped.bottom, frame.bottom)};
      if (meet(badge.getBoundingClientRect(), seen)) found.push(badge.href);
    }
  }
  return found;
}"""

# Formulas whose end cannot be reached, because what is wider than its place is cut off there; displays that scroll; and
# formulas with a scrollbar that scrolls nothing.
CUT_OFF = """() => [...document.querySelectorAll('article .math')].filter(formula =>
  formula.scrollWidth > formula.clientWidth + 1 && getComputedStyle(formula).overflowX === 'hidden'
).map(formula => formula.textContent)"""
SCROLLING = """() => [...document.querySelectorAll('article :is(div.math > mjx-container, .live-formula)')].filter(
  box => box.scrollWidth > box.clientWidth + 1).map(box => box.parentElement.id || box.closest('section').id)"""
IDLE_SCROLLBARS = """() => [...document.querySelectorAll('article :is(.math, .math > mjx-container)')].filter(box => {
  const {overflowX, overflowY} = getComputedStyle(box), scrollbar = ['auto', 'scroll'];
  return scrollbar.includes(overflowY) || box.matches('span') && scrollbar.includes(overflowX) &&
    box.scrollWidth <= box.clientWidth;
}).map(box => box.textContent)"""
# Formulas in the order of the tab key that do not scroll, and such that scroll and are not in it.
STOPS = """() => [...document.querySelectorAll('article :is(div.math > mjx-container, span.math)')].filter(box =>
  box.hasAttribute('tabindex') !== (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === 'auto')
).map(box => box.textContent)"""

# Code of at most 80 columns that does not fit.
CODE_CUT = """() => [...document.querySelectorAll('article div.highlight pre')].filter(code =>
  code.scrollWidth > code.clientWidth && code.textContent.split('\\n').every(line => line.length <= 80)
).map(code => code.textContent)"""
# Pictures that did not come, or that say nothing to those who do not see them.
BAD_PICTURES = """() => [...document.querySelectorAll('article img')].filter(image =>
  !image.alt || !image.complete || !image.naturalWidth).map(image => image.src)"""

# What is wider than its place or than the paper.
# Frames that a page may end in, around what it may not: the frame would stay there without it.
LEFT_BEHIND = """() => [...document.querySelectorAll('article :not(table)')].filter(frame => {
  const style = getComputedStyle(frame), first = frame.firstElementChild;
  return parseFloat(style.borderTopWidth) > 0 && style.breakInside !== 'avoid'
    && first && getComputedStyle(first).breakInside === 'avoid';
}).map(frame => frame.className + ': ' + frame.textContent.trim().slice(0, 60))"""
CUT_ON_PAPER = """width => [...document.querySelectorAll('article :is(pre, mjx-container, table, img)')].filter(box => {
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
# What only a screen can do.
FOR_SCREENS = """() => [...document.querySelectorAll(
  '.bd-sidebar-primary, .bd-header-article, button.equation-menu, .copybtn, .ledger-filter'
)].filter(box => box.checkVisibility() && box.getBoundingClientRect().width > 0).map(box => box.className)"""

SERIOUS = """async (contrast) => (await axe.run(document, {
  resultTypes: ['violations'], preload: false, rules: {'color-contrast': {enabled: contrast}},
})).violations
  .filter(({impact}) => ['serious', 'critical'].includes(impact))
  .map(({id, nodes}) => [id, nodes.length, ...nodes.slice(0, 3).map(({html}) => html)])"""


class View:
    """A page that is loaded, and the screen that it is shown on."""

    def __init__(self, reader, path, loaded):
        self.path, self.loaded, self.page = path, loaded, reader.page
        name, scheme = loaded
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.size = self.page.viewport_size
        self.resize(*WIDTHS[name])
        reader.open(path)

    def resize(self, width, height):
        size = {"width": width, "height": height}
        if self.size != size:
            self.size = size
            self.page.set_viewport_size(size)

    def show(self, screen):
        name, scheme = screen
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.page.wait_for_function(
            "scheme => document.documentElement.dataset.theme === scheme", arg=scheme
        )
        self.resize(*WIDTHS[name])
        self.page.wait_for_function(FITTED)

    def screens(self, whole):
        """All of them, or of each width one: first that on which the page was loaded, on the others the other theme."""
        name, scheme = self.loaded
        some = [
            screen
            for screen in SCREENS
            if whole or (screen[0] == name) == (screen[1] == scheme)
        ]
        return sorted(
            some, key=lambda screen: (screen != self.loaded, screen[0] != name, screen)
        )


@pytest.fixture(scope="module")
def view(request, visitor, turn):
    """A page, which the tests below share, one after another."""
    yield View(visitor, request.param, turn(request.param, SCREENS))
    visitor.nothing_wrong()


def views():
    """Every page; where tests are sampled, half of them."""
    half = {path: pytest.mark.sampled(of=2, key=path, turn=0) for path in pages()}
    return [pytest.param(path, marks=mark) for path, mark in half.items()] or ["none"]


each_view = pytest.mark.parametrize("view", views(), indirect=True, scope="module")


@each_view
def test_nothing_serious_stands_in_a_readers_way(view, axe, turn, request):
    """By axe, on the screen that the page was loaded on; on all of them where nothing is sampled.

    Contrast takes it more than half of its time, and all pages have one style sheet: a third of them a commit.
    """
    whole = request.config.option.whole
    contrast = whole or turn(f"contrast {view.path}", [True, False, False])
    view.page.evaluate(axe)
    for screen in view.screens(whole=True) if whole else [view.loaded]:
        view.show(screen)
        view.page.wait_for_function(REACHED)
        assert view.page.evaluate(SERIOUS, contrast) == [], screen


@each_view
def test_page_renders(view, request):
    page = view.page
    for screen in view.screens(request.config.option.whole):
        view.show(screen)
        assert page.locator("mjx-merror").count() == 0
        assert (
            page.locator("mjx-container").count()
            >= page.locator("div.math, span.math").count()
        )
        assert (
            page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        ), screen
        assert page.evaluate(OVERLAPS) == [], screen
        assert page.evaluate(CUT_OFF) == [], screen
        assert not page.evaluate(SCROLLING), screen
        assert page.evaluate(IDLE_SCROLLBARS) == [], screen
        assert screen[0] != "desktop" or page.evaluate(CODE_CUT) == []
        assert page.evaluate(STOPS) == [], screen
        assert page.evaluate(BAD_PICTURES) == []


def test_formulas_are_read_before_they_are_scrolled_to(read):
    """A screen reader gets their MathML, and a search in the page their letters."""
    reader = read(390)
    page = reader.page
    page.goto(f"{reader.address}/book/layer_norm.html", wait_until="load")
    page.wait_for_function("""() => scrollY === 0 && document.querySelector('mjx-math') &&
      [...document.querySelectorAll('article mjx-assistive-mml')].every(one => one.textContent.trim())""")
    assert page.locator("mjx-lazy").count() == 0


@each_view
def test_nothing_is_cut_off_on_paper(view):
    """Numbers stay with their formulas, and it is black on white."""
    page = view.page
    page.emulate_media(media="print", color_scheme="dark")
    view.resize(A4_WIDTH, 1000)
    page.wait_for_function(FITTED)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    try:
        assert page.evaluate(CUT_ON_PAPER, A4_WIDTH) == []
        assert page.evaluate(EMPTY) == []
        assert page.evaluate(LEFT_BEHIND) == []
        assert page.evaluate(PARTED) == []
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        assert page.evaluate(FOR_SCREENS) == []
    finally:
        page.evaluate("dispatchEvent(new Event('afterprint'))")


@pytest.mark.parametrize(
    "path", ["book/layer_norm_theorem.html", "book/layer_norm.html"]
)
def test_a_chapter_is_printed(read, path):
    """The browser's own way to paper, from the first to the last page."""
    paper = read().open(path).pdf(format="A4")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 25
