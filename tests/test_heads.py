"""Heads: rows with two strides are read where they lie, and each head may have a weight and a bias of its own."""

import numpy as np
import pytest
import torch

import normgrad
from normgrad import nn
from normgrad.bench import kernel_traffic, traffic
from normgrad.bench.counted import Counted, interpreted
from normgrad.checks import cases, contract
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants
from normgrad.torch_ops.arguments import rows

BACKENDS = ("torch", "triton", "numba")
B, S, H, N = 2, 6, 3, 8
OWN = {"one weight": None, "a weight for each head": H}


@pytest.fixture(params=BACKENDS)
def backend(request):
    pytest.importorskip({"triton": "triton", "numba": "numba"}.get(request.param, "torch"))
    return request.param


@pytest.fixture(params=OWN)
def heads(request):
    return OWN[request.param]


def slices(generator, dtype=torch.float32):
    """x, residual, dy, dresidual_out (B, S, H, N), each some heads of a wider tensor, with strides of its own."""
    wide = (torch.randn(B, S, H + 2 + k, N, generator=generator) for k in range(4))
    return [t.to(dtype)[:, :, 1 + k : 1 + k + H] for k, t in enumerate(wide)]


def vectors(generator, heads):
    return torch.randn(2, *(() if heads is None else (heads,)), N, generator=generator)


