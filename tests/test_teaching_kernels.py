"""The watcher that chapters use: races and strays are found, and bytes are those of a count by hand."""

import pytest
import torch

interpreter = pytest.importorskip("normgrad.triton_kernels.interpreter")
if not interpreter.INTERPRETED:
    pytest.skip("Triton compiles in this run", allow_module_level=True)

from normgrad.teaching.watch import watch  # noqa: E402
from normgrad.triton_kernels.interpreter import tl, triton  # noqa: E402


@triton.jit
def add_rows(x, total, BLOCK: tl.constexpr):
    """A race: every program adds its row to one total."""
    cols = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * BLOCK + cols)
    tl.store(total + cols, tl.load(total + cols) + row)


@triton.jit
def add_rows_atomically(x, total, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.atomic_add(total + cols, tl.load(x + tl.program_id(0) * BLOCK + cols))


@triton.jit
def copy_rows(x, y, step, N: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < (N if MASKED else BLOCK)
    tl.store(
        y + row * N + cols,
        tl.load(x + row * step + cols, mask=mask, other=0),
        mask=mask,
    )


@pytest.fixture
def x(torch_rng):
    return torch.randn(3, 8, generator=torch_rng)


def test_a_race_is_found_where_the_numbers_are_right(x):
    total = torch.zeros(8)
    with watch() as watched:
        add_rows[(3,)](x, total, BLOCK=8)
    assert torch.equal(total, x[0] + x[1] + x[2])
    assert list(watched.races()) == [("add_rows", "total[0:8]", "0 1 2", "0 1 2")]
    assert "total[0:8]" in str(watched.races()) and not watched.outside()


def test_atomics_are_no_race_and_lose_nothing(x):
    for at_once in (False, True):
        total = torch.zeros(8)
        with watch(at_once) as watched:
            add_rows_atomically[(3,)](x, total, BLOCK=8)
        assert torch.equal(total, x[0] + x[1] + x[2]) and not watched.races()
        assert watched.requested == 3 * 8 * 4 * 3


def test_strays_are_named_and_kept_from_memory(x):
    wide, y = x.reshape(-1)[:15].clone().view(3, 5), torch.empty(3, 5)
    with watch() as watched:
        copy_rows[(3,)](wide, y, 5, N=5, BLOCK=8, MASKED=False)
    assert [row[1:4] for row in watched.outside()] == [
        (2, "load", "x"),
        (2, "store", "y"),
    ]
    assert {row[4:] for row in watched.outside()} == {("15 to 17", "0 to 14")}
    assert [row[1] for row in watched.races()] == ["y[1, 0:3]", "y[2, 0:3]"]
    with watch() as watched:
        copy_rows[(3,)](wide, y, 5, N=5, BLOCK=8, MASKED=True)
    assert not watched.outside() and not watched.races()


def test_a_wrong_stride_is_seen_in_a_view(x):
    y = torch.empty(3, 5)
    with watch() as watched:
        copy_rows[(3,)](x[:, :5], y, 5, N=5, BLOCK=8, MASKED=True)
    assert [row[1:5] for row in watched.outside()] == [
        (1, "load", "x", "5 to 7"),
        (2, "load", "x", "13 to 14"),
    ]
    with watch() as watched:
        copy_rows[(3,)](x[:, :5], y, 8, N=5, BLOCK=8, MASKED=True)
    assert not watched.outside() and torch.equal(y, x[:, :5])
