"""Wrong programs as edits of a right one's text."""

from __future__ import annotations

import re


def edited(source: str, edits, where: str) -> str:
    """The source after each edit; ValueError for a text that is not there exactly once.

    Where the lines of a statement are broken does not matter, nor a comma before a closing bracket.
    """
    for old, new in edits:
        matches = list(re.finditer(in_any_layout(old), source))
        if len(matches) != 1:
            raise ValueError(
                f"{where}: the text to edit occurs {len(matches)} times, needs 1: {old!r}"
            )
        start, end = matches[0].span()
        source = source[:start] + new + source[end:]
    return source


def in_any_layout(text: str) -> str:
    """A regular expression of the text, for any layout of its statements."""
    core = text.strip()
    start, end = text[: text.index(core)], text[text.index(core) + len(core) :]
    pattern = ""
    for token in re.findall(r"\s+|\w+|\W", core):
        if token.isspace():
            pattern += r"\s+"
        elif token in ")]}":
            pattern += rf"(?:,?\s*){re.escape(token)}"
        elif token in "([{":
            pattern += rf"{re.escape(token)}\s*"
        else:
            pattern += re.escape(token)
    after = r"\s+" if end and "\n" not in end else re.escape(end)
    return re.escape(start) + pattern + after
