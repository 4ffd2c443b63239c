"""Shared by all tests: the generators that everything random comes from."""

import gc
import inspect
import os
import re
import sys
import zlib
from functools import cache

import numpy as np
import pytest

# Before torch is imported: each worker has threads for all processors, and one that waits for others would keep a
# processor busy with it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_configure(config):
    """Triton compiles for the `gpu` tests and interprets for all others; one process can do only one of the two."""
    if config.option.markexpr != "gpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    # Who names files means all that is in them, unless told otherwise; a worker of xdist reads the same command line.
    if config.args_source is config.ArgsSource.ARGS and not config.option.sampled:
        config.option.whole = True


def pytest_collection_finish():
    """No collection of garbage looks at libraries and collected tests again, which stay: a tenth of the time.

    Proofs make millions of small objects that mostly go by themselves, so a collection comes less often, too.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    if interpreter := sys.modules.get("triton.runtime.interpreter"):
        remember_builtins(interpreter)


def remember_builtins(interpreter):
    """Triton's interpreter looks for its builtins among all names of its modules at each call of a function.

    Which names they are stays; it takes a third of the time of a kernel.
    """
    is_builtin = interpreter.tl.core.is_builtin

    @cache
    def names(module):
        members = inspect.getmembers(module)
        return [name for name, member in members if is_builtin(member)]

    def patch(module, *given):
        for name in names(module):
            member = getattr(module, name)
            if is_builtin(member):
                interpreter._patch_attr(module, name, member, *given)

    interpreter._patch_builtin = patch


# What `make quick` runs: files of tests, and what the name of a test must hold.
QUICK = {
    "test_contract.py": "numpy|torch-0",
    "test_wrong_programs.py": "numpy",
    "test_imports.py": "",
    "test_refusals.py": "",
    "test_nn.py": "",
    "test_book_markdown.py": "",
    "test_notation.py": "",
    "test_equations_file.py": "the_file_is",
    "test_homework_wrong.py": "hw2",
}

# Of these, `make test` runs one case in so many, always the same; `make test WHOLE=1` runs all, as a push to GitHub
# does, and so does pytest with the name of a file. They guard proofs that the build makes again, pages, reports and
# their shells. What kills a wrong kernel, gradient or homework is not here: contract, mutants, wrong solutions.
SAMPLED = {
    "test_book_extension.py": 4,
    "test_broken_cells.py": 4,
    "test_compile.py": 4,
    "test_derivation_cells.py": 10,
    "test_fused.py": 3,
    "test_homework_attacks.py": 5,
    "test_homework_class.py": 3,
    "test_homework_export.py": 2,
    "test_homework_feedback.py": 3,
    "test_homework_formats.py": 3,
    "test_homework_letters.py": 3,
    "test_homework_messages.py": 3,
    "test_homework_named.py": 3,
    "test_homework_other.py": 5,
    "test_homework_outsiders.py": 4,
    "test_homework_project.py": 3,
    "test_homework_report.py": 4,
    "test_homework_right.py": 3,
    "test_homework_trained.py": 3,
    "test_kernel_proofs.py": 3,
    "test_own_norm.py": 8,
    "test_symbolic.py": 8,
}


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="what `make quick` runs",
    )
    parser.addoption(
        "--whole",
        action="store_true",
        help="every case of what is sampled otherwise",
    )
    parser.addoption(
        "--sampled",
        action="store_true",
        help="what marks sample, in files that are named, too",
    )
    parser.addoption(
        "--seeds",
        type=int,
        default=3,
        help="at most how many seeds a test of right homeworks takes",
    )


def pytest_report_header(config):
    """What is left out."""
    if config.option.whole or config.option.quick:
        return None
    files = 0 if config.option.sampled else len(SAMPLED)
    return f"sampled: {files} files of tests, and what marks say; --whole runs all"


def pytest_ignore_collect(collection_path, config):
    """None where the other rules decide."""
    is_file = config.option.quick and collection_path.suffix
    return (is_file and collection_path.name not in QUICK) or None


def quickly(item):
    """Whether `make quick` runs a test."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    name = f"{item.name} {parameters.get('homework', '')}"
    return re.search(QUICK[item.path.name], name)


def sampled(files):
    """Whether a case is in the sample, by file and parameters, so that a page stays whole: one in as many as its
    file's entry says, times its mark's `of`. Of the cases whose marks have one key, the one whose turn it is."""

    def runs(item):
        marker = item.get_closest_marker("sampled")
        mark = marker.kwargs if marker else {"of": 1}
        if "key" in mark:
            return draw(mark["key"], range(mark["of"])) == mark["turn"]
        case = item.callspec.id if hasattr(item, "callspec") else item.name
        cases = range(files.get(item.path.name, 1) * mark["of"])
        return draw(item.path.name + case, cases) == 0

    return runs


def draw(key, choices):
    """One of the choices, by a key."""
    return choices[zlib.crc32(str(key).encode()) % len(choices)]


def pytest_collection_modifyitems(config, items):
    if config.option.whole and not config.option.quick:
        return
    if config.option.quick:
        runs = quickly
    elif config.option.sampled:
        runs = sampled({})  # of files that are named, all but what marks sample
    else:
        runs = sampled(SAMPLED)
    left_out = {item for item in items if not runs(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def turn():
    """turn(key, choices): one of them, another one with another key."""
    return draw


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
    if any(
        re.search("hw4|hw8|addnorm", str(value))
        for value in request.node.callspec.params.values()
    ):
        pytest.importorskip("triton")


@pytest.fixture
def torch_rng(torch):
    """torch's generator, the same for every test."""
    return torch.Generator().manual_seed(20240504)
