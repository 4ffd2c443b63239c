"""The student's folder: written by `new`, filled by `solve`, and seen by pytest as one test a stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .task import find_homework, homeworks

HERE = Path(__file__).parent
SOLUTION = "solution.py"


def new(name: str, to) -> list[Path]:
    """Writes the starter folder of a homework; nothing that exists is overwritten.

    Returns:  the files written
    Raises:   ValueError for an unknown homework, FileExistsError naming the file that is in the way
    """
    find_homework(name)
    source, folder = HERE / "starters" / name, Path(to)
    files = sorted(path for path in source.iterdir() if path.is_file())
    for path in files:
        if (folder / path.name).exists():
            raise FileExistsError(f"{folder / path.name} exists already; nothing was written")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; needs the name of a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        (folder / path.name).write_bytes(path.read_bytes())
    return [folder / path.name for path in files]


def solution(name: str) -> str:
    """The text of a homework's reference solution.

    Raises:  ValueError for an unknown homework
    """
    find_homework(name)
    return (HERE / "solutions" / f"{name}.py").read_text(encoding="utf8")


def starter(name: str) -> str:
    """The text of a homework's stubs.

    Raises:  ValueError for an unknown homework
    """
    find_homework(name)
    return (HERE / "starters" / name / SOLUTION).read_text(encoding="utf8")


@dataclass(frozen=True)
class TestedStage:
    """One stage as a test: its result comes from a grade that all stages of a file share."""

    homework: str
    path: str
    task: str
    stage: str

    __test__ = False  # pytest would otherwise take the class itself for a test

    def __str__(self):
        return f"{self.task}: {self.stage}"

    def result(self):
        """The StageResult; the file is graded when the first stage asks."""
        report = next(report for report in _graded(self.path, self.homework) if report.task == self.task)
        return report.told(self.stage)


@cache
def _graded(path, homework):
    from .grade import grade_file

    return grade_file(path, homework, feedback="")


def stages_of(homework: str, path) -> list[TestedStage]:
    """All stages of a homework, for pytest.mark.parametrize.

    Args:    homework: such as "hw2"; path: of the solution.py
    Raises:  ValueError for an unknown homework
    """
    found = find_homework(homework)
    return [TestedStage(homework, str(path), task.name, stage.name) for task in found.tasks for stage in task.stages]


def listing() -> str:
    """All homeworks with their tasks and points, for the shell."""
    lines = []
    for homework in homeworks().values():
        lines.append(f"{homework.name}  {homework.title} ({homework.max_points} points, {homework.time})")
        lines.append(f"     needs {homework.needs}")
        lines += [f"     {task.name:24}{task.max_points:4}  {task.title}" for task in homework.tasks]
    lines += ["", "new hwN --to DIR writes a folder, describe TASK says what is asked, check DIR grades."]
    return "\n".join(lines)
