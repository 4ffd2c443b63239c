"""The gated norms in Triton: written by `python -m normgrad.fused.gated_layers`, not by hand."""

from normgrad.triton_kernels.arithmetic import load_columns, load_tile, store_partial, store_tile
from normgrad.triton_kernels.interpreter import tl, triton


@triton.jit(do_not_specialize=["M", "g_step", "x_step"])
def rms_norm_then_gate_forward(
    g_ptr,  # (M, N)
    x_ptr,  # (M, N)
    w_ptr,  # (N,)
    y_ptr,  # (M, N)
    rstd_ptr,  # (M,)
    M,
    g_step,
    x_step,
    eps: tl.constexpr,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y, rstd of ROWS rows, each input read once and each output written once."""
    rows = tl.program_id(0).to(M.dtype) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    x = load_tile(x_ptr, rows, cols, M, x_step, N, VECTOR).to(ACC)
    # rstd[i] = 1/sqrt(eps + Sum(x[i, r]**2, (r, 1, N))/N)
    rstd = 1 / tl.sqrt(eps + tl.sum(x * x, axis=1) / N)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    x_hat = x * rstd[:, None]  # x_hat[i, j] = rstd[i]*x[i, j]
    g = load_tile(g_ptr, rows, cols, M, g_step, N, VECTOR).to(ACC)
    sigmoid_g = tl.sigmoid(g)  # sigmoid_g[i, j] = sigmoid(g[i, j])
    w = load_columns(w_ptr, cols, N, ACC)
    y = g * sigmoid_g * w * x_hat  # y[i, j] = g[i, j]*sigmoid_g[i, j]*w[j]*x_hat[i, j]
    store_tile(y_ptr, y, rows, cols, M, N)


@triton.jit(do_not_specialize=["M", "dy_step", "g_step", "x_step"])
def rms_norm_then_gate_backward(
    dy_ptr,  # (M, N)
    g_ptr,  # (M, N)
    x_ptr,  # (M, N)
    w_ptr,  # (N,)
    rstd_ptr,  # (M,)
    dg_ptr,  # (M, N), None where it is not needed
    dx_ptr,  # (M, N), None where it is not needed
    dw_ptr,  # (programs, N), each program its own row, None where it is not needed
    M,
    dy_step,
    g_step,
    x_step,
    eps: tl.constexpr,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """dg, dx of every programs-th tile of rows, and this program's share of dw."""
    cols = tl.arange(0, BLOCK)
    w = load_columns(w_ptr, cols, N, ACC)
    dw = tl.zeros([ROWS, BLOCK], ACC)
    for tile in tl.range(tl.program_id(0), (M - 1) // ROWS + 1, tl.num_programs(0), num_stages=STAGES):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x = load_tile(x_ptr, rows, cols, M, x_step, N, VECTOR).to(ACC)
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=1).to(ACC)
        x_hat = x * rstd[:, None]  # x_hat[i, j] = rstd[i]*x[i, j]
        g = load_tile(g_ptr, rows, cols, M, g_step, N, VECTOR).to(ACC)
        sigmoid_g = tl.sigmoid(g)  # sigmoid_g[i, j] = sigmoid(g[i, j])
        dy = load_tile(dy_ptr, rows, cols, M, dy_step, N, VECTOR).to(ACC)
        wdy = dy * g * sigmoid_g * w  # wdy[i, j] = dy[i, j]*g[i, j]*sigmoid_g[i, j]*w[j]
        c1 = tl.sum(wdy * x_hat, axis=1) / N  # c1[i] = Sum(wdy[i, r]*x_hat[i, r], (r, 1, N))/N
        # dq[i, j] = (-c1[i]*x_hat[i, j] + wdy[i, j])*rstd[i]
        dq = (wdy - x_hat * c1[:, None]) * rstd[:, None]
        dx = dq  # dx[i, j] = dq[i, j]
        if dx_ptr is not None:
            store_tile(dx_ptr, dx, rows, cols, M, N)
        # dg[i, j] = ((1 - sigmoid_g[i, j])*g[i, j] + 1)*dy[i, j]*sigmoid_g[i, j]*w[j]*x_hat[i, j]
        dg = ((1 - sigmoid_g) * g + 1) * dy * sigmoid_g * w * x_hat
        if dg_ptr is not None:
            store_tile(dg_ptr, dg, rows, cols, M, N)
        # dw[j] = sum over rows of dy[i, j]*g[i, j]*sigmoid_g[i, j]*x_hat[i, j]
        if dw_ptr is not None:
            dw += dy * g * sigmoid_g * x_hat
    store_partial(dw_ptr, dw, cols, N)


@triton.jit(do_not_specialize=["M", "g_step", "x_step"])
def gate_then_rms_norm_forward(
    g_ptr,  # (M, N)
    x_ptr,  # (M, N)
    w_ptr,  # (N,)
    y_ptr,  # (M, N)
    rstd_ptr,  # (M,)
    M,
    g_step,
    x_step,
    eps: tl.constexpr,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y, rstd of ROWS rows, each input read once and each output written once."""
    rows = tl.program_id(0).to(M.dtype) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    g = load_tile(g_ptr, rows, cols, M, g_step, N, VECTOR).to(ACC)
    sigmoid_g = tl.sigmoid(g)  # sigmoid_g[i, j] = sigmoid(g[i, j])
    x = load_tile(x_ptr, rows, cols, M, x_step, N, VECTOR).to(ACC)
    q = g * sigmoid_g * x  # q[i, j] = g[i, j]*sigmoid_g[i, j]*x[i, j]
    # rstd[i] = 1/sqrt(eps + Sum(q[i, r]**2, (r, 1, N))/N)
    rstd = 1 / tl.sqrt(eps + tl.sum(q * q, axis=1) / N)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    x_hat = q * rstd[:, None]  # x_hat[i, j] = q[i, j]*rstd[i]
    w = load_columns(w_ptr, cols, N, ACC)
    y = w * x_hat  # y[i, j] = w[j]*x_hat[i, j]
    store_tile(y_ptr, y, rows, cols, M, N)


@triton.jit(do_not_specialize=["M", "dy_step", "g_step", "x_step"])
def gate_then_rms_norm_backward(
    dy_ptr,  # (M, N)
    g_ptr,  # (M, N)
    x_ptr,  # (M, N)
    w_ptr,  # (N,)
    rstd_ptr,  # (M,)
    dg_ptr,  # (M, N), None where it is not needed
    dx_ptr,  # (M, N), None where it is not needed
    dw_ptr,  # (programs, N), each program its own row, None where it is not needed
    M,
    dy_step,
    g_step,
    x_step,
    eps: tl.constexpr,
    N: tl.constexpr,
    VECTOR: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """dg, dx of every programs-th tile of rows, and this program's share of dw."""
    cols = tl.arange(0, BLOCK)
    w = load_columns(w_ptr, cols, N, ACC)
    dw = tl.zeros([ROWS, BLOCK], ACC)
    for tile in tl.range(tl.program_id(0), (M - 1) // ROWS + 1, tl.num_programs(0), num_stages=STAGES):
        rows = tile * ROWS + tl.arange(0, ROWS)
        g = load_tile(g_ptr, rows, cols, M, g_step, N, VECTOR).to(ACC)
        sigmoid_g = tl.sigmoid(g)  # sigmoid_g[i, j] = sigmoid(g[i, j])
        x = load_tile(x_ptr, rows, cols, M, x_step, N, VECTOR).to(ACC)
        q = g * sigmoid_g * x  # q[i, j] = g[i, j]*sigmoid_g[i, j]*x[i, j]
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=1).to(ACC)
        x_hat = q * rstd[:, None]  # x_hat[i, j] = q[i, j]*rstd[i]
        dy = load_tile(dy_ptr, rows, cols, M, dy_step, N, VECTOR).to(ACC)
        wdy = dy * w  # wdy[i, j] = dy[i, j]*w[j]
        c1 = tl.sum(wdy * x_hat, axis=1) / N  # c1[i] = Sum(wdy[i, r]*x_hat[i, r], (r, 1, N))/N
        # dq[i, j] = (-c1[i]*x_hat[i, j] + wdy[i, j])*rstd[i]
        dq = (wdy - x_hat * c1[:, None]) * rstd[:, None]
        dx = dq * g * sigmoid_g  # dx[i, j] = dq[i, j]*g[i, j]*sigmoid_g[i, j]
        if dx_ptr is not None:
            store_tile(dx_ptr, dx, rows, cols, M, N)
        # dg[i, j] = ((1 - sigmoid_g[i, j])*g[i, j] + 1)*dq[i, j]*sigmoid_g[i, j]*x[i, j]
        dg = ((1 - sigmoid_g) * g + 1) * dq * sigmoid_g * x
        if dg_ptr is not None:
            store_tile(dg_ptr, dg, rows, cols, M, N)
        if dw_ptr is not None:
            dw += dy * x_hat  # dw[j] = sum over rows of dy[i, j]*x_hat[i, j]
    store_partial(dw_ptr, dw, cols, N)
