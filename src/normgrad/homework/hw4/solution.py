"""Homework 4: residual add and LayerNorm in Triton.

Write the kernels, functions marked @triton.jit, above the two launchers. Check with `pytest` in this folder, or with
`python -m normgrad.homework check .`
"""

import torch
import triton
import triton.language as tl


### BEGIN SOLUTION
@triton.jit
def forward_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, y_ptr, residual_out_ptr, mean_ptr, rstd_ptr, M, x_step, residual_step,
    N: tl.constexpr, EPS: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ROWS rows a program: the sum, its statistics, the normalized rows.  {eq}`res-forward`"""
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    at = rows.to(tl.int64)[:, None]
    x = tl.load(x_ptr + at * x_step + cols[None, :], mask=mask, other=0).to(ACC)
    residual = tl.load(
        residual_ptr + at * residual_step + cols[None, :], mask=mask, other=0
    ).to(ACC)
    stored = (x + residual).to(residual_out_ptr.dtype.element_ty)
    tl.store(residual_out_ptr + at * N + cols[None, :], stored, mask=mask)
    p = stored.to(ACC)
    mean = tl.sum(p, axis=1) / N
    q = tl.where(mask, p - mean[:, None], 0)
    rstd = 1 / tl.sqrt(tl.sum(q * q, axis=1) / N + EPS)
    weight = tl.load(weight_ptr + cols, mask=cols < N, other=0).to(ACC)
    bias = tl.load(bias_ptr + cols, mask=cols < N, other=0).to(ACC)
    y = q * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(y_ptr + at * N + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)


@triton.jit
def backward_kernel(
    dy_ptr, dresidual_out_ptr, p_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, M, dy_step,
    dresidual_out_step, p_step, N: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx of every programs-th tile, and this program's row of partial sums.  {eq}`res-dx-layer-norm`"""
    cols = tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + cols, mask=cols < N, other=0).to(ACC)
    dw, db = tl.zeros([ROWS, BLOCK], ACC), tl.zeros([ROWS, BLOCK], ACC)
    for tile in range(tl.program_id(0), (M + ROWS - 1) // ROWS, tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        at = rows.to(tl.int64)[:, None]
        dy = tl.load(dy_ptr + at * dy_step + cols[None, :], mask=mask, other=0).to(ACC)
        stream = tl.load(
            dresidual_out_ptr + at * dresidual_out_step + cols[None, :],
            mask=mask,
            other=0,
        ).to(ACC)
        p = tl.load(p_ptr + at * p_step + cols[None, :], mask=mask, other=0).to(ACC)
        mean = tl.load(mean_ptr + rows, mask=rows < M, other=0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0)
        x_hat = tl.where(mask, (p - mean[:, None]) * rstd[:, None], 0)
        wdy = dy * weight[None, :]
        c1 = tl.sum(x_hat * wdy, axis=1) / N
        c2 = tl.sum(wdy, axis=1) / N
        dx = rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None]) + stream
        tl.store(
            dx_ptr + at * N + cols[None, :], dx.to(dx_ptr.dtype.element_ty), mask=mask
        )
        dw += dy * x_hat
        db += dy
    mine = tl.program_id(0) * N + cols
    tl.store(dw_ptr + mine, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_ptr + mine, tl.sum(db, axis=0), mask=cols < N)


@triton.jit
def sum_kernel(
    partial_ptr, out_ptr, K, N: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr
):
    """The K rows of partial sums of a block of columns, added up in their order."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], ACC)
    for k in range(0, K):
        total += tl.load(partial_ptr + k * N + cols, mask=cols < N, other=0)
    tl.store(out_ptr + cols, total.to(out_ptr.dtype.element_ty), mask=cols < N)


def rows_of(t):
    """The tensor itself where its columns are adjacent, else a copy: the kernels take any row stride."""
    return t if t.stride(-1) == 1 else t.contiguous()


def accumulator(t):
    """(torch's, Triton's) dtype of sums: float64 for float64, else float32."""
    return (
        (torch.float64, tl.float64)
        if t.dtype == torch.float64
        else (torch.float32, tl.float32)
    )


### END SOLUTION


def addnorm_forward(x, residual, weight, bias, eps):
    """The sum of x and residual, and LayerNorm of its rows, by one launch of one kernel.

    Past its mask a load without other= gives 0 in the interpreter and any number on a GPU: give it one, or use none.

    Args:     x, residual (M, N), float64, float32 or float16; weight, bias (N,); eps: a number, under the root
    Returns:  (y, residual_out, mean, rstd): y, residual_out (M, N) in the dtype of x; mean, rstd (M,) of the rows of
              residual_out, float64 for float64 and else float32
    Equations: res-forward (chapter Residual add and norm, fused), kern-padded-variance (chapter Kernels)
    """
    ### BEGIN SOLUTION
    m, n = x.shape
    x, residual, (acc, ACC), tile = rows_of(x), rows_of(residual), accumulator(x), 4
    y, residual_out = x.new_empty(m, n), x.new_empty(m, n)
    mean, rstd = x.new_empty(m, dtype=acc), x.new_empty(m, dtype=acc)
    if m > 0:
        forward_kernel[(triton.cdiv(m, tile),)](
            x, residual, weight, bias, y, residual_out, mean, rstd, m, x.stride(0), residual.stride(0),
            N=n, EPS=eps, ACC=ACC, ROWS=tile, BLOCK=triton.next_power_of_2(n),
        )  # fmt: skip
    return y, residual_out, mean, rstd
    ### END SOLUTION


def addnorm_backward(dy, dresidual_out, residual_out, weight, mean, rstd):
    """The gradients of both halves of the sum, of weight and of bias, by at most three launches.

    Args:     dy, dresidual_out, residual_out (M, N); weight (N,); mean, rstd (M,) as the forward returned them
    Returns:  (dx, dresidual, dw, db): dx, dresidual (M, N), which may be one tensor; dw, db (N,)
    Equations: res-dx, res-dx-layer-norm with the names of res-names (chapter Residual add and norm, fused),
               ln-dw, ln-db (chapter LayerNorm)
    """
    ### BEGIN SOLUTION
    m, n = dy.shape
    dy, stream, p = rows_of(dy), rows_of(dresidual_out), rows_of(residual_out)
    (acc, ACC), tile = accumulator(p), 4
    dx, dw, db = p.new_empty(m, n), weight.new_zeros(n), weight.new_zeros(n)
    if m > 0:
        programs, block = min(4, triton.cdiv(m, tile)), triton.next_power_of_2(n)
        partial = p.new_empty(2, programs, n, dtype=acc)
        backward_kernel[(programs,)](
            dy, stream, p, weight, mean, rstd, dx, partial[0], partial[1], m, dy.stride(0), stream.stride(0),
            p.stride(0), N=n, ACC=ACC, ROWS=tile, BLOCK=block,
        )  # fmt: skip
        for sums, out in zip(partial, (dw, db), strict=True):
            sum_kernel[(1,)](sums, out, programs, N=n, ACC=ACC, BLOCK=block)
    return dx, dx, dw, db
    ### END SOLUTION
