"""Grades: runs every stage of a task, whatever the others did, adds up points, asks which term is wrong."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import replace
from numbers import Real
from pathlib import Path

import numpy as np

from ..mistakes.table import SPOILS, UNKNOWN
from . import variants
from .checks.exam import IMPATIENT_SECONDS, Exam
from .messages import INPUTS, OUT_OF_TIME, WRONG_BEFORE, Wrong
from .named import named
from .notebook import SUFFIX, cells_of, solution_of
from .reading.kinds import told_apart
from .reading.tasks import RIGHT, read
from .report import FEEDBACK, Report, StageResult
from .sandbox import refusals
from .sandbox.remote import Remote
from .sandbox.student import Local
from .solutions import SOLUTION
from .task import Draw, Task, find, find_homework, homeworks

STAGE_SECONDS, MOST_SECONDS = 5.0, 3600
# Another task may still be right; it has time enough for that, and a file of endless loops is graded in 20 seconds.
LATE_SECONDS = 1.0
OPEN_KEYS = (UNKNOWN, "not-finite")
VAGUE = (UNKNOWN, "one-shape")
UNEARNED = "Right, and counts as soon as {stage} passes."
AGAIN = "Out of time again; this stage had less of it."


def grade_task(
    task: Task, student, draw=None, feedback="solution", seconds=STAGE_SECONDS
) -> Report:
    """All stages of one task.

    Args:     student: a Student; draw: where the inputs come from; feedback: a level of FEEDBACK; seconds: for a stage
    Returns:  Report
    """
    given = student, draw or Draw(), feedback, seconds
    report, found = _graded(task, *given)
    if task.standard is not None and not report.passed:
        standard, _ = _graded(task.standard, *given)
        if standard.passed:
            report.diagnoses = [named("standard-task")]
            report.flags.append(f"It solves the standard {task.name}.")
            return report
    exam = Exam(task, student, given[1], "formats")
    report.diagnoses = _diagnoses(exam, *found)
    return report


def _graded(task, student, draw, feedback, seconds):
    """(a Report without diagnoses, (what is wrong of which output, what stages have found out))."""
    results, evidence, told, late, shared = [], [], {}, False, {}
    report = Report(task, feedback=check_feedback(feedback))
    forbidden = sorted(
        {*task.forbidden, *refusals.WAYS_AROUND}
        & set(student.look(task.entry)["names"])
    )
    for stage in task.stages:
        student.begin(
            min(seconds, IMPATIENT_SECONDS) if late else task.patience * seconds
        )
        exam = Exam(
            task,
            student,
            draw,
            stage.inputs or stage.name,
            feedback,
            shared,
            bool(stage.inputs),
        )
        result, wrong = _run(stage, exam, forbidden)
        if OUT_OF_TIME in result.message:
            result, late = (replace(result, message=AGAIN) if late else result), True
        results.append(result)
        evidence += getattr(wrong, "evidence", ())
        for diagnosis in getattr(wrong, "diagnoses", ()):
            told.setdefault((diagnosis.misconception, diagnosis.title), diagnosis)
            if diagnosis.measured:
                report.measured.add(diagnosis.misconception)
        report.note(exam.printed)
    report.stages, report.flags = _earned(task, results), _flags(task, student)
    return report, (evidence, list(told.values()))


NARROW = {"float32", "float16", "bfloat16"}


def _keys(diagnoses) -> set[str]:
    return {diagnosis.misconception for diagnosis in diagnoses}


def _without(diagnoses, keys) -> list:
    return [entry for entry in diagnoses if entry.misconception not in keys]


def _diagnoses(exam, evidence, told) -> list:
    """What the reading of a program says where its results are wrong, and what the stages have found out."""
    diagnoses, task = [], exam.task
    if task.reads is not None:
        wrong = [output for output, *_ in evidence]
        program = exam.student.program(task.entry)
        diagnoses = read(task.reads, task.entry, program, wrong)
    if any(diagnosis.title.startswith(RIGHT) for diagnosis in diagnoses):
        if formats := _formats(exam, NARROW - {exam.base}):
            key = "narrow-intermediate"
            if exam.base == "float64":
                key = "narrow-arithmetic"
            title = f"Computed in {', '.join(formats)} on the way"
            diagnoses = [named(key, title=title)]
    said = _keys(diagnoses)
    if any(diagnosis.implemented or diagnosis.right for diagnosis in diagnoses):
        said |= {"not-finite", "flat-row"}  # rows without spread follow from it
    diagnoses += _without(told, said)
    # Numbers that a program spoils have no formula: what it does says all.
    if _keys(diagnoses) & set(SPOILS):
        diagnoses = _without(diagnoses, OPEN_KEYS)
    if evidence and _keys(diagnoses) <= {*OPEN_KEYS, *VAGUE}:
        exam.student.begin(task.patience * STAGE_SECONDS)
        if more := told_apart(exam, evidence):
            diagnoses = _without(diagnoses, _keys(diagnoses) - {UNKNOWN}) + more
    if len(diagnoses) > 1:  # what was not read says little beside what is wrong
        diagnoses = [
            entry
            for entry in diagnoses
            if entry.difference or entry.misconception not in VAGUE
        ]
    return diagnoses


WIDE = {"complex64", "complex128", "complex256", "float128", "float96"}


def _formats(exam, formats) -> list[str]:
    """Which of some formats float64 arrays meet on the way to the results; kernels cannot be watched for it."""
    if not hasattr(exam.oracle, "request"):  # the inputs are the student's
        return []
    request = exam.oracle.request(exam.trials()[0])
    if request.op == "kernels":
        return []
    exam.student.begin(min(STAGE_SECONDS, exam.student.seconds))
    try:
        facts = exam.ask(replace(request, op="formats")).facts
    except Wrong:
        return []
    return sorted({*facts["computed"], *facts["converted"]} & formats)


def _derived_by_hand(exam) -> None:
    """Raises Wrong where a derivative is found by numbers, by another library or in numbers with more digits.

    What cannot be watched is not held against anybody.
    """
    shortcuts = exam.student.look(exam.task.entry)["shortcuts"]
    if exam.task.library == "sympy":
        shortcuts = [name for name in shortcuts if name == "normgrad"]
    if not shortcuts and exam.task.library == "numpy":
        shortcuts = _formats(exam, WIDE)
    if shortcuts:
        raise Wrong(
            f"It uses {', '.join(shortcuts)}. This stage asks for a derivative that you have derived; keep "
            "differences, other number formats and libraries that differentiate to your own tests."
        )


def _flags(task, student) -> list[str]:
    """What a teacher may want to look at, and what costs no points."""
    look = student.look(task.entry)
    entries = [entry.entry for entry in find_homework(task.homework).tasks]
    called = sorted({*entries} & {*look["calls"]} - {task.entry})
    if not any(stage.derived for stage in task.stages):
        return []
    flags = []
    if called:
        words = f"{task.entry} calls {', '.join(called)}"
        flags.append(f"{words}: are its gradients differences of that?")
    if look["numbers"]:
        words = f"{task.entry} computes with {', '.join(look['numbers'])}, numbers of its own"
        flags.append(f"{words}: does their arithmetic differentiate?")
    if look["shortcuts"] and task.library != "sympy":
        words = f"{task.entry} uses {', '.join(look['shortcuts'])}"
        flags.append(f"{words}: how was the gradient derived?")
    return flags


def _run(stage, exam, forbidden):
    """(StageResult, the Wrong that it raised or None); nothing that a stage raises ends the grading."""
    start, wrong = time.monotonic(), None
    try:
        if forbidden:
            own = set(forbidden) <= set(exam.task.forbidden)
            raise Wrong(f"It uses {', '.join(forbidden)}: {exam.task.forbidden_because}.",
                        key=exam.task.forbidden_key * own)  # fmt: skip
        # NumPy's warnings would be of wrong numbers; what they lead to is compared.
        with np.errstate(all="ignore"):
            message = stage.run(exam)
        if stage.derived:
            _derived_by_hand(exam)
        passed = True
    except Wrong as error:
        wrong, message, passed = error, str(error), False
    except Exception as error:
        message = f"The grader itself failed here, which is not your fault: {type(error).__name__}: {error}"
        passed = False
    points = stage.points if passed else 0
    stub = wrong is not None and wrong.stub
    return StageResult(
        stage.name,
        points,
        stage.points,
        passed,
        message,
        stub,
        time.monotonic() - start,
    ), wrong


def _earned(task, results) -> list[StageResult]:
    """Results in which stages about the interface give points only beside a right value, and what follows says so."""
    pairs = list(zip(task.stages, results, strict=True))
    of_values = [stage for stage in task.stages if not stage.interface]
    right = any(result.passed for stage, result in pairs if not stage.interface)
    unearned = UNEARNED.format(stage="one stage about values")
    if len(of_values) == 1:
        unearned = UNEARNED.format(stage=f'"{of_values[0].name}"')
    wrong = False
    for at, (stage, result) in enumerate(pairs):
        if stage.interface and result.passed and not right:
            results[at] = result.without_points(unearned)
        elif stage.follows and _numbers(result) and wrong:
            results[at] = replace(result, explained=True)
        wrong = wrong or not stage.follows and _numbers(result)
    return results


def _numbers(result) -> bool:
    """Whether a stage failed because of wrong numbers, which are reported with their inputs."""
    return not result.passed and result.message.startswith((INPUTS, WRONG_BEFORE))


def check_feedback(feedback: str) -> str:
    """The level itself.

    Raises:  ValueError for a word that is none of the levels
    """
    if feedback not in FEEDBACK:
        raise ValueError(
            f"feedback: got {feedback!r}, needs one of {', '.join(FEEDBACK)}"
        )
    return feedback


def check_seconds(seconds: float) -> float:
    """The time limit itself.

    Raises:  ValueError for what is no number of seconds
    """
    real = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if not real or not 0 < seconds <= MOST_SECONDS:
        raise ValueError(
            f"seconds: got {seconds!r}, needs a positive number up to {MOST_SECONDS}"
        )
    return float(seconds)


def check(
    name: str,
    target,
    seed: int = 0,
    feedback: str = "equation",
    seconds: float = STAGE_SECONDS,
    variant: int | None = None,
) -> Report:
    """Grades a function or an autograd Function of this process: `check("layernorm-backward", my_backward)`.

    Args:     name: a task, see tasks(); target: the student's function or class; seed: of the inputs
              feedback: "hint", "equation" or "solution", how much a diagnosis gives away; seconds: for each stage
              variant: the seed of another task of the same family, for HW1 to HW3
    Returns:  Report, which a notebook shows as a table
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    task = find(name)
    (task,) = [
        own
        for own in variants.variant(task.homework, variant).tasks
        if own.name == name
    ]
    if not callable(target):
        got = (
            "None" if target is None else f"{type(target).__name__} {repr(target)[:40]}"
        )
        raise TypeError(f"target: got {got}, needs the function or class itself: "
                        f'hw.check("{task.name}", {task.entry})')  # fmt: skip
    with Local({task.entry: target}) as student:
        return grade_task(
            task, student, Draw(seed), check_feedback(feedback), check_seconds(seconds)
        )


