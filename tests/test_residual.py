"""The residual stacks: naive and fused are one function bit for bit; and what the induction behind them refuses."""

import numpy as np
import pytest
import torch

from normgrad import nn, residual
from normgrad.checks.tolerance import unit_roundoff
from normgrad.symbolic import NotProved, equation
from normgrad.symbolic.derivations.residual_stack import (
    dps,
    dxs,
    dys_fused,
    dzs_fused,
    f,
    k,
    norm,
    norm_adjoint,
    ps,
    stack,
    xs,
    ys,
    ys_fused,
    zs,
    zs_fused,
)
from normgrad.symbolic.induction import induction

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
    for each in stacks:
        assert (each(x, [layer], [own]) - expected).abs().max() <= 256 * unit_roundoff(
            "float64"
        ) * expected.abs().max()


def test_a_stack_of_another_norm_cannot_be_fused(torch_rng):
    x, identity = torch.ones(2, COLUMNS), [torch.nn.Identity()]
    other = torch.nn.LayerNorm(COLUMNS)
    for fused in (residual.fused_stack, residual.fused_post_norm):
        with pytest.raises(
            TypeError, match=r"norm: got torch\..*LayerNorm, needs a normgrad.nn"
        ):
            fused(x, identity, [other])
    with pytest.raises(
        TypeError, match=r"norm: got torch\..*LayerNorm, needs a normgrad.nn"
    ):
        residual.fused_stack(x, [], [], final_norm=other)


@pytest.mark.parametrize("each", [*PRE, *POST])
def test_the_stacks_want_a_norm_for_each_layer(each, torch_rng):
    layers, norms, _ = _modules(nn.RMSNorm, 2, torch_rng, torch.float32)
    with pytest.raises(ValueError, match="norms: got 1, needs 2, one for each layer"):
        each(torch.ones(1, COLUMNS), layers, norms[:1])


BAD_STACKS = {
    "x": (
        np.ones((2, COLUMNS)),
        [abs],
        [abs],
        TypeError,
        "x: got numpy.ndarray, needs a torch.Tensor",
    ),
    "layers": (
        torch.ones(2, COLUMNS),
        abs,
        [abs],
        TypeError,
        "layers: got builtin_function.*, needs a sequence",
    ),
    "norms": (
        torch.ones(2, COLUMNS),
        [abs],
        None,
        TypeError,
        "norms: got NoneType, needs a sequence of callables",
    ),
    "a layer": (
        torch.ones(2, COLUMNS),
        [abs, 3],
        [abs] * 2,
        TypeError,
        r"layers\[1\]: got int, needs a callable",
    ),
}


@pytest.mark.parametrize("name", BAD_STACKS)
@pytest.mark.parametrize("each", [*PRE, *POST])
def test_a_stack_refuses(each, name):
    *arguments, error, message = BAD_STACKS[name]
    with pytest.raises(error, match=message):
        each(*arguments)


@pytest.mark.parametrize("each", [*PRE, *POST])
def test_a_layer_that_changes_the_shape_does_not_broadcast(each, torch_rng):
    layers = [lambda y: y, lambda y: y.sum(-1, keepdim=True)]
    norms = [nn.RMSNorm(COLUMNS), nn.RMSNorm(COLUMNS)]
    with pytest.raises(
        ValueError, match=r"output of layers\[1\]: got shape \(2, 1\), needs \(2, 5\)"
    ):
        each(torch.ones(2, COLUMNS), layers, norms)
    with pytest.raises(
        TypeError, match=r"output of layers\[0\]: got builtins.NoneType"
    ):
        each(torch.ones(2, COLUMNS), [lambda y: None], norms[:1])


@pytest.mark.parametrize("each", PRE)
def test_a_final_norm_that_is_no_norm_is_refused(each):
    with pytest.raises(TypeError, match="norm: got .*int, needs a"):
        each(torch.ones(2, COLUMNS), [], [], final_norm=3)


def _pull(function, point, cotangent):
    point = point.detach().requires_grad_()
    return torch.autograd.grad(function(point), point, cotangent)[0]


