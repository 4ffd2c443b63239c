"""The environments that the notebooks run in, made to be like a reader's, and what a run in one of them shows.

Three are wanted, and none can be had to the letter, because the project pins one Python and one torch:

- colab-cpu    Colab's default runtime by its published list: NumPy 2.1.3, Numba and no Triton. Python and torch are the
               pinned ones in place of 3.13 and 2.11, so the first cell installs the Triton of that torch.
- colab-gpu    Colab's runtime with a GPU: the same list, with Triton 3.6.0, which comes with its torch. There is no GPU
               and torch may be built for the CPU, so the kernels are interpreted.
- no-triton    macOS or Windows, or no network: the pinned libraries, no Triton, and no index to install it from. It is
               Linux here, so the first cell tries, fails, and goes on.

Nothing of this project is installed in them, and nothing that the notebooks do not use: the first cell of the first
notebook installs what the others then find, as in a session that stays open. The tests of an environment are one file,
so that the processes of a run, which take whole files, never share one. Where tests are sampled, every second notebook
with kernels runs, in one of the three.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

nbformat = pytest.importorskip(
    "nbformat", reason="the book's packages are not installed"
)
nbclient = pytest.importorskip(
    "nbclient", reason="the book's packages are not installed"
)

from normgrad.homework.task import homeworks  # noqa: E402
from normgrad.teaching.notebook import SKIPPED  # noqa: E402

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build/html"
FOLDER = ROOT / "_build/notebook_environments"
NOTEBOOKS = sorted(SITE.glob("_sources/book/*.ipynb"))
HOMEWORKS = [path for path in NOTEBOOKS if path.stem in homeworks()]
LIBRARIES = (
    "torch",
    "numpy",
    "sympy",
    "numba",
    "matplotlib",
    "ipykernel",
    "setuptools",
)

needs_site = [
    pytest.mark.site,
    pytest.mark.skipif(
        not NOTEBOOKS, reason="no notebooks in _build/html: run `make book` first"
    ),
    # The event loop's sockets are closed by the garbage collector, which is no fault of the notebook.
    pytest.mark.filterwarnings("ignore"),
]


@dataclass(frozen=True)
class Environment:
    name: str
    pins: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)

    @property
    def python(self):
        return FOLDER / self.name / "bin/python"

    def pip(self, *arguments):
        subprocess.run([self.python, "-m", "pip", *arguments, "--quiet"], check=True)

    def has(self, name):
        """The version of an installed package, or nothing."""
        code = f"import importlib.metadata as m; print(*[d.version for d in m.distributions(name={name!r})])"
        return subprocess.run(
            [self.python, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()


OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
COLAB_CPU = Environment("colab-cpu", {"numpy": "2.1.3"})
COLAB_GPU = Environment("colab-gpu", {"numpy": "2.1.3", "triton": "3.6.0"})
NO_TRITON = Environment("no-triton", variables=OFFLINE)
EVERY = (COLAB_CPU, COLAB_GPU, NO_TRITON)


def each(paths, environment=None):
    """A parameter `path` that runs over notebooks; of those that all environments run, half of them, each in one."""

    def case(path):
        turn = (
            environment in EVERY and path in with_triton() and EVERY.index(environment)
        )
        marks = (
            ()
            if turn is False
            else pytest.mark.sampled(of=2 * len(EVERY), key=path.stem, turn=turn)
        )
        return pytest.param(path, id=path.stem, marks=marks)

    return pytest.mark.parametrize(
        "path", [case(path) for path in paths] or [pytest.param(None, id="none")]
    )


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@cache
def with_triton():
    """The notebooks whose first cell sees to Triton."""
    return [
        path
        for path in NOTEBOOKS
        if "missing_triton" in path.read_text(encoding="utf8")
    ]


# -- making them ----------------------------------------------------------------------


def constraints(environment):
    """The project's pins, with those of the environment in their place; Triton is not for torch to choose."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf8").splitlines()
    own = {
        name: version for name, version in environment.pins.items() if name != "triton"
    }
    kept = [line for line in lines if re.split("[=#]", line)[0] not in {*own, "triton"}]
    return (
        "\n".join([*kept, *(f"{name}=={version}" for name, version in own.items())])
        + "\n"
    )


def make(environment):
    """The environment as a reader finds it: made, or only freed of what an earlier run installed."""
    folder, triton = FOLDER / environment.name, environment.pins.get("triton")
    stamp, contents = (
        folder / "made_from.txt",
        constraints(environment) + f"triton {triton}\n",
    )
    if not stamp.is_file() or stamp.read_text(encoding="utf8") != contents:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (folder / "constraints.txt").write_text(
            constraints(environment), encoding="utf8"
        )
        # most of what torch and SymPy bring is never imported
        environment.pip(
            "install",
            "--no-compile",
            "--constraint",
            folder / "constraints.txt",
            *LIBRARIES,
        )
        # Where torch is built for CUDA it brings its own.
        environment.pip("uninstall", "--yes", "triton")
        if triton:
            environment.pip("install", "--no-deps", f"triton=={triton}")
        stamp.write_text(contents, encoding="utf8")
    environment.pip("uninstall", "--yes", "normgrad", *(() if triton else ("triton",)))
    return environment


# -- running in them ------------------------------------------------------------------


def kernels(environment):
    """A folder that tells Jupyter of a kernel in the environment."""
    folder = FOLDER / environment.name / "jupyter"
    spec = folder / "kernels/reader/kernel.json"
    if not spec.is_file():
        spec.parent.mkdir(parents=True, exist_ok=True)
        command = [
            str(environment.python),
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
        ]
        spec.write_text(
            json.dumps(
                {"argv": command, "display_name": "reader", "language": "python"}
            )
        )
    return str(folder)


def execute(environment, notebook, near):
    """Runs a notebook in an empty folder below one that holds the site's wheel.

    Nothing may be left there but the submission that a homework's last cell writes.
    """
    (wheel,) = SITE.glob("_sources/*.whl")
    shutil.copy2(wheel, near)
    folder = near / "empty"
    folder.mkdir()
    variables = {
        "JUPYTER_PATH": kernels(environment),
        "OMP_NUM_THREADS": "1",
        **environment.variables,
    }
    with pytest.MonkeyPatch.context() as patch:
        ours = [name for name in os.environ if name.startswith("NORMGRAD")]
        for name in ("PYTHONPATH", "TRITON_INTERPRET", "VIRTUAL_ENV", *ours):
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        options = {"timeout": 600, "shutdown_kernel": "immediate"}
        resources = {"metadata": {"path": str(folder)}}
        client = nbclient.NotebookClient(
            notebook, kernel_name="reader", resources=resources, **options
        )
        client.execute()
    hands_in = any("hw.hand_in(" in cell.source for cell in notebook.cells)
    written = ["solution.py"] if hands_in else []
    left = [name for name in os.listdir(folder) if name not in written]
    assert left == [], "the notebook leaves files behind"
    return notebook


def printed(cell):
    return "".join(output.get("text", "") for output in cell["outputs"])


def skipped(notebook):
    """The cells that say that they are skipped."""
    return [cell for cell in code_cells(notebook) if printed(cell) == SKIPPED + "\n"]


def timed(record, environment, name, notebook, near):
    """Runs a notebook and notes for the closing table how long it took and how many cells it skipped."""
    start = time.perf_counter()
    execute(environment, notebook, near)
    record(
        "notebook",
        (environment.name, name, len(skipped(notebook)), time.perf_counter() - start),
    )
    return notebook
