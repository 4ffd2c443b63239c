"""Processes of Python beside that of the tests."""

import os
import subprocess
import sys

# Without what the tests have said of Triton.
UNSET = {
    name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"
}


def python(*arguments, **options):
    """A process with these arguments, once it has ended: its status, and what it has printed, as text."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)
