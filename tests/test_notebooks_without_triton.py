"""The notebooks with kernels where Triton cannot be had, as on macOS and Windows, and the first cell's other cases.

What stands for that environment here says notebook_environments.py.
"""

import notebook_environments as environments
import pytest
from notebook_environments import NO_TRITON, code_cells, each, needs_site, read, timed

pytestmark = needs_site


@pytest.fixture(scope="session")
def elsewhere():
    return environments.make(NO_TRITON)


@each(environments.with_triton())
def test_chapter_goes_on_without_triton(path, elsewhere, tmp_path, record_property):
    """Each marked cell says that it is skipped, and no cell fails for want of what one of them defines."""
    notebook = timed(record_property, elsewhere, path.stem, read(path), tmp_path)
    marked = [cell for cell in code_cells(notebook) if "triton" in cell["metadata"].get("tags", ())]
    assert all(cell in environments.skipped(notebook) for cell in marked)
