"""Inputs, parameters, outputs and the residual stream in dtypes of their own: the same contract, and what breaks it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import normgrad
from normgrad import torch_rows
from normgrad.checks import cases, contract, mutants
from normgrad.checks.backends import TorchBackend
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import Dtypes

SEED = 1
CASES = {case.name: case for case in cases.cases(np.random.default_rng(SEED))}
PARAMETERS = {"weight": "float32", "bias": "float32"}
MIXED = [
    Dtypes("bfloat16", residual="float32", **PARAMETERS),
    Dtypes("float16", **PARAMETERS),
    Dtypes("bfloat16", residual_out="float32"),
    Dtypes("bfloat16", residual_out="float32", round_residual=False),
    Dtypes("float32", out="bfloat16"),
    Dtypes("bfloat16", out="float32"),
    Dtypes("bfloat16", round_residual=False),
    Dtypes("bfloat16", residual="float32", residual_out="bfloat16", **PARAMETERS),
    Dtypes("bfloat16", residual="float32", residual_out="bfloat16", round_residual=False, **PARAMETERS),
    Dtypes("float16", residual="bfloat16", bias="float32"),
    Dtypes("float64", residual="float32", weight="bfloat16", out="float16", residual_out="float32"),
]
OFFSET = "mean a thousand deviations away"  # where the rounding of the sum in 16 bits is as large as the deviations
# Triton's interpreter takes about 4 ms for each row and launch.
CHOSEN = {
    "torch": (("layer_norm", "rms_norm", "layer_norm_std", "l2_clamp"), tuple(CASES)),
    "triton": (("layer_norm", "layer_norm_std"), ("random", "strided", OFFSET)),
}
VALUES = [
    pytest.param(backend, spec, case, dtypes, id=f"{backend}-{spec}-{case}-{dtypes}")
    for backend, (specs, names) in CHOSEN.items()
    for spec in specs
    for case in names
    for dtypes in MIXED
    if CASES[case].residual is not None or dtypes.residual is None
]


@pytest.mark.parametrize(("backend", "spec", "case", "dtypes"), VALUES)
def test_values(backend, spec, case, dtypes):
    contract.check_values(backend, CASES[case], SPECS[spec], dtypes)


@pytest.mark.parametrize("dtypes", MIXED, ids=str)
def test_gradients_that_can_be_differentiated(dtypes):
    for case in (CASES["random"], CASES[OFFSET]):
        contract.check_values(TorchBackend("torch", create_graph=True), case, SPECS["layer_norm"], dtypes)


UNROUNDED = Dtypes("bfloat16", round_residual=False)
STREAM = Dtypes("bfloat16", residual="float32", **PARAMETERS)
# name: (what its author believed, the text, what it becomes, the dtypes that show it)
MUTANTS = {
    "statistics of the rounded sum": ("return out if rounded else total", "return out", UNROUNDED),
    "statistics of the sum before rounding": (
        "    if rounded and out.dtype == promoted(x, residual):\n        return torch.add(x, residual, out=out)\n",
        "    rounded = False\n",
        Dtypes("bfloat16"),
    ),
    "a wide sum added in 16 bits": (
        "torch.add(x.to(accumulator(promoted(x, residual))), residual)",
        "torch.add(x, residual)",
        Dtypes("bfloat16", residual_out="float32"),
    ),
    "a wide y rounded to x's dtype": (
        "        y.copy_(out)",
        "        y.copy_(out.bfloat16())",
        Dtypes("float32", out="float16"),
    ),
    "a wide dresidual out of a narrow dx": (
        "        if dresidual_out is not None:\n",
        "        dp = dp.to(outs[0].dtype).to(dp.dtype)\n        if dresidual_out is not None:\n",
        STREAM,
    ),
    "dw rounded to x's dtype": (".to(dtypes[2])", ".to(p.dtype).to(dtypes[2])", Dtypes("float16", **PARAMETERS)),
    "db rounded to x's dtype": ("db.to(dtypes[3])", "db.to(p.dtype).to(dtypes[3])", Dtypes("float16", **PARAMETERS)),
    "backward takes its own mean of the rounded sum": (
        "torch.sub(q, mean[rows, None]",
        "torch.sub(q, q.mean(-1, keepdim=True)",
        UNROUNDED,
    ),
    "weight rounded to x's dtype": (
        "p.new_ones(n, dtype=acc) if weight is None else weight.to(acc)",
        "p.new_ones(n, dtype=acc) if weight is None else weight.to(p.dtype).to(acc)",
        Dtypes("float16", **PARAMETERS),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_contract_rejects(name):
    old, new, dtypes = MUTANTS[name]
    source = (mutants.PACKAGE / "torch_rows.py").read_text()
    wrong = mutants.module("torch_rows.py", mutants.edited(source, [(old, new)], name), name)
    with pytest.raises(AssertionError, match="exceeds the bound"):
        for case in (CASES["random"], CASES[OFFSET]):
            contract.check_values(TorchBackend("torch", wrong), case, SPECS["layer_norm"], dtypes)


KERNELS = {"torch": lambda: torch_rows, "triton": lambda: normgrad.triton_kernels}
WANTED = [
    (torch.bfloat16, torch.bfloat16, torch.float32, None),
    (torch.bfloat16, torch.float32, None, torch.bfloat16),
    (torch.float16, torch.bfloat16, torch.float16, torch.float16),
    (None, torch.float32, torch.float32, torch.float32),
    (torch.bfloat16, None, None, None),
    (None, None, torch.bfloat16, torch.float32),
]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("with_dresidual_out", [False, True])
@pytest.mark.parametrize("backend", KERNELS)
def test_a_backward_gives_what_was_asked_for(backend, with_dresidual_out, wanted, torch_rng):
    """The dtypes asked for and nothing else; one tensor for dx and dresidual in one dtype, each rounded once."""
    dy, p, dresidual_out = (torch.randn(4, 7, generator=torch_rng) for _ in range(3))
    weight, mean, rstd = torch.randn(7, generator=torch_rng), p.mean(-1), 1 / p.std(-1)
    arguments = (dy, dresidual_out if with_dresidual_out else None, p, weight, mean, rstd, normgrad.LAYER_NORM)
    backward = KERNELS[backend]().backward
    found, exact = backward(*arguments, wanted), backward(*arguments, (torch.float32,) * 4)
    assert [None if t is None else t.dtype for t in found] == list(wanted)
    assert exact[0] is exact[1]
    if None not in wanted[:2]:
        assert (found[0] is found[1]) == (wanted[0] == wanted[1])
    for got, want in zip(found, exact, strict=True):
        assert got is None or torch.equal(got, want.to(got.dtype))
