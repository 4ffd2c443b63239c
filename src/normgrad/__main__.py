"""``python -m normgrad`` prints what this process has; a word after it names something else that is done."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and sys.path[0] == os.getcwd():
    del sys.path[0]  # as for python -m normgrad.homework: a folder of someone's may have a random.py in it

import argparse  # noqa: E402
from importlib import import_module  # noqa: E402

from . import __version__  # noqa: E402

COMMANDS = {
    "doctor": "versions, device, and whether Triton compiles or interprets (the default)",
    "version": "the version alone",
    "homework": "a folder to write in, and its grade: python -m normgrad.homework",
    "bench": "times and bytes of the kernels: python -m normgrad.bench",
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; what follows its name is the command's own. Returns: the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    listed = "\n".join(f"  {name:10} {words}" for name, words in COMMANDS.items())
    parser = argparse.ArgumentParser(
        "python -m normgrad", epilog=f"commands:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=COMMANDS, default="doctor", metavar="COMMAND")
    command, further = parser.parse_args(given[:1]).command, given[1:]
    if command in ("homework", "bench"):
        return import_module(f".{command}.__main__", __package__).main(further) or 0
    if further:
        parser.error(f"{command} takes no arguments, got {' '.join(further)}")
    if command == "version":
        print(__version__)
    else:
        import_module(".doctor", __package__).doctor()
    return 0


if __name__ == "__main__":
    sys.exit(main())
