"""Every notebook that the site offers, run as a reader runs it: elsewhere, with nothing of this project installed.

The environment holds what Colab has and the notebooks use, at the pinned versions, and no more. Each notebook installs
normgrad by its own first cell, from a copy of this checkout.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the book's packages are not installed")
nbclient = pytest.importorskip("nbclient", reason="the book's packages are not installed")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build/html"
NOTEBOOKS = sorted(SITE.glob("_sources/book/*.ipynb"))
SOLUTIONS = ROOT / "src/normgrad/homework/solutions"
HOMEWORKS = [path for path in NOTEBOOKS if (SOLUTIONS / f"{path.stem}.py").is_file()]
LIBRARIES = ("torch", "triton", "numpy", "sympy", "matplotlib", "ipykernel", "setuptools")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS or [None], ids=lambda path: path.stem if path else "none")
pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not NOTEBOOKS, reason="no notebooks in _build/html: run `make book` first"),
]


@pytest.fixture(scope="session")
def fresh_python():
    """The interpreter of an environment with the libraries alone; made again when the pins change."""
    folder = ROOT / "_build/notebook_environment"
    python, stamp, pins = folder / "bin/python", folder / "pins.txt", ROOT / "requirements.txt"
    if not stamp.is_file() or stamp.read_text() != pins.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", pins, *LIBRARIES], check=True)
        shutil.copy2(pins, stamp)
    return python


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """A copy of what pip needs, because building a wheel leaves files in the folder it is built from."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "LICENSE-text"):
        shutil.copy2(ROOT / name, folder)
    shutil.copytree(ROOT / "book/figures", folder / "book/figures", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    return folder


@pytest.fixture
def kernel(fresh_python, package, tmp_path, monkeypatch):
    """The name of a kernel in the fresh environment, from which normgrad has been removed."""
    subprocess.run([fresh_python, "-m", "pip", "uninstall", "--quiet", "--yes", "normgrad"], check=True)
    spec = tmp_path / "jupyter/kernels/fresh/kernel.json"
    spec.parent.mkdir(parents=True)
    command = [str(fresh_python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": command, "display_name": "fresh", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("NORMGRAD_SOURCE", str(package))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("PYTHONPATH", "TRITON_INTERPRET", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    return "fresh"


def run(notebook, kernel, folder):
    """Executes a notebook in an empty folder, which must be empty afterwards."""
    folder.mkdir()
    client = nbclient.NotebookClient(
        notebook, kernel_name=kernel, timeout=600, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    assert os.listdir(folder) == [], "the notebook leaves files behind"


# Its event loop's sockets are closed by the garbage collector, which is no fault of the notebook.
@pytest.mark.filterwarnings("ignore")
@each_notebook
def test_notebook_runs(path, kernel, tmp_path):
    """A homework is run as it is handed out: each of its checks says that nothing is written yet."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    run(notebook, kernel, tmp_path / "empty")
    if path in HOMEWORKS:
        for cell in entry_checks(notebook, path.stem):
            assert "Not implemented yet" in shown(cell), cell["source"]


def solved(notebook, name):
    """Puts the reference solution in place of the student's cells: all of it in the first, nothing in the others."""
    text = (SOLUTIONS / f"{name}.py").read_text(encoding="utf8")
    for cell in notebook["cells"]:
        if "homework" in cell["metadata"].get("tags", ()):
            cell["source"], text = text, ""
    assert text == "", "no cell is marked `homework`"


def entry_checks(notebook, name):
    """The cells that check what the solution defines, all of which there must be."""
    entries = re.findall(r"^(?:def|class) (\w+)", (SOLUTIONS / f"{name}.py").read_text(encoding="utf8"), re.M)
    check = re.compile(rf"""^hw\.check\("[\w-]+", ({"|".join(entries)})\)$""", re.M)
    found = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and check.search(cell["source"])]
    assert found, "the notebook checks nothing"
    return found


def shown(cell):
    """The report below a cell, as text."""
    return "".join(output["data"]["text/plain"] for output in cell["outputs"] if "data" in output)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", HOMEWORKS or [None], ids=lambda path: path.stem if path else "none")
def test_homework_runs_with_the_solution(path, kernel, tmp_path):
    """Every check gives full marks."""
    if path is None:
        pytest.skip("no homework in _build/html")
    notebook = nbformat.read(path, as_version=4)
    solved(notebook, path.stem)
    run(notebook, kernel, tmp_path / "empty")
    for cell in entry_checks(notebook, path.stem):
        points = re.search(r"(\d+) of (\d+) points", shown(cell))
        assert points and points[1] == points[2], shown(cell)


@each_notebook
def test_notebook_is_plain(path):
    """No directive, role or target of MyST is left, and each output is there."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for raw in ("```{", ":::", "~~~{", "}`", ")=\n", "$$ ("):
        assert raw not in text, raw
    bootstrap, *rest = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "normgrad.doctor()" in "".join(bootstrap["source"])
    assert all(cell["execution_count"] for cell in rest) and any(cell["outputs"] for cell in rest)
