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
    for argument, value in subject.given.items()
    if isinstance(value, torch.Tensor)
    and not name.startswith(("residual.naive", "residual.fused_post"))
]


def _tensors(rng):
    shapes = {"x": (2, 3, 4), "residual": (2, 3, 4), "weight": (4,), "bias": (4,)}
    return {name: torch.randn(shape, generator=rng) for name, shape in shapes.items()}


def _refused(name, argument, convert):
    """The words in which a function refuses one of its tensors in another type."""
    given = wiring.SUBJECTS[name].given
    with pytest.raises(TypeError) as caught:
        wiring.SUBJECTS[name].call(given | {argument: convert(given[argument])})
    return str(caught.value)


@pytest.mark.parametrize(("name", "argument"), PLACES)
def test_a_subclass_is_refused_wherever_it_is_given(name, argument):
    assert re.match(
        f"{argument}: got .*test_subclasses.Named, {SUBCLASS}",
        _refused(name, argument, _named),
    )


ALONE = "(weight|bias|residual): got a tensor of one process, needs a DTensor on the mesh of input, which is one"


@pytest.mark.parametrize(
    ("name", "argument"), [place for place in PLACES if place != ("l2_norm", "input")]
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
    other = rf"{argument}: got torch\.distributed.*\.DTensor, {SUBCLASS}"
    assert re.match(ALONE if argument == "input" else other, words)


def test_a_dtensor_on_another_mesh_is_refused(torch_rng, mesh):
    given, square = _tensors(torch_rng), init_device_mesh("cpu", (1, 1))
    x = distribute_tensor(given["x"], mesh, [Shard(0)])
    weight = distribute_tensor(given["weight"], square, [Replicate()] * 2)
    with pytest.raises(
        ValueError, match=r"^weight: got a DTensor on .*, needs .*, the mesh of input"
    ):
        normgrad.rms_norm(x, 4, weight, backend="torch")


@pytest.mark.parametrize("place", [0, 1])
def test_a_cotangent_of_a_subclass_is_refused(place, torch_rng):
    given = _tensors(torch_rng)
    x = given["x"].requires_grad_()
    outputs = normgrad.add_rms_norm(x, given["residual"], 4, backend="torch")
    cotangents = [given["x"].detach(), given["residual"]]
    cotangents[place] = _named(cotangents[place])
    with pytest.raises(
        TypeError, match=f"^{('dy', 'dresidual_out')[place]}: got .*Named, {SUBCLASS}"
    ):
        torch.autograd.grad(outputs, x, cotangents)