def grade_file(
    path,
    homework: str,
    draw=None,
    feedback="solution",
    seconds=STAGE_SECONDS,
    variant=None,
) -> list[Report]:
    """Grades a solution.py, or the one that a notebook stands for, in a process of its own.

    Args:     path: the file; homework: its name; draw, feedback, seconds: as grade_task; variant: as check
    Returns:  one Report a task
    Raises:   ValueError for an unknown homework or a notebook without code, FileNotFoundError without a file
    """
    asked, path = variants.variant(homework, variant), Path(path)
    tasks, libraries = asked.tasks, asked.libraries
    check_seconds(seconds)
    check_feedback(feedback)
    if not path.is_file():
        raise FileNotFoundError(
            f"path: got {str(path)!r}, which is no file; needs a solution.py or a notebook"
        )
    with tempfile.TemporaryDirectory(prefix="homework-") as folder:
        if path.suffix == SUFFIX:
            text = solution_of(path, homework)
            path = Path(folder, SOLUTION)
            path.write_text(text, encoding="utf8")
        with Remote(path, libraries, [task.entry for task in tasks]) as student:
            reports = []
            for task in tasks:
                late = any(
                    OUT_OF_TIME in stage.message
                    for report in reports
                    for stage in report.stages
                )
                limit = min(seconds, LATE_SECONDS) if late else seconds
                reports.append(grade_task(task, student, draw, feedback, limit))
    return reports


def submission_in(folder, homework: str = "") -> Path:
    """The file of a folder that is graded: its solution.py, or else its only notebook; not the untouched starter.

    Raises:  ValueError where there is none, or where several could be it
    """
    from .lms.submissions import chosen

    files = {path.name: path for path in sorted(Path(folder).iterdir())}
    return files[chosen(files, homework)]


def homework_of(path) -> str:
    """The homework that a submission belongs to: by the test file beside it, else by the names that it defines.

    Raises:  ValueError where neither tells
    """
    path = Path(path)
    named = [
        name for name in homeworks() if path.with_name(f"test_{name}.py").is_file()
    ]
    if len(named) == 1:
        return named[0]
    if path.suffix == SUFFIX:
        source = "\n".join(cells_of(path))
    else:
        source = path.read_text(encoding="utf8", errors="replace")
    fitting = [
        name for name, homework in homeworks().items()
        if any(re.search(rf"^(?:def|class) {task.entry}\b", source, re.M) for task in homework.tasks)
    ]  # fmt: skip
    if len(fitting) != 1:
        raise ValueError(
            f"{path} does not tell which homework it is: add --homework hwN"
        )
    return fitting[0]
