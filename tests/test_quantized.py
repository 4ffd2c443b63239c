"""One byte a number and one scale a row: values, bounds, rounding, lost rows, bytes, the kernel's text, refusals."""

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import normgrad
from normgrad import numpy_ref
from normgrad.bench import traffic
from normgrad.bench.counted import interpreted
from normgrad.checks import tolerance
from normgrad.checks.cases import SPECS, draw
from normgrad.dtypes import QUANTIZED
from normgrad.spec import NormSpec

BACKENDS = ("torch", "triton", "numba")
DTYPES = tuple(QUANTIZED)
# y is x itself, to the last bit: rows shorter than 2**20 are divided by it, and multiplied by it.
ITSELF = NormSpec(center=False, reduce="sum", eps=2.0**20, scale=2.0**20, placement="clamp")
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture(params=BACKENDS)
def backend(request):
    pytest.importorskip({"triton": "triton", "numba": "numba"}.get(request.param, "torch"))
    return request.param


def call(backend, dtype, x, weight=None, bias=None, residual=None, spec=ITSELF, **options):
    """(quantized, scale, ...) of tensors; of arrays by the reference."""
    if backend == "numpy":
        found = numpy_ref.quantized(x, weight, bias, residual, spec, dtype=dtype)
        return found.quantized, found.scale, found.residual_out
    options = {"spec": spec, "dtype": getattr(torch, dtype), "backend": backend, **options}
    return normgrad.normalize_quantized(x, weight, bias, residual, **options)


def tensors(case, dtype):
    arrays = (case.x, case.weight, case.bias, case.residual)
    return [None if a is None else torch.tensor(a).to(getattr(torch, dtype)) for a in arrays]


# Values


@every_dtype
@pytest.mark.parametrize("given", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "layer_norm_std", "l2_norm", "plain_sum_scaled"])
def test_it_is_the_operator_rounded_once(backend, name, given, dtype, rng):
    """Near the oracle's y, with the scale of the row's largest number, which itself becomes Q or -Q."""
    spec, case = SPECS[name], draw(rng, 7, 37).rounded(given)
    case = replace(case, residual=None) if name == "l2_norm" else case
    dtypes = tolerance.Dtypes(given, out="float64" if given == "float64" else "float32")
    found, scale, *sums = call(backend, dtype, *tensors(case, given), spec=spec)
    saved = numpy_ref.forward(case.x, case.weight, case.bias, case.residual, spec)
    if sums:
        residual_out = normgrad.normalize(*tensors(case, given), spec=spec, backend=backend, return_residual=True)[1]
        assert torch.equal(sums[0], residual_out)
        p = residual_out.double().numpy()
        saved = numpy_ref.forward(p, case.weight, case.bias, spec=spec)
    error = tolerance.bounds(case.dy, None, saved, dtypes).y
    bound, e_scale = tolerance.quantized_bounds(saved.y, error, dtype, dtypes.accumulator)
    found, scale = found.double().numpy(), scale.double().numpy()
    assert scale.shape == (7, 1)
    assert (np.abs(scale - np.abs(saved.y).max(-1, keepdims=True) / QUANTIZED[dtype]) <= e_scale).all()
    assert (np.abs(scale * found - saved.y) <= bound).all()
    assert (np.abs(found).max(-1) == QUANTIZED[dtype]).all()


@every_dtype
def test_the_reference_is_within_half_a_step_and_needs_all_of_it(dtype, rng):
    """In fractions, without a tolerance but for the one rounding of y / scale."""
    case = draw(rng, 5, 400)
    y = numpy_ref.forward(case.x, case.weight, case.bias, case.residual).y
    found = numpy_ref.quantized(case.x, case.weight, case.bias, case.residual, dtype=dtype)
    allowed = tolerance.quantized_error(y, found.scale, dtype)
    used = []
    for i, j in np.ndindex(y.shape):
        exact, scale = Fraction(y[i, j]), Fraction(found.scale[i, 0])
        error = abs(scale * Fraction(float(found.quantized[i, j])) - exact)
        rounding = abs(exact) * Fraction(tolerance.unit_roundoff("float64"))
        assert error <= Fraction(allowed[i, j]) + rounding
        used.append(float(error / Fraction(allowed[i, j])))
    assert max(used) > 0.95


def halves():
    """What lies between two numbers of int8, and beside it."""
    middle = np.arange(-127, 127) + 0.5
    return np.concatenate([middle, np.nextafter(middle, 200, dtype=np.float32), np.nextafter(middle, -200,
                           dtype=np.float32), [127.0, -0.0]]).astype(np.float32)  # fmt: skip


