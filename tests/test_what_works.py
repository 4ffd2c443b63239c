"""The table of the page API: each use of torch with each backend, tried, and said as it is."""

import copy
import shutil
from functools import cache, partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from near import near
from onnx.reference import ReferenceEvaluator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from normgrad import nn

BACKENDS = ("torch", "triton", "numba")
PAGE = Path(__file__).parents[1] / "book/api.md"
TITLE = "| with | " + " | ".join(f'`"{name}"`' for name in BACKENDS) + " |"


class Added(torch.nn.Module):
    """A norm of a sum, both of whose outputs are used."""

    def __init__(self, backend):
        super().__init__()
        self.add = nn.AddNorm(nn.RMSNorm(5, weight_offset=1.0, backend=backend))

    def forward(self, x):
        y, residual_out = self.add(x, x.sin())
        return y * residual_out


class Gated(torch.nn.Module):
    """RMSNorm with a gate."""

    def __init__(self, backend):
        super().__init__()
        self.norm = nn.GatedRMSNorm(5)

    def forward(self, x):
        return self.norm(x, x.cos())


def _layer_norm(norm, x):
    return F.layer_norm(x, (5,), eps=norm.eps) * norm.weight + norm.bias


def _rms_norm(norm, x):
    return F.rms_norm(x, (5,), norm.weight, norm.eps)


def _added(module, x):
    norm, p = module.add.norm, x + x.sin()
    return F.rms_norm(p, (5,), norm.weight + 1, norm.eps) * p


def _gated(module, x):
    return _rms_norm(module.norm, x) * F.silu(x.cos())


# {name: (a layer, the same in torch)}; the first is the page's, and all are used with what stands in ON_EACH.
LAYERS = {
    "LayerNorm": (partial(nn.LayerNorm, 5), _layer_norm),
    "of heads": (partial(nn.LayerNorm, 5, heads=3), _layer_norm),
    "of Llama": (partial(nn.RMSNorm, 5, 1e-6, casting="llama"), _rms_norm),
    "added": (Added, _added),
    "gated": (Gated, _gated),
}


def _norm(backend, layer="LayerNorm"):
    torch.manual_seed(0)
    make, reference = LAYERS[layer]
    norm = make(backend=backend)
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    norm.theirs = partial(reference, norm)
    return norm


def _inputs():
    """x and the cotangent of y."""
    torch.manual_seed(1)
    return torch.randn(2, 4, 3, 5).unbind()


def _close(results, references):
    """Equal up to some roundings of the largest number, in whatever holds the tensors."""
    pairs = zip(tree_leaves(results), tree_leaves(references), strict=True)
    for result, reference in pairs:
        assert result.dtype == reference.dtype
        assert near(result, reference, dtype="float32")


def _trains(run, norm, x, dy):
    """Values and gradients of `run` are those of torch's layer_norm of the module's parameters."""
    leaves = [x.requires_grad_(), *norm.parameters()]
    outputs = run(x), norm.theirs(x)
    _close(*outputs)
    _close(*(torch.autograd.grad(y, leaves, dy) for y in outputs))


def _compiles(norm, x, dy, **options):
    torch._dynamo.reset()
    compiled = torch.compile(norm, backend="aot_eager", fullgraph=True, **options)
    _trains(compiled, norm, x, dy)
    _trains(compiled, norm, *torch.randn(2, 7, 3, 5))


def _compiles_dynamically(norm, x, dy):
    _compiles(norm, x, dy, dynamic=True)


def _is_faked(norm, x, dy):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert norm(mode.from_tensor(x)).shape == x.shape
    _trains(norm, norm, x, dy)


def _is_traced(norm, x, dy):
    _trains(make_fx(norm)(torch.zeros_like(x)), norm, x, dy)


def _exported(norm, x):
    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    return torch.export.export(norm, (x,), dynamic_shapes=(rows,))


def _exports(norm, x, dy):
    program = _exported(norm, x)
    assert not [node for node in program.graph.nodes if "normgrad" in str(node.target)]
    _trains(program.module(), norm, x, dy)


def _translates_to_onnx(norm, x, _dy):
    proto = torch.onnx.export(norm.eval(), (x,), dynamo=True, verbose=False).model_proto
    feeds = {proto.graph.input[0].name: x.numpy()}
    (y,) = ReferenceEvaluator(proto).run(None, feeds)
    _close(torch.from_numpy(y), norm.theirs(x).detach())


@cache
def _package(code):
    """What AOTInductor makes of a program, once for all backends that export the same code."""
    norm, (x, _) = _norm("torch"), _inputs()
    program = _exported(norm, x)
    assert program.graph_module.code == code
    return torch._inductor.aoti_load_package(
        torch._inductor.aoti_compile_and_package(program)
    )


def _compiles_ahead(norm, x, _dy):
    if shutil.which("g++") is None:
        pytest.skip("on a CPU inductor needs a C++ compiler")
    package = _package(_exported(norm, x).graph_module.code)
    _close(package(x), norm.theirs(x).detach())


