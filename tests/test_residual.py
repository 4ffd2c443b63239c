"""The residual stacks: naive and fused are one function bit for bit."""

import pytest
import torch
from near import near

import normgrad
from normgrad import nn, residual

PRE = residual.naive_stack, residual.fused_stack
POST = residual.naive_post_norm, residual.fused_post_norm
COLUMNS = 5


class Layer(torch.nn.Module):
    """A layer that uses its input three times and mixes the rows, as attention does."""

    def __init__(self, dtype):
        super().__init__()
        self.maps = torch.nn.ModuleList(
            torch.nn.Linear(COLUMNS, COLUMNS, dtype=dtype) for _ in range(3)
        )

    def forward(self, y):
        a, b, c = (m(y) for m in self.maps)
        return torch.softmax(a @ b.transpose(-1, -2), -1) @ c


def _modules(kind, depth, rng, dtype):
    layers = [Layer(dtype) for _ in range(depth)]
    norms = [kind(COLUMNS, dtype=dtype) for _ in range(depth + 1)]
    for module in (*layers, *norms):
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, generator=rng)
    return layers, norms[:-1], norms[-1]


def _values_and_gradients(stack, x, dy, layers, norms, **final):
    used = [
        p for module in (*layers, *norms, *final.values()) for p in module.parameters()
    ]
    y = stack(x, layers, norms, **final)
    return y, *torch.autograd.grad(y, [x, *used], dy)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("which", ["pre", "pre, final norm", "post"])
def test_naive_and_fused_are_equal_bit_for_bit(which, kind, depth, dtype, torch_rng):
    layers, norms, last = _modules(kind, depth, torch_rng, dtype)
    final = {"final_norm": last} if "final" in which else {}
    x = torch.randn(2, 3, COLUMNS, generator=torch_rng, dtype=dtype, requires_grad=True)
    dy = torch.randn(2, 3, COLUMNS, generator=torch_rng, dtype=dtype)
    results = [
        _values_and_gradients(s, x, dy, layers, norms, **final)
        for s in (POST if which == "post" else PRE)
    ]
    for naive, fused in zip(*results, strict=True):
        assert torch.equal(naive, fused)


@pytest.mark.parametrize("stacks", [PRE, POST])
def test_the_stacks_are_their_definition(stacks, torch_rng):
    """Against torch's own norm: the two above could be wrong together."""
    (layer, *_), (own, *_), _ = _modules(nn.LayerNorm, 1, torch_rng, torch.float64)
    x = torch.randn(4, COLUMNS, generator=torch_rng, dtype=torch.float64)

    def theirs(t):
        return torch.nn.functional.layer_norm(t, (COLUMNS,), own.weight, own.bias)

    expected = layer(theirs(x)) + x if stacks is PRE else theirs(layer(x) + x)
    for stack_function in stacks:
        assert near(stack_function(x, [layer], [own]), expected, roundings=256)


def test_y_has_the_dtype_of_input_and_the_sum_that_of_both():
    x = torch.ones(2, COLUMNS, dtype=torch.bfloat16)
    y, residual_out = normgrad.add_normalize(x, torch.ones(2, COLUMNS))
    assert (y.dtype, residual_out.dtype) == (torch.bfloat16, torch.float32)
