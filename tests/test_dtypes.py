"""Inputs, parameters, outputs and the residual stream in dtypes of their own: the same contract, and what breaks it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import normgrad
from normgrad import nn, numpy_ref
from normgrad.checks import cases, contract
from normgrad.checks.backends import INPUTS, TorchBackend
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import Dtypes, bounds, unit_roundoff
from normgrad.dtypes import NAMES, accumulator, promoted
from normgrad.mistakes import mutants
from normgrad.torch_ops import differentiable
from normgrad.torch_ops import rows as torch_rows

SEED = 1
CASES = {case.name: case for case in cases.cases(np.random.default_rng(SEED))}
PARAMETERS = {"weight": "float32", "bias": "float32"}
MIXED = [
    Dtypes("bfloat16", residual="float32", **PARAMETERS),
    Dtypes("float16", **PARAMETERS),
    Dtypes("bfloat16", residual_out="float32"),
    Dtypes("bfloat16", residual_out="float32", round_residual=False),
    Dtypes("float32", out="bfloat16"),
    Dtypes("bfloat16", out="float32"),
    Dtypes("bfloat16", round_residual=False),
    Dtypes("bfloat16", residual="float32", residual_out="bfloat16", **PARAMETERS),
    Dtypes("bfloat16", residual="float32", residual_out="bfloat16", round_residual=False, **PARAMETERS),
    Dtypes("float16", residual="bfloat16", bias="float32"),
    Dtypes("float64", residual="float32", weight="bfloat16", out="float16", residual_out="float32"),
]
SPEC = SPECS["layer_norm"]
OFFSET = "mean a thousand deviations away"  # where the rounding of the sum in 16 bits is as large as the deviations
# Triton's interpreter takes about 4 ms for each row and launch.
CHOSEN = {
    "torch": (("layer_norm", "rms_norm", "layer_norm_std", "l2_clamp", "rms_norm_offset"), tuple(CASES)),
    "triton": (("layer_norm", "layer_norm_std"), ("random", "strided", OFFSET)),
    "numba": (("layer_norm", "l2_clamp"), tuple(CASES)),
}
VALUES = [
    pytest.param(backend, spec, case, dtypes, id=f"{backend}-{spec}-{case}-{dtypes}")
    for backend, (specs, names) in CHOSEN.items()
    for spec in specs
    for case in names
    for dtypes in MIXED
    if (CASES[case].residual is not None or dtypes.residual is None) and contract.defined(CASES[case], SPECS[spec])
]


@pytest.mark.parametrize("first", NAMES)
def test_statistics_are_in_the_oracles_dtype(first):
    if first != "bfloat16":
        oracle = numpy_ref.forward(np.ones((1, 2), first))
        assert accumulator(first) == oracle.rstd.dtype.name
    x = torch.ones(1, 2, dtype=getattr(torch, first))
    assert differentiable.accumulator(x.dtype) == getattr(torch, accumulator(first))
    for second in NAMES:
        residual = x.to(getattr(torch, second))
        named = getattr(torch, promoted(first, second))
        assert (x + residual).dtype == differentiable.promoted(x, residual) == named


@pytest.mark.parametrize(("backend", "spec", "case", "dtypes"), VALUES)
def test_values(backend, spec, case, dtypes):
    contract.check_values(backend, CASES[case], SPECS[spec], dtypes)


@pytest.mark.parametrize("backend", CHOSEN)
def test_values_at_large_n(backend):
    """Rows that Triton sweeps: without rounding it has to add the summands at each sweep again."""
    case = cases.draw(np.random.default_rng(SEED), 2, 20000).without("weight", "bias")
    offset = replace(case, x=case.x + 1e3)
    for dtypes in (Dtypes("bfloat16", round_residual=False), Dtypes("bfloat16", residual="float32")):
        contract.check_values(backend, offset, SPEC, dtypes)


@pytest.mark.parametrize("dtypes", MIXED, ids=str)
def test_gradients_that_can_be_differentiated(dtypes):
    for case in (CASES["random"], CASES[OFFSET]):
        contract.check_values(TorchBackend("torch", create_graph=True), case, SPECS["layer_norm"], dtypes)


UNROUNDED = Dtypes("bfloat16", round_residual=False)
STREAM = Dtypes("bfloat16", residual="float32", **PARAMETERS)
NARROW = Dtypes("float16", **PARAMETERS)
FAST_SUM = "    if rounded and out.dtype == promoted(x, residual):\n        return torch.add(x, residual, out=out)\n"
ROUND = "        if ROUND:\n"
LOADED = "M, residual_step, N, VECTOR, heads, residual_head_step).to(ACC)\n"
COLUMNS = "SCALE * load_weight(weight_ptr, cols, N, OFFSET, ACC, head, CACHE)"
OPTIONS = "    dtypes, residual_out = [x.dtype, out_dtype], None\n"
SECOND = "    if dresidual_ptr is not None:\n"
AFTER = "the offset added in 16 bits"
WIDE = "_weight(weight, n, acc, spec), _vector(bias"
# name: (the dtypes that show it, {backend: (the text, what it becomes)})
ONE_PARTIAL = "    if len(partial) == 1:\n"
MUTANTS = {
    "statistics of the rounded sum": (
        UNROUNDED,
        {
            "torch": ("return out if rounded else total", "return out"),
            "triton": (ROUND, "        if True:\n"),
            "numba": (OPTIONS, f"    round_residual = True\n{OPTIONS}"),
        },
    ),
    "statistics of the sum before rounding": (
        Dtypes("bfloat16"),
        {
            "torch": (FAST_SUM, "    rounded = False\n"),
            "triton": (ROUND, "        if False:\n"),
            "numba": (OPTIONS, f"    round_residual = False\n{OPTIONS}"),
        },
    ),
    "a wide sum added in 16 bits": (
        Dtypes("bfloat16", residual_out="float32"),
        {
            "torch": ("torch.add(x.to(accumulator(promoted(x, residual))), residual)", "torch.add(x, residual)"),
            "triton": (LOADED, f"{LOADED}        p = cast(p, tl.bfloat16).to(ACC)\n"),
            "numba": (OPTIONS, f"    x, residual = x + residual, residual * 0\n{OPTIONS}"),
        },
    ),
    "a wide dresidual out of a narrow dx": (
        STREAM,
        {
            "torch": ("    for dx in outs:\n", "    dp = dp.bfloat16().float()\n    for dx in outs:\n"),
            "triton": (SECOND, f"{SECOND}        dx = cast(dx, tl.bfloat16).to(ACC)\n"),
            "numba": ("{one: cast(dx, one)", "{one: cast(dx.bfloat16(), one)"),
        },
    ),
    "y rounded twice on its way to out_dtype": (
        Dtypes("bfloat16", out="float16"),
        {
            "torch": ("        y.copy_(out)", "        y.copy_(out.bfloat16())"),
            "numba": ("return cast(y, out_dtype)", "return cast(y.bfloat16(), out_dtype)"),
        },
    ),
    "dw rounded to x's dtype": (NARROW, {"torch": (", dtypes[2])", ", p.dtype).to(dtypes[2])")}),
    "db rounded to x's dtype": (NARROW, {"torch": ("cast(db, dtypes[3])", "cast(db.to(p.dtype), dtypes[3])")}),
    "sums rounded to x's dtype": (
        NARROW,
        {
            "triton": ("tl.sum(total, axis=0), out", "cast(tl.sum(total, axis=0), tl.float16).to(tl.float32), out"),
            "numba": (ONE_PARTIAL, f"    partial = partial.astype(np.float16).astype(partial.dtype)\n{ONE_PARTIAL}"),
        },
    ),
    "backward takes its own mean of the rounded sum": (
        UNROUNDED,
        {
            "torch": ("torch.sub(q, means.unsqueeze(-1)", "torch.sub(q, q.mean(-1, keepdim=True)"),
            "triton": ("centred(q, tl.load(mean_ptr + rows, mask=rows < M, other=0)", "centred(q, tl.sum(q, 1) / N"),
            "numba": ("else _array(mean)", "else _array(p.to(acc).mean(-1))"),
        },
    ),
    "weight rounded to x's dtype": (
        NARROW,
        {
            "torch": (
                "if weight is None else full_weight(weight,",
                "if weight is None else full_weight(weight.to(p.dtype),",
            ),
            "triton": (f"weight = {COLUMNS}", f"weight = cast({COLUMNS}, tl.float16).to(ACC)"),
            "numba": ("_weight(weight, n, acc, spec), mean)", "_weight(weight.to(p.dtype), n, acc, spec), mean)"),
        },
    ),
}
MUTANTS[AFTER] = (
    Dtypes("bfloat16"),
    {
        "torch": ("full_weight(weight, like.dtype, spec)", "(weight + spec.weight_offset).to(like.dtype)"),
        "triton": ("weight = weight + OFFSET", "weight = cast(weight + OFFSET, tl.bfloat16).to(ACC)"),
        "numba": (WIDE, WIDE.replace("weight,", "weight + 1 - 1,", 1)),
    },
)
REJECTED = [(name, backend) for name, (_, edits) in MUTANTS.items() for backend in edits]


@pytest.mark.parametrize(("name", "backend"), REJECTED)
def test_the_contract_rejects(name, backend):
    dtypes, edits = MUTANTS[name]
    spec = SPECS["rms_norm_offset"] if name == AFTER else SPEC
    wrong = mutants.mutated(mutants.Mutant(name, name, {backend: (edits[backend],)}), backend)
    with pytest.raises(AssertionError, match="exceeds the bound"):
        for case in (CASES["random"], CASES[OFFSET]):
            contract.check_values(wrong, case, spec, dtypes)


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
def test_a_backward_gives_what_was_asked_for(backend, with_dresidual_out, wanted, torch_rng):
    """The dtypes asked for and nothing else; one tensor for dx and dresidual in one dtype, each rounded once."""
    dy, p, dresidual_out = (torch.randn(4, 7, generator=torch_rng) for _ in range(3))
    weight, mean, rstd = torch.randn(7, generator=torch_rng), p.mean(-1), 1 / p.std(-1)
    arguments = (dy, dresidual_out if with_dresidual_out else None, p, weight, mean, rstd, normgrad.LAYER_NORM)
    backward = KERNELS[backend]().backward
    found, exact = backward(*arguments, wanted), backward(*arguments, (torch.float32,) * 4)
    assert [None if t is None else t.dtype for t in found] == list(wanted)
    assert exact[0] is exact[1]
    if backend == "numba":  # where dw or db is not asked for, c1 and c2 are added up by another loop, in its own order
        together, exact = exact, backward(*arguments, tuple(dtype and torch.float32 for dtype in wanted))
        pairs = [pair for pair in zip(together, exact, strict=True) if None not in pair]
        torch.testing.assert_close(*zip(*pairs, strict=True))
    if None not in wanted[:2]:
        assert (found[0] is found[1]) == (wanted[0] == wanted[1])
    for got, want in zip(found, exact, strict=True):
        assert got is None or torch.equal(got, want.to(got.dtype))


# The other paths: the formula, forward mode, vmap, higher derivatives, modules


@pytest.fixture
def tensors(torch_rng):
    """x, residual (2, 3), weight, bias (3,), float64."""
    shapes = ((2, 3), (2, 3), (3,), (3,))
    return [torch.randn(*shape, generator=torch_rng, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("dtypes", MIXED, ids=str)
def test_the_formula_is_the_operator(dtypes):
    """torch.func falls back on it, so it takes the same options: the sums are the same bits, y is within its bound."""
    options = {"out_dtype": dtypes["y"], "residual_dtype": dtypes["residual_out"]}
    options = {name: getattr(torch, dtype) for name, dtype in options.items()}
    for name in ("random", OFFSET):
        case = CASES[name].rounded(dtypes)
        given = [torch.tensor(getattr(case, name)).to(getattr(torch, dtypes[name])) for name in INPUTS]
        y, stored = differentiable.forward(*given, SPEC, round_residual=dtypes.round_residual, **options)
        _, expected, _, _ = torch_rows.forward(given[0], None, None, given[1], SPEC, **options)
        saved, _ = contract.reference(case, SPEC, dtypes, stored.double().numpy())
        assert torch.equal(stored, expected) and y.dtype == options["out_dtype"]
        assert (abs(y.double().numpy() - saved.y) <= bounds(case.dy, case.dresidual_out, saved, dtypes).y).all()


@pytest.mark.parametrize("backend", KERNELS)
def test_derivatives_where_the_stored_sum_is_narrower(tensors, backend):
    """The sum is normalized before it is rounded: differences see a smooth function, whose gradients are returned."""
    options = {"residual_dtype": torch.float32, "round_residual": False, "backend": backend}

    def function(*tensors):
        return normgrad.add_layer_norm(*tensors[:2], 3, *tensors[2:], **options)[0]

    def exact(*tensors):
        return differentiable.forward(*tensors, SPEC)[0]

    assert torch.autograd.gradcheck(function, tensors, check_forward_ad=True)
    dy, u = (t.detach().flip(0) for t in tensors[:2])
    twice = []
    for each in (function, exact):
        (dx,) = torch.autograd.grad(each(*tensors), tensors[0], dy, create_graph=True)
        twice.append(torch.autograd.grad(dx, tensors[:3], u))
    for got, want in zip(*twice, strict=True):
        assert (got - want).abs().max() <= 64 * unit_roundoff("float32") * want.abs().max()


@pytest.mark.parametrize("backend", KERNELS)
def test_torch_func_with_dtypes(torch_rng, backend):
    x, residual, dot = (torch.randn(3, 5, generator=torch_rng) for _ in range(3))
    dtypes = {"out_dtype": torch.bfloat16, "residual_dtype": torch.float16}

    def ours(x):
        return normgrad.add_layer_norm(x, residual, 5, **dtypes, round_residual=False, backend=backend)

    def exact(x):
        return differentiable.forward(x, residual.double(), None, None, SPEC)

    outputs, tangents = torch.func.jvp(ours, (x,), (dot,))
    expected = torch.func.jvp(exact, (x.double(),), (dot.double(),))
    for got, want in zip((*outputs, *tangents), (*expected[0], *expected[1]), strict=True):
        room = 2 * unit_roundoff(str(got.dtype).removeprefix("torch."))
        assert (got.double() - want).abs().max() <= room * want.abs().max()
    assert [t.dtype for t in tangents] == [t.dtype for t in outputs] == [torch.bfloat16, torch.float16]
    for got, want in zip(torch.func.vmap(ours)(torch.stack([dot, x])), outputs, strict=True):
        assert torch.equal(got[1], want)


def test_a_mapped_weight_is_applied_before_y_is_rounded(torch_rng):
    x, weights = torch.randn(16, 5, generator=torch_rng), torch.randn(8, 5, generator=torch_rng)
    found = torch.func.vmap(lambda w: normgrad.layer_norm(x, 5, w, w, out_dtype=torch.bfloat16))(weights)
    for y, weight in zip(found.double().numpy(), weights.double().numpy(), strict=True):
        saved = numpy_ref.forward(x.double().numpy(), weight, weight)
        assert (abs(y - saved.y) <= bounds(saved.y, None, saved, Dtypes("float32", out="bfloat16")).y).all()


def test_a_residual_stream_in_float32(torch_rng):
    """Modules in bfloat16 beside a stream in float32: every tensor and every gradient in its own dtype."""
    add_norm = nn.AddNorm(nn.RMSNorm(5, out_dtype=torch.bfloat16), residual_dtype=torch.float32, round_residual=False)
    x, residual = (torch.randn(3, 5, generator=torch_rng).bfloat16().requires_grad_() for _ in range(2))
    y, stream = add_norm(x, residual)
    assert torch.equal(stream, x.float() + residual.float()) and y.dtype == torch.bfloat16
    add_norm.norm.weight.data.uniform_(-1, 1, generator=torch_rng)
    wanted = (x, residual, add_norm.norm.weight)
    grads = torch.autograd.grad(add_norm(x, residual), wanted, (y.detach(), stream.detach()))
    assert [g.dtype for g in grads] == [torch.bfloat16, torch.bfloat16, torch.float32]
    assert grads[0] is grads[1] or torch.equal(grads[0], grads[1])
    assert repr(add_norm).count("residual_dtype=torch.float32, round_residual=False") == 1
