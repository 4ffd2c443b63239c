"""Each kernel variant compiled, and part of the contract interpreted, with the lowest, pinned and newest Triton.

    python tools/triton_matrix.py                  those three
    python tools/triton_matrix.py 3.4.0 3.6.0      others

Each version has an environment of its own in .triton-matrix, which lent_environment makes: it holds that Triton, all
else is lent, and each run checks which one was found.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import lent_environment
import tomllib
from lent_environment import (
    NEWEST,
    OLDER_NUMPY,
    PERMISSIVE,
    ROOT,
    needs_older_numpy,
    run,
    wanted,
)
from packaging.requirements import Requirement
from packaging.version import Version

from normgrad.bench import compile

FOLDER = ROOT / ".triton-matrix"
COMPILER = Path(__file__).with_name("triton_versions.py")
# What a version cannot compile for, whatever the kernel. What else it refuses is a failure.
REFUSED = {
    # No sm_100 in its ptxas, no linker for AMD of its own.
    "3.2": {"bfloat16 on sm_75", "sm_100", "gfx942"},
    "3.3": {"gfx942"},
    "3.4": {"gfx942"},
}
# Every point of the contract that Triton runs, and its second derivatives.
INTERPRETED = ("tests/test_contract.py", "-k", "triton and (every_point or second)")


def versions() -> tuple[str, str, str]:
    """The lowest Triton that pyproject.toml allows, the one of requirements.txt, and whatever is newest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    extras = project["project"]["optional-dependencies"]["triton"]
    specifiers = {
        requirement.name: str(requirement.specifier)
        for requirement in map(Requirement, extras)
    }
    lowest = re.fullmatch(r">=(\d+\.\d+)", specifiers["triton"])[1]
    locked = (ROOT / "requirements.txt").read_text(encoding="utf8")
    pinned = re.search(r"^triton==(\S+)", locked, re.M)[1]
    return f"{lowest}.0", pinned, NEWEST


def environment(version: str) -> tuple[Path, Version]:
    """(its Python, its Triton's version) of a version's environment, made where it is not there yet."""
    folder = FOLDER / version
    older = [OLDER_NUMPY] if version != NEWEST and needs_older_numpy(version) else []
    python = lent_environment.environment(
        folder, ["--no-deps", *wanted("triton", version), *older]
    )
    said = run(
        python, "-c", "import triton; print(triton.__version__, triton.__file__)"
    ).stdout.split()
    imported, file = Version(said[0]), Path(said[1])
    if not file.is_relative_to(folder) or version not in (NEWEST, str(imported)):
        raise SystemExit(
            f"triton {version}: the environment imports {imported} from {file}"
        )
    return python, imported


def compiled(python, version: Version, options) -> str:
    """Every variant compiled, in one process; what the version refuses must be what it is known to refuse."""
    file = FOLDER / f"compile-{version}.json"
    with tempfile.TemporaryDirectory() as cache:
        command = [python, str(COMPILER), "compile", "--json", str(file), *options]
        done = run(*command, TRITON_CACHE_DIR=cache)
    results = compile.read(file)
    unknown = set(results.refused) - REFUSED.get(
        f"{version.major}.{version.minor}", set()
    )
    if unknown or Version(results.triton) != version:
        raise SystemExit(
            f"triton {version}: {results.triton} refuses {sorted(unknown)}\n{done.stdout}"
        )
    return done.stdout.splitlines()[-1]


def interpreted(python, version: Version) -> str:
    """A part of the contract, in another process."""
    quiet = ["-W", PERMISSIVE] if needs_older_numpy(str(version)) else []
    done = run(
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *quiet,
        *INTERPRETED,
        TRITON_INTERPRET="1",
    )
    passed = re.search(r"(\d+) passed", done.stdout)[1]
    return f"{passed} interpreter checks passed"


def main():
    """One line a version."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "versions",
        nargs="*",
        help="versions of Triton (default: lowest, pinned and newest)",
    )
    parser.add_argument(
        "--compile",
        default="",
        help="options of `python -m normgrad.bench compile`, to compile less",
    )
    arguments = parser.parse_args()
    for version in arguments.versions or versions():
        start = time.perf_counter()
        python, imported = environment(version)
        parts = [
            compiled(python, imported, arguments.compile.split()),
            interpreted(python, imported),
        ]
        seconds = time.perf_counter() - start
        print(f"triton {imported}: {'; '.join(parts)}; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
