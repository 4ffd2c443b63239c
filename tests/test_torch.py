"""What torch users rely on: torch's own values and signatures, higher derivatives, torch.func, memory, no writes."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from near import near

import normgrad
from normgrad.versions import release

BACKENDS = ("torch", "triton", "numba")


@pytest.fixture
def tensors(torch_rng):
    """x, residual (2, 3, 5), weight, bias (5,), float64."""

    def draw(*shape):
        return torch.randn(
            *shape, generator=torch_rng, dtype=torch.float64, requires_grad=True
        )

    return draw(2, 3, 5), draw(2, 3, 5), draw(5), draw(5)


# A call of ours, and the same in torch.
CALLS = {
    "layer_norm(x, 5, weight, bias": "F.layer_norm(x, (5,), weight, bias)",
    "rms_norm(x, (5,), weight": "F.rms_norm(x, (5,), weight)",
    "rms_norm(x, (3, 5), None, 1e-3": "F.rms_norm(x, (3, 5), None, 1e-3)",
    "l2_norm(x, dim=1": "F.normalize(x, dim=1)",
    "add_layer_norm(x, residual, 5, weight, bias": "F.layer_norm(p, (5,), weight, bias)",
    "add_rms_norm(x, residual, 5, weight": "F.rms_norm(p, (5,), weight)",
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS)
def test_values_are_torchs(tensors, call, backend):
    x, residual, weight, bias = tensors
    p = x + residual
    names = {"x": x, "residual": residual, "weight": weight, "bias": bias, "p": p}
    y = eval(f"normgrad.{call}, backend={backend!r})", globals(), names)
    if call.startswith("add"):
        y, residual_out = y
        assert torch.equal(residual_out, p)
    assert near(y, eval(CALLS[call], globals(), names))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rms_norms_default_eps_is_torchs(dtype):
    if release(torch.__version__) == (2, 6) and dtype != torch.float32:
        pytest.skip("torch 2.6 takes the epsilon of the input's dtype")
    x = torch.full((1, 4), 1e-3, dtype=dtype)
    # float32's machine epsilon moves a mean square of 1e-6 by a tenth, a 16-bit one would swallow it.
    ours = normgrad.rms_norm(x, 4, backend="torch").double()
    theirs = F.rms_norm(x, (4,)).double()
    room = 4 * torch.finfo(dtype).eps * theirs.abs().max()
    assert (ours - theirs).abs().max() <= room


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_normalized_axes(tensors, backend):
    x, _, _, _ = tensors
    weight = x.detach()[0] + 2
    y = normgrad.layer_norm(x, (3, 5), weight, weight, backend=backend)
    assert near(y, F.layer_norm(x, (3, 5), weight, weight))


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_output_alone_carries_gradients(tensors, backend):
    x, residual, weight, bias = (
        t.reshape(-1, 5) if t.dim() > 1 else t for t in tensors
    )
    inputs = (x, residual, weight, bias)
    y, residual_out = normgrad.add_layer_norm(
        x, residual, 5, weight, bias, backend=backend
    )
    dy = x.detach().flip(0)
    dx, dresidual, dw, db = torch.autograd.grad(
        residual_out, inputs, dy, retain_graph=True
    )
    assert torch.equal(dx, dy) and torch.equal(dresidual, dy)
    assert not dw.any() and not db.any()
    expected = torch.autograd.grad(
        F.layer_norm(x + residual, (5,), weight, bias), inputs, dy
    )
    for got, want in zip(torch.autograd.grad(y, inputs, dy), expected, strict=True):
        assert near(got, want)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_inputs_and_cotangents_are_never_written(tensors, backend, create_graph):
    dy = [torch.ones_like(tensors[0]).cumsum(-1) for _ in range(2)]
    before = [t.detach().clone() for t in (*tensors, *dy)]
    outputs = normgrad.add_layer_norm(*tensors[:2], 5, *tensors[2:], backend=backend)
    torch.autograd.grad(outputs, tensors, dy, create_graph=create_graph)
    for t, copy in zip((*tensors, *dy), before, strict=True):
        assert torch.equal(t, copy)
        assert t._version == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_may_be_modified_in_place(tensors, backend):
    x, residual, weight, bias = tensors
    for output in normgrad.add_layer_norm(
        x, residual, 5, weight, bias, backend=backend
    ):
        torch.autograd.grad(
            output.clone().relu_().cumsum(-1)[0, 0, -1], x, retain_graph=True
        )
    y = torch.relu_(normgrad.layer_norm(x, 5, weight, bias, backend=backend))
    (dx,) = torch.autograd.grad(y, x, residual.detach())
    (expected,) = torch.autograd.grad(
        torch.relu(F.layer_norm(x, (5,), weight, bias)), x, residual.detach()
    )
    assert near(dx, expected)


def _saved(function):
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(t) or t, lambda t: t
    ):
        function()
    return saved


def test_saved_tensors_are_the_rows_the_weight_and_two_statistics(torch_rng):
    x = torch.randn(8, 16, generator=torch_rng, requires_grad=True)
    residual = torch.randn(8, 16, generator=torch_rng, requires_grad=True)
    weight = torch.randn(16, generator=torch_rng, requires_grad=True)
    plain = _saved(lambda: normgrad.layer_norm(x, 16, weight, weight, backend="torch"))
    fused = _saved(
        lambda: normgrad.add_layer_norm(
            x, residual, 16, weight, weight, backend="torch"
        )
    )
    for saved in (plain, fused):
        assert sorted(tuple(t.shape) for t in saved) == [(8,), (8,), (8, 16), (16,)]
    assert any(t.data_ptr() == x.data_ptr() for t in plain)


def test_the_summands_are_freed_once_their_sum_is_saved(torch_rng):
    leaf = torch.randn(8, 16, generator=torch_rng, requires_grad=True)
    x, residual = leaf + 1, leaf + 2
    alive = [weakref.ref(x), weakref.ref(residual)]
    output = normgrad.add_layer_norm(x, residual, 16, backend="torch")
    del x, residual
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert len(output) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_saved_input_that_was_overwritten_is_refused(tensors, backend):
    x = tensors[0] + 1
    y = normgrad.layer_norm(x, 5, backend=backend)
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(torch.ones_like(y))
