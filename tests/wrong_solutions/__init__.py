"""Wrong solutions of each homework, each an edit of the reference solution and what its author believed.

A file hwN.txt has a part for each: its name, the task and a stage that it fails, the mistake that the report names, and
the lines that it takes out (-) and puts in (+), with @@ between two edits.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from normgrad.homework.solutions import solution
from normgrad.mistakes.edits import edited


@dataclass(frozen=True)
class Wrong:
    """One wrong solution.

    Args:  name: a few words; task: the task that it fails; stage: a stage that it must not pass
           misconception: the key that the diagnosis must have, "" for what has none
           edits: (old, new) texts of the reference solution
    """

    name: str
    task: str
    stage: str
    misconception: str
    edits: tuple[tuple[str, str], ...]

    def source(self, homework: str) -> str:
        """The text of the wrong solution.py.

        Raises:  ValueError where a text that is edited is not there exactly once
        """
        return edited(solution(homework), self.edits, self.name)


def wrong(homework: str) -> tuple[Wrong, ...]:
    """The wrong solutions of a homework."""
    text = Path(__file__).with_name(f"{homework}.txt").read_text(encoding="utf8")
    return tuple(map(_read, text.rstrip("\n").split("\n\n## ")[1:]))


def _read(part):
    name, about, edits = part.split("\n", 2)
    task, _, stage = about.partition(": ")
    stage, _, key = stage.partition(" -> ")
    changes = [change.split("\n") for change in edits.split("\n@@\n")]
    sides = ((_lines("-", change), _lines("+", change)) for change in changes)
    return Wrong(name, task, stage, key, tuple(sides))


def _lines(sign, change) -> str:
    """The text that lines with a sign make up."""
    return "\n".join(line[2:] for line in change if line[:1] == sign)
