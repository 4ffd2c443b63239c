"""Types of the public face: mypy refuses the wrong lines of the client, and no other line."""

from pathlib import Path

import pytest
from processes import python


def test_mypy_refuses_the_wrong_lines_and_no_other():
    """A wrong line is marked to be ignored, and a mark that ignores nothing is an error."""
    pytest.importorskip("mypy")
    client = Path(__file__).with_name("typed_client.py")
    options = "-m mypy --warn-unused-ignores".split()
    done = python(*options, client, cwd=client.parents[1])
    assert done.returncode == 0, done.stdout + done.stderr
