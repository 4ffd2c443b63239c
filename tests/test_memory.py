"""Memory for results: large ones lie in memory for which huge pages were asked."""

import re
from pathlib import Path

import pytest
import torch

import normgrad
from normgrad.torch_ops import rows

MAPS = Path("/proc/self/smaps")
POLICY = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def _flags(t):
    """What the system knows of the part of memory in which a tensor's middle lies, in its letters."""
    middle = t.data_ptr() + t.nbytes // 2
    for part in re.split(
        r"^(?=[0-9a-f]+-[0-9a-f]+ )", MAPS.read_text(), flags=re.MULTILINE
    )[1:]:
        first, last = (int(end, 16) for end in part.split()[0].split("-"))
        if first <= middle < last:
            return part.partition("VmFlags:")[2].split()
    raise AssertionError("in no part")


@pytest.mark.skipif(
    not (MAPS.exists() and POLICY.exists()),
    reason="this system has no huge pages, or does not say so",
)
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_large_results_are_in_memory_for_huge_pages(backend, torch_rng):
    columns = 1024
    x = torch.randn(
        2 * rows.LARGE // (4 * columns),
        columns,
        generator=torch_rng,
        requires_grad=True,
    )
    y = normgrad.layer_norm(x, columns, backend=backend)
    (dx,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert "hg" in _flags(y) and "hg" in _flags(dx)
