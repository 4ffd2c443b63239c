"""Importing the package needs NumPy alone, and chooses Triton's mode only when it can still be chosen."""

import pytest
from processes import UNSET, python

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


def _run(code):
    return python("-W", "error", "-c", code, env=UNSET)


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


def test_reading_a_text_needs_sympy_alone():
    """NumPy is imported where something is run."""
    text = "def f(x, weight, eps):\n    y = weight * x\n    return y\n"
    code = BLOCK.format(blocked=("numpy", "torch", "triton", "numba")) + (
        "from normgrad.verify import norm, verify\n"
        f"verdict = verify({text!r}, norm())\n"
        "print(verdict.kind, verdict.replay())\n"
    )
    done = _run(code)
    assert done.stdout.startswith("refuted y[0, 0] is "), done.stderr


def test_without_sympy_it_is_named():
    code = "import normgrad\nnormgrad.symbolic.prove"
    done = _run(BLOCK.format(blocked=("sympy",)) + code)
    assert "No module named 'sympy'" in done.stderr


@pytest.fixture
def no_gpu(torch):
    """Triton and torch on a machine where Triton has to interpret."""
    pytest.importorskip("triton")
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
