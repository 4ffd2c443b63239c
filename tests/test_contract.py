"""The contract over conditions: every pair of them is in a set of points, and every backend keeps it at each point."""

from itertools import product

import covering
import numpy as np
import pairwise
import pytest
import torch

import normgrad
from normgrad import LAYER_NORM, RMS_NORM, NormSpec, nn, numpy_ref
from normgrad.checks import cases, contract
from normgrad.checks.backends import NAMES, get
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import unit_roundoff
from normgrad.dtypes import NAMES as DTYPES
from normgrad.dtypes import accumulator, promoted
from normgrad.teaching import bytes as traffic
from normgrad.teaching.counted import Counted
from normgrad.teaching.watch import watch
from normgrad.torch_ops import differentiable
from normgrad.torch_ops import rows as torch_rows
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
    wanted = pairwise.pairs(covering.FACTORS, covering.allowed)
    found = covered(point for point in covering.points() if point not in covering.ROWS)
    assert found == wanted and len(wanted) == 12255
    assert all(covering.allowed(point) for point in covering.points())
    # What is not asked for cannot be made.
    for (one, a), (other, b) in (
        tuple(pair) for pair in pairwise.pairs(covering.FACTORS) - wanted
    ):
        assert not covering.allowed({one: a, other: b})


@pytest.mark.parametrize("backend", NAMES)
def test_every_backend_meets_every_level_and_every_spec(backend):
    points = [
        point for point in covering.points_of(backend) if point not in covering.ROWS
    ]
    for name, levels in covering.FACTORS.items():
        met = {point[name] for point in points}
        assert (
            met == set(get(backend).dtypes) if name == "dtype" else met == set(levels)
        )
    if len(get(backend).dtypes) == 4:
        specs = product(*(covering.FACTORS[name] for name in covering.SPEC))
        assert {
            covering.spec_of(point).replace(weight_offset=0) for point in points
        } == {
            NormSpec(**dict(zip(covering.SPEC, levels, strict=True)))
            for levels in specs
        }


def test_triton_meets_every_pair_with_the_columns_by_class():
    every, found = (
        covered(points, covering.coarse)
        for points in (covering.points(), covering.points_of("triton"))
    )
    assert found == every
    assert len(covering.points_of("triton")) * 3 < len(covering.points())


def test_the_set_is_small_and_always_the_same():
    longest = sorted(
        (len(levels) for levels in covering.FACTORS.values()), reverse=True
    )
    assert len(covering.points()) <= longest[0] * longest[1] * 1.03
    again = pairwise.cover(covering.FACTORS, covering.allowed, covering.SPEC)
    assert [*again, *covering.ROWS] == list(covering.points())


def test_the_cases_are_what_the_points_say():
    for point in covering.points()[::50]:
        case = covering.case_of(point)
        assert case.x.shape[1] == point["columns"] and (case.residual is None) == (
            point["residual"] == "none"
        )
        assert (
            case.heads == (point["lead"][-1] if point["heads"] else None)
            and case.layout == point["layout"]
        )
        assert (case.weight is not None and not case.weight.all()) == (
            point["affine"] == "with zeros"
            and case.weight.size > 0
            and not case.weight.all()
        )


def test_a_cover_of_what_cannot_be_made_is_refused():
    factors = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
    with pytest.raises(ValueError, match="allowed: no level of"):
        pairwise.cover(factors, lambda part: len(part) < 3)
    assert (
        covered(pairwise.cover(factors)) == pairwise.pairs(factors)
        and len(pairwise.cover(factors)) < 6
    )


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


