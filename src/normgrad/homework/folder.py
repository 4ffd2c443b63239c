"""The student's folder: written by `new`, filled by `solve`, with a file for pytest, one test a stage."""

from __future__ import annotations

from pathlib import Path

from .solutions import SOLUTION
from .task import find_homework, homeworks
from .variants import texts as texts_of

TEST = '''"""One test a stage: run `pytest` in this folder."""

from pathlib import Path

import pytest

import normgrad.homework as hw

SOLUTION = Path(__file__).with_name("solution.py")


@pytest.fixture(scope="module")
def reports():
    """The report on each task, of one grade."""
    graded = hw.grade_file(SOLUTION, "{name}", feedback="equation", variant={variant})
    return {{report.task: report for report in graded}}


@pytest.mark.parametrize(("task", "stage"), hw.stages_of("{name}"))
def test_stage(reports, task, stage):
    """A stage passes, or says why not."""
    result = reports[task].told(stage)
    if not result.passed:
        pytest.fail(result.message, pytrace=False)
'''


def new(name: str, to, variant: int | None = None) -> list[Path]:
    """Writes the starter folder of a homework, or of its variant; nothing that exists is overwritten.

    Returns:  the files written
    Raises:   ValueError for an unknown homework, FileExistsError naming the file that is in the way
    """
    find_homework(name)
    (readme, stubs), folder = texts_of(name, variant), Path(to)
    texts = {
        "README.md": readme,
        SOLUTION: stubs,
        f"test_{name}.py": TEST.format(name=name, variant=variant),
    }
    for file in texts:
        if (folder / file).exists():
            raise FileExistsError(
                f"{folder / file} exists already; nothing was written"
            )
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; needs the name of a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf8")
    return [folder / file for file in texts]


def listing() -> str:
    """All homeworks with their tasks and points, for the shell."""
    lines = []
    for homework in homeworks().values():
        lines.append(
            f"{homework.name}  {homework.title} ({homework.max_points} points, {homework.time})"
        )
        lines.append(f"     needs {homework.needs}")
        lines += [
            f"     {task.name:24}{task.max_points:4}  {task.title}"
            for task in homework.tasks
        ]
    lines += [
        "",
        "new hwN --to DIR writes a folder, describe TASK says what is asked, check DIR grades.",
    ]
    return "\n".join(lines)


def stages_of(homework: str) -> list[tuple[str, str]]:
    """(task, stage) of all stages of a homework, for pytest.mark.parametrize.

    Raises:  ValueError for an unknown homework
    """
    tasks = find_homework(homework).tasks
    return [(task.name, stage.name) for task in tasks for stage in task.stages]
