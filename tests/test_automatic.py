"""What backend="auto" runs on a CPU: the table, and that what it hands over to computes the same."""

import pytest
import torch

import normgrad
from normgrad import nn
from normgrad.checks import contract
from normgrad.checks.backends import TorchBackend
from normgrad.checks.cases import SPECS, cases
from normgrad.torch_ops import automatic
from normgrad.torch_ops.prepare import prepare

OWN = automatic.TORCH_OWN
LAYER, RMS = normgrad.LAYER_NORM, normgrad.RMS_NORM
# (what is asked for, M, N, without Numba, with Numba)
TABLE = {
    "LayerNorm": ({}, 128, 256, OWN, OWN),
    "LayerNorm of 16 bits": ({"dtype": torch.bfloat16}, 128, 256, "torch", "numba"),
    "a short LayerNorm of 16 bits": ({"dtype": torch.bfloat16}, 4, 64, "torch", "torch"),
    "a LayerNorm that torch has in cache": ({}, 4096, 1024, OWN, OWN),
    "a long LayerNorm": ({}, 4096, 2048, OWN, "numba"),
    "RMSNorm": ({"spec": RMS}, 4, 64, OWN, OWN),
    "RMSNorm of 16 bits": ({"spec": RMS, "dtype": torch.float16}, 4, 64, "torch", "torch"),
    "a longer RMSNorm": ({"spec": RMS}, 128, 256, "torch", "numba"),
    "L2": ({"spec": normgrad.L2_NORM}, 4, 64, "torch", "torch"),
    "an offset": ({"spec": RMS.replace(weight_offset=1.0)}, 4, 64, "torch", "torch"),
    "another dtype of y": ({"out_dtype": torch.float16}, 4, 64, "torch", "torch"),
    "the sum before it is rounded": ({"round_residual": False}, 4, 64, "torch", "torch"),
    "sums in one order": ({"portable_sums": True}, 4, 64, "torch", "torch"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("installed", [False, True])
def test_the_table(name, installed, monkeypatch):
    asked, rows, columns, *chosen = TABLE[name]
    options = {"spec": LAYER, "dtype": torch.float32, **asked}
    spec, dtype = options.pop("spec"), options.pop("dtype")
    monkeypatch.setattr(automatic, "numba_is_installed", lambda: installed)
    monkeypatch.setattr("normgrad.torch_ops.prepare._calls", {})
    x = torch.empty(rows, columns, dtype=dtype)
    weight = torch.ones(columns, dtype=dtype)
    arguments = (spec, x, x, weight, None, columns, spec.eps, spec.weight_offset, None)
    call = prepare(*arguments, "auto", options.pop("out_dtype", None), **options)
    assert call.backend == chosen[installed]


@pytest.mark.parametrize("spec", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dtype", TorchBackend("torch").dtypes)
def test_values(spec, dtype, rng):
    """Rows whose squares leave the range are torch's own affair: it gives no NaN there."""
    for case in cases(rng, 3, 8):
        if contract.defined(case, SPECS[spec], dtype):
            contract.check_values(TorchBackend("auto"), case, SPECS[spec], dtype)


def test_a_layer_norm_is_torchs_own_bit_for_bit(torch_rng):
    x, residual, dy = torch.randn(3, 4, 2, 5, generator=torch_rng)
    weight, bias = torch.randn(2, 2, 5, generator=torch_rng)
    x.requires_grad_()
    y, p = normgrad.add_layer_norm(x, residual, (2, 5), weight, bias)
    right = torch.nn.functional.layer_norm(x + residual, (2, 5), weight, bias)
    assert torch.equal(y, right) and torch.equal(p, x + residual)
    assert torch.equal(*(torch.autograd.grad(out, x, dy)[0] for out in (y, right)))


def test_a_tangent_is_differentiated_again(torch_rng):
    """torch's own layer_norm takes its tangent for a constant there."""
    x, dy, dot = torch.randn(3, 2, 5, dtype=torch.float64, generator=torch_rng)

    def twice(backend):
        def layer(x):
            return normgrad.layer_norm(x, 5, backend=backend)

        return torch.func.jvp(
            lambda x: torch.func.jvp(layer, (x,), (dy,))[1], (x,), (dot,)
        )[1]

    assert torch.equal(twice("auto"), twice("torch"))


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
def test_a_program_for_any_number_of_rows_is_written(norm):
    program = torch.export.export(
        norm(8), (torch.ones(2, 8),), dynamic_shapes=({0: torch.export.Dim("rows")},)
    )
    assert program.module()(torch.ones(2**20, 8)).shape == (2**20, 8)