KERNELS = {
    "torch": lambda: torch_rows,
    "triton": lambda: normgrad.triton_kernels,
    "numba": lambda: normgrad.numba_kernels,
}
WANTED = [
    (torch.bfloat16, torch.bfloat16, torch.float32, None),
    (torch.bfloat16, torch.float32, None, torch.bfloat16),
    (torch.float16, torch.bfloat16, torch.float16, torch.float16),
    (None, torch.float32, torch.float32, torch.float32),
    (torch.bfloat16, None, None, None),
    (None, None, torch.bfloat16, torch.float32),
]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("with_dresidual_out", [False, True])
@pytest.mark.parametrize("backend", KERNELS)
def test_a_backward_gives_what_was_asked_for(
    backend, with_dresidual_out, wanted, torch_rng
):
    """The dtypes asked for and nothing else; one tensor for dx and dresidual in one dtype, each rounded once."""
    dy, p, dresidual_out = (torch.randn(4, 7, generator=torch_rng) for _ in range(3))
    weight, mean, rstd = torch.randn(7, generator=torch_rng), p.mean(-1), 1 / p.std(-1)
    arguments = (
        dy,
        dresidual_out if with_dresidual_out else None,
        p,
        weight,
        mean,
        rstd,
        normgrad.LAYER_NORM,
    )
    backward = KERNELS[backend]().backward
    found, exact = (
        backward(*arguments, wanted),
        backward(*arguments, (torch.float32,) * 4),
    )
    assert [None if t is None else t.dtype for t in found] == list(wanted)
    assert exact[0] is exact[1]
    if (
        backend == "numba"
    ):  # where dw or db is not asked for, c1 and c2 are added up by another loop, in its own order
        together, exact = (
            exact,
            backward(*arguments, tuple(dtype and torch.float32 for dtype in wanted)),
        )
        pairs = [pair for pair in zip(together, exact, strict=True) if None not in pair]
        torch.testing.assert_close(*zip(*pairs, strict=True))
    if None not in wanted[:2]:
        assert (found[0] is found[1]) == (wanted[0] == wanted[1])
    for got, want in zip(found, exact, strict=True):
        assert got is None or torch.equal(got, want.to(got.dtype))


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
        assert (got - want).abs().max() <= 64 * unit_roundoff(
            "float32"
        ) * want.abs().max()


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
    found = [
        *both,
        *torch.autograd.grad(both, (x, residual, weight, bias), (dy, dresidual_out)),
    ]
    y = normgrad.rms_norm(x, N, weight, **options)
    return [t.detach() for t in (*found, y, *torch.autograd.grad(y, (x, weight), dy))]


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_slices_are_read_where_they_lie(backend, heads, torch_rng):
    """torch's operations move as many bytes for slices as for tensors without gaps; around Numba's none of rows."""
    pytest.importorskip(backend if backend == "numba" else "torch")
    tensors, parameters = slices(torch_rng), vectors(torch_rng, heads)
    moved = []
    for given in (tensors, [t.contiguous() for t in tensors]):
        with Counted() as counted:
            run(backend, heads, *given, *parameters)
        moved.append((counted.reads, counted.writes))
    assert moved[0] == moved[1]
    # Numba's kernels read copies: weight and bias of the LayerNorm, its weight backward, the RMSNorm's weight twice.
    copied = 5 * parameters[0].nbytes
    assert backend == "torch" or max(moved[0]) <= copied


def test_triton_launches_on_the_slices_themselves(heads, torch_rng, monkeypatch):
    """Nothing is copied before a launch, and kernels request as much as without gaps: what the model says."""
    pytest.importorskip("triton")
    from normgrad.triton_kernels import launch

    tensors, parameters = slices(torch_rng), vectors(torch_rng, heads)
    requested = []
    for given in (tensors, [t.contiguous() for t in tensors]):
        with watch() as accesses:
            run("triton", heads, *given, *parameters)
        requested.append(accesses.requested)
    assert requested[0] == requested[1]
    with watch() as accesses:
        normgrad.layer_norm(tensors[0], N, *parameters, heads=heads, backend="triton")
    shape = {"rows": B * S * H, "columns": N, "dtype": "float32", "heads": heads or 1}
    assert accesses.requested == traffic.moved("layer_norm", "forward", **shape).total
    model = traffic.by_package("add_layer_norm", "backward", multiprocessors=1, **shape)
    x, residual, dy, dresidual_out = tensors
    leaves = [t.detach().requires_grad_() for t in (x, residual, *parameters)]
    both = normgrad.add_layer_norm(
        *leaves[:2], N, *leaves[2:], heads=heads, backend="triton"
    )
    with watch() as accesses:
        torch.autograd.grad(both, leaves, (dy, dresidual_out))
    assert accesses.requested == model.total
    monkeypatch.setattr(launch, "launch_kernel", lambda *arguments, **options: None)
    with Counted() as counted:
        run("triton", heads, *tensors, *parameters)
    assert counted.calls == []