@pytest.mark.parametrize("which", ["pre", "pre, final norm", "post"])
def test_the_displayed_reverse_recursions_are_the_gradients(which, torch_rng):
    """res-naive-backward, its start with a final norm, and the same for post-norm, term by term."""
    layers, norms, last = _modules(nn.LayerNorm, 3, torch_rng, torch.float64)
    x, do = (
        torch.randn(4, COLUMNS, generator=torch_rng, dtype=torch.float64)
        for _ in range(2)
    )
    naive, final = (
        (residual.naive_post_norm if which == "post" else residual.naive_stack),
        {},
    )
    stream = [x]
    for layer, own in zip(layers, norms, strict=True):
        stream.append(naive(stream[-1], [layer], [own]))
    dx = do
    if "final" in which:
        final, dx = {"final_norm": last}, _pull(last, stream[-1], do)
    for layer, own, before in zip(
        layers[::-1], norms[::-1], stream[-2::-1], strict=True
    ):
        if which == "post":
            dt = _pull(own, layer(before) + before, dx)
            dx = _pull(layer, before, dt) + dt
        else:
            dx = _pull(own, before, _pull(layer, own(before), dx)) + dx
    exact = _pull(lambda t: naive(t, layers, norms, **final), x, do)
    assert (dx - exact).abs().max() <= 256 * unit_roundoff(
        "float64"
    ) * exact.abs().max()


# -- induction

LINES = stack()
INVARIANT = xs(k), zs_fused(k) + ps(k)
FALSE = {
    "the sign of p": (
        LINES,
        (xs(k), zs_fused(k) - ps(k)),
        {},
        "from one k to the next",
    ),
    "p of the layer before": (
        LINES,
        (xs(k), zs_fused(k) + ps(k - 1)),
        {"low": 1},
        "the base",
    ),
    "a wrong start": (LINES.changed(ps(0), 1), INVARIANT, {}, "the base"),
    "norm of the wrong half": (
        LINES.changed(ys_fused(k), norm(k, zs_fused(k - 1))),
        INVARIANT,
        {},
        "from one",
    ),
    "the layer skipped": (
        LINES.changed(zs_fused(k), ys_fused(k)),
        INVARIANT,
        {},
        "from one",
    ),
    "the layers swapped": (
        LINES.changed(zs_fused(k), f(k + 1, ys_fused(k))),
        INVARIANT,
        {},
        "from one",
    ),
    "z before the first layer": (
        LINES,
        (ys(k), norm(k, xs(k - 2) + zs(k - 1))),
        {"low": 1},
        "the base",
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_claim_is_refused_and_the_half_is_named(name):
    lines, claim, options, half = FALSE[name]
    with pytest.raises(NotProved, match=half) as refusal:
        induction(lines, [claim], **options)
    found = refusal.value.counterexample
    assert found.lhs != found.rhs


def test_the_backward_claims_need_each_other_and_the_invariant():
    lines, claims = LINES, [(dzs_fused(k), dxs(k)), (dps(k), dxs(k))]
    given = [(*INVARIANT, 0)]
    assert [
        proof.how for proof in induction(lines, claims, down=True, given=given)
    ] == ["base and step"] * 2
    for fewer in (claims[:1], claims[1:]):
        with pytest.raises(NotProved, match="from one k to the next.*undecided"):
            induction(lines, fewer, down=True, given=given)
    with pytest.raises(NotProved, match="undecided"):
        induction(lines, claims, down=True)


@pytest.mark.parametrize("head", [dzs_fused, dps])
def test_a_backward_without_dresidual_out_is_refused(head):
    lines = LINES.changed(head(k - 1), norm_adjoint(k, ps(k), dys_fused(k)))
    with pytest.raises(
        NotProved, match="from one k to the next.*refuted at K = 1, k = 0"
    ):
        induction(
            lines,
            [(dzs_fused(k), dxs(k)), (dps(k), dxs(k))],
            down=True,
            given=[(*INVARIANT, 0)],
        )


def test_a_claim_is_for_every_depth_not_for_small_ones():
    """A stack whose layers change after the sixth: every depth that is tried agrees, and there is no proof."""
    one = equation("res-invariant")
    later = (k - 1) * (k - 2) * (k - 3) * (k - 4) * (k - 5) * (k - 6)
    changed = LINES.changed(ps(k), zs_fused(k - 1) + ps(k - 1) + later)
    with pytest.raises(NotProved, match="undecided"):
        induction(changed, one.steps)


@pytest.mark.parametrize("depth", range(7))
def test_unfolding_is_running(depth):
    """Numbers through the recursion itself, in place of the uninterpreted functions."""
    x = z = 3
    p = 0
    for step in range(1, depth + 1):
        x = step * (x * x % 101) + x
        p = z + p
        z = step * (p * p % 101)
    values = {"norm": lambda step, v: v * v % 101, "f": lambda step, v: step * v}

    def run(e):
        if e.is_Integer:
            return int(e)
        if e.is_Symbol:
            return 3
        parts = [run(part) for part in e.args]
        return sum(parts) if e.is_Add else values[e.func.__name__](*parts)

    assert (
        run(LINES.unfold(xs(depth), depth))
        == run(LINES.unfold(zs_fused(depth) + ps(depth), depth))
        == x
        == z + p
    )
