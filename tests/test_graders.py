"""nbgrader, by its own commands, on the assignments that we export for it.

It needs Jupyter's servers and a hundred packages that the book does not, so it gets an environment of its own, made
once and made again when the pins change.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from normgrad.homework import export
from normgrad.homework.task import find_homework

ROOT = Path(__file__).parents[1]
TOOLS = ("nbgrader==0.9.6", "numpy", "ipykernel")
# Those that need NumPy alone; test_homework_export.py runs the notebooks of all eight.
each_homework = pytest.mark.parametrize("name", ["hw2", "hw5"])

pytestmark = pytest.mark.graders


@pytest.fixture(scope="session")
def tools():
    """The folder of the commands."""
    folder = ROOT / "_build/grader_environment"
    pins, stamp = ROOT / "requirements.txt", folder / "pins.txt"
    contents = "\n".join([*TOOLS, pins.read_text()])
    if not stamp.is_file() or stamp.read_text() != contents:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [
            folder / "bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--constraint",
            pins,
            *TOOLS,
        ]
        subprocess.run(install, check=True)
        stamp.write_text(contents)
    return folder / "bin"


@pytest.fixture
def command(tools, tmp_path):
    """A function that runs a command of the tools; its kernels import normgrad from this checkout."""
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    folders = {
        "HOME": tmp_path,
        "JUPYTER_DATA_DIR": tmp_path / "jupyter",
        "IPYTHONDIR": tmp_path / "ipython",
    }
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
    }
    environment |= {name: str(value) for name, value in folders.items()}

    def run(name, *arguments):
        words = [str(tools / name), *map(str, arguments)]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@each_homework
def test_nbgrader_grades_it(command, tmp_path, name):
    """generate_assignment, then autograde: the solution has all points, the released stubs none."""
    path = export.nbgrader(name, tmp_path)
    command("nbgrader", "generate_assignment", name, "--create")
    released = tmp_path / f"release/{name}/{name}.ipynb"
    for student, source in (("solved", path), ("stubs", released)):
        folder = tmp_path / "submitted" / student / name
        folder.mkdir(parents=True)
        shutil.copy(source, folder / released.name)
    command("nbgrader", "autograde", name, "--create")
    command("nbgrader", "export")
    lines = [
        line.split(",")
        for line in (tmp_path / "grades.csv").read_text().strip().split("\n")
    ]
    score = {
        row[lines[0].index("student_id")]: float(row[lines[0].index("score")])
        for row in lines[1:]
    }
    assert score == {"solved": find_homework(name).max_points, "stubs": 0}
