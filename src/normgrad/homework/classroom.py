"""A class: one folder a student, graded one process each; reports and a table are written outside of what is graded.

Each report is written when it is there, and a later run takes those that are still of the same submission.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from .. import __version__
from ..mistakes.table import titles
from .grade import submission_in
from .notebook import SUFFIX
from .sandbox.remote import LONGEST_SOURCE
from .task import find_homework

TABLE, NOT_YET = "grades.csv", "not graded yet"
# Beyond what all stages of a homework may take together.
LONGEST_SECONDS = 600
LONGEST_NOTEBOOK = 20 * 2**20


@dataclass(frozen=True)
class Grade:
    """One student's grade.

    Args:  name: of the folder; report: as in the JSON file; note: why there is no report; how: where the report is from
    """

    name: str
    report: dict = field(default_factory=dict)
    note: str = ""
    how: str = "graded"

    @property
    def points(self) -> int:
        """Points earned; without a report, none."""
        return self.report.get("points", 0)

    @property
    def remarks(self) -> str:
        """Why there is no report, or what a teacher may want to look at."""
        flags = [
            flag
            for task in self.report.get("tasks", ())
            for flag in task.get("flags", ())
        ]
        return self.note or " ".join(flags)


def grade_class(
    folder, out, homework, jobs=1, options=(), seeds="", table=False
) -> list[Grade]:
    """Grades every folder in a folder and writes NAME.json and NAME.txt for each, as they come.

    A report that is there already, of the same files and options, is kept.

    Args:    folder: with one folder a student; out: for the reports, outside of it; jobs: how many at once
             options: further ones of the command `check`; seeds: the text of the seed file among them
             table: whether the grades are written as CSV, too
    Returns: a Grade for each folder, in their order
    Raises:  ValueError naming the argument, what it got and what it needs
    """
    folder, out = Path(folder), Path(out)
    find_homework(homework)
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
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    )
    if not submissions:
        raise ValueError(
            f"DIR: got {str(folder)!r}, which has no folders; needs one folder a student"
        )
    out.mkdir(parents=True, exist_ok=True)
    chosen = _digest(__version__, homework, *options, seeds)
    # Each student has a line in the table from the start.
    grades = {
        path.name: Grade(path.name, _earlier(out / f"{path.name}.json"), NOT_YET)
        for path in submissions
    }
    with ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(_graded_once, path, out, homework, options, chosen)
            for path in submissions
        ]
        try:
            for number, done in enumerate(as_completed(running), start=1):
                grade = done.result()
                grades[grade.name] = grade
                if table:
                    write_table(grades.values(), out, homework)
                words = grade.note or f"{grade.points} points, {grade.how}"
                count = f"{number} of {len(running)}"
                print(f"{count}: {grade.name}: {words}", file=sys.stderr)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return list(grades.values())


def _graded_once(submission, out, homework, options, chosen) -> Grade:
    """The grade of a folder, and its reports on the disk: those that are there, where nothing has changed."""
    if why := _refused(submission):
        grade = Grade(submission.name, note=why)
    else:
        files = _files(submission)
        parts = [part for path in files for part in (path.name, path.read_bytes())]
        made_of = {"files": _digest(*parts), "options": chosen}
        before = _earlier(out / f"{submission.name}.json")
        if before.get("made_of") == made_of:
            return Grade(submission.name, before, how="as before")
        grade = _grade(submission, files, homework, options)
        if before:
            same = before["made_of"].get("files") == made_of["files"]
            why = "the options have changed" if same else "the submission has changed"
            grade = replace(grade, how=f"graded anew, as {why}")
        grade.report.update({"made_of": made_of} if grade.report else {})
    text = grade.report.pop("text", f"{grade.name}: {grade.note}")
    none = {"points": 0, "max_points": find_homework(homework).max_points, "tasks": [], "note": grade.note}  # fmt: skip
    # The JSON file comes last: it says that both are there.
    _write(out / f"{grade.name}.txt", text + "\n")
    _write(
        out / f"{grade.name}.json", json.dumps(grade.report or none, indent=2) + "\n"
    )
    return grade


def _digest(*parts) -> str:
    """What tells some texts or bytes from others."""
    plain = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in plain)).hexdigest()


def _earlier(path) -> dict:
    """The report that an earlier run left; nothing where there is none that can be read."""
    try:
        report = json.loads(path.read_text(encoding="utf8"))
        report["points"], report["tasks"], report["made_of"]["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return report


def _files(submission) -> list[Path]:
    """What a submission is made of: its Python files, and the notebook where that is graded."""
    files = {*submission.glob("*.py"), submission_in(submission)}
    return sorted(
        path
        for path in files
        if path.is_file() and path.stat().st_size <= _longest(path)
    )


def _longest(path) -> int:
    """How many bytes of a file are read; the pictures of a notebook are not."""
    return LONGEST_NOTEBOOK if path.suffix == SUFFIX else LONGEST_SOURCE + 1


def _grade(submission, files, homework, options) -> Grade:
    """One grade, of a copy of the submission's files, by a grader of its own."""
    with tempfile.TemporaryDirectory(prefix="homework-") as copy:
        for path in files:
            shutil.copyfile(path, Path(copy, path.name), follow_symlinks=False)
        # A folder with nothing in it, since Python looks for modules where it is started.
        with tempfile.TemporaryDirectory(prefix="homework-") as empty:
            command = [
                sys.executable,
                "-m",
                "normgrad.homework",
                "check",
                copy,
                "--homework",
                homework,
                "--json",
                "-",
            ]
            path = [
                os.path.abspath(entry)
                for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)
                if entry
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
    try:
        path = submission_in(submission)
    except ValueError as error:
        return str(error)
    if not path.is_file():
        return f"{path.name} is not a file"
    too_long = path.stat().st_size > LONGEST_NOTEBOOK
    return f"{path.name} has more than {LONGEST_NOTEBOOK} bytes" if too_long else ""


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
        for grade in sorted(grades, key=lambda row: row.name):
            points = {
                task["task"]: task["points"] for task in grade.report.get("tasks", ())
            }
            # A spreadsheet takes a cell that begins like a formula for one.
            name = f"'{grade.name}" if grade.name[0] in "=+-@" else grade.name
            table.writerow(
                [
                    name,
                    grade.points,
                    asked.max_points,
                    *(points.get(task, 0) for task in tasks),
                    grade.remarks,
                ]
            )
        file.seek(0)
        _write(Path(out) / TABLE, file.read())
    return Path(out) / TABLE


def summary(grades, homework) -> str:
    """The grades of a class, and what its mistakes have in common, for the shell."""
    most, names = find_homework(homework).max_points, Counter()
    width, named = max(len(grade.name) for grade in grades), titles(homework)
    lines = [
        f"{grade.name:{width}}  {grade.points:3} of {most}{'  ' * bool(grade.remarks)}{grade.remarks}"
        for grade in grades
    ]
    for grade in grades:
        mistakes = {
            named.get(d.get("misconception"), d.get("title"))
            for task in grade.report.get("tasks", ())
            for d in task["diagnoses"]
        }
        names.update(mistakes - {None})
    lines += [""] * bool(names) + [
        f"{count:3} times: {title}" for title, count in names.most_common(3)
    ]
    return "\n".join(lines)