def test_several_normalized_axes(torch_rng):
    x, weight = (
        torch.randn(*lead, H, 2, 4, generator=torch_rng, dtype=torch.float64)
        for lead in ((B, S), ())
    )
    y = normgrad.rms_norm(x, (2, 4), weight, heads=H, backend="torch")
    for head in range(H):
        one = normgrad.rms_norm(x[:, :, head], (2, 4), weight[head], backend="torch")
        torch.testing.assert_close(y[:, :, head], one)


def test_a_cotangent_of_the_sum_alone(torch_rng):
    x, residual, _, dresidual_out = slices(torch_rng)
    weight = torch.ones(H, N, requires_grad=True)
    _, total = normgrad.add_rms_norm(
        x.requires_grad_(), residual, N, weight, heads=H, backend="torch"
    )
    dx, dw = torch.autograd.grad(total, (x, weight), dresidual_out)
    assert torch.equal(dx, dresidual_out) and torch.equal(dw, torch.zeros(H, N))


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
    assert (found.data_ptr() == t.data_ptr()) == (
        t.numel() != B * (S - 1) * (H - 1) * N
    )


def test_the_fewest_copies_decide(torch_rng):
    """One tensor with three strides does not make copies of the other two."""
    x, residual, _, _ = slices(torch_rng)
    third = torch.randn(S, B, H, N).transpose(0, 1)
    found = rows(False, third, x, None, residual)
    assert [t is None or t.data_ptr() == given.data_ptr() for t, given in zip(
        found, (third, x, None, residual), strict=True)] == [False, True, True, True]  # fmt: skip


def test_modules_have_a_weight_for_each_head(torch_rng):
    norm = nn.LayerNorm(N, heads=H, backend="torch")
    assert norm.weight.shape == norm.bias.shape == (H, N) and f"heads={H}" in repr(norm)
    assert "heads" not in repr(nn.RMSNorm(N, backend="torch"))
    torch.nn.init.normal_(norm.weight, generator=torch_rng)
    x, residual, _, _ = slices(torch_rng)
    wanted = normgrad.add_layer_norm(
        x, residual, N, norm.weight, norm.bias, heads=H, backend="torch"
    )
    assert all(
        torch.equal(*pair)
        for pair in zip(nn.AddNorm(norm)(x, residual), wanted, strict=True)
    )


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


GEMMA = RMS_NORM.replace(eps=1e-6, weight_offset=1.0)


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


def test_an_offset_requests_no_byte(rng):
    """The rows of both directions, counted in the interpreter: the constant is in the kernel's text."""
    pytest.importorskip("triton")
    from normgrad.triton_kernels import INTERPRETED

    if not INTERPRETED:
        pytest.skip("the interpreter counts")
    case = cases.draw(rng, 6, 40)
    counted = []
    for spec in (GEMMA.replace(weight_offset=0.0), GEMMA):
        x, weight = (
            torch.tensor(a).bfloat16().requires_grad_() for a in (case.x, case.weight)
        )
        with watch() as found:
            y = normgrad.normalize(x, weight, spec=spec, backend="triton")
            torch.autograd.grad(y, (x, weight), torch.tensor(case.dy).bfloat16())
        counted.append((found.requested, found.distinct))
    assert counted[0] == counted[1] and counted[0][0] > 0


# NumPy's other dtypes: nothing imaginary is dropped, nothing is rounded to less than it came in


def _draw(rng, *shape, dtype=np.complex128):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def _near(got, want, roundoff):
    return np.abs(got - want).max() <= 256 * roundoff * np.abs(want).max()


