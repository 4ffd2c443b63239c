"""The student's folder: written by `new`, filled by `solve`, with a file for pytest, one test a stage."""

from __future__ import annotations

import re
from pathlib import Path

from .task import find_homework, homeworks

HERE = Path(__file__).parent
SOLUTION = "solution.py"
# What stands between these lines of a solution.py is the reference's; a starter has none of it.
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = "raise NotImplementedError"
TEST = '''"""One test a stage: run `pytest` in this folder."""

from pathlib import Path

import pytest

import normgrad.homework as hw

REPORTS = hw.grade_file(Path(__file__).with_name("solution.py"), "{name}", feedback="")
STAGES = [pytest.param(report, stage.name, id=f"{{report.task}}: {{stage.name}}")
          for report in REPORTS for stage in report.stages]


@pytest.mark.parametrize(("report", "stage"), STAGES)
def test_stage(report, stage):
    """A stage passes, or says why not."""
    result = report.told(stage)
    if not result.passed:
        pytest.fail(result.message, pytrace=False)
'''


def new(name: str, to) -> list[Path]:
    """Writes the starter folder of a homework; nothing that exists is overwritten.

    Returns:  the files written
    Raises:   ValueError for an unknown homework, FileExistsError naming the file that is in the way
    """
    find_homework(name)
    readme, folder = (HERE / name / "README.md").read_text(encoding="utf8"), Path(to)
    texts = {"README.md": readme, SOLUTION: starter(name), f"test_{name}.py": TEST.format(name=name)}
    for file in texts:
        if (folder / file).exists():
            raise FileExistsError(f"{folder / file} exists already; nothing was written")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; needs the name of a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf8")
    return [folder / file for file in texts]


def marked(name: str) -> str:
    """The text of a homework's solution.py, with its marks.

    Raises:  ValueError for an unknown homework
    """
    find_homework(name)
    return (HERE / name / SOLUTION).read_text(encoding="utf8")


def solution(name: str) -> str:
    """The text of a homework's reference solution.

    Raises:  ValueError for an unknown homework
    """
    lines = marked(name).split("\n")
    return _tidy(line for line in lines if line.strip() not in (BEGIN, END))


def starter(name: str) -> str:
    """The text of a homework's stubs.

    Raises:  ValueError for an unknown homework
    """
    lines, inside = [], False
    for line in marked(name).split("\n"):
        mark = line.strip()
        if mark == BEGIN and line != BEGIN:
            lines.append(line.replace(BEGIN, STUB))
        inside = mark == BEGIN or inside and mark != END
        if not inside and mark != END:
            lines.append(line)
    return _tidy(lines)


def _tidy(lines) -> str:
    """A text with at most two empty lines in a row, and one end."""
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def listing() -> str:
    """All homeworks with their tasks and points, for the shell."""
    lines = []
    for homework in homeworks().values():
        lines.append(f"{homework.name}  {homework.title} ({homework.max_points} points, {homework.time})")
        lines.append(f"     needs {homework.needs}")
        lines += [f"     {task.name:24}{task.max_points:4}  {task.title}" for task in homework.tasks]
    lines += ["", "new hwN --to DIR writes a folder, describe TASK says what is asked, check DIR grades."]
    return "\n".join(lines)
