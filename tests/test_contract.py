"""The contract over conditions: every pair of them is in a set of points, and every backend keeps it at each point."""

import covering
import numpy as np
import pairwise
import pytest
import torch
from near import near

import normgrad
from normgrad import nn, numpy_ref
from normgrad.checks import cases, contract
from normgrad.checks.backends import NAMES
from normgrad.dtypes import NAMES as DTYPES
from normgrad.dtypes import accumulator, promoted
from normgrad.teaching import bytes as traffic
from normgrad.teaching.counted import Counted
from normgrad.teaching.watch import watch
from normgrad.torch_ops import differentiable
from normgrad.torch_ops.arguments import rows

# A chunk is one test: enough of them to share out, few enough that counting them costs nothing.
CHUNKS = {"numpy": 1, "sympy": 1, "torch": 12, "triton": 12, "numba": 4}
RUNS = [
    pytest.param(backend, chunk, id=f"{backend}-{chunk}")
    for backend in NAMES
    for chunk in range(CHUNKS[backend])
]


@pytest.mark.parametrize(("backend", "chunk"), RUNS)
def test_the_contract_holds_at_every_point(backend, chunk):
    for point in covering.points_of(backend)[chunk :: CHUNKS[backend]]:
        covering.check_point(backend, point)


@pytest.mark.parametrize("backend", ["triton", "numba"])
def test_kernels_have_second_derivatives_and_tangents(backend):
    """They are torch's operations for every backend, so that one spec shows that they are reached."""
    case = cases.draw(np.random.default_rng(1), 2, 3)
    contract.check_gradcheck(
        backend, case, cases.SPECS["layer_norm_std"], second=True, forward_mode=True
    )


def covered(points, key=dict):
    return set().union(*(pairwise.pairs_of(key(point)) for point in points))


def test_every_pair_is_in_the_set():
    needed = pairwise.pairs(covering.FACTORS, covering.allowed)
    in_points = covered(
        point for point in covering.points() if point not in covering.ROWS
    )
    assert in_points == needed and len(needed) == 12255
    assert all(covering.allowed(point) for point in covering.points())


# Dtypes: what no point asks for


@pytest.mark.parametrize("first", DTYPES)
def test_statistics_are_in_the_oracles_dtype(first):
    if first != "bfloat16":
        oracle = numpy_ref.forward(np.ones((1, 2), first))
        assert accumulator(first) == oracle.rstd.dtype.name
    x = torch.ones(1, 2, dtype=getattr(torch, first))
    assert differentiable.accumulator(x.dtype) == getattr(torch, accumulator(first))
    for second in DTYPES:
        residual = x.to(getattr(torch, second))
        named = getattr(torch, promoted(first, second))
        assert (x + residual).dtype == differentiable.promoted(x, residual) == named


def test_second_derivatives_where_the_stored_sum_is_narrower(torch_rng):
    """The sum is normalized before it is rounded: all is right to the rounding of what is stored."""
    shapes = ((2, 3), (2, 3), (3,), (3,))
    tensors = [
        torch.randn(
            *shape, generator=torch_rng, dtype=torch.float64, requires_grad=True
        )
        for shape in shapes
    ]
    dy, u = (t.detach().flip(0) for t in tensors[:2])
    twice = []
    for options in ({"residual_dtype": torch.float32, "round_residual": False}, {}):
        y, _ = normgrad.add_layer_norm(*tensors[:2], 3, *tensors[2:], **options)
        (dx,) = torch.autograd.grad(y, tensors[0], dy, create_graph=True)
        twice.append(torch.autograd.grad(dx, tensors[:3], u))
    for got, want in zip(*twice, strict=True):
        assert near(got, want, dtype="float32")


# Heads: rows are read where they lie

B, S, H, N = 2, 6, 3, 8
OWN = {"one weight": None, "a weight for each head": H}


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
    x, residual, weight, bias = (
        t.detach().requires_grad_() for t in (x, residual, weight, bias)
    )
    options = {"heads": heads, "backend": backend}
    both = normgrad.add_layer_norm(x, residual, N, weight, bias, **options)
    leaves = (x, residual, weight, bias)
    grads = torch.autograd.grad(both, leaves, (dy, dresidual_out))
    y = normgrad.rms_norm(x, N, weight, **options)
    return [
        t.detach() for t in (*both, *grads, y, *torch.autograd.grad(y, (x, weight), dy))
    ]


