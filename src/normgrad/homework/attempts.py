"""How much a report gives away, and which version of an answer it speaks of."""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256
from pathlib import Path

from .report import FEEDBACK
from .sandbox.source import functions, reached, read

FILE = ".attempts.json"


class Attempts:
    """The versions of each task's answer that were graded and not right. Args: known: {task: versions}"""

    def __init__(self, known=None):
        self.known = known or {}

    def level(self, task: str, version) -> str:
        """What a report on this version may show, by the number of others before it."""
        before = [each for each in self.known.get(task, ()) if each != version]
        return FEEDBACK[min(len(before), len(FEEDBACK) - 1)]

    def note(self, report, version) -> None:
        """Counts a version, unless it is right or nothing is written yet."""
        versions = self.known.setdefault(report.task, [])
        if not (report.passed or report.stub or version in versions):
            versions.append(version)
        if report.diagnoses and report.feedback != FEEDBACK[-1]:
            report.notes.insert(0, "With your next attempt, the report says more.")


CELLS = Attempts()


class _Held:
    """A value that equals nothing but itself; held, so that no other one comes to stand in its place in memory."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Held) and self.value is other.value


def version_of(target) -> list:
    """What tells one version of a function of this process from another: its code, that of the functions it reads, and
    the values that they read."""
    found = []
    for function in reached(target):
        values = [value for _, value in sorted(read(function).items()) if not functions(value)]
        found += [function.__code__, repr(function.__defaults__), repr(function.__kwdefaults__)]
        found += [value if isinstance(value, (int, float, str)) else _Held(value) for value in values]
    return found


class InFolder(Attempts):
    """Attempts that are kept beside a solution.py, where that can be."""

    def __init__(self, path):
        self.file = Path(path).with_name(FILE)
        self.version = sha256(Path(path).read_bytes()).hexdigest()[:16]
        known = {}
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(self.file.read_text(encoding="utf8"))
        super().__init__({task: list(found) for task, found in known.items()} if isinstance(known, dict) else {})

    def keep(self, reports) -> None:
        """Counts all reports, and writes the file."""
        for report in reports:
            self.note(report, self.version)
        with contextlib.suppress(OSError):
            self.file.write_text(json.dumps(self.known), encoding="utf8")
