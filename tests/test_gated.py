"""RMSNorm with a gate: values, derivatives, proofs, and what is refused."""

from pathlib import Path

import pytest
import torch
from processes import python
from sympy import evaluate
from torch.nn import functional

from normgrad import gated_rms_norm, nn
from normgrad.checks.tolerance import unit_roundoff
from normgrad.fused import gated, gated_kernels, gated_torch
from normgrad.fused.gated_layers import gated_layer, text
from normgrad.triton_kernels import interpreter
from normgrad.verify.definitions import Norm
from normgrad.verify.programs import verify_function
from normgrad.verify.verdict import PROVED

pytest.importorskip("triton")

ORDERS = pytest.mark.parametrize("gate_first", [False, True])
EPS = 1e-3


def _composed(x, gate, weight, gate_first):
    """The same from torch's own parts."""
    if gate_first:
        return functional.rms_norm(x * functional.silu(gate), x.shape[-1:], weight, EPS)
    return functional.rms_norm(x, x.shape[-1:], weight, EPS) * functional.silu(gate)


def _drawn(rng, *shape):
    x, gate, dy = (
        torch.randn(*shape, generator=rng, dtype=torch.float64) for _ in range(3)
    )
    weight = torch.randn(shape[-1], generator=rng, dtype=torch.float64)
    return [t.requires_grad_() for t in (x, gate, weight)], dy


def _results(y, inputs, dy):
    return y, *torch.autograd.grad(y, inputs, dy)


def _bound(roundings, t, dtype="float64"):
    return roundings * unit_roundoff(dtype) * max(1.0, float(t.detach().abs().max()))


@ORDERS
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("shape", [(7,), (2, 3, 5), (33, 16), (0, 4)])
def test_values_and_gradients_are_those_of_torchs_parts(
    gate_first, interpreted, shape, torch_rng, monkeypatch
):
    monkeypatch.setattr(interpreter, "INTERPRETED", interpreted)
    inputs, dy = _drawn(torch_rng, *shape)
    y = gated_rms_norm(*inputs, EPS, gate_first=gate_first)
    expected = _results(_composed(*inputs, gate_first), inputs, dy)
    for mine, theirs in zip(_results(y, inputs, dy), expected, strict=True):
        assert mine.shape == theirs.shape
        assert not theirs.numel() or (mine - theirs).abs().max() <= _bound(64, theirs)


@ORDERS
def test_sums_are_float32_in_16_bits(gate_first, torch_rng):
    """A mean square, and dw, of 4096 terms in bfloat16 would be off by percents."""
    inputs, dy = _drawn(torch_rng, 4096, 3)
    narrow = [t.detach().bfloat16().requires_grad_() for t in inputs]
    wide = [t.detach().double().requires_grad_() for t in narrow]
    dy = dy.bfloat16()
    y = gated_rms_norm(*narrow, EPS, gate_first=gate_first)
    expected = _results(_composed(*wide, gate_first), wide, dy.double())
    for mine, theirs in zip(_results(y, narrow, dy), expected, strict=True):
        assert mine.dtype == torch.bfloat16
        assert (mine.double() - theirs).abs().max() <= _bound(2, theirs, "bfloat16")


def test_the_text_that_runs_is_the_text_that_the_proved_layers_write():
    written = Path(gated_kernels.__file__).read_text()
    assert written == text(), f"run python -m {gated_layer.__module__}"


def test_a_call_proves_and_generates_nothing():
    code = (
        "import sys, torch, normgrad; x = torch.ones(2, 3, requires_grad=True);"
        "normgrad.gated_rms_norm(x, x).backward(x.detach());"
        "sys.exit(' '.join(name for name in sys.modules if name.startswith('normgrad.symbolic')) or 0)"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


@ORDERS
def test_the_closed_forms_and_the_kernels_are_proved(gate_first):
    layer = gated_layer(gate_first)
    assert {"y", "rstd", "dx", "dg", "dw"} <= set(layer.proved)


@ORDERS
def test_the_form_in_torch_is_proved(gate_first):
    """Its forward is the layer's, and its backward returns the gradients of its forward."""
    layer, source = (
        gated_layer(gate_first).layer,
        Path(gated_torch.__file__).read_text(),
    )
    source = source.replace(", gate_first)", f", gate_first={gate_first})")
    with evaluate(True):
        defined = Norm(layer.definitions(layer.lines), {"y": layer.at("y")})
    for definitions, name, *outputs in (
        (defined, "forward", "y"),
        ((source, "forward"), "backward", "dg", "dx", "dw"),
    ):
        verdict = verify_function(
            source, definitions, outputs, name=name, g="(M, N)", w="(N,)"
        )
        assert verdict.kind == PROVED and [*verdict.outputs] == outputs


@ORDERS
def test_the_programs_are_called_as_the_layers_say(gate_first):
    layer = gated_layer(gate_first)
    called, programs = gated.programs_of(gate_first), layer.programs
    for field in "name matrices vectors constants saved loaded cotangent".split():
        assert getattr(called, field) == getattr(programs, field)


@ORDERS
def test_both_kernels_compile_for_a_gpu_and_spill_little(gate_first):
    forward, backward = gated_layer(gate_first).compile("sm_90", "bfloat16", 4096)
    # of 512 bytes a thread; a gate before the norm keeps one matrix more until the end
    assert forward.spilled_bytes == 0 and backward.spilled_bytes <= (
        80 if gate_first else 0
    )


# The module


def test_each_argument_of_the_module_reaches_the_function(torch_rng):
    (x, gate, weight), _ = _drawn(torch_rng, 3, 4)
    for options in (
        {},
        {"eps": 0.5},
        {"gate_first": True},
        {"elementwise_affine": False},
    ):
        module = nn.GatedRMSNorm(4, dtype=torch.float64, **options)
        if module.weight is not None:
            module.load_state_dict({"weight": weight})
        function = {"eps": 1e-6, "weight": weight} | options
        if function.pop("elementwise_affine", True) is False:
            del function["weight"]
        assert torch.equal(module(x, gate), gated_rms_norm(x, gate, **function)), (
            options
        )
    assert module.weight is None and nn.GatedRMSNorm(4, device="meta").weight.is_meta
