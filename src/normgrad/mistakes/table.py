"""The table of mistakes: what was believed, a hint that gives nothing away, and the equation that is violated.

What a reading shows is found by its edits (homework/reading/difference.py); the others are named by the stage that sees
them. The words stand in table.ini.
"""

from __future__ import annotations

from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

UNKNOWN = "unknown"
# What makes numbers wrong although no formula is.
SPOILS = ("out-of-bounds", "race", "stride-ignored")


@dataclass(frozen=True)
class Mistake:
    """A belief that leads to something wrong.

    Args:  key; title, what is wrong, naming the term; belief, what its author held for true; hint, which names no term
           and no coefficient
           equation: the label of the violated equation where it is not the output's own
           found, right: what is there and what is needed, where that is always the same
           edits: what it does to terms of the right equation, as "c1; missing", several between "|"; "&" joins those
           that only stand for it together
    """

    key: str
    title: str
    belief: str
    hint: str
    equation: str = ""
    found: str = ""
    right: str = ""
    edits: str = ""


def _read() -> dict[tuple[str, str], Mistake]:
    """{(homework, key): Mistake}, with "" for the homework where all have the same words."""
    table, mistakes = ConfigParser(interpolation=None), {}
    path = Path(__file__).with_suffix(".ini")
    table.read_string(path.read_text(encoding="utf8"))
    for section in table.sections():
        homework, _, key = section.rpartition(": ")
        words = {name: text.replace("\n", " ") for name, text in table[section].items()}
        mistakes[homework, key] = Mistake(key, **words)
    return mistakes


TABLE = _read()
MISTAKES = {key: each for (homework, key), each in TABLE.items() if not homework}
# The only ones of them that a homework names whose own table has the others.
SHARED = {"hw1": ("one-shape", "results-swapped")}


def titles(homework: str = "") -> dict[str, str]:
    """{key: title} of what reports of one homework name; of all mistakes of gradients without one."""
    shared = {key: MISTAKES[key].title for key in SHARED.get(homework, MISTAKES)}
    own = {
        key: mistake.title for (name, key), mistake in TABLE.items() if name == homework
    }
    return own | shared


def find(key: str, homework: str = "") -> Mistake:
    """The mistake of a key, in a homework's own words where it has some; KeyError for an unknown key."""
    return TABLE.get((homework, key)) or MISTAKES[key]
