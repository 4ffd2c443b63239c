"""Rows that a program holds whole: each input is read once and each output is written once.

A program holds a tile of ROWS rows and BLOCK >= N columns. The forward gives each tile a program of its own. In the
backward a program takes every programs-th tile, so that dw and db stay in its registers until its last one. Where they
leave too few registers for the row, it is read twice: for c1 and c2, and from the cache for dx, dw and db.

Where each head has a weight of its own, a program's rows are those of one head, and axis 1 of the grid goes over heads.
"""

from __future__ import annotations

from .arithmetic import (
    add_parameter_gradients,
    affine,
    centred,
    head_of,
    input_gradient,
    load_row,
    load_sum,
    reciprocal,
    row_mean,
    row_means,
    scaled_weight,
    store_input_gradient,
    store_partial,
    store_tile,
)
from .interpreter import tl, triton


@triton.jit(
    do_not_specialize=[
        "M",
        "x_step",
        "residual_step",
        "heads",
        "x_head_step",
        "residual_head_step",
    ]
)
def forward_rows(
    x_ptr,  # (M, N)
    residual_ptr,  # (M, N) or None
    weight_ptr,  # (N,), with PER_HEAD (heads, N), or None
    bias_ptr,  # likewise
    y_ptr,  # (M, N)
    residual_out_ptr,  # (M, N), None without a residual
    mean_ptr,  # (M,), None unless centred
    rstd_ptr,  # (M,)
    M,
    x_step,
    residual_step,
    heads,  # None where each input has one row stride, as the strides from head to head
    x_head_step,
    residual_head_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    ROUND: tl.constexpr,
    PER_HEAD: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y, residual_out and the statistics of ROWS rows, each input read once and each output written once."""
    head, share = head_of(M, heads, 1, PER_HEAD)
    # In M's own type, which is int64 where M is: the last row of the grid has to have a number.
    rows = (tl.program_id(0).to(M.dtype) * ROWS + tl.arange(0, ROWS)) * share + head
    cols = tl.arange(0, BLOCK)
    p = load_sum(
        x_ptr, residual_ptr, residual_out_ptr, rows, cols, M, x_step, residual_step, N, VECTOR, ROUND, ACC,
        heads, x_head_step, residual_head_step,
    )  # fmt: skip
    if residual_ptr is not None:
        store_tile(residual_out_ptr, p, rows, cols, M, N)
    q = p
    if CENTER:
        mean = row_mean(p, cols, N)
        tl.store(mean_ptr + rows, mean, mask=rows < M)
        q = centred(p, mean, cols, N)
    rstd = reciprocal(q * q, rows, M, N, MEAN, EPS, PLACEMENT)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    y = affine(
        q * rstd[:, None], weight_ptr, bias_ptr, cols, N, SCALE, OFFSET, ACC, head
    )
    store_tile(y_ptr, y, rows, cols, M, N)


@triton.jit(
    do_not_specialize=[
        "M", "dy_step", "dresidual_out_step", "p_step",
        "heads", "dy_head_step", "dresidual_out_head_step", "p_head_step",
    ]
)  # fmt: skip
def backward_rows(
    dy_ptr,  # (M, N)
    dresidual_out_ptr,  # (M, N) or None
    p_ptr,  # (M, N)
    weight_ptr,  # (N,), with PER_HEAD (heads, N), or None
    mean_ptr,  # (M,), None unless centred
    rstd_ptr,  # (M,)
    dx_ptr,  # (M, N), None where it is not wanted, as the next three
    dresidual_ptr,  # (M, N), only where its dtype is another one than dx's
    dw_ptr,  # (programs, N), with PER_HEAD (programs, heads, N): each program writes its own row
    db_ptr,  # (programs, N), likewise
    M,
    dy_step,
    dresidual_out_step,
    p_step,
    heads,  # as forward_rows
    dy_head_step,
    dresidual_out_head_step,
    p_head_step,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    CENTER: tl.constexpr,
    MEAN: tl.constexpr,
    SCALE: tl.constexpr,
    OFFSET: tl.constexpr,
    EPS: tl.constexpr,
    PLACEMENT: tl.constexpr,
    PER_HEAD: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
    TWICE: tl.constexpr,
):
    """dx of every programs-th tile of rows, and this program's row of the partial sums of dw and db."""
    head, share = head_of(M, heads, 1, PER_HEAD)
    cols = tl.arange(0, BLOCK)
    dw, db = tl.zeros([ROWS, BLOCK], ACC), tl.zeros([ROWS, BLOCK], ACC)
    if not TWICE:
        weight = scaled_weight(weight_ptr, cols, N, SCALE, OFFSET, ACC, head)
    # With STAGES of at least 2 the compiler issues the loads of the tiles to come before it waits for this one's.
    for tile in tl.range(
        tl.program_id(0),
        (M - 1) // (ROWS * share) + 1,
        tl.num_programs(0),
        num_stages=STAGES,
    ):
        rows = (tile * ROWS + tl.arange(0, ROWS)) * share + head
        dy, q = load_row(
            dy_ptr, p_ptr, mean_ptr, rows, cols, M, dy_step, p_step, N, VECTOR, CENTER, ACC,
            heads, dy_head_step, p_head_step, "evict_last" if TWICE else None,
        )  # fmt: skip
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0)
        x_hat = q * rstd[:, None]
        if dx_ptr is not None:
            if TWICE:
                weight = scaled_weight(
                    weight_ptr, cols, N, SCALE, OFFSET, ACC, head, "evict_last"
                )
            wdy = dy * weight
            c1, c2 = row_means(x_hat * wdy, wdy, q * q, N, CENTER, MEAN, EPS, PLACEMENT)
            if TWICE:
                # The registers of a long row were needed for its sums; it is still in the cache.
                dy, q = load_row(
                    dy_ptr, p_ptr, mean_ptr, rows, cols, M, dy_step, p_step, N, VECTOR, CENTER, ACC,
                    heads, dy_head_step, p_head_step, "evict_first",
                )  # fmt: skip
                x_hat = q * rstd[:, None]
                wdy = dy * scaled_weight(
                    weight_ptr, cols, N, SCALE, OFFSET, ACC, head, "evict_first"
                )
            dx = input_gradient(wdy, x_hat, rstd, c1, c2)
            store_input_gradient(
                dx_ptr, dresidual_ptr, dresidual_out_ptr, dx, rows, cols, M, dresidual_out_step, N, VECTOR, ACC,
                heads, dresidual_out_head_step,
            )  # fmt: skip
        dw, db = add_parameter_gradients(dw, db, dw_ptr, db_ptr, dy, x_hat, SCALE)
    store_partial(dw_ptr, dw, cols, N, head, share)
    store_partial(db_ptr, db, cols, N, head, share)
