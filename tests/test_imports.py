"""Importing the package needs NumPy alone, and chooses Triton's mode only when it can still be chosen."""

import subprocess
import sys

import pytest

BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


def _run(code, **environment):
    import os

    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | environment
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=env)


def test_importing_needs_numpy_alone():
    blocked = ("torch", "triton", "sympy", "matplotlib", "scipy", "IPython")
    code = BLOCK.format(blocked=blocked) + (
        "import normgrad, numpy as np\n"
        "from normgrad import numpy_ref\n"
        "from normgrad.checks import cases, contract, tolerance, finite_difference, ledger\n"
        "case = cases.draw(np.random.default_rng(0))\n"
        "contract.check_values('numpy', case, normgrad.LAYER_NORM)\n"
        "normgrad.doctor()\n"
        "assert not set(sys.modules) & {'torch', 'triton', 'sympy', 'matplotlib'}\n"
    )
    done = _run(code)
    assert done.returncode == 0, done.stderr


def test_importing_loads_nothing_heavy():
    done = _run(
        "import sys, normgrad; print(*sorted({'torch', 'triton', 'sympy', 'matplotlib', 'importlib.metadata'} "
        "& set(sys.modules)))"
    )
    assert done.stdout.strip() == "", done.stdout


@pytest.mark.parametrize("missing", ["torch", "sympy"])
def test_a_missing_library_is_named(missing):
    use = {"torch": "normgrad.layer_norm", "sympy": "normgrad.symbolic.prove"}[missing]
    done = _run(BLOCK.format(blocked=(missing,)) + f"import normgrad\n{use}")
    assert f"No module named '{missing}'" in done.stderr


def test_unknown_names_are_refused():
    done = _run("import normgrad; normgrad.batch_norm")
    assert "module 'normgrad' has no attribute 'batch_norm'" in done.stderr


@pytest.fixture
def no_gpu():
    """Triton and torch on a machine where Triton has to interpret."""
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is present, so Triton compiles")


def test_the_interpreter_is_chosen_without_a_gpu(no_gpu):
    done = _run("import torch, normgrad; print(normgrad.l2_norm(torch.ones(2, 4), backend='triton')[0, 0].item())")
    assert done.stdout.strip() == "0.5", done.stderr


def test_too_late_to_interpret_says_what_to_set(no_gpu):
    done = _run("import triton, torch, normgrad; normgrad.l2_norm(torch.ones(2, 4), backend='triton')")
    assert "set the environment variable TRITON_INTERPRET=1" in done.stderr


COMPILE = """
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from normgrad import triton_kernels as kernels

def compiles(kernel, pointers, constants, target):
    kinds = {name: "constexpr" if name in constants else pointers.get(name, "i32") for name in kernel.arg_names}
    values = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    triton.compile(ASTSource(kernel, kinds, values), target=target, options={"num_warps": 8})

half, wide = "*bf16", "*fp32"
common = {"SCALE": 1.0, "EPS": 1e-5, "ACC": tl.float32, "HAS_WEIGHT": True}
for target in (GPUTarget("cuda", 75, 32), GPUTarget("cuda", 90, 32)):
    for center, mean, placement, block in ((True, True, "inside", 1024), (False, False, "clamp", 8192)):
        spec = {**common, "CENTER": center, "MEAN": mean, "PLACEMENT": placement, "BLOCK": block}
        forward = dict.fromkeys(("x_ptr", "residual_ptr", "weight_ptr", "bias_ptr", "y_ptr", "p_ptr"), half)
        forward |= dict.fromkeys(("mean_ptr", "rstd_ptr"), wide)
        compiles(kernels._forward_kernel, forward, {**spec, "HAS_RESIDUAL": center, "HAS_BIAS": center}, target)
        backward = dict.fromkeys(("dy_ptr", "dresidual_ptr", "p_ptr", "weight_ptr", "dx_ptr"), half)
        backward |= dict.fromkeys(("mean_ptr", "rstd_ptr", "dw_ptr", "db_ptr"), wide)
        needs = {"HAS_DRESIDUAL": center, "NEED_DX": True, "NEED_DW": True, "NEED_DB": center}
        compiles(kernels._backward_kernel, backward, {**spec, **needs}, target)
    reduce = dict.fromkeys(("dw_partial_ptr", "db_partial_ptr", "dw_ptr", "db_ptr"), wide)
    constants = {"NEED_DW": True, "NEED_DB": True, "ACC": tl.float32, "BLOCK": 128}
    compiles(kernels._reduce_kernel, reduce, constants, target)
print("compiled")
"""


def test_the_kernels_compile_for_gpus_that_are_not_here(tmp_path):
    pytest.importorskip("triton")
    script = tmp_path / "compile_kernels.py"
    script.write_text(COMPILE)
    done = _run(f"exec(open({str(script)!r}).read())", TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout.strip() == "compiled", done.stderr
