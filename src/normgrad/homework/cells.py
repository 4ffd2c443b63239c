"""A task graded once for all the cells that test it, one cell a stage: what exported notebooks call."""

from __future__ import annotations

from dataclasses import dataclass, field

from .grade import check
from .report.report import Report
from .report.stage import StageResult
from .sandbox.looks import reached, read


@dataclass
class _Graded:
    """A report, what it was made of, and the stages that were asked for since."""

    parts: list
    report: Report
    asked: set = field(default_factory=set)


_KEPT: dict[str, _Graded] = {}


def stage(name: str, target, title: str, seed: int = 0, feedback: str = "coefficients") -> StageResult:
    """One stage of a task, from a grade that the cells of its other stages share; its message has the diagnosis.

    The target is graded again when it is another object, when something that it is made of is (its code, or a function
    or a value that it reads), and when a stage is asked for a second time: a second run of the cells is a new check.

    Args:     name: a task; target: the student's function or class; title: of the stage; seed, feedback: as for check
    Returns:  StageResult
    Raises:   ValueError or TypeError as check does; KeyError for an unknown stage
    """
    parts, kept = [seed, feedback, *_parts(target)], _KEPT.get(name)
    if kept is None or title in kept.asked or not _same(kept.parts, parts):
        kept = _KEPT[name] = _Graded(parts, check(name, target, seed, feedback))
    kept.asked.add(title)
    return kept.report.told(title)


def _same(one, other) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _parts(target) -> list:
    """The objects that a target's results depend on: itself, the code of its functions, and what they read."""
    found = [target]
    for function in reached(target):
        found += [function.__code__, function.__defaults__, function.__kwdefaults__]
        found += [value for _, value in sorted(read(function).items())]
    return found
