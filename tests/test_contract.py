"""The contract: every backend, spec, case and dtype gives the oracle's values and its own forward's derivatives."""

from dataclasses import replace

import numpy as np
import pytest

from normgrad.checks import cases, contract
from normgrad.checks.backends import NAMES, get
from normgrad.checks.cases import SPECS

SEED = 1
CASES = {case.name: case for case in cases.cases(np.random.default_rng(SEED))}
# Triton's interpreter takes about 4 ms for each row and launch. What does not concern its own code is checked there in
# float64 alone; loads, stores and conversions are what changes with the dtype, so one case meets every dtype.
NARROW = ("random", "a constant row and a zero row", "strided")
# The points of test_covering have rows without weight, bias, residual or dresidual_out, one row and one column, with
# every spec and dtype.
COVERED = {name for name in CASES if name.startswith("random, no ")} | {"one row", "one column"}

VALUES = [
    pytest.param(backend, spec, case, dtype, id=f"{backend}-{spec}-{case}-{dtype}")
    for backend in NAMES
    for spec in SPECS
    for case in CASES
    for dtype in get(backend).dtypes
    if case not in COVERED
    and contract.defined(CASES[case], SPECS[spec], dtype)
    and (backend != "triton" or dtype == "float64" or case in NARROW)
]
SLOPES = [
    pytest.param(backend, spec, case, id=f"{backend}-{spec}-{case}")
    for backend in NAMES
    for spec in SPECS
    for case in CASES
    if case not in COVERED
    and contract.differentiable(CASES[case], SPECS[spec])
    and (CASES[case].layout == "contiguous" or CASES[case].heads is not None)
    and (backend != "triton" or case == "rows of different scale and offset")
]


@pytest.mark.parametrize(("backend", "spec", "case", "dtype"), VALUES)
def test_values(backend, spec, case, dtype):
    contract.check_values(backend, CASES[case], SPECS[spec], dtype)


@pytest.mark.parametrize(("backend", "spec", "case"), SLOPES)
def test_central_differences(backend, spec, case, rng):
    contract.check_differences(backend, CASES[case], SPECS[spec], rng)


# What the covering set has no such case of: its points meet the rest by random directions, in every pattern of inputs.
FURTHER = ("random", "mean a thousand deviations away", "a constant row and a zero row")


@pytest.mark.parametrize(
    ("spec", "case"), [p.values[1:] for p in SLOPES if p.values[0] == "torch" and p.values[2] in FURTHER]
)
def test_gradcheck_and_gradgradcheck_torch(spec, case):
    given = CASES[case]
    small = replace(given, **{name: getattr(given, name)[:3] for name in ("x", "residual", "dy", "dresidual_out")})
    contract.check_gradcheck("torch", small, SPECS[spec], second=True, forward_mode=True)


@pytest.mark.parametrize("backend", ["triton", "numba"])
@pytest.mark.parametrize("spec", SPECS)
def test_gradcheck_and_gradgradcheck_of_kernels(spec, backend):
    case = cases.draw(np.random.default_rng(SEED), 2, 3)
    # The second derivative and the tangent are torch's operations for every backend: one spec shows the wiring.
    further = spec == "layer_norm_std"
    contract.check_gradcheck(backend, case, SPECS[spec], second=further, forward_mode=further)


@pytest.mark.parametrize("backend", ["triton", "numba"])
@pytest.mark.parametrize("without", [("residual", "dresidual_out"), ("weight",), ("bias",)])
def test_gradcheck_of_kernels_without(without, backend):
    case = cases.draw(np.random.default_rng(SEED), 2, 3).without(*without)
    contract.check_gradcheck(backend, case, SPECS["layer_norm"])


@pytest.mark.parametrize("columns", [1000])
@pytest.mark.parametrize("backend", NAMES)
def test_values_at_other_sizes(backend, columns):
    for case in cases.cases(np.random.default_rng(columns), 3, columns)[:4]:
        contract.check_values(backend, case, SPECS["layer_norm"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("backend", ["torch", "triton", "numba"])
def test_values_at_large_n(backend, dtype):
    # Not a power of two and more than one block of columns in Triton, more than one block of rows in torch.
    case = cases.cases(np.random.default_rng(SEED), 15, 20000)[2]
    contract.check_values(backend, case, SPECS["layer_norm"], dtype)