def float8_middles():
    """All numbers of float8_e4m3fn, what lies between two of them, and beside it; the smallest are not normal."""
    numbers = torch.arange(0x7F, dtype=torch.uint8).view(torch.float8_e4m3fn).float().numpy()
    middle = (numbers[1:] + numbers[:-1]) / 2
    beside = [np.nextafter(middle, end, dtype=np.float32) for end in (0, 500)]
    one_sign = np.concatenate([numbers, middle, *beside])
    return np.concatenate([one_sign, -one_sign]).astype(np.float32)


@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
@every_dtype
def test_ties_go_to_the_even_number(backend, dtype):
    """Rows whose scale is 1: what is rounded is x itself."""
    if backend in ("triton", "numba"):
        pytest.importorskip(backend)
    x = halves()[None] if dtype == "int8" else float8_middles()[None]
    wanted = np.rint(x) if dtype == "int8" else torch.tensor(x).to(torch.float8_e4m3fn).float().numpy()
    found, scale, *_ = call(backend, dtype, x if backend == "numpy" else torch.tensor(x))
    assert float(scale[0, 0]) == 1
    found = found.astype(np.float32) if backend == "numpy" else found.float().numpy()
    assert np.array_equal(found, wanted)


@every_dtype
def test_a_16_bit_row_is_not_rounded_before(backend, dtype, torch_rng):
    """y of 16 bits would have other largest numbers: the scale has 24 bits."""
    x, weight = torch.randn(9, 33, generator=torch_rng).bfloat16(), torch.randn(33, generator=torch_rng).bfloat16()
    spec = normgrad.RMS_NORM.replace(eps=1e-6)
    narrow, wide = (call(backend, dtype, x.to(to), weight.to(to), spec=spec) for to in (torch.bfloat16, torch.float32))
    assert all(torch.equal(one.float(), other.float()) for one, other in zip(narrow, wide, strict=True))


@every_dtype
def test_leading_axes_strides_and_short_names(backend, dtype, torch_rng):
    wide = torch.randn(2, 3, 20, 3, generator=torch_rng)
    x, residual, weight = wide[:, :, ::2, 0], wide[:, :, 1::2, 1], torch.randn(10, generator=torch_rng)
    spec = normgrad.RMS_NORM.replace(eps=1e-3, weight_offset=1.0)
    options = {"dtype": getattr(torch, dtype), "backend": backend, "weight_offset": 1.0}
    rows = [t.reshape(6, 10) for t in (x, residual)]
    wanted = call(backend, dtype, rows[0], weight, residual=rows[1], spec=spec)
    found = normgrad.add_rms_norm_quantized(x, residual, 10, weight, 1e-3, **options)
    assert [tuple(t.shape) for t in found] == [(2, 3, 10), (2, 3, 1), (2, 3, 10)]
    assert all(torch.equal(a.float().flatten(), b.float().flatten()) for a, b in zip(found, wanted, strict=True))
    wanted = call(backend, dtype, rows[0], weight, spec=spec)
    found, scale = normgrad.rms_norm_quantized(x, (10,), weight, 1e-3, **options)
    assert torch.equal(scale.reshape(6, 1), wanted[1]) and torch.equal(found.float().reshape(6, 10), wanted[0].float())
    _, scale = normgrad.rms_norm_quantized(x, (3, 10), eps=1e-3, dtype=options["dtype"], backend=backend)
    assert scale.shape == (2, 1, 1)


def test_no_rows(backend):
    found, scale, residual_out = call(backend, "int8", *[torch.ones(0, 5)] * 1, residual=torch.ones(0, 5))
    assert found.shape == residual_out.shape == (0, 5) and scale.shape == (0, 1)


# Rows that have no scale


@every_dtype
@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
def test_a_row_of_zeros_has_scale_0_and_is_0_again(backend, dtype):
    if backend in ("triton", "numba"):
        pytest.importorskip(backend)
    x = np.float32([[0, 0, 0], [1, -2, 0.5]])
    found, scale, *_ = call(backend, dtype, x if backend == "numpy" else torch.tensor(x))
    found, scale = (np.asarray(t if backend == "numpy" else t.float(), np.float32) for t in (found, scale))
    assert scale[0, 0] == 0 and not found[0].any() and not (scale * found)[0].any()
    assert scale[1, 0] > 0 and abs(found[1, 1]) == QUANTIZED[dtype]


