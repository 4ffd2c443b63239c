"""Where the built site is and which pages it has."""

from pathlib import Path

SITE = Path(__file__).parents[2] / "_build/html"


def pages() -> list[str]:
    """The pages of the book itself, as paths on the site."""
    return [f"book/{path.name}" for path in sorted(SITE.glob("book/*.html"))]
