"""Bytes: the registered sums are those of teaching/bytes.py, the counters count, the kernels move what is predicted."""

import pytest
import torch
from sympy import Symbol

import normgrad
from normgrad import LAYER_NORM
from normgrad.symbolic import equation
from normgrad.symbolic.symbols import M, N
from normgrad.teaching import bytes as traffic
from normgrad.teaching.counted import Counted, stored_bytes
from normgrad.teaching.watch import watch
from normgrad.torch_ops import differentiable

SHAPES = [(16384, 4096, "bfloat16"), (3, 7, "float32")]


def registered(defs, name, rows, columns, dtype):
    """The value of a registered sum."""
    sizes = {M: rows, N: columns, Symbol("e", positive=True): traffic.BYTES[dtype]}
    return defs.unfold(name).doit().subs(sizes)


KERNELS = {
    "forward": ("layer_norm", "forward"),
    "backward": ("layer_norm", "backward"),
    "add_forward": ("add_layer_norm", "forward"),
    "add_backward": ("add_layer_norm", "backward"),
}


@pytest.mark.parametrize("rows, columns, dtype", SHAPES)
@pytest.mark.parametrize("name", KERNELS)
def test_registered_sums_are_the_models(name, rows, columns, dtype):
    shape = {"rows": rows, "columns": columns, "dtype": dtype}
    total = traffic.moved(*KERNELS[name], **shape).total
    head = Symbol(name, positive=True)
    assert registered(equation("bytes-kernels").defs, head, **shape) == total


def tensors():
    return torch.ones(4, 6), torch.ones(6)


# What is run, and the numbers it reads, writes and computes.
CALLS = {
    "x + t": (48, 24, 24),
    "x * x": (24, 24, 24),
    "x * w": (30, 24, 24),
    "x * w.expand(4, 6)": (30, 24, 24),
    "x.sum(0)": (24, 6, 24),
    "x.t().reshape(6, 4)[1:].detach().unsqueeze(0)": (0, 0, 0),
    "x.mul_(w)": (30, 24, 24),
    "torch.mul(x, x, out=t)": (24, 24, 24),
    "x.copy_(w)": (6, 24, 0),
    "torch.zeros_like(x)": (0, 24, 0),
    "torch.empty_like(x)": (0, 0, 0),
    "x.clone()": (24, 24, 0),
}


@pytest.mark.parametrize("call", CALLS)
def test_counted(call):
    reads, writes, operations = CALLS[call]
    x, w = tensors()
    scope = {"torch": torch, "x": x, "w": w, "t": torch.empty(4, 6)}
    with Counted() as count:
        eval(call, scope)
    assert (count.reads, count.writes) == (4 * reads, 4 * writes)
    assert count.operations == operations


def test_a_kept_gradient_is_read_and_written():
    x, w = (t.requires_grad_() for t in tensors())
    counts = []
    for _ in range(2):
        y = torch.layer_norm(x, (6,), w)
        with Counted() as count:
            y.backward(torch.ones(4, 6))
        counts.append(count.total)
    assert counts[1] - counts[0] == 3 * (stored_bytes(x) + stored_bytes(w))


@pytest.mark.parametrize("rows, columns", [(5, 64), (40, 300), (3, 4096)])
@pytest.mark.parametrize("operator", traffic.OPERATORS)
def test_kernels_move_the_floor(operator, rows, columns):
    """Each byte of the model at an address of its own, and activations asked for once."""
    configuration = pytest.importorskip("normgrad.triton_kernels").configuration
    if not configuration.INTERPRETED:
        pytest.skip(
            "the kernels are compiled here, and the count needs the interpreter"
        )
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape):
        return torch.randn(shape, generator=generator).bfloat16().requires_grad_()

    norm = operator.removeprefix("add_")
    parameters = [drawn(columns) for _ in traffic.PARAMETERS[norm]]
    inputs = [drawn(rows, columns) for _ in range(1 + (norm != operator))]
    cotangents = [drawn(rows, columns).detach() for _ in inputs]
    shape = () if operator == "l2_norm" else (columns,)
    with watch() as forward:
        outputs = getattr(normgrad, operator)(
            *inputs, *shape, *parameters, backend="triton"
        )
    with watch() as backward:
        torch.autograd.grad(outputs, [*inputs, *parameters], cotangents)

    tiles = -(-rows // configuration.forward_tile(columns, 4).rows)
    tile = configuration.backward_tile(columns, 4)
    programs = configuration.programs(
        rows, columns, tile, configuration.INTERPRETER, False
    )
    size = {"rows": rows, "columns": columns, "dtype": "bfloat16"}
    floor = traffic.moved(operator, "forward", **size).total
    vectors = 2 * columns * len(parameters)
    assert forward.distinct == floor
    assert forward.requested == floor + (tiles - 1) * vectors
    floor = traffic.moved(operator, "backward", partial_rows=programs, **size).total
    weight = 2 * columns * bool(parameters)
    assert backward.distinct == floor
    assert backward.requested == floor + (programs - 1) * weight


@pytest.mark.parametrize("direction, times", [("forward", 18), ("backward", 23)])
def test_the_formula_moves_no_more_than_an_honest_one(direction, times):
    """As many bytes as operations one by one have to move, statistics computed once more in the backward.

    Two passes of each are the correction of the mean.
    """
    dy, x = torch.ones(2, 64, 256, dtype=torch.bfloat16)
    weight, bias = torch.ones(2, 256, dtype=torch.bfloat16)
    with Counted() as count:
        if direction == "forward":
            differentiable.forward(x, None, weight, bias, LAYER_NORM)
        else:
            differentiable.vjp(dy, x, weight, LAYER_NORM)
    floor = traffic.moved(
        "layer_norm", direction, rows=64, columns=256, dtype="bfloat16"
    )
    assert count.total < times * floor.total