LOST = {
    "a NaN in x": ({"x": [[1, float("nan"), 2]]}, ITSELF),
    "an Inf in x": ({"x": [[1, float("inf"), 2]]}, normgrad.LAYER_NORM),
    "a NaN in the weight": ({"weight": [1, float("nan"), 2]}, normgrad.RMS_NORM),
    "an Inf in the weight": ({"weight": [1, float("inf"), 2]}, normgrad.RMS_NORM),
    "a NaN in the bias": ({"bias": [float("nan"), 1, 2]}, normgrad.RMS_NORM),
    "squares beyond the dtype": ({"x": [[1e30, 2e30, 1]]}, normgrad.RMS_NORM),
    "a scale that is not normal": ({"weight": [1e-38, -2e-38, 0]}, normgrad.RMS_NORM),
}


@every_dtype
@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
@pytest.mark.parametrize("name", LOST)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_lost_row_has_scale_nan(backend, name, dtype):
    """int8 has no NaN: the scale says it. No lost row is 0 once it is multiplied by its scale."""
    if backend in ("triton", "numba"):
        pytest.importorskip(backend)
    given, spec = LOST[name]
    given = {key: np.float32(value) for key, value in ({"x": [[1, -2, 3]]} | given).items()}
    given = given if backend == "numpy" else {key: torch.tensor(value) for key, value in given.items()}
    found, scale, *_ = call(backend, dtype, **given, spec=spec)
    found, scale = (np.asarray(t if backend == "numpy" else t.float(), np.float32) for t in (found, scale))
    assert np.isnan(scale).all() and np.isnan(scale * found).all()
    assert np.isnan(found).all() if dtype != "int8" else not found.any()


# The kernel


@every_dtype
@pytest.mark.parametrize("residual", [False, True])
def test_the_kernel_requests_one_read_and_one_byte(dtype, residual, torch_rng):
    """Without parameters, which each tile asks for again, it is the model, to the byte."""
    kernels = pytest.importorskip("normgrad.triton_kernels")
    if not kernels.INTERPRETED:
        pytest.skip("the interpreter counts")
    x, other = torch.randn(2, 24, 4096, generator=torch_rng).bfloat16()
    name = "add_layer_norm" if residual else "layer_norm"
    model = traffic.quantized(name, rows=24, columns=4096, dtype="bfloat16", affine=False)
    with interpreted() as seen:
        call("triton", dtype, x, residual=other if residual else None, spec=normgrad.LAYER_NORM)
    assert seen.requested == seen.distinct == model.total
    assert model.total == 24 * 4096 * (7 if residual else 3) + 4 * 24
    apart = traffic.quantized(name, apart=True, rows=24, columns=4096, dtype="bfloat16", affine=False)
    assert apart.total == 24 * 4096 * (11 if residual else 7) + 3 * 4 * 24


def test_rows_that_no_program_holds_are_refused_by_name():
    pytest.importorskip("triton")
    x = torch.ones(1, 16385)
    with pytest.raises(ValueError, match="^N: got 16385 columns, needs at most 16384, .* backend='torch' has no limit"):
        call("triton", "int8", x)
    assert call("torch", "int8", x)[0].eq(127).all()


COMPILE = """
import torch
from normgrad import RMS_NORM
from normgrad.bench import compile, launches, machine_code
launches.compiler()
from normgrad.quantized import launch
spec = RMS_NORM.replace(eps=1e-6)
for dtype, kind, target in (("int8", "int8", "sm_90"), ("float8_e4m3fn", "float8", "sm_90"),
                            ("float8_e4m3fn", "bits", "sm_80")):
    x, weight = (torch.empty(*shape, dtype=torch.bfloat16, device="meta") for shape in ((64, 16384), (16384,)))
    run = lambda: launch.forward(x, weight, None, x, spec, getattr(torch, dtype), kind=kind)
    (one,) = launches.recorded(run, target)
    code = machine_code.read(compile.compiled(one, target))
    print(kind, "cvt.rn.satfinite.e4m3x2.f32" in code.text, code.spilled_bytes, code.load_bits, code.store_bits)
"""


@pytest.mark.sampled(of=3)
def test_the_kernel_compiles_without_spills(tmp_path):
    """float8 by the GPU's own instruction, which the interpreter has not, where there is one."""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=environment)
    found = [line.split() for line in done.stdout.splitlines()]
    wanted = [[kind, str(kind == "float8"), "0", "128", "128"] for kind in ("int8", "float8", "bits")]
    assert found == wanted, done.stderr


# The text of the kernel


