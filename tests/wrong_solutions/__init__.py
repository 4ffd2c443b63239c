"""Wrong solutions of each homework, each an edit of the reference solution and what its author believed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from normgrad.homework.solutions import solution
from normgrad.mistakes.edits import edited


@dataclass(frozen=True)
class Wrong:
    """One wrong solution.

    Args:  name: a few words; task: the task that it fails; edits: (old, new) texts of the reference solution
           stage: a stage that it must not pass; misconception: the key that the diagnosis must have, where a gradient
           or an output is wrong in a way that the catalogue knows
    """

    name: str
    task: str
    edits: tuple[tuple[str, str], ...]
    stage: str
    misconception: str = ""

    def source(self, homework: str) -> str:
        """The text of the wrong solution.py.

        Raises:  ValueError where a text that is edited is not there exactly once
        """
        return edited(solution(homework), self.edits, self.name)


def of(task: str, stage: str):
    """A maker of wrong solutions of a task, from a name and edits; stage: where it takes no other one."""

    def mistake(name, *edits, stage=stage, misconception=""):
        return Wrong(name, task, edits, stage, misconception)

    return mistake


def wrong(homework: str) -> tuple[Wrong, ...]:
    """The wrong solutions of a homework."""
    return import_module(f".{homework}", __package__).WRONG
