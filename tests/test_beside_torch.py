"""What of torch surrounds a call: fake tensors, tracers, exports, batched cotangents, its encoder, its absence."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

import normgrad
from normgrad import nn
from normgrad.checks.tolerance import unit_roundoff
from normgrad.torch_ops import arguments

BACKENDS = ("torch", "triton", "numba")
# name: (the function of x, residual (3, 5), weight, bias (5,) and a backend, the same in torch)
FUNCTIONS = {
    "layer_norm": (
        lambda x, r, w, b, on: normgrad.layer_norm(x, x.shape[-1], w, b, backend=on),
        lambda x, r, w, b: F.layer_norm(x, (5,), w, b),
    ),
    "add_rms_norm": (
        lambda x, r, w, b, on: torch.mul(
            *normgrad.add_rms_norm(x, r, 5, w, backend=on)
        ),
        lambda x, r, w, b: F.rms_norm(x + r, (5,), w) * (x + r),
    ),
    "l2_norm": (
        lambda x, r, w, b, on: normgrad.l2_norm(x, 0, backend=on),
        lambda x, r, w, b: F.normalize(x, dim=0),
    ),
    "heads": (
        lambda x, r, w, b, on: normgrad.layer_norm(x, 5, r, heads=3, backend=on),
        lambda x, r, w, b: F.layer_norm(x, (5,)) * r,
    ),
    "gated_rms_norm": (
        lambda x, r, w, b, on: normgrad.gated_rms_norm(x, r, w),
        lambda x, r, w, b: F.rms_norm(x, (5,), w, 1e-6) * F.silu(r),
    ),
}
each = pytest.mark.parametrize("name", FUNCTIONS)
on_each = pytest.mark.parametrize("backend", BACKENDS)


def _draw(rng, *shapes):
    """Leaves of these shapes, by default x, residual, weight and bias."""
    shapes = shapes or ((3, 5), (3, 5), (5,), (5,))
    options = {"generator": rng, "dtype": torch.float64}
    return [torch.randn(shape, **options).requires_grad_() for shape in shapes]


def _close(found, expected):
    """All tensors within their rounding; a gradient of zeros may be absent."""
    for got, want in zip(found, expected, strict=True):
        got, want = (torch.zeros(()) if t is None else t for t in (got, want))
        room = 512 * unit_roundoff("float64") * (1 + want.abs().max())
        assert (got - want).abs().max() <= room


@on_each
@each
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_traced_graph_computes_what_was_traced(mode, name, backend, torch_rng):
    """Forward and backward; make_fx sees nothing of what a compiled kernel writes."""
    function, theirs = FUNCTIONS[name]

    def with_gradients(run, *tensors):
        y = run(*tensors)
        return y, *torch.autograd.grad(y, tensors, y.detach().cos(), allow_unused=True)

    def ours(*tensors):
        return with_gradients(lambda *t: function(*t, backend), *tensors)

    graph = make_fx(ours, tracing_mode=mode)(*_draw(torch_rng))
    tensors = _draw(torch_rng)
    _close(graph(*tensors), with_gradients(theirs, *tensors))


def _batched(function, tensors, dys):
    y = function(*tensors)
    options = {"is_grads_batched": True, "allow_unused": True}
    return torch.autograd.grad(y, tensors, dys, **options)


def _mapped(function, tensors, dys):
    y = function(*tensors)

    def gradient(dy):
        return torch.autograd.grad(y, tensors[0], dy, retain_graph=True)

    return torch.vmap(gradient)(dys)


def _jacobian(function, tensors, _dys):
    def run(x):
        return function(x, *tensors[1:])

    return [torch.autograd.functional.jacobian(run, tensors[0], vectorize=True)]


def _of_vjp(function, tensors, dys):
    _, vjp = torch.func.vjp(function, *tensors)
    with torch.no_grad():
        return torch.vmap(vjp)(dys)


@on_each
@each
@pytest.mark.parametrize("batched", [_batched, _mapped, _jacobian, _of_vjp])
def test_cotangents_may_come_in_a_batch(batched, name, backend, torch_rng):
    function, theirs = FUNCTIONS[name]
    tensors = _draw(torch_rng)
    dys = torch.randn(4, 3, 5, generator=torch_rng, dtype=torch.float64)
    found = batched(lambda *t: function(*t, backend), tensors, dys)
    _close(found, batched(theirs, tensors, dys))


class _Wider(torch.autograd.Function):
    """The identity, with a gradient in another dtype."""

    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, dy):
        return dy.double()


@on_each
@each
def test_a_cotangent_of_another_dtype_is_cast(name, backend, torch_rng):
    function, _ = FUNCTIONS[name]
    tensors = [t.detach().float().requires_grad_() for t in _draw(torch_rng)]
    dy, y = torch.randn(3, 5, generator=torch_rng), function(*tensors, backend)
    (dx,) = torch.autograd.grad(_Wider.apply(y), tensors[0], dy, retain_graph=True)
    assert torch.equal(dx, torch.autograd.grad(y, tensors[0], dy)[0])


# Programs that leave the process


class _Model(torch.nn.Module):
    """Every module, and a size read from a tensor."""

    def __init__(self, backend):
        super().__init__()
        self.add = nn.AddNorm(nn.RMSNorm(5, weight_offset=1.0, backend=backend))
        self.norm = nn.LayerNorm(5, backend=backend)
        self.llama = nn.RMSNorm(5, casting="llama", backend=backend)
        self.gated = nn.GatedRMSNorm(5)

    def forward(self, x, residual):
        y, residual_out = self.add(x, residual)
        gated = self.gated(self.norm(y), self.llama(residual_out))
        return gated + normgrad.layer_norm(x, x.shape[-1], backend=self.norm.backend)


ELSEWHERE = """
import sys, torch
sys.modules["normgrad"] = None
program, given = torch.export.load(sys.argv[1]), torch.load(sys.argv[2])
torch.testing.assert_close(program.module()(*given[:2]), given[2])
"""


@pytest.fixture
def model(request, torch_rng):
    """A model with weights of both signs, and its two inputs."""
    model = _Model(getattr(request, "param", "torch"))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, generator=torch_rng)
    return model.eval(), torch.randn(2, 4, 3, 5, generator=torch_rng).unbind()


@pytest.mark.parametrize("model", BACKENDS, indirect=True)
@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_runs_without_the_package(strict, model, tmp_path):
    model, given = model
    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    options = {"dynamic_shapes": (rows, rows), "strict": strict}
    program = torch.export.export(model, given, **options)
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    assert not [node for node in calls if "normgrad" in str(node.target)]
    more = [torch.cat([t, t.flip(1)]) for t in given]
    torch.testing.assert_close(program.module()(*more), model(*more))
    if not strict:
        files = [str(tmp_path / name) for name in ("program.pt2", "given.pt")]
        torch.export.save(program, files[0])
        torch.save((*given, model(*given).detach()), files[1])
        command = [sys.executable, "-c", ELSEWHERE, *files]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# torch's encoder, which without gradients takes weight, bias and eps of its norms and calls no forward of theirs

NORMS = {
    "LayerNorm": lambda: nn.LayerNorm(8, backend="torch"),
    "LayerNorm without a bias": lambda: nn.LayerNorm(8, bias=False, backend="torch"),
    "LayerNorm with an offset": lambda: nn.LayerNorm(
        8, weight_offset=1.0, backend="torch"
    ),
    "RMSNorm": lambda: nn.RMSNorm(8, backend="torch"),
    "RMSNorm of Llama": lambda: nn.RMSNorm(8, casting="llama", backend="torch"),
}


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_torchs_encoder_computes_our_norms(norm, norm_first, torch_rng):
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, 0.0, batch_first=True, norm_first=norm_first
    )
    layer.norm1, layer.norm2 = NORMS[norm](), NORMS[norm]()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=torch_rng)
    layer = layer.double()
    x = torch.randn(2, 5, 8, generator=torch_rng, dtype=torch.float64)
    expected = layer(x).detach()
    room = 256 * torch.finfo(torch.float64).eps * expected.abs().max()
    with torch.no_grad():
        assert (layer.eval()(x) - expected).abs().max() <= room


@pytest.mark.parametrize(
    "use",
    ["import normgrad.nn", "normgrad.layer_norm", "normgrad.gated_rms_norm(1, 2)"],
)
def test_without_torch_the_command_that_installs_it_is_named(use):
    code = f"import sys, normgrad; sys.modules['torch'] = None; {use}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "pip install normgrad[torch]" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name, extra", [("numba", "cpu"), ("triton", "triton")])
def test_without_its_compiler_a_backend_names_the_command(name, extra, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(arguments, "import_module", missing)
    arguments._compiled.cache_clear()
    needs = rf"backend: got '{name}'.*pip install normgrad\[{extra}\]"
    with pytest.raises(ModuleNotFoundError, match=needs):
        normgrad.rms_norm(torch.ones(2, 4), 4, eps=0.25, backend=name)
    arguments._compiled.cache_clear()
