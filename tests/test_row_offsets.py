"""Where a row begins: a matrix may hold 2**31 numbers and more, as no test's does, so the kernels' texts are read.

In every address each product has a factor of 64 bits; a sum of addresses is then as wide.
"""

import re
from pathlib import Path

import pytest
from row_offsets import WIDE, narrow_products

import normgrad

PACKAGE = Path(normgrad.__path__[0])
FILES = sorted(
    path
    for path in (*PACKAGE.glob("triton_kernels/*.py"), *PACKAGE.glob("fused/*.py"))
    if "@triton.jit" in path.read_text(encoding="utf8")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_row_offsets_have_64_bits(path):
    text = path.read_text(encoding="utf8")
    assert not list(narrow_products(text))


def test_kernels_are_read():
    """Each cast of the package's kernels is asked for."""
    texts = [path.read_text(encoding="utf8") for path in FILES]
    assert {"arithmetic", "reduction", "rows", "sweeps"} <= {
        path.stem for path in FILES
    }
    casts = 0
    for text in texts:
        for match in re.finditer(re.escape(WIDE), text):
            changed = text[: match.start()] + text[match.end() :]
            assert list(narrow_products(changed)), text[: match.end()][-90:]
            casts += 1
    assert casts >= 5


CHANGES = {
    "ptr + rows[:, None] * N + cols": ["rows[:, None] * N"],
    "ptr + rows.to(tl.int64)[:, None] * N + cols": [],
    "ptr + rows.to(tl.int32)[:, None] * N": ["rows.to(tl.int32)[:, None] * N"],
    "ptr + tl.program_id(0) * N + cols": ["tl.program_id(0) * N"],
    "starts + cols": ["rows * step"],
    "ptr + rows": [],
}


@pytest.mark.parametrize("address", CHANGES)
def test_a_narrow_product_is_found(address):
    text = (
        "@triton.jit\ndef k(ptr, N, step):\n  rows = tl.program_id(0) * 4 + tl.arange(0, 4)\n"
        f"  starts = ptr + rows * step\n  x = tl.load({address}, mask=rows < N)\n"
        f"  tl.store({address}, x)\n"
    )
    assert list(narrow_products(text))[:1] == CHANGES[address]
