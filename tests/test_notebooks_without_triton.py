"""The notebooks with kernels where Triton cannot be had, as on macOS and Windows, and the first cell's other cases.

What stands for that environment here says notebook_environments.py.
"""

import nbformat
import notebook_environments as environments
import pytest
from notebook_environments import (
    NO_TRITON,
    ROOT,
    code_cells,
    each,
    needs_site,
    printed,
    read,
    timed,
)

pytestmark = needs_site


@pytest.fixture(scope="session")
def elsewhere():
    return environments.make(NO_TRITON)


@each(environments.with_triton(), NO_TRITON)
def test_chapter_goes_on_without_triton(path, elsewhere, tmp_path, record_property):
    """Each marked cell says that it is skipped, and no cell fails for want of what one of them defines."""
    notebook = timed(record_property, elsewhere, path.stem, read(path), tmp_path)
    assert "skips the cells that need it" in printed(code_cells(notebook)[0])
    marked = [
        cell
        for cell in code_cells(notebook)
        if "triton" in cell["metadata"].get("tags", ())
    ]
    assert all(cell in environments.skipped(notebook) for cell in marked)


def first_cell(before=""):
    """A notebook of the first cell of a chapter alone, or after another cell."""
    notebook = read(environments.NOTEBOOKS[0])
    cells = [nbformat.v4.new_code_cell(before)] if before else []
    notebook["cells"] = [*cells, code_cells(notebook)[0]]
    return notebook


def test_another_normgrad_is_replaced_and_one_that_is_loaded_is_named(
    elsewhere, tmp_path
):
    """By the first cell and pip, without a network."""
    from normgrad_book import wheel

    version = wheel.build(ROOT, "0" * 12, tmp_path / "other")
    there = [tmp_path / "other" / wheel.file_name(version)]

    elsewhere.pip("install", "--force-reinstall", "--no-deps", *there)
    notebook = environments.execute(elsewhere, first_cell(), tmp_path)
    mine = elsewhere.has("normgrad")
    assert mine != version and mine in printed(code_cells(notebook)[0])

    elsewhere.pip("install", "--force-reinstall", "--no-deps", *there)
    (tmp_path / "loaded").mkdir()
    with pytest.raises(environments.nbclient.exceptions.CellExecutionError) as raised:
        environments.execute(
            elsewhere, first_cell("import normgrad"), tmp_path / "loaded"
        )
    assert f"normgrad {version} is loaded: restart the session to use {mine}." in str(
        raised.value
    )
    assert elsewhere.has("normgrad") == mine
