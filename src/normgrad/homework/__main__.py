"""Homework: a folder to write in, a grade as often as you like, and which term of a gradient is wrong."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and sys.path[0] == os.getcwd():
    del sys.path[
        0
    ]  # a submission's folder may be the one that this is started in, with a random.py in it

import argparse  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

from . import classroom, folder, grade, variants  # noqa: E402
from .lms import submissions  # noqa: E402
from .lms.gradescope import autograder, results  # noqa: E402
from .report import FEEDBACK, to_json
from .report import text as as_text
from .solutions import SOLUTION, solution  # noqa: E402
from .task import PUBLIC_SEED, Draw, describe, find_homework  # noqa: E402

EXAMPLE = """a homework from start to end:
  python -m normgrad.homework list
  python -m normgrad.homework new hw2 --to my_hw2
  (write my_hw2/solution.py)
  python -m normgrad.homework check my_hw2"""
SEED_FILE = "a file with a whole number, which draws other inputs"
NEEDS = (
    "needs a folder such as `python -m normgrad.homework new hw2 --to DIR` writes, "
    "or a notebook"
)
INSTRUCTOR = "solve shows the solution. If you teach the course, add --instructor; if you take it, ask for a hint."


def _new(options):
    written = folder.new(options.homework, options.to, options.variant)
    print(f"Wrote {', '.join(path.name for path in written)} to {options.to}. Next:")
    number = "" if options.variant is None else f" --variant {options.variant}"
    print(f"  edit {Path(options.to) / SOLUTION}")
    print(f"  python -m normgrad.homework check {options.to}{number}")
    return 0


def _check(options):
    if options.results:
        return _results(options)
    path = Path(options.folder)
    if not path.exists():
        raise ValueError(f"DIR: got {options.folder!r}, which does not exist; {NEEDS}")
    if path.is_dir():
        try:
            path = grade.submission_in(path, options.homework or "")
        except ValueError as error:
            raise ValueError(
                f"DIR: got {options.folder!r}, which has {error}; {NEEDS}"
            ) from None
    name = options.homework or grade.homework_of(path)
    draw = Draw.of_file(options.seed_file) if options.seed_file else Draw()
    to_file = options.json not in (None, "-")
    if to_file:
        open(options.json, "a").close()  # an error before the grading, not after it
    how = name, draw, options.feedback, options.seconds, options.variant
    reports = grade.grade_file(path, *how)
    print(to_json(reports) if options.json == "-" else as_text(reports), flush=True)
    if to_file:
        Path(options.json).write_text(to_json(reports), encoding="utf8")
    return 0 if all(each.passed for each in reports) else 1


def _results(options):
    """Writes results.json for Gradescope, also where nothing can be graded."""
    name = find_homework(options.homework).name
    draw = Draw.of_file(options.seed_file) if options.seed_file else Draw()
    with tempfile.TemporaryDirectory(prefix="homework-") as workspace:
        try:
            files = submissions.files_of(Path(options.folder), "", Path(workspace))
            path = files[submissions.chosen(files, name)]
            how = name, draw, options.feedback, options.seconds, options.variant
            reports = grade.grade_file(path, *how)
            text = as_text(reports)
        except submissions.Refused as reason:
            reports, text = [], f"Not graded: {reason}"
    Path(options.results).write_text(results(reports, text), encoding="utf8")
    print(text)
    return 0


def _grade(options):
    further = [
        "--feedback",
        options.feedback,
        "--seconds",
        str(grade.check_seconds(options.seconds)),
    ]
    seeds = ""
    if options.seed_file:
        Draw.of_file(options.seed_file)
        seeds = Path(options.seed_file).read_text(encoding="utf8")
        further += ["--seed-file", str(Path(options.seed_file).resolve())]
    if options.variant is not None:
        variants.variant(options.homework, options.variant)
        further += ["--variant", str(options.variant)]
    grades = classroom.grade_class(
        options.folder,
        options.out,
        options.homework,
        options.jobs,
        further,
        seeds,
        options.csv,
        options.roster or "",
        options.column or "",
    )
    print(classroom.summary(grades, options.homework))
    return 0


def _list(options):
    print(folder.listing())
    return 0


def _describe(options):
    print(describe(options.task))
    return 0


def _solve(options):
    if not options.instructor:
        print(INSTRUCTOR, file=sys.stderr)
        return 2
    print(solution(find_homework(options.homework).name), end="")
    return 0


def _gradescope(options):
    if options.seed_file:
        Draw.of_file(options.seed_file)
    how = options.to, options.seed_file, options.variant
    print(f"wrote {autograder(options.homework, *how)}")
    return 0


def _export(options):
    from .export import nbgrader

    print(f"wrote {nbgrader(options.homework, options.to, Draw(options.seed).seed)}")
    return 0


def _how(command):
    """The options that every kind of grading has."""
    command.add_argument("--seed-file", metavar="FILE", help=SEED_FILE)
    levels = "hint: where to look; equation: also what is wrong; solution: also the right equation and the difference"
    command.add_argument(
        "--feedback",
        choices=FEEDBACK,
        default="equation",
        help=f"{levels} (default %(default)s)",
    )
    command.add_argument(
        "--seconds",
        type=float,
        default=grade.STAGE_SECONDS,
        help="time limit of a stage; kernels have 4 times as long (default %(default)g)",
    )
    _of_a_variant(command)


def _of_a_variant(command):
    """The option for another task of the same family."""
    words = "another task of the same family (hw1 to hw3), chosen by this number"
    command.add_argument("--variant", metavar="SEED", type=int, help=words)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    raw = argparse.RawDescriptionHelpFormatter
    whole = argparse.ArgumentParser(
        "python -m normgrad.homework", None, __doc__, EXAMPLE, formatter_class=raw
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, words):
        added = commands.add_parser(name, help=words, description=words)
        added.set_defaults(run=run)
        return added

    new = command("new", _new, "write the starter folder of a homework")
    new.add_argument("homework", metavar="hwN")
    new.add_argument(
        "--to",
        required=True,
        metavar="DIR",
        help="the folder, which may exist; no file is overwritten",
    )
    _of_a_variant(new)
    check = command("check", _check, "grade a folder")
    check.epilog = "The exit status is 0 for full marks, 1 for less, 2 where the command itself was wrong."
    check.add_argument(
        "folder",
        metavar="DIR",
        help="a folder with a solution.py or a notebook, or such a file",
    )
    check.add_argument(
        "--homework", metavar="hwN", help="where the folder does not tell"
    )
    check.add_argument(
        "--json",
        metavar="FILE",
        help="write the report for a program, too; - prints it instead",
    )
    check.add_argument(
        "--results", metavar="FILE", help="write Gradescope's results.json instead"
    )
    _how(check)
    whole_class = command("grade", _grade, "grade a class, for instructors")
    whole_class.epilog = (
        "Writes NAME.json and NAME.txt for each student's folder NAME as they come, and prints the points of all. A "
        "second run grades those whose files or options have changed, and those without a report."
    )
    whole_class.add_argument(
        "folder",
        metavar="DIR",
        help="one folder a student, or what Canvas, Moodle or Gradescope exports, also as a zip",
    )
    whole_class.add_argument("--homework", metavar="hwN", required=True)
    whole_class.add_argument(
        "--out", metavar="REPORTS", required=True, help="a folder outside of DIR"
    )
    whole_class.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=1,
        help="how many at once (default %(default)s)",
    )
    whole_class.add_argument(
        "--roster",
        metavar="CSV",
        help="a gradebook of Canvas, a grading worksheet of Moodle, or a list of the class; REPORTS has it with grades",
    )
    whole_class.add_argument(
        "--column", help="of the homework in a gradebook (default its name)"
    )
    whole_class.add_argument(
        "--csv", action="store_true", help=f"write REPORTS/{classroom.TABLE}, too"
    )
    _how(whole_class)
    command("list", _list, "all homeworks and tasks")
    command("describe", _describe, "what a task asks for").add_argument(
        "task", help="its name in the list"
    )
    solve = command("solve", _solve, "the reference solution, for instructors")
    solve.add_argument("homework", metavar="hwN")
    solve.add_argument("--instructor", action="store_true")
    export = command("export", _export, "an assignment for nbgrader")
    export.add_argument("format", choices=("nbgrader",))
    export.add_argument("homework", metavar="hwN")
    export.add_argument("--to", required=True, metavar="DIR")
    export.add_argument(
        "--seed",
        type=int,
        default=PUBLIC_SEED,
        help="of the inputs that the tests draw",
    )
    gradescope = command("gradescope", _gradescope, "an autograder for Gradescope")
    gradescope.add_argument("homework", metavar="hwN")
    gradescope.add_argument("--to", required=True, metavar="ZIP")
    gradescope.add_argument("--seed-file", metavar="FILE", help=SEED_FILE)
    _of_a_variant(gradescope)
    return whole


def main(arguments=None) -> int:
    """Runs one command. Returns: 0, 1 where points are missing, 2 where the command itself was wrong."""
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except OSError as error:
        words = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"normgrad.homework: {words}", file=sys.stderr)
        return 2
    except (ValueError, RuntimeError) as error:
        print(f"normgrad.homework: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("normgrad.homework: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