def test_triton_launches_on_the_slices_themselves(heads, torch_rng, monkeypatch):
    """Nothing is copied before a launch, and kernels request as much as without gaps: what the model says."""
    pytest.importorskip("triton")
    from normgrad.triton_kernels import configuration, launch

    tensors, parameters = slices(torch_rng), vectors(torch_rng, heads)
    with watch() as accesses:
        normgrad.layer_norm(tensors[0], N, *parameters, heads=heads, backend="triton")
    shape = {"rows": B * S * H, "columns": N, "dtype": "float32", "heads": heads or 1}
    assert accesses.requested == traffic.moved("layer_norm", "forward", **shape).total
    leaves = [t.detach().requires_grad_() for t in (*tensors[:2], *parameters)]
    both = normgrad.add_layer_norm(
        *leaves[:2], N, *leaves[2:], heads=heads, backend="triton"
    )
    with watch() as accesses:
        torch.autograd.grad(both, leaves, tensors[2:])
    tile, of = configuration.backward_tile(N, 4), heads or 1
    size = (B * S * H // of, N, tile, configuration.INTERPRETER, False, of)
    model = traffic.moved(
        "add_layer_norm",
        "backward",
        partial_rows=configuration.programs(*size),
        **shape,
    )
    assert accesses.requested == model.total
    monkeypatch.setattr(launch, "launch_kernel", lambda *arguments, **options: None)
    with Counted() as counted:
        run("triton", heads, *tensors, *parameters)
    assert counted.calls == []


# How a tensor (B, S, H, N) lies, and the rows that are read of it.
LAYOUTS = {
    "t": (B * S * H, N),
    "t[:, :, 1:]": (B * S, H - 1, N),
    "t[:, 1:]": (B, (S - 1) * H, N),
    "t[:1, :, 1:].transpose(1, 2)": (H - 1, S, N),
    "t[:, 1:, 1:]": (B * (S - 1) * (H - 1), N),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_where_strides_part(layout):
    """One stride or two are a view; three are copied, once."""
    t = eval(layout, {"t": torch.randn(B, S, H, N)})
    (read,) = rows(False, t)
    assert read.shape == LAYOUTS[layout] and torch.equal(read.reshape(t.shape), t)
    assert (read.data_ptr() == t.data_ptr()) == (layout != "t[:, 1:, 1:]")


def test_the_fewest_copies_decide(torch_rng):
    """One tensor with three strides does not make copies of the other two."""
    x, residual, _, _ = slices(torch_rng)
    third = torch.randn(S, B, H, N).transpose(0, 1)
    first, second, absent, last = rows(False, third, x, None, residual)
    assert first.data_ptr() != third.data_ptr() and absent is None
    assert second.data_ptr() == x.data_ptr() and last.data_ptr() == residual.data_ptr()


def test_llamas_casting_takes_the_weight_of_each_head(torch_rng):
    norm = nn.RMSNorm(N, 1e-6, heads=H, casting="llama", backend="torch")
    torch.nn.init.normal_(norm.weight, generator=torch_rng)
    x, residual, _, _ = slices(torch_rng)
    assert torch.equal(
        norm(x), norm.weight * normgrad.rms_norm(x, N, eps=1e-6, backend="torch")
    )
    y, total = nn.AddNorm(norm)(x, residual)
    assert torch.equal(
        y, norm.weight * normgrad.rms_norm(total, N, eps=1e-6, backend="torch")
    )


# The offset of the weight


def test_a_module_begins_where_its_factor_is_1(torch_rng):
    plain, offset = (
        normgrad.nn.RMSNorm(5, backend="torch"),
        normgrad.nn.RMSNorm(5, weight_offset=1.0, backend="torch"),
    )
    assert not offset.weight.any() and plain.weight.eq(1).all()
    x = torch.randn(3, 5, generator=torch_rng)
    assert torch.equal(plain(x), offset(x))
    assert "weight_offset=1.0" in repr(offset) and "weight_offset" not in repr(plain)
    torch.nn.init.ones_(offset.weight)
    offset.reset_parameters()
    assert not offset.weight.any()


def test_numpy_writes_to_no_argument(rng):
    x, residual, dy, dresidual_out = rng.standard_normal((4, 3, 5))
    weight, bias = rng.standard_normal((2, 5))
    arguments = x, weight, bias, residual, dy, dresidual_out
    for argument in arguments:
        argument.setflags(write=False)
    saved = numpy_ref.forward(x, weight, bias, residual)
    dx = numpy_ref.backward(dy, saved, dresidual_out).dx
    assert not any(np.shares_memory(dx, argument) for argument in arguments)
