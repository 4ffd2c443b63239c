"""Importing the package needs NumPy alone, and chooses Triton's mode only when it can still be chosen."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import normgrad

# As where they are not installed: importing them fails, and looking for them finds nothing.
BLOCK = """
import sys
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {blocked!r} else self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Hiding, sys.meta_path)
"""


def _run(code, **environment):
    import os

    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | environment
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=env,
    )


def test_importing_needs_numpy_alone():
    blocked = ("torch", "triton", "numba", "sympy", "matplotlib", "scipy", "IPython")
    code = BLOCK.format(blocked=blocked) + (
        "import normgrad, numpy as np\n"
        "from normgrad import numpy_ref\n"
        "from normgrad.checks import cases, contract, tolerance, finite_difference\n"
        "from normgrad import ledger\n"
        "case = cases.draw(np.random.default_rng(0))\n"
        "contract.check_values('numpy', case, normgrad.LAYER_NORM)\n"
        "normgrad.doctor()\n"
        "assert not set(sys.modules) & {'torch', 'triton', 'sympy', 'matplotlib'}\n"
    )
    done = _run(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["torch", "sympy"])
def test_a_missing_library_is_named(missing):
    use = {"torch": "normgrad.layer_norm", "sympy": "normgrad.symbolic.prove"}[missing]
    done = _run(BLOCK.format(blocked=(missing,)) + f"import normgrad\n{use}")
    assert f"No module named '{missing}'" in done.stderr


@pytest.fixture
def no_gpu():
    """Triton and torch on a machine where Triton has to interpret."""
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is present, so Triton compiles")


def test_the_interpreter_is_chosen_without_a_gpu(no_gpu):
    done = _run(
        "import torch, normgrad; print(normgrad.l2_norm(torch.ones(2, 4), backend='triton')[0, 0].item())"
    )
    assert done.stdout.strip() == "0.5", done.stderr


def test_too_late_to_interpret_says_what_to_set(no_gpu):
    done = _run(
        "import triton, torch, normgrad; normgrad.l2_norm(torch.ones(2, 4), backend='triton')"
    )
    assert "set the environment variable TRITON_INTERPRET=1" in done.stderr


def _imported(name, tree):
    """The modules that a module's text imports from the package, in functions too, but not for annotations alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            start = ".".join(filter(None, (above, node.module)))
            yield from (
                f"{start}.{alias.name}" if f"{start}.{alias.name}" in MODULES else start
                for alias in node.names
            )


ROOT = Path(normgrad.__file__).parent
MODULES = {
    ".".join(("normgrad", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}


def test_no_module_needs_itself():
    """No circle, whether an import stands on top of a file or in a function; CycleError names it."""
    graph = {name: set(_imported(name, ast.parse(path.read_text()))) & set(MODULES) - {name}
             for name, path in MODULES.items()}  # fmt: skip
    assert len(graph) > 200
    TopologicalSorter(graph).prepare()


# What stands on the operator: only these import each other, and the operator none of them.
ABOVE = (
    "checks",
    "teaching",
    "mistakes",
    "ledger",
    "prove",
    "symbolic",
    "bench",
    "homework",
)
OPERATOR = ("torch_ops", "triton_kernels", "numba_kernels")


def test_the_operator_imports_nothing_that_stands_on_it():
    """Neither at the top of a file nor in a function."""
    arrows = []
    for name, path in MODULES.items():
        folder = path.relative_to(ROOT).parts[0]
        if folder.endswith(".py") or folder in OPERATOR:
            for imported in _imported(name, ast.parse(path.read_text())):
                if imported.startswith("normgrad.") and imported.split(".")[1] in ABOVE:
                    arrows.append(f"{name} -> {imported}")
    assert arrows == []
