"""The gallery: each bug is rejected by its check, its repaired version, the usual test and our backends pass."""

from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import gallery_bugs
import numpy as np
import page_cells
import pytest
import torch
from gallery_bugs import Bug

from normgrad import LAYER_NORM
from normgrad.checks import cases, contract
from normgrad.checks.backends import get
from normgrad.mistakes import gallery
from normgrad.mistakes.gallery import REJECTED

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / f"book/{name}.md" for name in ("bugs", "bugs_memory")]
TORCH = ("torch", "triton", "numba")
# The exhibits of the pages, with what the check says.
SHOWN = {
    "weight twice": r"dx\[",
    "residual first": r"dx\[",
    "eps on the sum": r"y\[",
    "one pass": r"y\[",
    "16-bit statistics": r"dw\[",
    "16-bit partial sums": r"dw\[",
    "written over dy": "dy was overwritten",
    "stride of x": "columns first",
    "heads end to end": "a slice of heads: y is off",
    "32-bit offset": "begins at -",
    "one row too many": "past the last row",
    "cut graph": "Jacobian mismatch|expected to be zero",
    "sum as loss": r"dx\[",
    "a fixed tolerance": r"dx\[",
}


@cache
def exhibits():
    """{name: Bug} of what the cells of both pages exhibit."""
    bugs = {}

    def record(name, wrong, right, check, usual):
        bugs[name] = Bug(wrong, right, check, SHOWN[name], usual)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery, "exhibit", record)
        for page in PAGES:
            cells = page_cells.page_cells.of_page(page)
            namespace = page_cells.as_on_a_page()
            for cell in page_cells.page_cells.needed(
                cells, lambda cell: "exhibit(" in cell.source
            ):
                page_cells.execute(cell, namespace)
    return bugs


def caught(bug):
    """The check rejects the bug and says why, accepts the repaired version; the usual test accepts the bug."""
    with pytest.raises(REJECTED, match=bug.complaint):
        bug.check(bug.wrong, np.random.default_rng(7))
    bug.check(bug.right, np.random.default_rng(7))
    bug.usual(bug.wrong, np.random.default_rng(7))


@pytest.mark.parametrize("name", SHOWN)
def test_each_exhibit_is_rejected(name):
    caught(exhibits()[name])


@pytest.mark.parametrize("name", gallery_bugs.BUGS)
def test_each_bug_of_the_table_is_rejected(name):
    bug = gallery_bugs.BUGS[name]
    if isinstance(bug.check, str):
        bug = replace(bug, check=exhibits()[bug.check].check)
    caught(bug)


@pytest.mark.parametrize("columns", [64, 4096, 32768])
def test_a_dropped_projection_is_rejected_on_long_rows(columns, rng):
    bug = exhibits()["a fixed tolerance"]
    check = replace(bug.check, case=gallery.aligned(4, columns))
    with pytest.raises(AssertionError, match=r"dx\["):
        check(bug.wrong, rng)
    check("torch", rng)


# The package's own backends

MARK, MARGIN = -12345.0, 64


@contextmanager
def _margins(monkeypatch):
    """Memory that torch gives out meanwhile lies between marks; at the end the marks must be as they were."""
    allocated = []

    def wrap(allocate):
        def function(*arguments, **options):
            tensor = allocate(*arguments, **options)
            wide = torch.full((tensor.numel() + 2 * MARGIN,), MARK).to(
                tensor.device, tensor.dtype
            )
            inner = (
                wide[MARGIN : MARGIN + tensor.numel()].view(tensor.shape).copy_(tensor)
            )
            allocated.append(wide)
            return inner

        return function

    with monkeypatch.context() as patch:
        for owner, names in (
            (torch.Tensor, ("new_empty", "new_zeros")),
            (torch, ("empty", "empty_like", "zeros")),
        ):
            for name in names:
                patch.setattr(owner, name, wrap(getattr(owner, name)))
        yield allocated
    for wide in allocated:
        marks = torch.cat([wide[:MARGIN], wide[-MARGIN:]])
        assert torch.equal(marks, torch.full_like(marks, MARK))


@pytest.mark.parametrize("rows", [1, 3, 5, 9])
@pytest.mark.parametrize("backend", TORCH)
def test_nothing_is_written_outside_the_arrays(backend, rows, monkeypatch, rng):
    with _margins(monkeypatch) as allocated:
        contract.check_values(backend, cases.draw(rng, rows, 5), LAYER_NORM)
    sizes = [wide.numel() - 2 * MARGIN for wide in allocated]
    assert sizes.count(rows * 5) >= 3, (
        "y, residual_out and dx come from elsewhere: look at _margins again"
    )


@pytest.mark.parametrize("backend", TORCH)
def test_nothing_is_read_outside_the_arrays(backend, rng):
    """Inputs that lie between NaN: one that is read and used turns up in a result."""
    rows, columns = 3, 5

    def between(array):
        wide = torch.full((array.size + 2 * MARGIN,), float("nan"), dtype=torch.float64)
        inner = wide[MARGIN : MARGIN + array.size].view(array.shape)
        return inner.copy_(torch.from_numpy(array)).to(get(backend).device)

    case = cases.draw(rng, rows, columns)
    names = ("x", "residual", "weight", "bias")
    inputs = [between(getattr(case, name)).requires_grad_() for name in names]
    ends = get(backend).normalize(*inputs, LAYER_NORM)
    grads = torch.autograd.grad(
        ends, inputs, [between(case.dy), between(case.dresidual_out)]
    )
    assert all(torch.isfinite(t).all() for t in (*ends, *grads))


@pytest.mark.parametrize("backend", TORCH)
def test_rows_lie_two_to_the_31_elements_apart(backend, rng, tmp_path):
    """Three rows in a file of 4 GiB that is empty but for them: row 2 begins at element 2**31."""
    if get(backend).device != "cpu":
        pytest.skip("a file is memory on the CPU only")
    stride, columns = 2**30, 4
    file = np.memmap(tmp_path / "rows", np.float16, "w+", shape=(2 * stride + columns,))
    far = torch.from_numpy(file).as_strided((3, columns), (stride, 1))
    near, dy = (
        torch.from_numpy(rng.standard_normal((3, columns))).half() for _ in range(2)
    )
    far.copy_(near)
    results = []
    for x in (near.requires_grad_(), far.detach().requires_grad_()):
        y, _ = get(backend).normalize(x, None, None, None, LAYER_NORM)
        results.append((y, *torch.autograd.grad(y, x, dy)))
    for near_result, far_result in zip(*results, strict=True):
        assert torch.equal(near_result, far_result)
