"""The pictures that stand on the pages where the live figures cannot: each as its figure begins.

`python tests/browser/live_pictures.py` writes them again, after a change of a figure.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "book/live"
sys.path.insert(0, str(ROOT / "book/_ext"))

# What only a live figure needs: how it is reached and what it is called.
DRAWING = """() => {
  const drawing = document.querySelector('.live svg').cloneNode(true);
  const {width, height} = drawing.viewBox.baseVal;
  for (const part of [drawing, ...drawing.querySelectorAll('*')])
    for (const {name} of [...part.attributes])
      if (/^(role|tabindex|class|aria-.*)$/.test(name)) part.removeAttribute(name);
  drawing.setAttribute('width', width);
  drawing.setAttribute('height', height);
  return new XMLSerializer().serializeToString(drawing);
}"""


def names():
    """All figures that have a picture."""
    from normgrad_book import live_functions

    return sorted(live_functions.FUNCTIONS)


def picture(page, name):
    """The picture of a figure, drawn by its script on an empty page."""
    from normgrad_book import live

    page.set_content(f'<figure id="{live.PREFIX}{name}"><img alt=""></figure>')
    page.add_script_tag(content=live.script(ROOT, name))
    return page.evaluate(DRAWING).replace("><", ">\n<") + "\n"


def main():
    from conftest import CHROMIUM, FLAGS
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        page = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS
        ).new_page()
        for name in names():
            (FOLDER / f"{name}.svg").write_text(picture(page, name), encoding="utf8")


if __name__ == "__main__":
    main()
