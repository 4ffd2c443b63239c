"""A notebook's cells are run as they stand; what raises, or should and does not, is found."""

import json

import gpu_notebooks
import pytest

pytest.importorskip("IPython", reason="the book's packages are not installed")


def cell(source, *tags):
    """A code cell of a notebook."""
    return {"cell_type": "code", "source": [source], "metadata": {"tags": tags}}


def test_cells_that_raise_are_found(tmp_path):
    cells = [
        cell("raise SystemError('the first cell is left out')"),
        cell("size = normgrad.__version__"),
        cell("1 / 0"),
        cell("1 / 0", gpu_notebooks.RAISES),
        cell("size", gpu_notebooks.RAISES),
        cell("1 / 0", gpu_notebooks.SKIPS),
    ]
    path = tmp_path / "page.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf8")
    answer = gpu_notebooks.run(path)
    found = [(failure["cell"], failure["reason"]) for failure in answer["failures"]]
    expected = [(2, "ZeroDivisionError: division by zero"), (4, "raises nothing")]
    assert found == expected
