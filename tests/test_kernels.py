"""What the kernels promise beyond right values: a row's bits depend on the row alone, whatever stands beside it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from normgrad import layer_norm
from normgrad.checks import cases, contract
from normgrad.checks.cases import SPECS

pytest.importorskip("triton")
from normgrad import triton_kernels  # noqa: E402
from normgrad.triton_kernels import configuration, launch, sweeps  # noqa: E402
from normgrad.triton_kernels.rows import backward_rows  # noqa: E402

SPEC = SPECS["layer_norm_std"]
# A tile of several rows, a tile of one, and rows in blocks of columns.
KINDS = {"several rows": 96, "one row": 5000, "sweeps": 300, "read twice": 200}


@pytest.fixture
def columns(request, monkeypatch):
    """N of a kind of tile; what a GPU does beyond 8192 columns is done here beyond 128."""
    if request.param in ("sweeps", "read twice"):
        for name in ("FORWARD_COLUMNS", "BACKWARD_COLUMNS"):
            monkeypatch.setattr(configuration, name, {4: 128, 8: 128})
        monkeypatch.setattr(configuration, "SWEEP_BLOCK", 128)
    return KINDS[request.param]


def every(*kinds):
    return pytest.mark.parametrize(
        "columns", kinds or ("several rows", "one row", "sweeps"), indirect=True
    )


def gradients(case, dtype, kernels=triton_kernels, **options):
    """(y, residual_out, dx, dw, db) of the kernels, without autograd around them."""
    a = {name: torch.tensor(getattr(case, name)).to(dtype) for name in cases.ARRAYS}
    y, p, mean, rstd = kernels.forward(
        a["x"], a["weight"], a["bias"], a["residual"], SPEC
    )
    inputs = (a["dy"], a["dresidual_out"], p, a["weight"], mean, rstd)
    dx, dresidual, dw, db = kernels.backward(
        *inputs, SPEC, (dtype, dtype, torch.float32, torch.float32), **options
    )
    assert dresidual is dx
    return y, p, dx, dw, db


def some_rows(case, rows):
    arrays = {
        name: getattr(case, name)[rows]
        for name in ("x", "residual", "dy", "dresidual_out")
    }
    return replace(case, **arrays)


@every("read twice")
@pytest.mark.parametrize(
    "spec", [name for name, spec in SPECS.items() if not spec.center]
)
def test_rows_that_are_read_twice_hold_the_contract(spec, columns):
    assert configuration.backward_tile(columns, 4, light=True).twice
    for case in cases.cases(np.random.default_rng(columns), 3, columns)[:4]:
        for part in (case, case.without("residual", "weight", "bias", "dresidual_out")):
            if contract.defined(part, SPECS[spec], "bfloat16"):
                contract.check_values("triton", part, SPECS[spec], "bfloat16")


@every()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_row_is_the_same_bits_in_every_batch_and_at_every_place(columns, dtype):
    case = cases.cases(np.random.default_rng(columns), 5, columns)[1]
    whole = gradients(case, dtype)
    for rows in ([3], [4, 3, 2, 1, 0], [2, 2, 3] * 4):
        part = gradients(some_rows(case, rows), dtype)
        assert all(
            torch.equal(a[rows], b) for a, b in zip(whole[:3], part[:3], strict=True)
        )


@pytest.mark.parametrize(
    "asked", [(True, True), (True, False), (False, True), (False, False)], ids=str
)
def test_the_reduction_adds_every_partial_sum(asked, monkeypatch):
    monkeypatch.setattr(configuration, "REDUCTION_TILE", (2, 4))
    numbers = torch.arange(70.0).reshape(
        2, 5, 7
    )  # whole, so that every order adds them exactly
    partial = [
        rows if is_asked else None
        for is_asked, rows in zip(asked, numbers, strict=True)
    ]
    sums = [torch.full((7,), torch.nan) if is_asked else None for is_asked in asked]
    launch.reduce_sums(partial, sums, 5, 7)
    for rows, total in zip(partial, sums, strict=True):
        assert total is None or torch.equal(total, rows.sum(0))


@every()
@pytest.mark.parametrize("m", [0, 1, 9])
def test_every_element_of_every_result_is_written(columns, m):
    torch.use_deterministic_algorithms(
        True
    )  # torch fills what it allocates with NaN then
    try:
        y, p, dx, dw, db = gradients(
            cases.draw(np.random.default_rng(columns), m, columns), torch.float32
        )
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(t.isfinite().all() for t in (y, p, dx, dw, db))
    assert m > 0 or not (dw.any() or db.any())


# How many of its first arguments each loop reads at every turn: they lie in shared memory STAGES - 1 times.
STREAMS = {
    backward_rows: 3,
    sweeps.backward_columns: 3,
    sweeps.row_sums: 3,
    sweeps.forward_sweeps: 4,
}


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str
)
@pytest.mark.parametrize("kib", [64, 99, 163, 227])
def test_what_is_loaded_ahead_fits_into_shared_memory(kib, dtype, monkeypatch):
    launches = []

    def noted(kernel, grid, *arguments, **options):
        launches.append((kernel, arguments, options))

    monkeypatch.setattr(launch, "launch_kernel", noted)
    monkeypatch.setattr(
        configuration, "device_of", lambda tensor: configuration.Device(132, kib << 10)
    )
    for n in (128, 512, 4096, 8192, 65536):
        x, w = (
            torch.empty(shape, dtype=dtype, device="meta")
            for shape in ((4096, n), (n,))
        )
        _, p, mean, rstd = triton_kernels.forward(x, w, w, x, SPEC)
        triton_kernels.backward(x, x, p, w, mean, rstd, SPEC, (dtype,) * 4)
    streaming = [launched for launched in launches if launched[0] in STREAMS]
    assert {kernel for kernel, _, _ in streaming} == set(STREAMS)
    for kernel, arguments, options in streaming:
        streams = sum(t.element_size() for t in arguments[: STREAMS[kernel]])
        assert (options["STAGES"] - 1) * options["ROWS"] * options[
            "BLOCK"
        ] * streams <= kib << 10
        # An H100 has room for the next tile, whatever is added to what.
        assert options["STAGES"] > 1 or kib < 227 or dtype == torch.float64


def on_devices(monkeypatch, case, **options):
    """dw and db on imagined devices of 1, 2 and 3 multiprocessors."""
    sums = []
    for multiprocessors in (1, 2, 3):
        device = configuration.Device(
            multiprocessors, configuration.INTERPRETER.shared_memory
        )
        monkeypatch.setattr(
            configuration, "device_of", lambda tensor, device=device: device
        )
        sums.append(torch.cat(gradients(case, torch.float32, **options)[3:]))
    return sums


@every()
def test_portable_sums_do_not_depend_on_the_device(columns, monkeypatch):
    monkeypatch.setattr(configuration, "PORTABLE_PROGRAMS", 12)
    tile = configuration.backward_tile(columns, 4)
    case = cases.draw(np.random.default_rng(columns), 16 * tile.rows, columns)
    portable = on_devices(monkeypatch, case, portable_sums=True)
    assert all(torch.equal(portable[0], sums) for sums in portable[1:])
    # What the option is for: without it, the number of multiprocessors shows in the bits.
    assert not all(
        torch.equal(a, b)
        for a, b in zip(portable, on_devices(monkeypatch, case), strict=True)
    )


@pytest.mark.parametrize("spec", [SPECS["layer_norm"], SPECS["l2_clamp"]], ids=str)
@pytest.mark.parametrize("apart", [40, 43])
def test_rows_at_an_address_that_is_no_multiple_of_16_bytes(spec, apart, torch_rng):
    x = torch.randn(1 + 6 * apart, generator=torch_rng)[1:].view(6, apart)[:, :40]
    copied = x.clone(memory_format=torch.contiguous_format)
    outputs = triton_kernels.forward(x, None, None, x, spec)
    expected = triton_kernels.forward(copied, None, None, copied, spec)
    for output, value in zip(outputs, expected, strict=True):
        assert output is value is None or torch.equal(output, value)


@pytest.mark.parametrize(
    "stride", [9, 4], ids=["between two vectors", "rows that overlap"]
)
def test_a_row_stride_that_no_vector_divides_is_copied(stride, torch_rng):
    """Five rows of 8: the stride is passed in units of 8, so that 9 would be taken for 8."""
    x = torch.randn(48, generator=torch_rng, dtype=torch.float64).as_strided(
        (5, 8), (stride, 1)
    )
    right = layer_norm(
        x.clone(memory_format=torch.contiguous_format), 8, backend="triton"
    )
    assert torch.equal(layer_norm(x, 8, backend="triton"), right)


def test_integers_of_32_and_of_64_bits_are_kernels_of_their_own():
    for narrow, wide in ((2**31 - 1, 2**31 + 15), (-(2**31), -(2**31) - 16)):
        assert [*launch._kinds([narrow])] != [*launch._kinds([wide])]
    narrow, *wide = (next(launch._kinds([k])) for k in (2**30, 2**31, 2**32))
    assert narrow not in wide
