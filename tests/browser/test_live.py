"""Figures that move: from a disk, by keyboard, in both themes, and the pictures in their place."""

import re
from functools import cache

import live_pictures
import pytest
from built_site import SITE, pages

each_figure = pytest.mark.parametrize("name", live_pictures.names())
# What a figure shows: its words, and where its shapes stand.
SHOWN = "() => document.querySelector('.live').innerHTML.replace(/ (aria-|id=|for=|tabindex)[^ >]*/g, '')"


def home(name):
    """The page that shows a figure."""
    (pages_with_it,) = [
        path
        for path in pages()
        if f'id="fig-live-{name}"' in (SITE / path).read_text(encoding="utf8")
    ]
    return pages_with_it


@pytest.fixture(scope="module")
def disk(chromium):
    """A function that opens the page of a figure from the disk, as a reader of a downloaded site does."""
    contexts, messages = [], []

    def open_(name, scripts=True):
        context = chromium.new_context(
            java_script_enabled=scripts, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto((SITE / home(name)).as_uri(), wait_until="domcontentloaded")
        if scripts:
            page.wait_for_selector(".live svg")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert messages == []


@pytest.fixture(scope="module")
def opened(disk):
    """The same, once for each figure; what one test does to it, the next one finds."""
    return cache(disk)


@each_figure
def test_each_control_changes_the_figure_and_the_keyboard_reaches_it(opened, name):
    page = opened(name)
    assert page.locator("img.live-picture, .live-picture img").count() == 1
    assert not page.locator(f"#fig-live-{name} img").is_visible()
    controls = page.locator(
        ".live :is(input, select, button), .live svg [tabindex='0']"
    ).element_handles()
    assert len(controls) >= 2
    for control in controls:
        kind = control.evaluate(
            "one => one.getAttribute('role') || one.type || one.tagName"
        )
        if control.is_disabled() or (
            kind == "button" and "mend" in control.inner_text()
        ):
            continue
        before = page.evaluate(SHOWN)
        control.focus()
        assert control.evaluate("one => one === document.activeElement")
        page.keyboard.press(
            {"switch": "Enter", "button": "Enter"}.get(kind, "ArrowDown")
        )
        assert page.evaluate(SHOWN) != before, control.evaluate("one => one.outerHTML")


@each_figure
def test_without_scripts_and_on_paper_the_picture_stands(disk, opened, name):
    disk(name, scripts=False).locator(f"#fig-live-{name} img").wait_for(state="visible")
    page = opened(name)
    page.emulate_media(media="print")
    page.locator(f"#fig-live-{name} img").wait_for(state="visible")
    assert not page.locator(".live").is_visible()
    page.emulate_media(media="screen")


def test_a_bar_is_dragged(disk):
    page = disk("jacobian")
    handle = page.get_by_role("slider", name="x, entry 1")
    handle.scroll_into_view_if_needed()
    box, before = handle.bounding_box(), page.locator(".live-words").inner_text()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=4)
    page.mouse.up()
    assert float(handle.get_attribute("aria-valuenow")) < 1.2
    assert page.locator(".live-words").inner_text() != before


def test_a_finger_on_a_bar_moves_the_bar_and_not_the_page(chromium):
    size = {"width": 390, "height": 844}
    context = chromium.new_context(viewport=size, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto((SITE / home("jacobian")).as_uri(), wait_until="domcontentloaded")
    page.wait_for_selector(".live svg")
    handle = page.get_by_role("slider", name="x, entry 1")
    handle.scroll_into_view_if_needed()
    box, before = handle.bounding_box(), handle.get_attribute("aria-valuenow")
    depth = page.evaluate("scrollY")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = context.new_cdp_session(page)

    def touch(kind, *points):
        event = {"type": kind, "touchPoints": list(points)}
        finger.send("Input.dispatchTouchEvent", event)

    touch("touchStart", {"x": x, "y": y})
    for step in range(1, 9):
        touch("touchMove", {"x": x, "y": y - 10 * step})
    touch("touchEnd")
    page.wait_for_timeout(100)
    after = handle.get_attribute("aria-valuenow")
    moved = page.evaluate("scrollY") - depth
    context.close()
    assert after != before and moved == 0


@each_figure
def test_on_a_phone_letters_can_be_read_and_controls_hit(chromium, name):
    """At 390 pixels letters are at least 9 high, and what a finger takes hold of 24."""
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto((SITE / home(name)).as_uri(), wait_until="domcontentloaded")
    page.wait_for_selector(".live svg")
    letters = page.locator(".live svg text").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"
    )
    assert min(letters) >= 9
    controls = page.locator(".live input[type=range], .live-handle, .live select")
    heights = controls.evaluate_all("""all => all.map(e => {
      const rim = e.getScreenCTM ? parseFloat(getComputedStyle(e).strokeWidth) * e.getScreenCTM().a : 0;
      return e.getBoundingClientRect().height + rim;
    })""")
    page.close()
    assert all(height >= 24 for height in heights), heights


def test_on_a_phone_letters_of_drawings_can_be_read():
    """A drawing gets 358 of the 390 pixels; a letter of matplotlib's is drawn as outlines of size 100, scaled."""
    heights = {}
    texts = [(SITE / path).read_text(encoding="utf8") for path in pages()]
    for name in set(re.findall(r"_images/(\w+\.svg)", "".join(texts))):
        drawing = (SITE / "_images" / name).read_text(encoding="utf8")
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', drawing)[1])
        scales = map(float, re.findall(r"scale\(([\d.]+) -", drawing))
        heights[name] = 100 * min(scales, default=1) * 358 / width
    assert [name for name, height in heights.items() if height < 9] == []