def cases():
    from normgrad.symbolic.kernel_proofs import QUANTIZED_CASES

    return QUANTIZED_CASES


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("index", range(21))
def test_what_the_kernel_rounds_is_the_definition(index):
    from normgrad.symbolic.kernel_proofs import prove_quantized

    pytest.importorskip("triton")
    proofs = prove_quantized(cases()[index])
    assert {output for _, output, _ in proofs} >= {"scale", "quantized", "largest0"} and all(proofs.values())
    assert len(cases()) == 21


WRONG = {
    "the largest, not the largest size": ("tl.abs(y), float", "y, float", "largest0"),
    "columns past N in the maximum": ('tl.where((cols < N)[None, :], tl.abs(y), float("-inf"))', "tl.abs(y)", "-inf"),
    "of x_hat, before the weight": ("weight_ptr, bias_ptr, cols", "None, bias_ptr, cols", "quantized|largest0"),
    "multiplied by the scale": ("y / divisor", "y * divisor", "quantized"),
    "Q + 1": ("largest / Q)", "largest / (Q + 1))", "scale"),
    "not centred": ("q = centred", "p = centred", "quantized|largest0"),
    "a row of zeros has scale 1": ("tl.where(largest == 0, 0.0, divisor)", "divisor", "scale"),
    "rows past M": ("divisor), mask=rows < M)", "divisor))", "writes past the edge"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_text_is_refuted_or_refused(name):
    from normgrad.mistakes import mutants
    from normgrad.symbolic import NotProved
    from normgrad.symbolic.kernel_proofs import prove_quantized
    from normgrad.symbolic.kernel_text import Unread

    pytest.importorskip("triton")
    old, new, where = WRONG[name]
    text = (mutants.PACKAGE / "quantized/kernel.py").read_text()
    module = mutants.module("quantized/kernel.py", mutants.edited(text, [(old, new)], name), name)
    with pytest.raises((NotProved, Unread), match=where):
        prove_quantized(cases()[0], module.__name__)


# torch.compile, and what is refused


def test_torch_compile_takes_it_whole_and_gives_the_same_bits(backend, torch_rng):
    x, residual = torch.randn(2, 2, 3, 20, generator=torch_rng)
    options = {"dtype": torch.float8_e4m3fn if backend == "triton" else torch.int8, "backend": backend}

    def layer(x, residual):
        found, scale, stream = normgrad.add_rms_norm_quantized(x, residual, 20, eps=1e-6, **options)
        again, other = normgrad.rms_norm_quantized(stream, 20, **options)
        return found.float() * scale, stream, again.float() * other

    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for one, other in zip(compiled(x, residual), layer(x, residual), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["input", "weight", "bias", "residual"])
def test_a_gradient_is_refused_by_name(name):
    given = {"input": torch.ones(2, 4), "weight": torch.ones(4), "bias": torch.ones(4), "residual": torch.ones(2, 4)}
    given[name].requires_grad_()
    with pytest.raises(ValueError, match=f"^{name}: got a tensor that requires grad, needs .* has no gradient"):
        normgrad.normalize_quantized(**given)
    with torch.no_grad():
        assert len(normgrad.normalize_quantized(**given)) == 3


def test_derivatives_of_other_kinds_are_refused():
    x = torch.ones(2, 4)
    for call_it in (
        lambda: torch.func.jvp(lambda x: normgrad.rms_norm_quantized(x, 4)[1], (x,), (x,)),
        lambda: torch.func.grad(lambda x: normgrad.rms_norm_quantized(x, 4)[1].sum())(x),
        lambda: torch.vmap(lambda x: normgrad.rms_norm_quantized(x, 4)[1])(x),
    ):
        with pytest.raises(ValueError, match="^input: got a call under torch.func or forward mode, needs"):
            call_it()


def test_what_does_not_fit_is_refused_by_name():
    x = torch.ones(2, 4)
    with pytest.raises(TypeError, match="^dtype: got torch.uint8, needs torch.int8 or torch.float8_e4m3fn"):
        normgrad.rms_norm_quantized(x, 4, dtype=torch.uint8)
    with pytest.raises(TypeError, match="^residual: got None, needs a torch.Tensor; without a residual use"):
        normgrad.add_rms_norm_quantized(x, None, 4)
    with pytest.raises(ValueError, match="^dtype: got 'uint8', needs one of 'int8', 'float8_e4m3fn'"):
        numpy_ref.quantized(np.ones((2, 4)), dtype="uint8")
    with pytest.raises(TypeError, match="^x: got complex numbers, needs real ones"):
        numpy_ref.quantized(np.ones((2, 4), complex))