# What a transform gives of a function f; the same of the module and of torch's functions.
TRANSFORMS = {
    "`torch.vmap`": "vmap(f)(x)",
    "`torch.func.jvp`": "jvp(f, (x,), (dy,))",
    "`torch.func.vjp`": "vjp(f, x)[1](dy)",
    "batched cotangents": "grad(f(x), x, stack([dy, dy.flip(0)]), is_grads_batched=True)",
    "double backward": "grad(grad(f(x), x, dy, create_graph=True)[0], x, dy)",
}


def _transforms(text, norm, x, dy):
    grad = torch.autograd.grad
    scope = vars(torch.func) | {"grad": grad, "stack": torch.stack, "dy": dy}
    scope["x"] = x.requires_grad_("grad(" in text)
    outcome, expected = (eval(text, scope | {"f": f}) for f in (norm, norm.theirs))
    _close(outcome, expected)


def _replicates(norm, x, dy):
    expected = torch.autograd.grad(norm.theirs(x), [*norm.parameters()], dy)
    DistributedDataParallel(norm)(x).backward(dy)
    _close([parameter.grad for parameter in norm.parameters()], expected)


def _shards(norm, x, dy):
    expected = torch.autograd.grad(norm.theirs(x), [*norm.parameters()], dy)
    fully_shard(norm, mesh=dist.init_device_mesh("cpu", (1,)))(x).backward(dy)
    grads = [parameter.grad.full_tensor() for parameter in norm.parameters()]
    _close(grads, expected)


def _takes_dtensors(norm, x, _dy):
    mesh, expected = dist.init_device_mesh("cpu", (1,)), norm.theirs(x)
    for name, parameter in [*norm.named_parameters()]:
        whole = distribute_tensor(parameter.detach(), mesh, [Replicate()])
        setattr(norm, name, torch.nn.Parameter(whole))
    y = norm(distribute_tensor(x, mesh, [Shard(0)]))
    _close(y.full_tensor(), expected)


def _casts(norm, x, dy):
    def run(x):
        with torch.autocast("cpu", torch.bfloat16):
            return norm(x)

    _trains(run, norm, x, dy)


def _checkpoints(norm, x, dy):
    _trains(lambda x: checkpoint(norm, x, use_reentrant=False), norm, x, dy)


def _is_copied(norm, x, dy):
    twin = copy.deepcopy(norm)
    _trains(twin, twin, x, dy)


class _Wider(torch.autograd.Function):
    """The identity, with a gradient in another dtype."""

    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, dy):
        return dy.double()


def _casts_a_cotangent(norm, x, dy):
    y = norm(x.requires_grad_())
    (dx,) = torch.autograd.grad(_Wider.apply(y), x, dy, retain_graph=True)
    assert torch.equal(dx, torch.autograd.grad(y, x, dy)[0])


USES = {
    "`torch.compile`": _compiles,
    "`torch.compile(dynamic=True)`": _compiles_dynamically,
    "fake tensors": _is_faked,
    "`make_fx`": _is_traced,
    "`torch.export`": _exports,
    "`torch.onnx.export`": _translates_to_onnx,
    "AOTInductor": _compiles_ahead,
    **{use: partial(_transforms, text) for use, text in TRANSFORMS.items()},
    "DDP": _replicates,
    "FSDP2": _shards,
    "DTensor": _takes_dtensors,
    "`torch.autocast`": _casts,
    "checkpointing": _checkpoints,
    "`copy.deepcopy`": _is_copied,
}
ON_EACH = {
    **{use: USES[use] for use in (*TRANSFORMS, "fake tensors", "`make_fx`")},
    **{use: USES[use] for use in ("`torch.export`", "`torch.onnx.export`")},
    "`torch.compile(dynamic=True)`": _compiles_dynamically,
    "another dtype's cotangent": _casts_a_cotangent,
}


@pytest.fixture(scope="module")
def process():
    """One process on gloo."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _cells():
    """{use: what the page says of each backend}."""
    lines = PAGE.read_text(encoding="utf8").split(TITLE)[1].splitlines()[2:]
    rows = lines[: lines.index("")]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    return {use: dict(zip(BACKENDS, said, strict=True)) for use, *said in cells}


def test_the_page_has_a_row_for_each_use():
    assert list(_cells()) == list(USES)


@pytest.mark.filterwarnings("ignore")  # of what torch itself calls
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("use", USES)
def test_the_page_says_what_works(use, backend, process):
    assert _cells()[use][backend] == "yes"
    USES[use](_norm(backend), *_inputs())


@pytest.mark.filterwarnings("ignore")  # of what torch itself calls
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layer", [*LAYERS][1:])
@pytest.mark.parametrize("use", ON_EACH)
def test_it_works_with_every_layer(use, layer, backend):
    ON_EACH[use](_norm(backend, layer), *_inputs())
