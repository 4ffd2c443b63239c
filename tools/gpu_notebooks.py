"""Runs the notebooks of the built site on a machine with a GPU, where Triton compiles what it else interprets.

    python tools/gpu_notebooks.py --json FILE [FOLDER]     FOLDER: of the notebooks, else _build/html/_sources/book

Needs IPython, and the package on Python's path: the first cell of a notebook, which installs it, is left out. Each
notebook is a process of its own. The command fails where a cell raises that should not, or does not that should.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "_build/html/_sources/book"
SECONDS = 240
# instead of the cell that installs the package
START = """
import normgrad
from normgrad.teaching import notebook

notebook.start()
normgrad.doctor()
"""
RAISES, SKIPS = "raises-exception", "skip-execution"


def failures_of(path: Path) -> list[dict]:
    """The cells of a notebook that raise and should not, or do not and should, each with the reason."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    sources = [
        ("".join(cell["source"]), cell["metadata"].get("tags", ()))
        for cell in cells
        if cell["cell_type"] == "code"
    ]
    sources[0] = START, ()
    failures = []
    for position, (source, tags) in enumerate(sources):
        if SKIPS in tags:
            continue
        result = shell.run_cell(source)
        error = result.error_before_exec or result.error_in_exec
        if (error is None) == (RAISES in tags):
            reason = f"{type(error).__name__}: {error}" if error else "raises nothing"
            failures.append({"cell": position, "source": source, "reason": reason})
    return failures


def run(path: Path) -> dict:
    """What a process gave that ran one notebook."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        environment = dict(os.environ, MPLBACKEND="agg", TRITON_CACHE_DIR=folder)
        command = [sys.executable, __file__, "--one", path, "--json", answer]
        try:
            done = subprocess.run(
                list(map(str, command)),
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return {"name": path.stem, "failures": [{"reason": f"over {SECONDS} s"}]}
        if not answer.exists():
            reason = f"the process ended: {done.stderr[-2000:]}"
            return {"name": path.stem, "failures": [{"reason": reason}]}
        failures = json.loads(answer.read_text(encoding="utf8"))
    return {"name": path.stem, "failures": failures}


def main() -> None:
    """Run all of them, or, of a process for it, one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=NOTEBOOKS)
    parser.add_argument("--json", type=Path, required=True, help="a file for it")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        failures = failures_of(options.one)
        options.json.write_text(json.dumps(failures), encoding="utf8")
        return
    paths = sorted(options.folder.resolve().glob("*.ipynb"))
    if not paths:
        parser.error(f"got {options.folder} without notebooks, needs `make book`")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(run, paths))
    options.json.write_text(json.dumps(answers, indent=1), encoding="utf8")
    failed = [answer for answer in answers if answer["failures"]]
    for answer in failed:
        reasons = [
            failure["reason"].partition("\n")[0] for failure in answer["failures"]
        ]
        print(answer["name"], *reasons, sep="\n  ")
    print(f"{len(answers)} notebooks, {len(failed)} with a failure")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
