"""Homework 8: your own layer trains a small model.

Write the kernels, functions marked @triton.jit, above the class; those of homework 4 will do. Check with `pytest` in
this folder, or with `python -m normgrad.homework check .`
"""

import torch
import triton
import triton.language as tl


### BEGIN SOLUTION
@triton.jit
def forward_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, y_ptr, residual_out_ptr, mean_ptr, rstd_ptr, M,
    N: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ROWS rows a program: the sum, its statistics, the normalized rows.  {eq}`res-forward`"""
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    at = rows.to(tl.int64)[:, None] * N + cols[None, :]
    p = tl.load(x_ptr + at, mask=mask, other=0) + tl.load(
        residual_ptr + at, mask=mask, other=0
    )
    tl.store(residual_out_ptr + at, p, mask=mask)
    mean = tl.sum(p, axis=1) / N
    q = tl.where(mask, p - mean[:, None], 0)
    rstd = 1 / tl.sqrt(tl.sum(q * q, axis=1) / N + EPS)
    weight = tl.load(weight_ptr + cols, mask=cols < N, other=0)
    bias = tl.load(bias_ptr + cols, mask=cols < N, other=0)
    tl.store(y_ptr + at, q * rstd[:, None] * weight[None, :] + bias[None, :], mask=mask)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)


@triton.jit
def backward_kernel(
    dy_ptr, dresidual_out_ptr, p_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, partial_ptr, M,
    N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx of ROWS rows a program, and this program's sums for dw and db.  {eq}`res-dx-layer-norm`"""
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    at = rows.to(tl.int64)[:, None] * N + cols[None, :]
    dy = tl.load(dy_ptr + at, mask=mask, other=0)
    p = tl.load(p_ptr + at, mask=mask, other=0)
    mean = tl.load(mean_ptr + rows, mask=rows < M, other=0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0)
    weight = tl.load(weight_ptr + cols, mask=cols < N, other=0)
    x_hat = tl.where(mask, (p - mean[:, None]) * rstd[:, None], 0)
    wdy = dy * weight[None, :]
    c1 = tl.sum(x_hat * wdy, axis=1) / N
    c2 = tl.sum(wdy, axis=1) / N
    dx = rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None])
    dx += tl.load(dresidual_out_ptr + at, mask=mask, other=0)
    tl.store(dx_ptr + at, dx, mask=mask)
    mine = partial_ptr + tl.program_id(0) * 2 * N + cols
    tl.store(mine, tl.sum(dy * x_hat, axis=0), mask=cols < N)
    tl.store(mine + N, tl.sum(dy, axis=0), mask=cols < N)


def tiles(m, n):
    """(number of programs, sizes for the kernels): a program loads the weight once, so it takes many rows."""
    rows = 32
    return triton.cdiv(m, rows), {
        "N": n,
        "ROWS": rows,
        "BLOCK": triton.next_power_of_2(n),
    }


### END SOLUTION


class AddNorm(torch.autograd.Function):
    """Residual add and LayerNorm, called as AddNorm.apply(x, residual, weight, bias, eps).

    All tensors are float64, or all are float32; a matrix may have any strides.
    """

    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps):
        """(y, residual_out): the sum of x and residual is residual_out, and LayerNorm of its rows is y.

        Args:     x, residual (M, N); weight, bias (N,); eps: a number, under the root
        Equations: res-forward (chapter Residual add and norm, fused)
        """
        ### BEGIN SOLUTION
        x, residual = x.contiguous(), residual.contiguous()
        programs, sizes = tiles(*x.shape)
        y, residual_out = torch.empty_like(x), torch.empty_like(x)
        mean, rstd = x.new_empty(len(x)), x.new_empty(len(x))
        if programs:
            forward_kernel[(programs,)](
                x,
                residual,
                weight,
                bias,
                y,
                residual_out,
                mean,
                rstd,
                len(x),
                EPS=eps,
                **sizes,
            )
        ctx.save_for_backward(residual_out, weight, mean, rstd)
        return y, residual_out
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy, dresidual_out):
        """(dx, dresidual, dw, db, None): one gradient an argument of forward; eps has none.

        Args:     dy, dresidual_out (M, N), the gradients of the loss by y and by residual_out
        Equations: res-dx, res-dx-layer-norm with the names of res-names (chapter Residual add and norm, fused),
                   ln-dw, ln-db (chapter LayerNorm)
        """
        ### BEGIN SOLUTION
        residual_out, weight, mean, rstd = ctx.saved_tensors
        dy, dresidual_out = dy.contiguous(), dresidual_out.contiguous()
        programs, sizes = tiles(*dy.shape)
        dx, partial = torch.empty_like(dy), dy.new_empty(programs, 2, dy.shape[1])
        if programs:
            backward_kernel[(programs,)](
                dy,
                dresidual_out,
                residual_out,
                weight,
                mean,
                rstd,
                dx,
                partial,
                len(dy),
                **sizes,
            )
        dw, db = partial.sum(0)
        return dx, dx, dw, db, None
        ### END SOLUTION


def gradient_norms(dy, norms, branches):
    """The size of the gradient at every place of a pre-norm stack, by the chain rule from the last place to the first.

    Place k adds the branch's output to the stream, p_k = z_k + p_(k-1), normalizes, y_k = norm(p_k), and branch k makes
    z_(k+1) of y_k. The loss reads the last y alone.

    Args:     dy (M, N), the gradient of the loss by the last y;
              norms: K + 1 functions: norms[k](dy, dresidual_out) is the gradient of both halves of the sum at place k,
              from those of its y and of its residual_out;
              branches: K functions: branches[k](dz) is the gradient with respect to y_k, given the branch's dz
    Returns:  a tensor (K + 1,): the norm of the gradient with respect to each p_k, in their order
    Equations: res-fused-backward (chapter Residual add and norm: the whole stack), diff-fan-out (chapter
               The graph in reverse)
    """
    ### BEGIN SOLUTION
    stream, sizes = torch.zeros_like(dy), []
    for k in reversed(range(len(norms))):
        stream = norms[k](dy, stream)
        sizes.append(stream.square().sum().sqrt())
        if k > 0:
            dy = branches[k - 1](stream)
    return torch.stack(sizes[::-1])
    ### END SOLUTION
