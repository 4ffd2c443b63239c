"""Modules load torch.nn's state and agree with it; the residual stack is the same naive and fused."""

import pytest
import torch

from normgrad import nn, residual
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
    with pytest.raises(TypeError, match="norm: got Linear, needs a normgrad.nn.LayerNorm or normgrad.nn.RMSNorm"):
        nn.AddNorm(torch.nn.Linear(2, 2))


def _stack(kind, depth, rng, dtype):
    norms = [kind(5, dtype=dtype) for _ in range(depth)]
    linears = [torch.nn.Linear(5, 5, dtype=dtype) for _ in range(depth)]
    for module in (*norms, *linears):
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, generator=rng)
    return [torch.nn.Sequential(linear, torch.nn.Tanh()) for linear in linears], norms


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
def test_the_stacks_are_equal_bit_for_bit(kind, depth, dtype, torch_rng):
    layers, norms = _stack(kind, depth, torch_rng, dtype)
    x = torch.randn(3, 5, generator=torch_rng, dtype=dtype, requires_grad=True)
    dy = torch.randn(3, 5, generator=torch_rng, dtype=dtype)
    inputs = [x, *(p for module in (*layers, *norms) for p in module.parameters())]
    results = []
    for stack in (residual.naive_stack, residual.fused_stack):
        y = stack(x, layers, norms)
        results.append((y, *torch.autograd.grad(y, inputs, dy)))
    for naive, fused in zip(*results, strict=True):
        assert torch.equal(naive, fused)


def test_the_stacks_want_a_norm_for_each_layer(torch_rng):
    layers, norms = _stack(nn.RMSNorm, 2, torch_rng, torch.float32)
    for stack in (residual.naive_stack, residual.fused_stack):
        with pytest.raises(ValueError, match="norms: got 1, needs 2, one for each layer"):
            stack(torch.ones(1, 5), layers, norms[:1])
