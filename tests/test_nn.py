"""Modules load torch.nn's state and agree with it."""

import pytest
import torch

from normgrad import nn
from normgrad.checks.tolerance import unit_roundoff

PAIRS = [
    (lambda m, **kw: m.LayerNorm(6, **kw), {}),
    (lambda m, **kw: m.LayerNorm((2, 6), **kw), {"eps": 1e-3}),
    (lambda m, **kw: m.LayerNorm(6, **kw), {"bias": False}),
    (lambda m, **kw: m.LayerNorm(6, **kw), {"elementwise_affine": False}),
    (lambda m, **kw: m.RMSNorm(6, **kw), {}),
    (lambda m, **kw: m.RMSNorm([2, 6], **kw), {"eps": 1e-3}),
]


@pytest.mark.parametrize(("make", "options"), PAIRS)
def test_state_and_values_are_torchs(make, options, torch_rng):
    theirs, ours = make(torch.nn, dtype=torch.float64, **options), make(nn, dtype=torch.float64, **options)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, generator=torch_rng)
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, 2, 6, generator=torch_rng, dtype=torch.float64)
    assert (ours(x) - theirs(x)).abs().max() <= 64 * unit_roundoff("float64") * theirs(x).abs().max()
    assert [tuple(p.shape) for p in ours.parameters()] == [tuple(p.shape) for p in theirs.parameters()]


def test_reset_parameters_and_repr():
    norm = nn.LayerNorm(3)
    torch.nn.init.zeros_(norm.weight)
    norm.reset_parameters()
    assert norm.weight.tolist() == [1, 1, 1]
    assert repr(norm) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True, backend='auto')"


def test_add_norm_wants_one_of_our_norms():
    with pytest.raises(TypeError, match=r"norm: got torch\..*Linear, needs a normgrad.nn.LayerNorm or normgrad"):
        nn.AddNorm(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("bias", [True, False])
def test_parameters_are_reset(bias):
    norm = nn.LayerNorm(4, bias=bias)
    for parameter in norm.parameters():
        torch.nn.init.constant_(parameter, 3.0)
    norm.reset_parameters()
    assert torch.equal(norm.weight, torch.ones(4))
    assert norm.bias is None or torch.equal(norm.bias, torch.zeros(4))
