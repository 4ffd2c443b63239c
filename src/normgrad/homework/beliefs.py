"""What a diagnosis can say: the keys of all misconceptions with their titles, for teachers and for statistics."""

from __future__ import annotations

import sys

from .diagnosis import MISTAKES
from .task import Task, find, homeworks


def misconceptions(task: str = "") -> dict[str, str]:
    """{key: title} of the misconceptions that reports name, over all homeworks or in one task.

    The same confusion may have a title of its own in each task: name the task to get that one.

    Args:     task: the name of a task, "" for all
    Raises:   ValueError with the nearest names for an unknown task
    """
    if task:
        return _own(find(task)) or _catalogue()
    found = _catalogue()
    for each in (task for homework in homeworks().values() for task in homework.tasks):
        found = _own(each) | found
    return found


def _catalogue():
    return {each.key: each.title for each in MISTAKES.values()}


def _own(task: Task) -> dict[str, str]:
    """What a task names beside the catalogue of gradients: what its oracle knows, and what its stages do."""
    found = {each.key: each.title for each in getattr(task.oracle, "confusions", ())}
    for stage in task.stages:
        run = getattr(stage.run, "func", stage.run)
        found = getattr(sys.modules[run.__module__], "MISCONCEPTIONS", {}) | found
    return found
