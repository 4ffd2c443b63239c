"""What is about torch, tested with several versions of it, each with the Triton that it declares.

    python tools/torch_matrix.py                  the five below
    python tools/torch_matrix.py 2.9.1 newest     others

Each version has an environment of its own in .torch-matrix, which lent_environment makes: torch with what it needs, and
an older NumPy where that Triton's interpreter wants one. `normgrad.doctor.TESTED` is written from what this prints.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import lent_environment
from lent_environment import (
    NEWEST,
    OLDER_NUMPY,
    PERMISSIVE,
    ROOT,
    needs_older_numpy,
    run,
    wanted,
)

from normgrad.doctor import PAIRS
from normgrad.versions import release

FOLDER = ROOT / ".torch-matrix"
VERSIONS = ("2.6.0", "2.8.0", "2.11.0", "2.13.0", NEWEST)
# Eager and compiled calls, modules, stacks, tangents, double backward, fused layers; proofs know no torch.
FILES = (
    *("imports", "torch", "operators", "nn", "replace_norms"),
    *("residual", "subclasses", "double_backward", "own_norm"),
)
ASK = """
import importlib.metadata as m
print(*(f"{name} {m.version(name)}" for name in ("torch", "triton", "numpy")), sep=", ")
"""


def environment(version: str) -> Path:
    """The Python of a version's environment, made where it is not there yet."""
    pair = (
        PAIRS.get(".".join(map(str, release(version)))) if version != NEWEST else None
    )
    older = [OLDER_NUMPY] if pair and needs_older_numpy(pair) else []
    triton = f"triton=={pair}" if pair else "triton"
    return lent_environment.environment(
        FOLDER / version, [*wanted("torch", version), triton, *older]
    )


def tested(python: Path, options: list[str]) -> tuple[str, bool]:
    """What an environment holds and what its tests ended with; whether all passed."""
    said = run(python, "-c", ASK).stdout.strip()
    files = [f"tests/test_{name}.py" for name in FILES]
    done = run(
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        PERMISSIVE,
        *options,
        *files,
        check=False,
    )
    failed = "".join(
        f"\n    {line}"
        for line in re.findall(r"^(?:FAILED|ERROR) .+", done.stdout, re.M)
    )
    last = done.stdout.strip().split("\n")[-1].strip("= ") or done.stderr[-2000:]
    return f"{said}: {last}{failed}", done.returncode == 0


def main() -> int:
    """A line for each version, and below it what failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "versions",
        nargs="*",
        default=VERSIONS,
        help="versions of torch (default: %(default)s)",
    )
    parser.add_argument(
        "--pytest", default="", help="options of pytest, as `-n logical`"
    )
    arguments = parser.parse_args()
    passed = True
    for version in arguments.versions:
        start = time.perf_counter()
        said, right = tested(environment(version), arguments.pytest.split())
        print(
            f"{said}\n    python {sys.version.split()[0]}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
        passed &= right
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
