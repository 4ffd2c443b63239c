"""The contract on a GPU: the same checks on the same kernels, compiled. `pytest -m gpu` runs only these."""

import numpy as np
import pytest

import normgrad
from normgrad import LAYER_NORM, triton_kernels
from normgrad.checks import cases, contract
from normgrad.checks.backends import TorchBackend
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import unit_roundoff

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if triton_kernels.INTERPRETED:
    pytest.skip(
        "Triton interprets in this run; `pytest -m gpu` lets it compile",
        allow_module_level=True,
    )

from normgrad.triton_kernels import reduction, rows, sweeps  # noqa: E402

pytestmark = pytest.mark.gpu

SEED = 1
CASES = {case.name: case for case in cases.cases(np.random.default_rng(SEED))}
GPU = TorchBackend("triton")


@pytest.mark.parametrize("dtype", GPU.dtypes)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("spec", SPECS)
def test_values(spec, case, dtype):
    if not contract.defined(CASES[case], SPECS[spec], dtype):
        pytest.skip("without eps a row with s = 0 has no value")
    contract.check_values(GPU, CASES[case], SPECS[spec], dtype)


@pytest.mark.parametrize(
    "columns", [64, 512, 1000, 4096, 8192, 16384, 20000, 65536, 262144]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("spec", ["layer_norm", "rms_norm", "l2_clamp"])
def test_values_at_other_sizes(spec, columns, dtype):
    contract.check_values(
        GPU,
        cases.cases(np.random.default_rng(columns), 3, columns)[2],
        SPECS[spec],
        dtype,
    )


@pytest.mark.parametrize("spec", SPECS)
def test_gradcheck_and_gradgradcheck(spec):
    case = cases.draw(np.random.default_rng(SEED), 2, 3)
    contract.check_gradcheck(GPU, case, SPECS[spec], second=True)


@pytest.mark.parametrize("columns", [5, 256, 4096])
@pytest.mark.parametrize("gate_first", [False, True])
def test_gated_kernels_give_what_the_formula_gives(gate_first, columns):
    rng = torch.Generator().manual_seed(columns)
    shapes = [(33, columns)] * 3 + [(columns,)]
    x, gate, dy, weight = (torch.randn(*s, generator=rng).double() for s in shapes)
    results = []
    for device, dtype in (("cpu", torch.float64), ("cuda", torch.float32)):
        leaves = [t.to(device, dtype).requires_grad_() for t in (x, gate, weight)]
        y = normgrad.gated_rms_norm(*leaves, 1e-5, gate_first=gate_first)
        gradients = torch.autograd.grad(y, leaves, dy.to(device, dtype))
        results.append([t.detach().double().cpu() for t in (y, *gradients)])
    for expected, compiled in zip(*results, strict=True):
        bound = 4 * columns * unit_roundoff("float32") * max(1, expected.abs().max())
        assert (compiled - expected).abs().max() <= bound


def drawn(m, n, dtype=torch.bfloat16):
    """x, residual, weight, bias, dy and dresidual_out on the GPU."""
    generator = torch.Generator("cuda").manual_seed(m + n)
    shapes = ((m, n), (m, n), (n,), (n,), (m, n), (m, n))
    return [
        torch.randn(shape, generator=generator, device="cuda").to(dtype)
        for shape in shapes
    ]


def run(tensors, **options):
    """(y, dx, dw, db) of the kernels, without autograd around them."""
    x, residual, weight, bias, dy, dresidual_out = tensors
    y, p, mean, rstd = triton_kernels.forward(x, weight, bias, residual, LAYER_NORM)
    inputs = (dy, dresidual_out, p, weight, mean, rstd)
    dx, _, dw, db = triton_kernels.backward(
        *inputs, LAYER_NORM, (x.dtype,) * 4, **options
    )
    return y, dx, dw, db


@pytest.mark.parametrize("columns", [128, 4096, 8192, 65536])
@pytest.mark.parametrize("portable_sums", [False, True])
def test_the_results_are_the_same_bits_at_every_run(columns, portable_sums):
    tensors = drawn(1000, columns)
    first, second = (run(tensors, portable_sums=portable_sums) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("columns", [128, 1000, 4096, 8192, 65536])
def test_a_row_is_the_same_bits_in_every_batch_and_at_every_place(columns):
    tensors = drawn(777, columns)
    y, dx, _, _ = run(tensors)
    for chosen in ([500], list(range(776, -1, -1)), [0, 3, 776] * 400):
        some = [t[chosen] if t.dim() == 2 else t for t in tensors]
        part = run(some)
        assert torch.equal(y[chosen], part[0]) and torch.equal(dx[chosen], part[1])


def test_rows_never_recompile():
    kernels = (rows.forward_rows, rows.backward_rows, reduction.reduce_partials)
    kernels += (sweeps.forward_sweeps, sweeps.row_sums, sweeps.backward_columns)

    def compiled():
        caches = [
            cache for kernel in kernels for cache in kernel.device_caches.values()
        ]
        return sum(len(cache[0]) for cache in caches)

    for columns in (96, 20000):
        run(drawn(16, columns))
        before = compiled()
        for m in (
            1,
            2,
            3,
            7,
            8,
            15,
            17,
            31,
            32,
            33,
            63,
            64,
            100,
            127,
            128,
            255,
            256,
            513,
            1024,
            4097,
        ):
            run(drawn(m, columns))
        assert compiled() == before


def test_more_than_2_to_the_31_elements():
    n = 8192
    m = 2**31 // n + 3
    x = torch.empty(m, n, device="cuda", dtype=torch.bfloat16).normal_(
        generator=torch.Generator("cuda").manual_seed(0)
    )
    y, _, mean, rstd = triton_kernels.forward(x, None, None, None, LAYER_NORM)
    dtypes = (x.dtype, None, None, None)
    dx = triton_kernels.backward(x, None, x, None, mean, rstd, LAYER_NORM, dtypes)[0]
    last = x[-4:].clone()
    y_last, _, mean, rstd = triton_kernels.forward(last, None, None, None, LAYER_NORM)
    dx_last = triton_kernels.backward(
        last, None, last, None, mean, rstd, LAYER_NORM, dtypes
    )[0]
    assert torch.equal(y[-4:], y_last) and torch.equal(dx[-4:], dx_last)


def test_more_than_2_to_the_31_rows():
    m = 2**31 + 5
    x = torch.empty(m, 1, device="cuda", dtype=torch.bfloat16)
    x.normal_(generator=torch.Generator("cuda").manual_seed(0))
    spec, dtypes = normgrad.RMS_NORM.replace(eps=1.0), (x.dtype, None, None, None)
    found = []
    for some in (x, x[-4:].clone()):
        y, _, mean, rstd = triton_kernels.forward(some, None, None, None, spec)
        dx = triton_kernels.backward(some, None, some, None, mean, rstd, spec, dtypes)[
            0
        ]
        found.append((y[-4:], dx[-4:]))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
