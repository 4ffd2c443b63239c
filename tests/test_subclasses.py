"""Tensors that hold no memory of their own: DTensors are taken apart, all others refused by name."""

import re

import pytest
import torch
import torch.distributed as dist
import wiring
from torch.distributed.tensor import (
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

import normgrad

SUBCLASS = "needs a torch.Tensor itself: kernels know no subclass of it"


class Named(torch.Tensor):
    """A subclass that changes nothing."""


def _named(t):
    return t.as_subclass(Named)


@pytest.fixture(scope="module")
def mesh():
    """One process on gloo."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


# Every tensor of every public function; what is handed on to these functions is refused there.
PLACES = [
    (name, argument)
    for name, subject in wiring.SUBJECTS.items()
    for argument, value in subject.base.items()
    if isinstance(value, torch.Tensor)
    and not name.startswith(("residual.naive", "residual.fused_post"))
]


def _tensors(rng):
    shapes = {"x": (2, 3, 4), "residual": (2, 3, 4), "weight": (4,), "bias": (4,)}
    return {name: torch.randn(shape, generator=rng) for name, shape in shapes.items()}


def _refused(name, argument, convert):
    """The words in which a function refuses one of its tensors in another type."""
    arguments = wiring.SUBJECTS[name].base
    with pytest.raises(TypeError) as caught:
        wiring.SUBJECTS[name].call(arguments | {argument: convert(arguments[argument])})
    return str(caught.value)


@pytest.mark.parametrize(("name", "argument"), PLACES)
def test_a_subclass_is_refused_wherever_it_is_given(name, argument):
    assert re.match(
        f"{argument}: got .*test_subclasses.Named, {SUBCLASS}",
        _refused(name, argument, _named),
    )


ALONE = "(weight|bias|residual): got a tensor of one process, needs a DTensor on the mesh of input, which is one"


@pytest.mark.parametrize(
    ("name", "argument"),
    [position for position in PLACES if position != ("l2_norm", "input")],
)
def test_a_dtensor_among_others_is_refused(name, argument, mesh):
    """A process would normalize its rows, or take its part of a weight for the whole."""
    words = _refused(
        name,
        argument,
        lambda t: distribute_tensor(
            t, mesh, [Shard(1) if t.dim() > 1 else Replicate()]
        ),
    )
    refusal = rf"{argument}: got torch\.distributed.*\.DTensor, {SUBCLASS}"
    assert re.match(ALONE if argument == "input" else refusal, words)


def test_a_dtensor_on_another_mesh_is_refused(torch_rng, mesh):
    arguments, square = _tensors(torch_rng), init_device_mesh("cpu", (1, 1))
    x = distribute_tensor(arguments["x"], mesh, [Shard(0)])
    weight = distribute_tensor(arguments["weight"], square, [Replicate()] * 2)
    with pytest.raises(
        ValueError, match=r"^weight: got a DTensor on .*, needs .*, the mesh of input"
    ):
        normgrad.rms_norm(x, 4, weight, backend="torch")


@pytest.mark.parametrize("position", [0, 1])
def test_a_cotangent_of_a_subclass_is_refused(position, torch_rng):
    arguments = _tensors(torch_rng)
    x = arguments["x"].requires_grad_()
    outputs = normgrad.add_rms_norm(x, arguments["residual"], 4, backend="torch")
    cotangents = [arguments["x"].detach(), arguments["residual"]]
    cotangents[position] = _named(cotangents[position])
    with pytest.raises(
        TypeError,
        match=f"^{('dy', 'dresidual_out')[position]}: got .*Named, {SUBCLASS}",
    ):
        torch.autograd.grad(outputs, x, cotangents)
