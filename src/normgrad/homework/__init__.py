"""Homework: tasks, grading, and feedback that names the wrong term of a gradient.

`check` grades a function of this process, `python -m normgrad.homework` a folder. Importing needs NumPy alone.
"""

from importlib import import_module

_LAZY = {
    "check": "grade",
    "grade_file": "grade",
    "tasks": "task",
    "describe": "task",
    "homeworks": "task",
    "misconceptions": "task",
    "Report": "report",
    "StageResult": "report",
    "stages_of": "folder",
    "hand_in": "submit",
}

__all__ = list(_LAZY)


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__():
    return sorted([*globals(), *_LAZY])
