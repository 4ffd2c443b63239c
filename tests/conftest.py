"""Shared by all tests: the generators that everything random comes from."""

import os
import re
import subprocess
import sys
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


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="what `make quick` runs; proofs of changed derivations alone")


def changed_labels():
    """The labels of the derivations that differ from the last commit."""
    folder = "src/normgrad/symbolic/derivations"
    root = Path(__file__).parents[1]
    done = subprocess.run(
        ["git", "status", "--porcelain", "--", folder], cwd=root, capture_output=True, text=True, check=True
    )
    stems = {Path(line[3:]).stem for line in done.stdout.splitlines()} - {"__init__"}
    modules = [
        import_module(f"normgrad.symbolic.derivations.{stem}")
        for stem in stems
        if (root / folder / f"{stem}.py").exists()
    ]
    return {one.label for module in modules for one in module.equations()}


def pytest_ignore_collect(collection_path, config):
    """None where the other rules decide."""
    return True if config.option.quick and collection_path.suffix and collection_path.name not in QUICK else None


def pytest_collection_modifyitems(config, items):
    if not config.option.quick:
        return
    labels, kept, left_out = changed_labels(), [], []
    for item in items:
        given = item.callspec.params if hasattr(item, "callspec") else {}
        name = f"{item.name} {given.get('homework', '')}"
        wanted = re.search(QUICK[item.path.name], name) and given.get("label") in {None, *labels}
        (kept if wanted else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(autouse=True)
def first_attempt():
    """No test's answers are attempts before another one's."""
    if attempts := sys.modules.get("normgrad.homework.attempts"):
        attempts.CELLS.known.clear()


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
    """Skips a case of the homework about kernels where there is no Triton."""
    if any("hw4" in str(value) or "addnorm" in str(value) for value in request.node.callspec.params.values()):
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
