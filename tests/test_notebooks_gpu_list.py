"""The notebooks with kernels, with the libraries that Colab's runtime with a GPU has.

What that environment is here, and what it is not, says notebook_environments.py.
"""

import notebook_environments as environments
import pytest
from notebook_environments import COLAB_GPU, each, needs_site, read, timed

pytestmark = needs_site


@pytest.fixture(scope="session")
def colab():
    return environments.make(COLAB_GPU)


@each(environments.with_triton(), COLAB_GPU)
def test_notebook_runs(path, colab, tmp_path, record_property):
    notebook = timed(record_property, colab, path.stem, read(path), tmp_path)
    assert environments.skipped(notebook) == []
