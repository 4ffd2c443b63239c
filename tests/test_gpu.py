"""The contract on a GPU: the same checks on the same kernels, compiled. `pytest -m gpu` runs only these."""

import numpy as np
import pytest

from normgrad import triton_kernels
from normgrad.checks import cases, contract
from normgrad.checks.backends import TorchBackend
from normgrad.checks.cases import SPECS

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if triton_kernels.INTERPRETED:
    pytest.skip("Triton interprets in this run; `pytest -m gpu` lets it compile", allow_module_level=True)

pytestmark = pytest.mark.gpu

SEED = 1
CASES = {case.name: case for case in cases.cases(np.random.default_rng(SEED))}
GPU = TorchBackend("triton")


@pytest.mark.parametrize("dtype", GPU.dtypes)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("spec", SPECS)
def test_values(spec, case, dtype):
    if not contract.defined(CASES[case], SPECS[spec], dtype):
        pytest.skip("without eps a row with s = 0 has no value")
    contract.check_values(GPU, CASES[case], SPECS[spec], dtype)


@pytest.mark.parametrize("columns", [64, 1000, 8192, 20000, 262144])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_values_at_other_sizes(columns, dtype):
    contract.check_values(GPU, cases.cases(np.random.default_rng(columns), 3, columns)[2], SPECS["layer_norm"], dtype)


@pytest.mark.parametrize("spec", SPECS)
def test_gradcheck_and_gradgradcheck(spec):
    case = cases.draw(np.random.default_rng(SEED), 2, 3)
    contract.check_gradcheck(GPU, case, SPECS[spec], second=True)


def test_the_gradients_are_the_same_bits_at_every_run():
    case = cases.draw(np.random.default_rng(SEED), 4096, 512).rounded("bfloat16")
    first, second = (GPU.run(case, SPECS["layer_norm"], "bfloat16") for _ in range(2))
    assert np.array_equal(first.dw, second.dw)
    assert np.array_equal(first.db, second.db)
