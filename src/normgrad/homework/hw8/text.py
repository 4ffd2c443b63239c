"""The text that the small model reads: nothing has to be downloaded for it."""

from __future__ import annotations

from pathlib import Path


def text() -> str:
    """What the homeworks once said of themselves: sixteen thousand characters of plain words.

    It stays as it is when they change: a network trained on other words is another one, with other figures.
    """
    return Path(__file__).with_name("text.txt").read_text(encoding="utf8")
