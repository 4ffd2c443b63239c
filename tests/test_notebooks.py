"""Every notebook that the site offers, run as a reader in Colab runs it who takes the runtime without a GPU.

What that environment is here, and what it is not, says notebook_environments.py.
"""

import json
import re

import notebook_environments as environments
import pytest
from notebook_environments import (
    COLAB_CPU,
    HOMEWORKS,
    NOTEBOOKS,
    code_cells,
    each,
    needs_site,
    read,
    timed,
)
from page_cells import CHAPTERS, of_notebook, page_cells, pages_of

from normgrad.homework import solutions

pytestmark = needs_site
WITH_TRITON = environments.with_triton()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_notebooks_hold_the_cells_of_the_pages(chapter):
    for page in pages_of(chapter):
        (notebook,) = [path for path in NOTEBOOKS if path.stem == page.stem]
        typed = [cell.source for cell in page_cells.of_page(page)]
        assert of_notebook(notebook) == typed, page.stem


@pytest.fixture(scope="session")
def colab():
    return environments.make(COLAB_CPU)


# Those that need no Triton first, which then is not there: the first of the others installs it. The build of the site
# has run the same cells, so a third of them runs where tests are sampled.
@pytest.mark.sampled(of=3)
@each(sorted(NOTEBOOKS, key=lambda path: path in WITH_TRITON), COLAB_CPU)
def test_notebook_runs(path, colab, tmp_path, record_property):
    """A homework is run as it is handed out: each of its checks says that nothing is written yet."""
    assert path in WITH_TRITON or not colab.has("triton")
    notebook = timed(record_property, colab, path.stem, read(path), tmp_path)
    assert environments.skipped(notebook) == []
    if path in HOMEWORKS:
        for cell in entry_checks(notebook, path.stem):
            assert "Not implemented yet" in shown(cell), cell["source"]


def solved(notebook, name):
    """Puts the reference solution in place of the student's cells: all of it in the first, nothing in the others."""
    text = solutions.solution(name)
    for cell in notebook["cells"]:
        if "homework" in cell["metadata"].get("tags", ()):
            cell["source"], text = text, ""
    assert text == "", "no cell is marked `homework`"
    return notebook


def entry_checks(notebook, name):
    """The cells that check what the solution defines, all of which there must be."""
    text = solutions.solution(name)
    entries = re.findall(r"^(?:def|class) (\w+)", text, re.M)
    check = re.compile(rf"""^hw\.check\("[\w-]+", ({"|".join(entries)})\)$""", re.M)
    checks = [cell for cell in code_cells(notebook) if check.search(cell["source"])]
    assert checks, "the notebook checks nothing"
    return checks


def shown(cell):
    """The report below a cell, as text."""
    return "".join(
        output["data"]["text/plain"] for output in cell["outputs"] if "data" in output
    )


@pytest.mark.sampled(of=3)
@each(HOMEWORKS)
def test_homework_runs_with_the_solution(path, colab, tmp_path, record_property):
    """Every check gives full marks, and the last cell writes the submission."""
    assert path is not None, "no homework in _build/html, which has other notebooks"
    notebook = timed(
        record_property,
        colab,
        f"{path.stem}, solved",
        solved(read(path), path.stem),
        tmp_path,
    )
    for cell in entry_checks(notebook, path.stem):
        points = re.search(r"(\d+) of (\d+) points", shown(cell))
        assert points and points[1] == points[2], shown(cell)
    assert (tmp_path / "empty/solution.py").exists()


@each(NOTEBOOKS)
def test_notebook_is_plain(path):
    """No directive, role or target of MyST is left, and each output is there."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    text = "\n".join(
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
    )
    for raw in ("```{", ":::", "~~~{", "}`", ")=\n", "$$ ("):
        assert raw not in text, raw
    bootstrap, *later = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "normgrad.doctor()" in "".join(bootstrap["source"])
    assert all(cell["execution_count"] for cell in later) and any(
        cell["outputs"] for cell in later
    )
