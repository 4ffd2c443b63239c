"""The score of the tests: how many machine-made mutants of the files that a gradient passes through they notice.

    python tests/mutation.py --sample 40 --seed 7      some of all files
    python tests/mutation.py --files torch_rows.py     all of one file
    python tests/mutation.py --sample 400 --record     writes what the book's page shows; its reasons are kept

Each mutant is a copy of the package with one change in it, in which the tests below run until one fails. A process that
has imported torch and Triton forks for each, so that a mutant costs what its tests cost.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/normgrad")
RECORD = ROOT / PACKAGE / "checks/machine_mutants.json"
# Every file that a gradient passes through, wrappers and launchers included.
FILES = (
    "numpy_ref.py",
    "spec.py",
    "torch_arguments.py",
    "torch_autograd.py",
    "torch_formula.py",
    "torch_functional.py",
    "torch_operators.py",
    "torch_rows.py",
    "nn.py",
    "residual.py",
    "double_backward.py",
    "triton_kernels/arithmetic.py",
    "triton_kernels/configuration.py",
    "triton_kernels/launch.py",
    "triton_kernels/reduction.py",
    "triton_kernels/rows.py",
    "triton_kernels/sweeps.py",
)
# Those that look at conditions, wiring and errors, the quick ones first; the whole suite notices more.
TESTS = (
    "test_arguments.py",
    "test_covering.py",
    "test_wiring.py",
    "test_nn.py",
    "test_residual.py",
    "test_eps.py",
    "test_torch.py",
    "test_operators.py",
    "test_dtypes.py",
    "test_kernels.py",
    "test_double_backward.py",
)
# Without tests that edit these very files, and fail where the text to edit is missing.
UNEDITED = "not mutant and not wrong_program and not contract_rejects and not dropped_projection"
# A mutant that takes this many times as long as the source itself never ends.
PATIENCE = 4


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Args:  file, line, change: the mutant; end: "killed", "timeout" or "survived"; seconds: how long it took
    """

    file: str
    line: int
    change: str
    end: str
    seconds: float


class Tree:
    """A copy of the package and its tests, in which one file at a time is changed."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in ("src", "tests", "book"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("pyproject.toml", "_config.yml", "_toc.yml", "README.md"):
            shutil.copy(ROOT / name, self.folder)
        compileall.compile_dir(self.folder / "src", quiet=2)

    def change(self, file, text):
        path = self.folder / PACKAGE / file
        path.write_text(text)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


def run_tests(tree, tests, log) -> int:
    """Run the tests in this process, from a tree; pytest's exit status."""
    import pytest

    os.chdir(tree.folder)
    sys.path[:0] = [str(tree.folder / "src"), str(tree.folder / "tests")]
    with open(log, "w") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        # a file at a time, since what is collected costs time, too, and the first file notices most
        for name in tests:
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not site", "-k", UNEDITED]
            if status := pytest.main([*options, f"tests/{name}"]):
                return status
        return 0


