"""A class, graded one process a submission; reports and tables are written outside of what is graded.

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
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, is_zipfile

from .. import __version__
from ..mistakes.table import titles
from .lms import roster as rosters
from .lms.submissions import LONGEST_NOTEBOOK, chosen, collect, longest
from .notebook import SUFFIX
from .solutions import SOLUTION
from .task import find_homework

TABLE, NOT_YET, NOTHING = "grades.csv", "not graded yet", "no submission"
FEEDBACK_FILES = "feedback.zip"
# Beyond what all stages of a homework may take together.
LONGEST_SECONDS = 3600
# Python 3.11 counts the depth of a syntax tree for all threads together: of two that
# parse at once, one may raise SystemError (github.com/python/cpython/issues/106905).
ONE_PARSES = threading.Lock()


@dataclass(frozen=True)
class Grade:
    """One student's grade.

    Args:  name: of the folder; report: as in the JSON file; note: why there is no report; how: where the report is from
           late: whether the platform says so; unknown: whether it is nobody's of the roster
    """

    name: str
    report: dict = field(default_factory=dict)
    note: str = ""
    how: str = "graded"
    late: bool = False
    unknown: bool = False

    @property
    def points(self) -> int:
        """Points earned; without a report, none."""
        return self.report.get("points", 0)

    @property
    def remarks(self) -> str:
        """Why there is no report, or what a teacher may want to look at."""
        remarks = ["Not in the roster."] if self.unknown else []
        if self.late:
            remarks.append("Late.")
        for task in self.report.get("tasks", ()):
            remarks += task.get("flags", ())
        return " ".join([*remarks, *filter(None, [self.note])])


def grade_class(
    folder,
    out,
    homework,
    jobs=1,
    options=(),
    seeds="",
    table=False,
    roster="",
    column="",
) -> list[Grade]:
    """Grades every submission of a class and writes NAME.json and NAME.txt for each, as they come.

    A report that is there already, of the same files and options, is kept. Beside the reports: feedback.zip, where the
    platform takes files back, and the roster with grades, under its own name.

    Args:    folder: one folder a student, or what a platform exports, also as a zip; out: for the reports, elsewhere
             jobs: how many at once; options: further ones of the command `check`; seeds: the text of the seed file
             table: whether the grades are written as CSV, too; roster: a list of the class, "" for none
             column: of the homework in the roster, its own name without one
    Returns: a Grade for each submission, then one for each student of the roster without a submission
    Raises:  ValueError naming the argument, what it got and what it needs
    """
    folder, out = Path(folder), Path(out)
    find_homework(homework)
    if not folder.is_dir() and not (folder.is_file() and is_zipfile(folder)):
        raise ValueError(
            f"DIR: got {str(folder)!r}, needs a folder with one folder a student, or a zip"
        )
    if not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"--jobs: got {jobs!r}, needs a whole number from 1 on")
    inside = out.resolve()
    if folder.resolve() in (inside, *inside.parents):
        raise ValueError(
            f"--out: got {str(out)!r}, which lies in {str(folder)!r}; needs a folder outside of it"
        )
    people = rosters.read(roster) if roster else None
    with tempfile.TemporaryDirectory(prefix="homework-") as workspace:
        submissions = collect(folder, Path(workspace))
        if not submissions:
            raise ValueError(
                f"DIR: got {str(folder)!r}, which has no folders; needs one folder a student"
            )
        out.mkdir(parents=True, exist_ok=True)
        grades = _graded(submissions, out, homework, jobs, options, seeds, table)
    paths = {entry.name: entry.feedback for entry in submissions if entry.feedback}
    if paths:
        _write_feedback(paths, out)
    if people:
        grades |= _filled_in(
            people, submissions, grades, out, homework, column, Path(roster)
        )
        if table:
            write_table(grades.values(), out, homework)
    return list(grades.values())


def _graded(submissions, out, homework, jobs, options, seeds, table) -> dict:
    """{name: Grade} of all submissions, written as they come."""
    chosen_options = _digest(__version__, homework, *options, seeds)
    # Each student has a line in the table from the start.
    grades = {}
    for entry in submissions:
        before = _earlier(out / f"{entry.name}.json")
        grades[entry.name] = Grade(entry.name, before, NOT_YET)
    with ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(_graded_once, entry, out, homework, options, chosen_options)
            for entry in submissions
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
    return grades


def _write_feedback(paths, out):
    """Writes a zip of the reports under the names that the platform takes back. Args: paths: {name: path in it}"""
    with ZipFile(out / FEEDBACK_FILES, "w", ZIP_DEFLATED) as archive:
        for name, path in paths.items():
            archive.write(out / f"{name}.txt", path)


def _filled_in(people, submissions, grades, out, homework, column, path) -> dict:
    """{name: Grade} of the roster's students without a submission; writes the roster with all grades.

    Args:  people: the roster; path: of its file; column: of the homework in it, "" for its name
    """
    names = rosters.matched(people, {entry.name: entry.keys for entry in submissions})
    without, rows = {}, {}
    for number, row in enumerate(people.rows):
        if number not in names:
            name = people.name(row)
            without[name] = Grade(name, note=NOTHING)
            continue
        grade = grades[names[number]]
        report = (out / f"{grade.name}.txt").read_text(encoding="utf8")
        rows[number] = grade.points, grade.remarks, report
    for name in sorted(grades.keys() - names.values()):
        grades[name] = replace(grades[name], unknown=True)
    most = find_homework(homework).max_points
    text = rosters.filled(people, rows, column or homework, most)
    _write(out / f"{path.stem}-{homework}.csv", text)
    return without


def _graded_once(submission, out, homework, options, chosen_options) -> Grade:
    """The grade of a submission, and its reports on the disk: those that are there, where nothing has changed."""
    try:
        name, files = _files(submission, homework)
    except ValueError as why:
        grade = Grade(submission.name, note=str(why))
    else:
        parts = []
        for inside, path in files.items():
            parts += [inside, path.read_bytes()]
        made_of = {"files": _digest(*parts), "options": chosen_options}
        before = _earlier(out / f"{submission.name}.json")
        if before.get("made_of") == made_of:
            return Grade(submission.name, before, how="as before", late=submission.late)
        grade = _grade(submission.name, name, files, homework, options)
        if before:
            same = before["made_of"].get("files") == made_of["files"]
            why = "the options have changed" if same else "the submission has changed"
            grade = replace(grade, how=f"graded anew, as {why}")
        grade.report.update({"made_of": made_of} if grade.report else {})
    grade = replace(grade, late=submission.late)
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


def _files(submission, homework) -> tuple[str, dict[str, Path]]:
    """(what is graded, {name: path} of it and of the Python files beside it). Raises: ValueError saying why not"""
    if submission.refused:
        raise ValueError(submission.refused)
    with ONE_PARSES:
        graded = chosen(submission.files, homework)
    path = submission.files[graded]
    if path.stat().st_size > LONGEST_NOTEBOOK:
        raise ValueError(f"{path.name} has more than {LONGEST_NOTEBOOK} bytes")
    name = SOLUTION if path.suffix != SUFFIX else Path(graded).name
    files = {}
    for inside, module in submission.files.items():
        beside = Path(inside).parent == Path(graded).parent and module.suffix == ".py"
        if beside and module.stat().st_size <= longest(module):
            files[Path(inside).name] = module
    return name, dict(sorted(files.items())) | {name: path}


def _grade(student, graded, files, homework, options) -> Grade:
    """One grade, of a copy of the submission's files, by a grader of its own. Args: graded: the name among the files"""
    with tempfile.TemporaryDirectory(prefix="homework-") as copy:
        for name, path in files.items():
            shutil.copyfile(path, Path(copy, name), follow_symlinks=False)
        # A folder with nothing in it, since Python looks for modules where it is started.
        with tempfile.TemporaryDirectory(prefix="homework-") as empty:
            command = [
                sys.executable,
                "-m",
                "normgrad.homework",
                "check",
                str(Path(copy, graded)),
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
                return Grade(student, json.loads(done.stdout))
            except subprocess.TimeoutExpired:
                return Grade(
                    student,
                    note=f"the grader had not finished after {LONGEST_SECONDS} s",
                )
            except ValueError:
                words = done.stderr.strip().splitlines()[-1:] or [
                    f"exit status {done.returncode}"
                ]
                return Grade(
                    student,
                    note=f"the grader ended without a report: {words[0]}",
                )


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
