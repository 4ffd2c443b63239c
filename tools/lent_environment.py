"""Environments with a version of a library of their own, for the matrices of versions; all else is lent.

Such an environment is made once and kept. Its .pth file names the packages of the environment that runs the matrix:
torch above all, which built for CUDA would fill the disk of a runner for each version. Python reads an environment's
own packages before those that such a file names, so its own version is the one that is found.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from normgrad.versions import FIRST_FOR_STRICT_NUMPY, release

ROOT = Path(__file__).parents[1]
NEWEST = "newest"
# The interpreter of an older Triton makes integers of arrays with one element, which NumPy 2.4 refuses.
OLDER_NUMPY = "numpy==2.3.5"
PERMISSIVE = "ignore:Conversion of an array with ndim:DeprecationWarning"


def needs_older_numpy(triton: str) -> bool:
    """Whether a Triton's interpreter fails with the newest NumPy."""
    return release(triton) < release(FIRST_FOR_STRICT_NUMPY)


def wanted(name: str, version: str) -> list[str]:
    """What pip is asked for: a version of a library, or the newest."""
    return ["--upgrade", name] if version == NEWEST else [f"{name}=={version}"]


def environment(
    folder: Path, requirements: list[str], *, lent_first: bool = False
) -> Path:
    """The Python of an environment, made where it is not there yet, with these requirements of its own.

    Args:  lent_first: what is lent meets requirements, too: pip installs what it lacks
    """
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, symlinks=True)
    loan = Path(sysconfig.get_path("purelib", vars={"base": str(folder)})) / "loan.pth"
    lent = f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n"
    if lent_first:
        loan.write_text(lent, encoding="utf8")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        *requirements,
    ]
    subprocess.run(pip, check=True)
    loan.write_text(lent, encoding="utf8")
    return python


def run(python, *arguments, check=True, **variables):
    """A command of an environment's Python; where it fails and that is checked, its output and the end of the run."""
    ignored = ("PYTHONPATH", "TRITON_INTERPRET")
    environ = {
        name: value for name, value in os.environ.items() if name not in ignored
    } | variables
    done = subprocess.run(
        [str(python), *arguments], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    if check and done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, done.args))}\n{done.stdout[-8000:]}{done.stderr[-8000:]}"
        )
    return done
