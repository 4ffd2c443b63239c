"""The registry: every equation of the book under its label, read from equations.json.

An equation is typed once, in a cell of its page; `make equations` runs the cells and writes the file.
"""

from __future__ import annotations

import difflib
import json
import pkgutil
from functools import cache
from pathlib import Path

from .chains import Equation
from .written import equation_of

FILE = Path(__file__).with_name("equations.json")


class Unknown(ValueError):
    """A label that no equation of the book has."""


@cache
def entries() -> dict[str, dict]:
    """The entries of equations.json by label, as `written` describes them; not to be changed."""
    # as a resource, since a browser has the package in an archive
    return json.loads(pkgutil.get_data(__package__, FILE.name))


@cache
def _read(label):
    return equation_of(label, entries()[label])


def put(label: str, entry: dict) -> None:
    """Register an entry in this process."""
    entries()[label] = entry
    _read.cache_clear()


def equations() -> dict[str, Equation]:
    """All registered equations by label, page by page."""
    return {label: _read(label) for label in entries()}


def equation(label: str) -> Equation:
    """The registered equation with this label.

    Raises:  Unknown, a ValueError, for an unknown label, with the labels that come close; TypeError for what is no text
    """
    if not isinstance(label, str):
        raise TypeError(
            f"label: got {type(label).__name__}, needs the label of a registered equation, as ln-dx"
        )
    if label not in entries():
        close = difflib.get_close_matches(label, entries(), n=3, cutoff=0.4)
        hint = f"; close to it: {', '.join(close)}" if close else ""
        raise Unknown(f"label: got {label!r}, which no registered equation has{hint}")
    return _read(label)
