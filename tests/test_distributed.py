"""Rows shared among processes: the contract, in processes of their own."""

import re
from pathlib import Path

import pytest
from processes import python

import normgrad

pytest.importorskip("triton")


@pytest.mark.parametrize(
    "processes", [2, pytest.param(4, marks=pytest.mark.sampled(of=5))]
)
def test_the_contract_holds_in_every_placement(processes, request):
    script = Path(__file__).with_name("distributed_norms.py")
    whole = request.config.option.whole
    done = python(script, processes, *[] if whole else ["some"], timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    # settings of placements, functions, dtypes, and backends, where not one of them by turns
    settings = {2: 6, 4: 10}[processes]
    assert len(re.findall(r": y \d", done.stdout)) == settings * 3 * 2 * (
        3 if whole else 1
    )


# In this process, as the first of two whose messages go nowhere


@pytest.fixture
def tensors(torch):
    """torch.distributed.tensor."""
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    torch.distributed.init_process_group(
        "fake", store=fake.FakeStore(), rank=0, world_size=2
    )
    yield pytest.importorskip("torch.distributed.tensor")
    torch.distributed.destroy_process_group()


def test_gradients_of_a_weight_are_parts_of_a_sum(torch, tensors):
    """A mean over the processes is what torch's data parallel makes of losses that are means; here a sum is right."""
    mesh, rows, whole = tensors.DeviceMesh("cpu", [0, 1]), tensors.Shard(0), tensors.Replicate()  # fmt: skip
    x = tensors.DTensor.from_local(torch.ones(3, 4), mesh, [rows]).requires_grad_()
    affine = [
        tensors.DTensor.from_local(torch.ones(4), mesh, [whole]).requires_grad_()
        for _ in range(2)
    ]
    for norm, parameters in (
        (normgrad.layer_norm, affine),
        (normgrad.rms_norm, affine[:1]),
    ):
        y = norm(x, 4, *parameters, backend="torch")
        dx, *parts = torch.autograd.grad(y, (x, *parameters), torch.ones_like(y))
        assert y.placements == dx.placements == (rows,)
        assert [part.placements for part in parts] == [(tensors.Partial("sum"),)] * len(
            parameters
        )


@pytest.mark.parametrize("reduction", ["sum", "avg", "max"])
def test_parts_of_an_average_have_no_gradient(reduction, torch, tensors):
    """torch gives each part the whole gradient, which is right for a sum; without a gradient any parts are gathered."""
    mesh, parts = tensors.DeviceMesh("cpu", [0, 1]), [tensors.Partial(reduction)]
    x = tensors.DTensor.from_local(torch.ones(3, 4), mesh, parts)
    assert normgrad.rms_norm(x, 4, backend="torch").placements[0].is_replicate()
    x.requires_grad_()
    for norm in (
        normgrad.rms_norm,
        lambda x, n, **o: normgrad.add_rms_norm(x.detach(), x, n, **o)[0],
    ):
        if reduction == "sum":
            norm(x, 4, backend="torch")
            continue
        with pytest.raises(
            ValueError,
            match=f"(input|residual): got parts of a {reduction} with a gradient",
        ):
            norm(x, 4, backend="torch")


def test_all_tensors_are_on_one_mesh(torch, tensors):
    """Two meshes with as many axes and processes, in another order."""
    mesh, other = (tensors.DeviceMesh("cpu", ranks) for ranks in ([0, 1], [1, 0]))
    whole = [tensors.Replicate()]
    x, elsewhere = (
        tensors.DTensor.from_local(torch.ones(3, 4), place, whole)
        for place in (mesh, other)
    )
    weight = tensors.DTensor.from_local(torch.ones(4), other, whole)
    normgrad.add_rms_norm(x, x, 4, backend="torch")
    with pytest.raises(ValueError, match="^residual: got a DTensor on .*, the mesh of"):
        normgrad.add_rms_norm(x, elsewhere, 4, backend="torch")
    with pytest.raises(ValueError, match="^weight: got a DTensor on .*, the mesh of"):
        normgrad.rms_norm(x, 4, weight, backend="torch")
    with pytest.raises(TypeError, match="^weight: got a tensor of one process"):
        normgrad.rms_norm(x, 4, torch.ones(4), backend="torch")
