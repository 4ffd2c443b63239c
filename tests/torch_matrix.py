"""What is about torch, tested with several versions of it, each with the Triton that it declares.

    python tests/torch_matrix.py                  the five below
    python tests/torch_matrix.py 2.9.1 newest     others

Each version has an environment of its own in .torch-matrix, made once and kept: torch with what it needs, and an older
NumPy where that Triton's interpreter wants one. All else is lent by the environment that runs this file, as for
tests/triton_matrix.py. `normgrad.doctor.TESTED` is written from what this prints.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

from triton_matrix import NEWEST, OLDER_NUMPY, PERMISSIVE

from normgrad.teaching.notebook import PAIRS
from normgrad.versions import FIRST_FOR_STRICT_NUMPY, release

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".torch-matrix"
VERSIONS = ("2.6.0", "2.8.0", "2.11.0", "2.13.0", NEWEST)
# Eager and compiled calls, modules, stacks, tangents, double backward, fused layers; proofs know no torch.
FILES = ("imports", "torch", "operators", "nn", "residual", "subclasses", "double_backward", "own_norm")
ASK = """
import importlib.metadata as m
print(*(f"{name} {m.version(name)}" for name in ("torch", "triton", "numpy")), sep=", ")
"""


def environment(version: str) -> Path:
    """The Python of a version's environment, made where it is not there yet."""
    folder = FOLDER / version
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, symlinks=True)
    wanted = ["--upgrade", "torch"] if version == NEWEST else [f"torch=={version}"]
    pair = PAIRS.get(".".join(map(str, release(version)))) if version != NEWEST else None
    wanted += [f"triton=={pair}"] if pair else ["triton"]
    wanted += [OLDER_NUMPY] if pair and release(pair) < release(FIRST_FOR_STRICT_NUMPY) else []
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *wanted]
    subprocess.run(pip, check=True)
    # Read after the environment's own packages, so that its own torch is the one that is found.
    loan = sysconfig.get_path("purelib", vars={"base": str(folder)}) + "/loan.pth"
    Path(loan).write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n", encoding="utf8")
    return python


def tested(python: Path, options: list[str]) -> tuple[str, bool]:
    """What an environment holds and what its tests ended with; whether all passed."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TRITON_INTERPRET")}
    said = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True, env=kept).stdout.strip()
    files = [f"tests/test_{name}.py" for name in FILES]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", PERMISSIVE, *options, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=kept)
    failed = "".join(f"\n    {line}" for line in re.findall(r"^(?:FAILED|ERROR) .+", done.stdout, re.M))
    last = done.stdout.strip().split("\n")[-1].strip("= ") or done.stderr[-2000:]
    return f"{said}: {last}{failed}", done.returncode == 0


def main() -> int:
    """A line for each version, and below it what failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="versions of torch (default: %(default)s)")
    parser.add_argument("--pytest", default="", help="options of pytest, as `-n logical`")
    arguments = parser.parse_args()
    passed = True
    for version in arguments.versions:
        start = time.perf_counter()
        said, right = tested(environment(version), arguments.pytest.split())
        print(f"{said}\n    python {sys.version.split()[0]}, {time.perf_counter() - start:.0f} s", flush=True)
        passed &= right
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
