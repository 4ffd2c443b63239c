"""The partial sums of dw and db, added up: one launch for both, the same order at every run, cast at the end."""

from __future__ import annotations

from .arithmetic import cast
from .interpreter import tl, triton


@triton.jit
def _column_sums(partial_ptr, out_ptr, cols, programs, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros([ROWS, BLOCK], partial_ptr.dtype.element_ty)
    for start in range(0, programs, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < programs)[:, None] & (cols < N)[None, :]
        total += tl.load(partial_ptr + rows.to(tl.int64)[:, None] * N + cols[None, :], mask=mask, other=0)
    tl.store(out_ptr + cols, cast(tl.sum(total, axis=0), out_ptr.dtype.element_ty), mask=cols < N)


@triton.jit(do_not_specialize=["programs"])
def reduce_partials(
    dw_partial_ptr,  # (programs, N) or None
    db_partial_ptr,  # (programs, N) or None
    dw_ptr,  # (N,)
    db_ptr,  # (N,)
    programs,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """dw and db of a block of columns, from the partial sums of the programs."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if dw_partial_ptr is not None:
        _column_sums(dw_partial_ptr, dw_ptr, cols, programs, N, ROWS, BLOCK)
    if db_partial_ptr is not None:
        _column_sums(db_partial_ptr, db_ptr, cols, programs, N, ROWS, BLOCK)
