"""Types of the public face: mypy refuses the wrong lines of the client, and no other line."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_mypy_refuses_the_wrong_lines_and_no_other():
    """A wrong line is marked to be ignored, and a mark that ignores nothing is an error."""
    pytest.importorskip("mypy")
    client = Path(__file__).with_name("typed_client.py")
    command = [sys.executable, "-m", "mypy", "--warn-unused-ignores", str(client)]
    done = subprocess.run(
        command, cwd=client.parents[1], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
