"""Where the built site is, which pages it has, and the paper that they are printed on."""

from pathlib import Path

SITE = Path(__file__).parents[2] / "_build/html"
# A4 between its margins of 12 mm, in CSS pixels.
A4_WIDTH = int((210 - 2 * 12) / 25.4 * 96)


def pages() -> list[str]:
    """The pages of the book itself, as paths on the site."""
    return [f"book/{path.name}" for path in sorted(SITE.glob("book/*.html"))]
