"""Where the built site is, its pages and numbered equations, and the paper that they are printed on."""

import json
from pathlib import Path

SITE = Path(__file__).parents[2] / "_build/html"
# A4 between its margins of 12 mm, in CSS pixels.
A4_WIDTH = int((210 - 2 * 12) / 25.4 * 96)


def pages() -> list[str]:
    """The pages of the book itself, as paths on the site."""
    return [f"book/{path.name}" for path in sorted(SITE.glob("book/*.html"))]


def equations() -> list[dict]:
    """The entry of each numbered equation, as the site offers it to programs."""
    return json.loads((SITE / "ledger.json").read_text(encoding="utf8"))
