"""A call is checked once: what is kept of it serves calls of the same kind alone, and holds no tensor."""

import dataclasses

import pytest
import torch

import normgrad
from normgrad.torch_ops import prepare


def _gradients(x, weight, bias):
    y = normgrad.layer_norm(x, x.shape[-1], weight, bias, backend="torch")
    return y, *torch.autograd.grad(y, (x, weight, bias), torch.ones_like(y))


def _tensors(torch_rng, rows=3, columns=7):
    shapes = ((rows, columns), (columns,), (columns,))
    return [
        torch.randn(shape, generator=torch_rng).requires_grad_() for shape in shapes
    ]


def _held():
    """What the calls that are kept hold, and what they are kept by."""
    for key, call in prepare._calls.items():
        yield from key
        yield from (getattr(call, field.name) for field in dataclasses.fields(call))
        yield from call.rows or ()


def test_a_call_like_one_before_is_not_checked_again(torch_rng, monkeypatch):
    tensors = _tensors(torch_rng)
    first = _gradients(*tensors)
    monkeypatch.setattr(prepare, "_checked", None)
    assert all(map(torch.equal, _gradients(*tensors), first))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"normalized_shape": (2, 1)}, {"normalized_shape": (2, True)}),
        ({"normalized_shape": (2, 1)}, {"normalized_shape": (2.0, 1)}),
        ({"eps": 1}, {"eps": True}),
        ({"weight_offset": 0}, {"weight_offset": False}),
        ({"heads": 1}, {"heads": 1.0}),
        ({"heads": 1}, {"heads": True}),
        ({"round_residual": True}, {"round_residual": 1}),
        ({"backend": "torch"}, {"backend": "tensor"}),
        ({"out_dtype": torch.float32}, {"out_dtype": torch.float64}),
    ],
    ids=str,
)
def test_an_equal_value_of_another_type_is_refused_after_the_right_one(right, wrong):
    x = torch.ones(3, 1, 2, 1)
    options = {
        "normalized_shape": (2, 1),
        "weight": torch.ones(1, 2, 1) if "heads" in right else torch.ones(2, 1),
    }
    normgrad.add_rms_norm(x, x, **options | right)
    with pytest.raises((TypeError, ValueError), match=f"^{next(iter(wrong))}: got "):
        normgrad.add_rms_norm(x, x, **options | wrong)


def test_a_sign_of_zero_is_not_kept(torch_rng):
    """0.0 and -0.0 are equal: a call with one of them would get what was kept of the other."""
    x = torch.randn(3, 4, generator=torch_rng)
    first, second = (
        normgrad.normalize(x, spec=normgrad.NormSpec(scale=scale), backend="torch")
        for scale in (0.0, -0.0)
    )
    assert torch.equal(first.signbit(), second.signbit())


NOT_DENSE = {
    "coordinates": (torch.Tensor.to_sparse, "a torch.sparse_coo tensor, needs a dense"),
    "rows": (torch.Tensor.to_sparse_csr, "a torch.sparse_csr tensor, needs a dense"),
    "nested": (torch.nested.as_nested_tensor, "a nested tensor, needs a dense one"),
}


@pytest.mark.filterwarnings("ignore")  # torch calls both of them a prototype
@pytest.mark.parametrize("kind", NOT_DENSE)
@pytest.mark.parametrize("name", ["input", "residual"])
def test_what_is_not_dense_is_refused_after_a_dense_one(kind, name):
    change, words = NOT_DENSE[kind]
    tensors = {"input": torch.ones(3, 4), "residual": torch.ones(3, 4)}
    for backend in ("auto", "torch"):
        normgrad.add_rms_norm(*tensors.values(), 4, backend=backend)
        changed = tensors | {name: change(tensors[name])}
        with pytest.raises(TypeError, match=f"^{name}: got {words}"):
            normgrad.add_rms_norm(*changed.values(), 4, backend=backend)


def _normalized(x, weight, bias):
    return normgrad.layer_norm(x, x.shape[-1:], weight, bias, backend="torch")


def test_a_compiler_with_symbolic_sizes_leaves_nothing_behind(torch_rng):
    torch._dynamo.reset()
    compiled = torch.compile(_normalized, backend="aot_eager", fullgraph=True)
    before = dict(prepare._calls)
    inputs = [_tensors(torch_rng, rows, columns=13) for rows in (3, 5, 6)]
    torch._dynamo.mark_dynamic(inputs[0][0], 0)
    outcomes = [compiled(*tensors) for tensors in inputs]
    assert prepare._calls == before
    assert all(
        torch.equal(y, _normalized(*tensors))
        for y, tensors in zip(outcomes, inputs, strict=True)
    )


@pytest.mark.filterwarnings(
    "ignore"
)  # torch.jit.trace warns that it is old, and of each comparison of sizes
def test_what_is_kept_are_numbers_and_names():
    x = torch.ones(3, 2, 4)
    normgrad.layer_norm(x, (2, 4), backend="torch")
    torch.jit.trace(
        lambda x: normgrad.layer_norm(x, (2, 4), backend="torch"), x, check_trace=False
    )
    held = list(_held())
    assert held and not [
        value for value in held if isinstance(value, (torch.Tensor, torch.SymInt))
    ]
    assert all(
        type(size) is int
        for value in held
        if isinstance(value, tuple)
        for size in value
    )


def test_not_every_call_is_kept():
    for columns in range(1, prepare.MOST_CALLS + 10):
        normgrad.rms_norm(torch.ones(1, columns), columns, backend="torch")
        assert len(prepare._calls) <= prepare.MOST_CALLS