def run(backend, heads, x, residual, dy, dresidual_out, weight, bias):
    """(y, residual_out, dx, dresidual, dw, db), and then y, dx, dw of x alone."""
    x, residual, weight, bias = (t.detach().requires_grad_() for t in (x, residual, weight, bias))
    options = {"heads": heads, "backend": backend}
    both = normgrad.add_layer_norm(x, residual, N, weight, bias, **options)
    found = [*both, *torch.autograd.grad(both, (x, residual, weight, bias), (dy, dresidual_out))]
    y = normgrad.rms_norm(x, N, weight, **options)
    return [t.detach() for t in (*found, y, *torch.autograd.grad(y, (x, weight), dy))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("backend", ["triton", "numba"])
def test_slices_give_the_bits_of_their_copies(backend, heads, dtype, torch_rng):
    """The order in which kernels sum does not depend on strides; torch's products of matrices may take another."""
    pytest.importorskip(backend)
    tensors, parameters = slices(torch_rng, dtype), vectors(torch_rng, heads)
    assert not any(t.is_contiguous() for t in tensors)
    found = run(backend, heads, *tensors, *parameters)
    wanted = run(backend, heads, *(t.contiguous() for t in tensors), *parameters)
    assert all(torch.equal(got, want) for got, want in zip(found, wanted, strict=True))


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_slices_are_read_where_they_lie(backend, heads, torch_rng):
    """torch's operations move as many bytes for slices as for tensors without gaps; around Numba's there are none."""
    pytest.importorskip(backend if backend == "numba" else "torch")
    tensors, parameters = slices(torch_rng), vectors(torch_rng, heads)
    moved = []
    for given in (tensors, [t.contiguous() for t in tensors]):
        with Counted() as counted:
            run(backend, heads, *given, *parameters)
        moved.append((counted.reads, counted.writes))
    assert moved[0] == moved[1] and (backend == "torch" or moved[0] == (0, 0))


def test_triton_launches_on_the_slices_themselves(heads, torch_rng, monkeypatch):
    """Nothing is copied before a launch, and kernels request as much as without gaps: what the model says."""
    pytest.importorskip("triton")
    from normgrad.triton_kernels import launch

    tensors, parameters = slices(torch_rng), vectors(torch_rng, heads)
    requested = []
    for given in (tensors, [t.contiguous() for t in tensors]):
        with interpreted() as accesses:
            run("triton", heads, *given, *parameters)
        requested.append(accesses.requested)
    assert requested[0] == requested[1]
    with interpreted() as accesses:
        normgrad.layer_norm(tensors[0], N, *parameters, heads=heads, backend="triton")
    shape = {"rows": B * S * H, "columns": N, "dtype": "float32", "heads": heads or 1}
    assert accesses.requested == traffic.moved("layer_norm", "forward", **shape).total
    model = kernel_traffic.normgrad("add_layer_norm", "backward", multiprocessors=1, **shape)
    x, residual, dy, dresidual_out = tensors
    leaves = [t.detach().requires_grad_() for t in (x, residual, *parameters)]
    both = normgrad.add_layer_norm(*leaves[:2], N, *leaves[2:], heads=heads, backend="triton")
    with interpreted() as accesses:
        torch.autograd.grad(both, leaves, (dy, dresidual_out))
    assert accesses.requested == model.total
    monkeypatch.setattr(launch, "_launch", lambda *arguments, **options: None)
    with Counted() as counted:
        run("triton", heads, *tensors, *parameters)
    assert counted.calls == []


def test_a_row_longer_than_a_block_is_swept(heads, torch_rng, monkeypatch):
    """Long rows have kernels of their own: blocks of columns of programs of heads."""
    pytest.importorskip("triton")
    from normgrad.triton_kernels import configuration

    tensors, parameters = slices(torch_rng, torch.float64), vectors(torch_rng, heads).double()
    wanted = run("torch", heads, *tensors, *parameters)
    for name, value in (("FORWARD_COLUMNS", {8: 4}), ("BACKWARD_COLUMNS", {8: 4}), ("SWEEP_BLOCK", 4)):
        monkeypatch.setattr(configuration, name, value)
    torch.testing.assert_close(run("triton", heads, *tensors, *parameters), wanted)


@pytest.mark.parametrize("spec", ["layer_norm", "rms_norm_offset", "layer_norm_std"])
def test_every_derivative_of_torch(spec):
    case = cases.cases(np.random.default_rng(1), 2, 4)[-1]
    assert case.heads == 3
    contract.check_gradcheck("torch", case, SPECS[spec], second=True, forward_mode=True)


T_ALONG = "weight.expand(t.shape[1:])[..., None]"
T_DW = "rstd.t()[..., None])"
T_SUMS = "    if dw is not None:\n        dw = cast(dw if spec.scale"
K_DW = "        _reduce(partial, sums, programs, vector.numel())\n"
J_ROW = "head_step, N = matrix\n        start = i // heads * step + i % heads * head_step\n"
J_DW = "rstd[i], scale, own(dw, i), own(db, i)"
N_ROWS = "rows = tuple(range(p.ndim - max(1, axes)))"
# {what is wrong: {backend: (the text, what it becomes)}}; of Triton's kernels test_kernel_proofs.py says more.
WRONG = {
    "the stride from head to head dropped": {
        "triton": ("        starts += (rows % heads).to(tl.int64)[:, None] * head_step * VECTOR\n", ""),
        "numba": (J_ROW, J_ROW.replace(" + i % heads * head_step", "")),
    },
    "the weight of the first head for all": {
        "torch": (T_ALONG, "weight[:1].expand(t.shape[1:])[..., None]"),
        "triton": ("ptr + head * N + cols", "ptr + cols"),
        "numba": ("else vectors[i % len(vectors)]\n", "else vectors[0]\n"),
    },
    "dw summed over all heads": {
        "numpy": (N_ROWS, "rows = tuple(range(p.ndim - 1))"),
        "torch": (T_SUMS, f"    dw = dw.sum(0).expand_as(dw).clone()\n{T_SUMS}"),
        "triton": (K_DW, f"{K_DW}        sums = [t.sum(0).expand_as(t) for t in sums]\n"),
        "numba": (J_DW, J_DW.replace("own(dw, i)", "own(dw, 0)")),
    },
    "statistics by token": {
        "torch": (T_DW, "rstd.t()[:1].expand(rstd.t().shape)[..., None])"),
        "triton": ("tl.store(rstd_ptr + rows, rstd, mask=rows < M)\n    y =",
                   "tl.store(rstd_ptr + rows // share, rstd, mask=rows < M)\n    y ="),
        "numba": (J_DW, J_DW.replace("rstd[i]", "rstd[i // len(weight)]")),
    },
}  # fmt: skip
EDITED = [(name, backend) for name, edits in WRONG.items() for backend in edits]


@pytest.mark.parametrize(("name", "backend"), EDITED)
def test_the_contract_rejects(name, backend):
    pytest.importorskip({"triton": "triton", "numba": "numba"}.get(backend, "torch"))
    wrong = mutants.mutated(mutants.Mutant(name, name, {backend: (WRONG[name][backend],)}), backend)
    case = cases.cases(np.random.default_rng(2))[-1]
    contract.check_values(backend, case, SPECS["layer_norm"])
    with pytest.raises(AssertionError, match="exceeds the bound|has shape"):
        contract.check_values(wrong, case, SPECS["layer_norm"])


def test_a_bias_of_heads_alone(backend, torch_rng):
    """db has a row for each head also where no weight says how many there are."""
    x, _, dy, _ = slices(torch_rng, torch.float64)
    bias = torch.randn(H, N, generator=torch_rng, dtype=torch.float64, requires_grad=True)
    y = normgrad.layer_norm(x, N, None, bias, heads=H, backend=backend)
    plain = normgrad.layer_norm(x, N, backend=backend)
    assert torch.equal(y, plain + bias)
    torch.testing.assert_close(torch.autograd.grad(y, bias, dy)[0], dy.sum((0, 1)))


def test_several_normalized_axes(backend, torch_rng):
    x, weight = (torch.randn(*lead, H, 2, 4, generator=torch_rng, dtype=torch.float64) for lead in ((B, S), ()))
    y = normgrad.rms_norm(x, (2, 4), weight, heads=H, backend=backend)
    for head in range(H):
        one = normgrad.rms_norm(x[:, :, head], (2, 4), weight[head], backend=backend)
        torch.testing.assert_close(y[:, :, head], one)


def test_a_cotangent_of_the_sum_alone(torch_rng):
    x, residual, _, dresidual_out = slices(torch_rng)
    weight = torch.ones(H, N, requires_grad=True)
    _, total = normgrad.add_rms_norm(x.requires_grad_(), residual, N, weight, heads=H)
    dx, dw = torch.autograd.grad(total, (x, weight), dresidual_out)
    assert torch.equal(dx, dresidual_out) and torch.equal(dw, torch.zeros(H, N))


def test_mapped_weights_of_heads(torch_rng):
    x, weight = torch.randn(4, S, H, N, generator=torch_rng), torch.randn(4, H, N, generator=torch_rng)
    mapped = torch.vmap(lambda x, weight: normgrad.rms_norm(x, N, weight, heads=H))(x, weight)
    for place in range(4):
        torch.testing.assert_close(mapped[place], normgrad.rms_norm(x[place], N, weight[place], heads=H))


def test_a_compiler_takes_heads(backend, heads, torch_rng):
    tensors, parameters = slices(torch_rng, torch.float64), vectors(torch_rng, heads).double()

    def outcome(function):
        leaves = [t.detach().requires_grad_() for t in (*tensors[:2], *parameters)]
        both = function(*leaves)
        return [*both, *torch.autograd.grad(both, leaves, tensors[2:])]

    def function(x, residual, weight, bias):
        return normgrad.add_layer_norm(x, residual, N, weight, bias, heads=heads, backend=backend)

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(outcome(compiled), outcome(function))


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (lambda t: t, (B * S * H, N)),
        (lambda t: t[:, :, 1:], (B * S, H - 1, N)),
        (lambda t: t[:, 1:], (B, (S - 1) * H, N)),
        (lambda t: t[:1, :, 1:].transpose(1, 2), (H - 1, S, N)),
        (lambda t: t[:, 1:, 1:], (B * (S - 1) * (H - 1), N)),
    ],
    ids=["no gap", "heads of more", "tokens of more", "heads first", "three strides"],
)
def test_where_strides_part(layout, shape):
    """One stride or two are a view; three are copied, once."""
    t = layout(torch.randn(B, S, H, N))
    (found,) = rows(False, t)
    assert found.shape == shape and torch.equal(found.reshape(t.shape), t)
    assert (found.data_ptr() == t.data_ptr()) == (t.numel() != B * (S - 1) * (H - 1) * N)


