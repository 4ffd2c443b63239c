"""Where the book shows an equation: its page and its number there, for reports that are read without the book.

`python -m normgrad.homework.equations LEDGER` writes the list again, from the ledger.json of a built book.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("equations.json")
# The variable that says where the pages of the book lie, such as "./" or an address that ends in "/". Where it is set,
# a report links an equation and leaves its number out: the outputs of the book's cells outlast a change of numbers.
BOOK = "NORMGRAD_BOOK"


@cache
def places() -> dict[str, list[str]]:
    """{label: [page, number]} of all numbered equations, such as {"ln-dx": ["layer_norm", "8.52"]}."""
    return json.loads(FILE.read_text(encoding="utf8"))


def place(label: str) -> list[str]:
    """[page, number] of an equation, empty texts for a label that no page numbers; within the book no number."""
    page, number = places().get(label, ["", ""])
    return [page, "" if BOOK in os.environ else number]


def shown(label: str) -> str:
    """An equation as a reader finds it: its label, and its number where it has one."""
    _, number = place(label)
    return f"{label} ({number})" if number else label


def of_ledger(path) -> dict[str, list[str]]:
    """The places in a ledger.json."""
    entries = json.loads(Path(path).read_text(encoding="utf8"))
    return {
        each["label"]: [each["chapter"].rpartition("/")[2], each["number"]]
        for each in entries
    }


def main(path) -> None:
    """Writes the list, one equation a line."""
    lines = (
        f"{json.dumps(label)}: {json.dumps(place)}"
        for label, place in of_ledger(path).items()
    )
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf8")


if __name__ == "__main__":
    main(sys.argv[1])
