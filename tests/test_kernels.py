"""What the kernels promise beyond right values: a row's bits depend on the row alone, whatever stands beside it."""

from dataclasses import replace

import numpy as np
import pytest

from normgrad import RMS_NORM, layer_norm
from normgrad.checks import cases, contract
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants

torch = pytest.importorskip("torch")
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
        for each in (case, case.without("residual", "weight", "bias", "dresidual_out")):
            if contract.defined(each, SPECS[spec], "bfloat16"):
                contract.check_values("triton", each, SPECS[spec], "bfloat16")


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


@every()
def test_all_results_are_the_same_bits_at_every_run(columns):
    case = cases.draw(np.random.default_rng(columns), 20, columns)
    first, second = (gradients(case, torch.float32) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@every()
def test_what_is_not_wanted_changes_nothing_else(columns):
    case = cases.draw(np.random.default_rng(columns), 20, columns)
    x, weight, dy = (torch.tensor(a).float() for a in (case.x, case.weight, case.dy))
    _, _, mean, rstd = triton_kernels.forward(x, weight, None, None, SPEC)

    def backward(*dtypes):
        return triton_kernels.backward(dy, dy, x, weight, mean, rstd, SPEC, dtypes)

    dtypes = (torch.float32, torch.bfloat16, torch.float32, torch.float16)
    for place, wanted in enumerate(backward(*dtypes)):
        alone = backward(
            *(dtype if place == other else None for other, dtype in enumerate(dtypes))
        )
        assert wanted.dtype == dtypes[place] and torch.equal(alone[place], wanted)
        assert all(found is None for other, found in enumerate(alone) if other != place)


@pytest.mark.parametrize(
    "wanted", [(True, True), (True, False), (False, True), (False, False)], ids=str
)
def test_the_reduction_adds_every_partial_sum(wanted, monkeypatch):
    monkeypatch.setattr(configuration, "REDUCTION_TILE", (2, 4))
    numbers = torch.arange(70.0).reshape(
        2, 5, 7
    )  # whole, so that every order adds them exactly
    partial = [rows if one else None for one, rows in zip(wanted, numbers, strict=True)]
    sums = [torch.full((7,), torch.nan) if one else None for one in wanted]
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
    found = [one for one in launches if one[0] in STREAMS]
    assert {kernel for kernel, _, _ in found} == set(STREAMS)
    for kernel, arguments, options in found:
        streams = sum(t.element_size() for t in arguments[: STREAMS[kernel]])
        assert (options["STAGES"] - 1) * options["ROWS"] * options[
            "BLOCK"
        ] * streams <= kib << 10
        # An H100 has room for the next tile, whatever is added to what.
        assert options["STAGES"] > 1 or kib < 227 or dtype == torch.float64


def on_devices(monkeypatch, case, **options):
    """dw and db on imagined devices of 1, 2 and 3 multiprocessors."""
    found = []
    for multiprocessors in (1, 2, 3):
        device = configuration.Device(
            multiprocessors, configuration.INTERPRETER.shared_memory
        )
        monkeypatch.setattr(
            configuration, "device_of", lambda tensor, device=device: device
        )
        found.append(torch.cat(gradients(case, torch.float32, **options)[3:]))
    return found


@pytest.mark.sampled(of=3)
@every()
def test_portable_sums_do_not_depend_on_the_device(columns, monkeypatch):
    monkeypatch.setattr(configuration, "PORTABLE_PROGRAMS", 12)
    tile = configuration.backward_tile(columns, 4)
    case = cases.draw(np.random.default_rng(columns), 16 * tile.rows, columns)
    portable = on_devices(monkeypatch, case, portable_sums=True)
    assert all(torch.equal(portable[0], other) for other in portable[1:])
    # What the option is for: without it, the number of multiprocessors shows in the bits.
    assert not all(
        torch.equal(a, b)
        for a, b in zip(portable, on_devices(monkeypatch, case), strict=True)
    )


def test_rows_may_lie_further_apart_than_32_bits_count(monkeypatch):
    # 4.3 GB of addresses, of which only the pages with the two rows are ever touched.
    far, n = 2**31 + 64, 48
    try:
        wide = torch.empty(far + n, dtype=torch.bfloat16)
    except RuntimeError:
        pytest.skip("this machine does not hand out 4.3 GB of addresses")
    x = wide.as_strided((2, n), (far, 1))
    near = torch.tensor(np.random.default_rng(0).standard_normal((2, n))).bfloat16()
    x.copy_(near)
    monkeypatch.setattr(launch, "aligned_rows", lambda t: t)
    spec = RMS_NORM.replace(eps=1e-6)
    assert torch.equal(
        launch.forward(x, None, None, None, spec)[0],
        launch.forward(near, None, None, None, spec)[0],
    )


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(
    "layout",
    ["rows apart", "rows an odd way apart", "columns apart", "expanded", "transposed"],
)
def test_every_layout_gives_the_bits_of_the_contiguous_one(layout, offset):
    plain = torch.tensor(
        np.random.default_rng(1).standard_normal((6, 40)), dtype=torch.float32
    )
    if layout == "expanded":
        plain = plain[:1].expand(6, 40)
    moved = {
        "rows apart": lambda t: torch.cat((t, t), 1).reshape(-1, 80)[:, :40],
        "rows an odd way apart": lambda t: torch.cat((t, t[:, :3]), 1)[:, :40],
        "columns apart": lambda t: torch.stack((t, t), 2)[..., 0],
        "expanded": lambda t: t[0].clone().expand(6, 40),
        "transposed": lambda t: t.t().contiguous().t(),
    }[layout](plain)
    if offset:  # an address that is no multiple of 16 bytes
        room = torch.empty(moved.numel() * 4 + 1)[1:]
        moved = (
            room.as_strided(moved.shape, moved.stride()).copy_(moved)
            if layout != "expanded"
            else moved
        )
    for spec in (SPECS["layer_norm"], SPECS["l2_clamp"]):
        wanted, found = (
            triton_kernels.forward(t, None, None, t, spec)
            for t in (plain.contiguous(), moved)
        )
        assert all(
            torch.equal(a, b)
            for a, b in zip(wanted, found, strict=True)
            if a is not None
        )


def test_a_dropped_projection_is_rejected_where_fixed_tolerances_let_it_pass():
    columns = 32768
    wrong = mutants.mutated(mutants.find("c1 dropped"), "triton")
    rng, spec = np.random.default_rng(columns), SPECS["rms_norm"]
    plain = (
        cases.draw(rng, 2, columns)
        .without("residual", "dresidual_out")
        .rounded("bfloat16")
    )
    _, right = contract.reference(plain, spec, "bfloat16")
    # Random cotangents, as other projects' tests draw them: the projection is about N**-0.5 of dx there, and an
    # absolute tolerance of 0.1 for bfloat16 sees nothing.
    assert np.abs(wrong.run(plain, spec, "bfloat16").dx - right.dx).max() < 0.1
    along = cases.cases(rng, 2, columns)[2]
    with pytest.raises(AssertionError, match="dx"):
        contract.check_values(wrong, along, spec, "bfloat16")
    contract.check_values("triton", along, spec, "bfloat16")


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