def test_the_fewest_copies_decide(torch_rng):
    """One tensor with three strides does not make copies of the other two."""
    x, residual, _, _ = slices(torch_rng)
    third = torch.randn(S, B, H, N).transpose(0, 1)
    found = rows(False, third, x, None, residual)
    assert [t is None or t.data_ptr() == given.data_ptr() for t, given in zip(
        found, (third, x, None, residual), strict=True)] == [False, True, True, True]  # fmt: skip


def test_modules_have_a_weight_for_each_head(torch_rng):
    norm = nn.LayerNorm(N, heads=H)
    assert norm.weight.shape == norm.bias.shape == (H, N) and f"heads={H}" in repr(norm)
    assert "heads" not in repr(nn.RMSNorm(N))
    torch.nn.init.normal_(norm.weight, generator=torch_rng)
    x, residual, _, _ = slices(torch_rng)
    wanted = normgrad.add_layer_norm(x, residual, N, norm.weight, norm.bias, heads=H)
    assert all(torch.equal(*pair) for pair in zip(nn.AddNorm(norm)(x, residual), wanted, strict=True))


def test_llamas_casting_takes_the_weight_of_each_head(torch_rng):
    norm = nn.RMSNorm(N, 1e-6, heads=H, casting="llama")
    torch.nn.init.normal_(norm.weight, generator=torch_rng)
    x, residual, _, _ = slices(torch_rng)
    assert torch.equal(norm(x), norm.weight * normgrad.rms_norm(x, N, eps=1e-6))
    y, total = nn.AddNorm(norm)(x, residual)
    assert torch.equal(y, norm.weight * normgrad.rms_norm(total, N, eps=1e-6))
