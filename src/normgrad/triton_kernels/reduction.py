"""The partial sums of dw and db, added up: one launch for both, the same order at every run, cast at the end."""

from __future__ import annotations

from .arithmetic import cast
from .interpreter import tl, triton


@triton.jit
def _column_sums(
    partial_ptr,
    out_ptr,
    cols,
    programs,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    total = tl.zeros([ROWS, BLOCK], partial_ptr.dtype.element_ty)
    for start in range(0, programs, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < programs)[:, None] & (cols < N)[None, :]
        total += tl.load(
            partial_ptr + rows.to(tl.int64)[:, None] * N + cols[None, :],
            mask=mask,
            other=0,
        )
    tl.store(
        out_ptr + cols,
        cast(tl.sum(total, axis=0), out_ptr.dtype.element_ty),
        mask=cols < N,
    )


@triton.jit(do_not_specialize=["programs"])
def reduce_partials(
    first_partial_ptr,  # (programs, N), of dw, or of db where dw is not wanted
    second_partial_ptr,  # (programs, N) of db, or None
    first_ptr,  # (N,)
    second_ptr,  # (N,) or None
    programs,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """dw or db of a block of columns, from the partial sums of the programs; axis 1 of the grid says which of them."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(1) == 0:
        _column_sums(first_partial_ptr, first_ptr, cols, programs, N, ROWS, BLOCK)
    elif second_ptr is not None:
        _column_sums(second_partial_ptr, second_ptr, cols, programs, N, ROWS, BLOCK)