class Child:
    """The tests of one mutant, in a process of their own."""

    def __init__(self, tree, tests, seconds):
        self.deadline = time.monotonic() + seconds
        self.started = time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            status = 70
            try:
                status = int(run_tests(tree, tests, tree.folder / "log"))
            finally:
                os._exit(status)

    def poll(self):
        """None while it runs, then (exit status, or None where it took too long; seconds)."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.started
        if pid:
            return os.waitstatus_to_exitcode(status), seconds
        if time.monotonic() > self.deadline:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return None, seconds
        return None


def wait(child):
    while (found := child.poll()) is None:
        time.sleep(0.05)
    return found


def warm_up():
    """Import what no mutant changes, once."""
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.dont_write_bytecode = True
    import matplotlib  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import sympy  # noqa: F401
    import torch  # noqa: F401
    import triton  # noqa: F401


def chosen(files, sample, seed):
    """[(file, mutant)]: all of them, or a sample without replacement."""
    from normgrad.checks.machine_mutants import machine_mutants

    everything = [(file, each) for file in files for each in machine_mutants((ROOT / PACKAGE / file).read_text())]
    for name in [name for name in sys.modules if name.partition(".")[0] == "normgrad"]:
        del sys.modules[name]
    return everything if sample is None else random.Random(seed).sample(everything, min(sample, len(everything)))


def record(found, seed):
    """The outcomes by file, and the survivors with the reasons that the last record gave them."""
    from normgrad.checks.machine_mutants import machine_mutants

    known = json.loads(RECORD.read_text())["survivors"] if RECORD.exists() else []
    whys = {(each["file"], each["code"], each["change"]): each["why"] for each in known}
    files, survivors = {}, []
    for file in FILES:
        ends = Counter(each.end for each in found if each.file == file)
        text = (ROOT / PACKAGE / file).read_text()
        counts = {"mutants": len(machine_mutants(text)), "tried": ends.total(), "survived": ends["survived"]}
        files[file] = counts | {"never_ended": ends["timeout"]}
        lines = text.splitlines()
        for each in sorted((each for each in found if (each.file, each.end) == (file, "survived")), key=str):
            one = {"file": file, "code": lines[each.line - 1].strip(), "change": each.change}
            survivors.append(one | {"why": whys.get(tuple(one.values()), "")})
    return {"seed": seed, "files": files, "survivors": survivors}


def score(mutants, tests, jobs, limit, report):
    """The Outcome of each mutant, `jobs` at a time; none is begun after `limit` seconds."""
    with tempfile.TemporaryDirectory(prefix="normgrad-mutation-") as folder:
        trees = [Tree(Path(folder) / str(job)) for job in range(jobs)]
        status, alone = wait(Child(trees[0], tests, 3600))
        if status != 0:
            sys.exit(f"the tests fail without a mutant:\n{(trees[0].folder / 'log').read_text()[-3000:]}")
        print(f"without a mutant: {alone:.0f} s", flush=True)
        waiting, running, found, start = list(reversed(mutants)), {}, [], time.monotonic()
        while waiting or running:
            for job, tree in enumerate(trees):
                if job in running:
                    child, file, mutant = running[job]
                    ended = child.poll()
                    if ended is None:
                        continue
                    end = {None: "timeout", 0: "survived"}.get(ended[0], "killed")
                    tree.change(file, (ROOT / PACKAGE / file).read_text())
                    found.append(Outcome(file, mutant.line, str(mutant).partition(", ")[2], end, round(ended[1], 1)))
                    report(found[-1], len(found), len(mutants))
                    del running[job]
                if waiting and time.monotonic() - start > limit:
                    waiting.clear()
                if waiting:
                    file, mutant = waiting.pop()
                    tree.change(file, mutant.applied((ROOT / PACKAGE / file).read_text()))
                    running[job] = Child(tree, tests, 60 + PATIENCE * alone), file, mutant
            time.sleep(0.05)
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", choices=FILES, default=FILES, metavar="FILE")
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random; all without this")
    parser.add_argument("--seed", default="0", help="of the sample; any text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after this many")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    warm_up()
    mutants = chosen(options.files, options.sample, options.seed)
    tests = [name for name in TESTS if (ROOT / "tests" / name).exists()]

    def report(outcome, done, of):
        where = f"{outcome.file}:{outcome.line} {outcome.change}"
        print(f"{done}/{of} {outcome.end} {outcome.seconds:.1f} s  {where}", flush=True)

    found = score(mutants, tests, options.jobs, 60 * options.minutes, report)
    survived = [each for each in found if each.end == "survived"]
    noticed = len(found) - len(survived)
    print(f"{noticed} of {len(found)} mutants noticed, {100 * noticed / len(found):.1f} %")
    if options.record:
        RECORD.write_text(json.dumps(record(found, options.seed), indent=1) + "\n")


if __name__ == "__main__":
    main()
