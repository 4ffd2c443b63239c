"""A class: one folder a student, graded one process each; reports and a table are written outside of what is graded."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .sandbox.remote import LONGEST_SOURCE
from .solutions import SOLUTION
from .task import find_homework

TABLE = "grades.csv"
# Beyond what all stages of a homework may take together.
LONGEST_SECONDS = 600


@dataclass(frozen=True)
class Grade:
    """One student's grade. Args: name: of the folder; report: as in the JSON file; note: why there is no report"""

    name: str
    report: dict = field(default_factory=dict)
    note: str = ""

    @property
    def points(self) -> int:
        """Points earned; without a report, none."""
        return self.report.get("points", 0)


def grade_class(folder, out, homework, jobs=1, options=()) -> list[Grade]:
    """Grades every folder in a folder and writes NAME.json and NAME.txt for each.

    Args:    folder: with one folder a student; out: for the reports, outside of it; jobs: how many at once
             options: further ones of the command `check`
    Returns: a Grade for each folder, in their order
    Raises:  ValueError naming the argument, what it got and what it needs
    """
    folder, out = Path(folder), Path(out)
    asked = find_homework(homework)
    if not folder.is_dir():
        raise ValueError(
            f"DIR: got {str(folder)!r}, needs a folder with one folder a student"
        )
    if not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"--jobs: got {jobs!r}, needs a whole number from 1 on")
    inside = out.resolve()
    if folder.resolve() in (inside, *inside.parents):
        raise ValueError(
            f"--out: got {str(out)!r}, which lies in {str(folder)!r}; needs a folder outside of it"
        )
    submissions = sorted(
        each
        for each in folder.iterdir()
        if each.is_dir() and not each.name.startswith(".")
    )
    if not submissions:
        raise ValueError(
            f"DIR: got {str(folder)!r}, which has no folders; needs one folder a student"
        )
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        grades = list(
            pool.map(lambda each: _grade(each, homework, tuple(options)), submissions)
        )
    for each in grades:
        text = each.report.pop("text", f"{each.name}: {each.note}")
        report = each.report or {
            "points": 0,
            "max_points": asked.max_points,
            "tasks": [],
            "note": each.note,
        }
        _write(out / f"{each.name}.json", json.dumps(report, indent=2) + "\n")
        _write(out / f"{each.name}.txt", text + "\n")
    return grades


def _grade(submission, homework, options) -> Grade:
    """One grade, of a copy of the folder's Python files, by a grader of its own."""
    if why := _refused(submission):
        return Grade(submission.name, note=why)
    with tempfile.TemporaryDirectory(prefix="homework-") as place:
        for path in submission.glob("*.py"):
            if path.is_file() and path.stat().st_size <= LONGEST_SOURCE + 1:
                shutil.copyfile(path, Path(place, path.name), follow_symlinks=False)
        # A folder with nothing in it, since Python looks for modules where it is started.
        with tempfile.TemporaryDirectory(prefix="homework-") as empty:
            command = [
                sys.executable,
                "-m",
                "normgrad.homework",
                "check",
                place,
                "--homework",
                homework,
                "--json",
                "-",
            ]
            path = [
                os.path.abspath(each)
                for each in os.environ.get("PYTHONPATH", "").split(os.pathsep)
                if each
            ]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
            try:
                done = subprocess.run([*command, *options], cwd=empty, env=environment, timeout=LONGEST_SECONDS,
                                      capture_output=True, text=True)  # fmt: skip
                return Grade(submission.name, json.loads(done.stdout))
            except subprocess.TimeoutExpired:
                return Grade(
                    submission.name,
                    note=f"the grader had not finished after {LONGEST_SECONDS} s",
                )
            except ValueError:
                words = done.stderr.strip().splitlines()[-1:] or [
                    f"exit status {done.returncode}"
                ]
                return Grade(
                    submission.name,
                    note=f"the grader ended without a report: {words[0]}",
                )


def _refused(submission) -> str:
    """Why a folder is not graded; empty where it is."""
    if submission.is_symlink():
        return "a link in place of the folder; links are not followed"
    links = [path for path in submission.rglob("*") if path.is_symlink()]
    if links:
        return f"{links[0].relative_to(submission)} is a link; links are not followed"
    path = submission / SOLUTION
    if not path.exists():
        return f"no {SOLUTION}"
    return "" if path.is_file() else f"{SOLUTION} is no file"


def _write(path, text):
    """Writes a file anew: what stood there, a link among it, is replaced and not written to."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf8", newline="") as file:
        file.write(text)
    os.replace(name, path)


def write_table(grades, out, homework) -> Path:
    """Writes the grades as CSV: a line a student, a column a task.

    Returns:  the file
    """
    asked = find_homework(homework)
    tasks = [task.name for task in asked.tasks]
    with tempfile.TemporaryFile("w+", newline="", encoding="utf8") as file:
        table = csv.writer(file)
        table.writerow(["student", "points", "max_points", *tasks, "note"])
        for each in grades:
            points = {
                task["task"]: task["points"] for task in each.report.get("tasks", ())
            }
            # A spreadsheet takes a cell that begins like a formula for one.
            name = f"'{each.name}" if each.name[0] in "=+-@" else each.name
            table.writerow(
                [
                    name,
                    each.points,
                    asked.max_points,
                    *(points.get(task, 0) for task in tasks),
                    each.note,
                ]
            )
        file.seek(0)
        _write(Path(out) / TABLE, file.read())
    return Path(out) / TABLE


def summary(grades, homework) -> str:
    """The grades of a class, and what its mistakes have in common, for the shell."""
    most, names = find_homework(homework).max_points, Counter()
    width = max(len(each.name) for each in grades)
    lines = [
        f"{each.name:{width}}  {each.points:3} of {most}{'  ' * bool(each.note)}{each.note}"
        for each in grades
    ]
    for each in grades:
        found = {
            d.get("title")
            for task in each.report.get("tasks", ())
            for d in task["diagnoses"]
        }
        names.update(found - {None})
    lines += [""] * bool(names) + [
        f"{count:3} times: {title}" for title, count in names.most_common(3)
    ]
    return "\n".join(lines)
