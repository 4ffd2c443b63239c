"""Shared by all tests: the generators that everything random comes from."""

import os
import re
import subprocess
import sys
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from notebook_summary import pytest_terminal_summary  # noqa: F401


def pytest_configure(config):
    """Triton compiles for the `gpu` tests and interprets for all others; one process can do only one of the two."""
    if config.option.markexpr != "gpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")


# What `make quick` runs: files of tests, and what the name of a test must hold.
QUICK = {
    "test_contract.py": "numpy|torch",
    "test_mutants.py": "numpy",
    "test_imports.py": "",
    "test_arguments.py": "",
    "test_nn.py": "",
    "test_book_markdown.py": "",
    "test_notation.py": "",
    "test_symbolic.py": "test_every_step_is_proved",
    "test_homework_wrong.py": "hw2",
}


ROOT = Path(__file__).parents[1]


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="what `make quick` runs; proofs of changed derivations alone")
    parser.addoption("--whole", action="store_true", help="every case of the tests that are marked as sampled")
    parser.addoption("--seeds", type=int, default=3, help="at most how many seeds a test of right homeworks takes")


def git(*arguments):
    """What git prints; nothing outside of a repository, as in a source distribution."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def changed_labels():
    """The labels of the derivations that differ from the last commit."""
    folder = "src/normgrad/symbolic/derivations"
    stems = {Path(line[3:]).stem for line in git("status", "--porcelain", "--", folder).splitlines()} - {"__init__"}
    modules = [
        import_module(f"normgrad.symbolic.derivations.{stem}")
        for stem in stems
        if (ROOT / folder / f"{stem}.py").exists()
    ]
    with import_module("normgrad.symbolic").as_written():
        return {one.label for module in modules for one in module.equations()}


def pytest_ignore_collect(collection_path, config):
    """None where the other rules decide."""
    return True if config.option.quick and collection_path.suffix and collection_path.name not in QUICK else None


def quickly():
    """Whether `make quick` runs a test."""
    labels = {None, *changed_labels()}

    def wanted(item):
        given = item.callspec.params if hasattr(item, "callspec") else {}
        name = f"{item.name} {given.get('homework', '')}"
        return re.search(QUICK[item.path.name], name) and given.get("label") in labels

    return wanted


def sampled():
    """Whether a case is in this commit's sample: one in `of`, by file and parameters, so that a page stays whole."""
    commit = git("rev-parse", "HEAD")

    def wanted(item):
        marker = item.get_closest_marker("sampled")
        key = f"{commit}{item.path.name}{item.callspec.id if hasattr(item, 'callspec') else item.name}"
        return marker is None or zlib.crc32(key.encode()) % marker.kwargs["of"] == 0

    return wanted


def pytest_collection_modifyitems(config, items):
    rules = [quickly()] if config.option.quick else []
    if not config.option.whole:
        rules.append(sampled())
    left_out = [item for item in items if not all(wanted(item) for wanted in rules)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(autouse=True)
def first_attempt():
    """No test's answers are attempts before another one's."""
    if attempts := sys.modules.get("normgrad.homework.attempts"):
        attempts.CELLS.known.clear()


@pytest.fixture
def seeds(request):
    """seeds(most): as many as --seeds asks for, and no more than `most`."""
    return lambda most: range(min(most, request.config.option.seeds))


@pytest.fixture
def rng():
    """NumPy's generator, the same for every test."""
    return np.random.default_rng(20240504)


@pytest.fixture
def torch():
    """torch, or a skip."""
    return pytest.importorskip("torch")


@pytest.fixture
def libraries(request, torch):
    """Skips a case of a homework about kernels where there is no Triton."""
    if any(re.search("hw4|hw8|addnorm", str(value)) for value in request.node.callspec.params.values()):
        pytest.importorskip("triton")


@pytest.fixture
def torch_rng():
    """torch's generator, the same for every test."""
    torch = pytest.importorskip("torch")
    return torch.Generator().manual_seed(20240504)


@pytest.fixture
def few_calls(monkeypatch):
    """The GPU benchmark makes few calls of each implementation."""
    from normgrad.bench import measure

    for name, count in (("CALLS", 2), ("HOST_CALLS", 1), ("HOST_ROUNDS", 1)):
        monkeypatch.setattr(measure, name, count)
