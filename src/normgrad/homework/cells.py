"""A task graded once for all the cells that test it, one cell a stage: what exported notebooks call."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from types import FunctionType

from .grade import check
from .report.report import Report
from .report.stage import StageResult
from .sandbox.looks import codes


@dataclass
class _Graded:
    """A report, what it was made of, and the stages that were asked for since."""

    parts: list
    report: Report
    asked: set = field(default_factory=set)


_KEPT: dict[str, _Graded] = {}


def stage(name: str, target, title: str, seed: int = 0) -> StageResult:
    """One stage of a task, from a grade that the cells of its other stages share.

    The target is graded again when it is another object, when something that it is made of is (its code, or a function
    or a value that it reads), and when a stage is asked for a second time: a second run of the cells is a new check.

    Args:     name: a task; target: the student's function or class; title: of the stage; seed: of the inputs
    Returns:  StageResult
    Raises:   ValueError or TypeError as check does; KeyError for an unknown stage
    """
    parts, kept = [seed, *_parts(target)], _KEPT.get(name)
    if kept is None or title in kept.asked or not _same(kept.parts, parts):
        kept = _KEPT[name] = _Graded(parts, check(name, target, seed))
    kept.asked.add(title)
    return kept.report[title]


def _same(one, other) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _parts(target) -> list:
    """The objects that a target's results depend on: itself, its code, what it reads, and theirs in the same module."""
    found, left, module = [], [target], getattr(target, "__module__", None)
    while left:
        each = left.pop()
        if any(each is known for known in found):
            continue
        found.append(each)
        for function in _functions(each, module):
            found += [function.__code__, function.__defaults__, function.__kwdefaults__]
            left += [*_enclosed(function), *_read(function)]
    return found


def _enclosed(function):
    """The values of the variables around a function, as far as they have one."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            yield cell.cell_contents


def _functions(value, module):
    """The functions of a value of the student's own: itself, the methods of a class, what a decorator wrapped."""
    if getattr(value, "__module__", None) != module:
        return []
    members = list(vars(value).values()) if isinstance(value, type) else [value, getattr(value, "fn", None)]
    found = [getattr(member, "__func__", member) for member in members]
    return [function for function in found if isinstance(function, FunctionType)]


def _read(function):
    """The values of the globals that a function names, or that a function inside of it does."""
    names = dict.fromkeys(name for code in codes(function.__code__) for name in code.co_names)
    return [function.__globals__[name] for name in names if name in function.__globals__]
