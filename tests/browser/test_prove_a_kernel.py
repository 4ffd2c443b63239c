"""The box of "Prove a kernel": its verdicts, what it loads and sends, and how readers reach it."""

import json
import re
import time

import pytest
from built_site import SITE
from test_pages import SERIOUS

PAGE = "book/prove_a_kernel.html"
WORKBENCH = SITE / "_static/workbench"
MOST_BYTES = 9_500_000
# Python starts in seconds, where nothing else runs.
PATIENCE = 120_000
FETCHED = """() => performance.getEntriesByType('resource')
  .map(one => one.name).filter(name => /worker|pyodide|[.](zip|gz)/.test(name))"""
IDLE = "() => !document.querySelector('.prove-check').disabled"
# What a reader would see of a text that runs: a request, and a file that Python wrote.
HARMFUL = """import os
os.system("touch /mark")
open("/mark", "w").write("run")
import js
js.fetch("http://elsewhere.invalid/?run")


def scale(x, weight):
    y = x * weight
    return y
"""
# A text whose proof does not end in a minute.
SLOW = "def slow(x, weight, eps):\n    y = x + weight\n" + "    y = y * y + x\n" * 12
SLOW += "    return y\n"


def held(name):
    """What a script of the site keeps in a variable."""
    text = (WORKBENCH / name).read_text(encoding="utf8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


class Box:
    """The box, and what a reader does with it."""

    def __init__(self, reader, address):
        self.reader, page = reader, reader.open(address)
        self.page = page
        page.set_default_timeout(PATIENCE)
        self.field = page.locator(".cell-text textarea")
        self.status = page.locator(".prove-kernel [role=status]")

    def press(self, name):
        """Press a button and wait for the answer."""
        self.page.get_by_role("button", name=name, exact=True).click()
        self.page.wait_for_function(IDLE)

    def check(self, text):
        self.field.fill(text)
        self.press("Check")
        return self.page.locator(".prove-found .prove-verdict")


@pytest.fixture
def box(read):
    """A function that opens the page; none where the site was built without Node."""
    if missing := held("here.js")["missing"]:
        pytest.skip(f"no Pyodide on this site: {missing}")

    def open_(width=1280, height=900, scheme="light", address=PAGE):
        return Box(read(width, height, scheme), address)

    return open_


def test_nothing_is_loaded_before_a_check_and_its_size_is_said(box, capsys):
    opened = box()
    assert opened.page.evaluate(FETCHED) == []
    assert "9 MB, once" in opened.status.inner_text()
    sizes = []
    opened.page.on(
        "requestfinished",
        lambda request: sizes.append(request.sizes()["responseBodySize"]),
    )
    seconds = []
    for _ in range(2):
        start = time.monotonic()
        opened.press("Check")
        seconds.append(time.monotonic() - start)
    assert opened.page.locator(".prove-found .prove-proved").count() == 1
    assert 0 < sum(sizes) < MOST_BYTES
    assert seconds[1] < seconds[0]
    with capsys.disabled():
        cold, warm = seconds
        print(f"\n{sum(sizes):,} bytes; {cold:.1f} s cold, {warm:.1f} s warm")


def test_each_example_gives_its_verdict_at_one_click(box):
    opened = box()
    for example in held("kernels.js")["examples"]:
        opened.press(example["title"])
        confirm = opened.page.get_by_role("button", name="confirm and check")
        if confirm.count():
            assert opened.page.locator(".prove-found .prove-verdict").count() == 0
            opened.press("confirm and check")
        shown = opened.page.locator(".prove-found .prove-verdict")
        kind = shown.locator(".prove-kind").inner_text()[2:]
        assert kind.lower() == example["kind"].lower(), example["title"]
        assert kind in opened.status.inner_text()
        refuted = kind == "Refuted"
        assert shown.locator(".math, table").count() == 2 * refuted
        assert shown.locator("details").count() <= 1


def test_the_lines_that_a_verdict_names_are_marked(box):
    opened = box()
    opened.press("a mask with the wrong size")
    assert opened.page.locator(".cell-lines b").all_inner_texts() == ["\u25b811"]
    opened.page.get_by_role("button", name="line 11").click()
    selected = "field => field.value.slice(field.selectionStart, field.selectionEnd)"
    assert "mask=mask, other=0.0).to(tl.float32)" in opened.field.evaluate(selected)
    opened.field.press("End")
    opened.field.type(" ")
    assert opened.page.locator(".cell-lines b").count() == 0
    assert opened.page.locator(".prove-old").is_visible()


# A layer as it is pasted, without the head of its file.
HEADLESS = """class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * rstd * self.weight
"""


def test_a_text_without_imports_is_read(box):
    own = box()
    assert "Proved" in own.check(HEADLESS).first.inner_text()
    assert (
        "imports nothing: import torch" in own.page.locator(".prove-found").inner_html()
    )


def test_nothing_of_a_text_is_run(box):
    """No request is made, as every reader of these tests sees to, and Python has written no file."""
    opened = box()
    shown = opened.check(HARMFUL)
    assert shown.locator(".prove-kind").inner_text().endswith("Not read")
    opened.page.evaluate("""() => {
      const cell = normgradCell.make({name: 'a', action: 'b', words: 'c',
        work: async (ask) => `written: ${await ask('genericpath.exists', '/mark')}`});
      document.querySelector('.prove-kernel').append(cell.bar);
      cell.start();
    }""")
    said = opened.page.locator(".prove-kernel [role=status]").last
    said.get_by_text("written: false").wait_for(state="attached")


def test_what_is_no_program_is_answered_in_a_sentence(box):
    opened = box()
    assert "The box is empty" in opened.check("").inner_text()
    assert "This is not Python" in opened.check("x = 1\ny = (\n").inner_text()
    assert opened.page.locator(".cell-lines b").all_inner_texts() == ["\u25b82"]
    long = "x = 1\n" * 2000
    assert "no function, class or kernel" in opened.check(long).inner_text()
    numbers = opened.page.locator(".cell-lines").inner_text().split()
    assert numbers[-1] == "2001"
    text = held("kernels.js")["examples"][0]["text"]
    assert "Proved" in opened.check(long + text).inner_text()
    drawn = "\u2588\u0001\ufffd" * 400
    assert "This is not Python" in opened.check(drawn).inner_text()


def test_a_text_that_ends_python_is_answered_and_the_next_one_is_read(box):
    opened = box()
    opened.check(f"def deep(x):\n    y = {'-' * 5000}x\n    return y\n")
    assert "nested too deeply" in opened.status.inner_text()
    # Pyodide writes to the console what has ended it
    assert "Maximum call stack" in "".join(opened.reader.messages)
    opened.reader.messages.clear()
    opened.press("RMSNorm")
    assert opened.page.locator(".prove-found .prove-proved").count() == 1


def test_a_check_is_stopped_by_the_reader_and_by_the_clock(box):
    opened = box()
    opened.press("Check")
    opened.field.fill(SLOW)
    opened.page.get_by_role("button", name="Check", exact=True).click()
    opened.page.wait_for_timeout(300)
    opened.press("stop")
    assert opened.status.inner_text() == "Stopped."
    opened.page.evaluate(
        """text => {
          const cell = normgradCell.make({name: 'a', action: 'b', words: 'c', seconds: 0.5, work: (ask) =>
            ask('prove_kernel.answer', JSON.stringify({text}))});
          document.querySelector('.prove-kernel').append(cell.bar);
          cell.start();
        }""",
        SLOW,
    )
    said = opened.page.locator(".prove-kernel [role=status]").last
    said.get_by_text("No answer in 0.5 seconds: stopped.").wait_for()
    opened.press("RMSNorm")
    assert opened.page.locator(".prove-found .prove-proved").count() == 1


def test_a_link_holds_the_text_and_what_was_chosen(box):
    from playwright.sync_api import expect

    opened = box()
    opened.press("c2 forgotten in the backward")
    text = opened.field.input_value()
    opened.page.get_by_role("button", name="link", exact=True).click()
    opened.page.wait_for_url(re.compile("#text-"))
    address = PAGE + opened.page.evaluate("location.hash")
    other = box(address=address)
    # the address may be there before the box is
    expect(other.field).to_have_value(text, timeout=PATIENCE)
    assert other.page.locator("#prove-against").input_value() == "layer"
    assert other.page.get_by_label("bias").is_checked()
    assert other.page.evaluate(FETCHED) == []
    broken = box(address=f"{PAGE}#text-AAAA")
    broken.status.get_by_text("no text that can be read").wait_for()


def test_the_text_is_kept_and_forgotten(box):
    opened = box()
    first = opened.field.input_value()
    opened.field.fill("x = 1")
    opened.page.locator("#prove-against").select_option("l2")
    opened.page.reload()
    assert opened.field.input_value() == "x = 1"
    assert opened.page.locator("#prove-against").input_value() == "l2"
    opened.page.get_by_role("button", name="start over").click()
    opened.page.reload()
    assert opened.field.input_value() == first


def test_by_keyboard_on_a_phone(box):
    """What is found is announced, and nothing is wider than the page."""
    opened = box(390, 844)
    opened.field.focus()
    opened.page.keyboard.press("Control+Enter")
    opened.page.wait_for_selector(".prove-verdict")
    assert "Proved for every M and N: rms_norm" in opened.status.inner_text()
    wider = "() => document.documentElement.scrollWidth - innerWidth"
    for example in held("kernels.js")["examples"]:
        opened.press(example["title"])
        assert opened.page.evaluate(wider) == 0, example["title"]
    opened.press("a kernel without its launcher")
    assert opened.page.evaluate("document.activeElement.tagName") == "FIELDSET"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_stands_in_a_readers_way(box, axe, scheme):
    opened = box(scheme=scheme)
    opened.page.evaluate(axe)
    for title in (
        "c2 forgotten in the backward",
        "a mask with the wrong size",
        "a kernel without its launcher",
    ):
        opened.press(title)
        for fold in opened.page.locator(".prove-kernel summary:visible").all():
            fold.click()
        assert opened.page.evaluate(SERIOUS, True) == [], title


def test_from_a_disk_it_says_that_it_cannot_run(chromium):
    page = chromium.new_page()
    page.goto((SITE / PAGE).as_uri(), wait_until="domcontentloaded")
    page.wait_for_selector(".prove-kernel .live-words")
    assert "opened from a disk" in page.locator(".prove-kernel").inner_text()
    page.close()


@pytest.mark.parametrize("query", ["check my triton kernel", "prove kernel correct"])
def test_the_search_finds_the_page(read, query):
    page = read().open(f"search.html?q={query.replace(' ', '+')}")
    first = page.locator("ol.search-objects li a").first
    assert first.get_attribute("href").endswith("prove_a_kernel.html")