@pytest.mark.parametrize("spec", ["layer_norm", "rms_norm", "l2_norm"])
def test_complex64_is_complex128_rounded(spec, rng):
    x, residual = _draw(rng, 2, 3, 8), _draw(rng, 2, 3, 8)
    weight, bias = rng.standard_normal((2, 8))
    wide = numpy_ref.forward(x, weight, bias, residual, SPECS[spec])
    arrays = [
        array.astype(dtype)
        for array, dtype in ((x, "c8"), (weight, "f4"), (bias, "f4"), (residual, "c8"))
    ]
    narrow = numpy_ref.forward(*arrays, SPECS[spec])
    assert narrow.y.dtype == narrow.rstd.dtype == np.complex64
    assert _near(narrow.y, wide.y, unit_roundoff("float32"))


@pytest.mark.parametrize("name", ["x", "weight", "bias", "residual"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_one_complex_array_makes_the_output_complex(name, dtype, rng):
    real = {"x": (3, 8), "weight": (8,), "bias": (8,), "residual": (3, 8)}
    arrays = {
        each: rng.standard_normal(shape).astype(dtype) for each, shape in real.items()
    }
    arrays[name] = _draw(rng, *real[name]).astype(np.result_type(dtype, np.complex64))
    wide = {each: array.astype(complex) for each, array in arrays.items()}
    got, want = numpy_ref.forward(**arrays), numpy_ref.forward(**wide)
    assert got.y.dtype == np.result_type(dtype, np.complex64)
    assert _near(got.y, want.y, np.finfo(dtype).eps)
    assert np.abs(want.y.imag).max() > np.finfo(dtype).eps


def test_gradients_are_linear_in_a_complex_cotangent(rng):
    x, (dy, dresidual_out) = rng.standard_normal((3, 8)), _draw(rng, 2, 3, 8)
    saved = numpy_ref.forward(x, *rng.standard_normal((2, 8)), spec=LAYER_NORM)
    for pair in (
        (dy, dresidual_out),
        (dy.real.copy(), dresidual_out),
        (dy, dresidual_out.real.copy()),
    ):
        got = numpy_ref.backward(pair[0], saved, pair[1])
        parts = [
            numpy_ref.backward(part(pair[0]), saved, part(pair[1]))
            for part in (np.real, np.imag)
        ]
        for name in ("dx", "dweight", "dbias"):
            real, imaginary = (getattr(part, name) for part in parts)
            assert _near(
                getattr(got, name), real + 1j * imaginary, unit_roundoff("float64")
            )


def test_a_complex_row_keeps_the_gradients_complex(rng):
    """The complex step of a gradient: its imaginary part is what the step moves."""
    x, dy, move = rng.standard_normal((3, 3, 8))
    weight, bias = rng.standard_normal((2, 8))
    step = 1e-200

    def gradients(x):
        return numpy_ref.backward(dy, numpy_ref.forward(x, weight, bias))

    moved, h = gradients(x + 1j * step * move), 1e-6
    ends = [gradients(x + sign * h * move) for sign in (1, -1)]
    for name in ("dx", "dweight"):
        slope = (getattr(ends[0], name) - getattr(ends[1], name)) / (2 * h)
        assert (
            np.abs(getattr(moved, name).imag / step - slope).max()
            <= h * np.abs(slope).max()
        )


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(float).eps,
    reason="long double is float64 here",
)
def test_longdouble_is_computed_as_it_is(rng):
    x = rng.standard_normal((3, 8)).astype(np.longdouble)
    weight = np.ones(8, np.longdouble)
    saved = numpy_ref.forward(x, weight, spec=LAYER_NORM.replace(eps=0))
    grads = numpy_ref.backward(x * x, saved)
    assert {
        array.dtype
        for array in (saved.y, saved.mean, saved.rstd, grads.dx, grads.dweight)
    } == {weight.dtype}
    # What normalization promises, to the last bits of the longer numbers.
    room = 64 * np.finfo(np.longdouble).eps
    assert np.abs(saved.y.mean(-1)).max() <= room
    assert np.abs((saved.y**2).mean(-1) - 1).max() <= room
    assert np.abs(grads.dx.sum(-1)).max() <= room * np.abs(grads.dx).max()
