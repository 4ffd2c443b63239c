"""Functions that launch kernels, which verify_launchers.txt edits."""

import importlib.util
import re

from tables import parts

from normgrad.mistakes.edits import edited
from normgrad.verify import cross_entropy, norm, softmax

HEAD = """import torch
import triton
import triton.language as tl


"""
ROWS = f"""{HEAD}@triton.jit
def kernel(X, W, Y, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * stride + cols, mask=mask, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    w = tl.load(W + cols, mask=mask)
    tl.store(Y + row * n + cols, x * rstd * w, mask=mask)


def rms_norm(x, weight, eps=1e-2):
    M, N = x.shape
    y = torch.empty_like(x)
    B = triton.next_power_of_2(N)
    kernel[(M,)](x, weight, y, x.stride(0), N, eps, B)
    return y
"""
TILES = f"""{HEAD}@triton.jit
def kernel(X, W, Y, stride, m, n, eps, BR: tl.constexpr, BC: tl.constexpr):
    rows = tl.program_id(0) * BR + tl.arange(0, BR)
    row_mask = rows < m
    s = tl.zeros((BR,), dtype=tl.float32)
    for start in range(0, n, BC):
        cols = start + tl.arange(0, BC)
        mask = row_mask[:, None] & (cols < n)[None, :]
        x = tl.load(X + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0)
        s += tl.sum(x * x, axis=1)
    rstd = tl.rsqrt(s / n + eps)
    for start in range(0, n, BC):
        cols = start + tl.arange(0, BC)
        mask = row_mask[:, None] & (cols < n)[None, :]
        x = tl.load(X + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0)
        w = tl.load(W + cols, mask=cols < n, other=0.0)
        y = x * rstd[:, None] * w[None, :]
        tl.store(Y + rows[:, None] * n + cols[None, :], y, mask=mask)


def rms_norm(x, weight, eps=1e-2):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(M, 4),)](x, weight, y, x.stride(0), M, N, eps, BR=4, BC=8)
    return y
"""
CHUNKED = f"""{HEAD}@triton.jit
def kernel(X, W, Y, stride, m, n, eps, R, B: tl.constexpr):
    first = tl.program_id(0) * R
    cols = tl.arange(0, B)
    mask = cols < n
    w = tl.load(W + cols, mask=mask)
    for turn in range(R):
        row = first + turn
        if row < m:
            x = tl.load(X + row * stride + cols, mask=mask, other=0.0)
            rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
            tl.store(Y + row * n + cols, x * rstd * w, mask=mask)


def rms_norm(x, weight, eps=1e-2):
    M, N = x.shape
    y = torch.empty_like(x)
    B = triton.next_power_of_2(N)
    kernel[(triton.cdiv(M, 4),)](x, weight, y, x.stride(0), M, N, eps, 4, B)
    return y
"""
FUNCTION = f"""{HEAD}@triton.jit
def forward_kernel(X, W, Y, R, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * stride + cols, mask=mask, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(R + row, rstd)
    w = tl.load(W + cols, mask=mask, other=0.0)
    tl.store(Y + row * n + cols, x * rstd * w, mask=mask)


@triton.jit
def backward_kernel(
    DY, X, W, R, DX, P, dy_stride, x_stride, m, n, rows, B: tl.constexpr
):
    first = tl.program_id(0) * rows
    cols = tl.arange(0, B)
    mask = cols < n
    w = tl.load(W + cols, mask=mask, other=0.0)
    dw = tl.zeros((B,), dtype=tl.float32)
    for row in range(first, min(first + rows, m)):
        x = tl.load(X + row * x_stride + cols, mask=mask, other=0.0)
        dy = tl.load(DY + row * dy_stride + cols, mask=mask, other=0.0)
        rstd = tl.load(R + row)
        x_hat = x * rstd
        wdy = dy * w
        c1 = tl.sum(x_hat * wdy, axis=0) / n
        dx = rstd * (wdy - x_hat * c1)
        tl.store(DX + row * n + cols, dx, mask=mask)
        dw += dy * x_hat
    tl.store(P + tl.program_id(0) * n + cols, dw, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        M, N = x.shape
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        B = triton.next_power_of_2(N)
        forward_kernel[(M,)](x, weight, y, rstd, x.stride(0), N, eps, B)
        ctx.save_for_backward(x, weight, rstd)
        ctx.B = B
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        M, N = x.shape
        P = 2
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        partial = torch.empty((P, N), dtype=torch.float32, device=x.device)
        backward_kernel[(P,)](
            dy, x, weight, rstd, dx, partial,
            dy.stride(0), x.stride(0), M, N, triton.cdiv(M, P), B=ctx.B,
        )
        return dx, partial.sum(0), None
"""
FORWARD, _, REST = FUNCTION.partition("@triton.jit\ndef backward_kernel")
# partial sums of dw under the locks of Triton's tutorial, which a second kernel adds up
LOCKS = f"""{FORWARD}@triton.jit
def backward_kernel(
    DY, X, W, R, DX, P, Lock, stride, n, G: tl.constexpr, B: tl.constexpr
):
    row = tl.program_id(0)
    group = row % G
    Lock += group
    Count = Lock + G
    cols = tl.arange(0, B)
    mask = cols < n
    P += group * n + cols
    w = tl.load(W + cols, mask=mask, other=0.0)
    x = tl.load(X + row * stride + cols, mask=mask, other=0.0)
    dy = tl.load(DY + row * n + cols, mask=mask, other=0.0)
    rstd = tl.load(R + row)
    x_hat = x * rstd
    c1 = tl.sum(x_hat * dy * w, axis=0) / n
    tl.store(DX + row * n + cols, rstd * (dy * w - x_hat * c1), mask=mask)
    dw = (dy * x_hat).to(tl.float32)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        dw += tl.load(P, mask=mask)
    tl.store(P, dw, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def sum_kernel(P, DW, m, n, BR: tl.constexpr, BC: tl.constexpr):
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    dw = tl.zeros((BR, BC), dtype=tl.float32)
    for start in range(0, m, BR):
        rows = start + tl.arange(0, BR)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        dw += tl.load(P + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
    tl.store(DW + cols, tl.sum(dw, axis=0), mask=cols < n)


class{REST.partition("class")[2].partition("        P = 2")[0]}        G = 2
        dy = dy.contiguous()
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        locks = torch.zeros(2 * G, dtype=torch.int32, device=x.device)
        partial = torch.zeros((G, N), dtype=torch.float32, device=x.device)
        dw = torch.empty((N,), dtype=torch.float32, device=x.device)
        backward_kernel[(M,)](
            dy, x, weight, rstd, dx, partial, locks, x.stride(0), N, G=G, B=ctx.B
        )
        sum_kernel[(triton.cdiv(N, 8),)](partial, dw, min(G, M), N, BR=4, BC=8)
        return dx, dw, None
"""
LAYER = f"""{ROWS}

class RMSNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-2):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return rms_norm(x, self.weight, self.eps)
"""
SOFTMAX = f"""{HEAD}@triton.jit
def kernel(Y, X, x_stride, y_stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * x_stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y + row * y_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def softmax(x):
    M, N = x.shape
    y = torch.empty_like(x)
    B = triton.next_power_of_2(N)
    kernel[(M,)](y, x, x.stride(0), y.stride(0), N, B=B)
    return y
"""
CROSS_ENTROPY = f"""{HEAD}@triton.jit
def forward_kernel(X, TARGET, LOSS, LSE, stride, n, ignored, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    x = tl.load(X + row * stride + cols, mask=cols < n, other=-float("inf"))
    m = tl.max(x, axis=0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), axis=0))
    target = tl.load(TARGET + row)
    loss = lse - tl.load(X + row * stride + target).to(tl.float32)
    if target == ignored:
        loss = 0.0
    tl.store(LOSS + row, loss)
    tl.store(LSE + row, lse)


@triton.jit
def backward_kernel(DX, DLOSS, X, TARGET, LSE, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(X + row * stride + cols, mask=cols < n)
    p = tl.exp(x - tl.load(LSE + row))
    p = tl.where(cols == tl.load(TARGET + row), p - 1.0, p)
    tl.store(DX + row * n + cols, p * tl.load(DLOSS + row), mask=cols < n)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, labels):
        M, N = x.shape
        loss = torch.empty(M, dtype=torch.float32, device=x.device)
        lse = torch.empty(M, dtype=torch.float32, device=x.device)
        B = triton.next_power_of_2(N)
        forward_kernel[(M,)](x, labels, loss, lse, x.stride(0), N, -100, B)
        ctx.save_for_backward(x, labels, lse)
        return loss

    @staticmethod
    def backward(ctx, dloss):
        x, labels, lse = ctx.saved_tensors
        M, N = x.shape
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        dloss = dloss.contiguous()
        backward_kernel[(M, triton.cdiv(N, 64))](
            dx, dloss, x, labels, lse, x.stride(0), N, 64
        )
        return dx, None
"""
# a launcher that is handed the memory of its result, and returns nothing
HANDED = (
    ROWS.replace("weight, eps=1e-2", "weight, out, eps=1e-2")
    .replace("    y = torch.empty_like(x)\n", "    y = out\n")
    .replace("    return y\n", "")
)
BASES = {
    "ROWS": ROWS,
    "HANDED": HANDED,
    "TILES": TILES,
    "CHUNKED": CHUNKED,
    "FUNCTION": FUNCTION,
    "LOCKS": LOCKS,
    "LAYER": LAYER,
    "SOFTMAX": SOFTMAX,
    "CROSS_ENTROPY": CROSS_ENTROPY,
}
# what verify is told of a base
TOLD = {
    "ROWS": dict(outputs=("y",), name="rms_norm"),
    "HANDED": dict(outputs=("y",), out="(M, N)"),
    "TILES": dict(outputs=("y",)),
    "CHUNKED": dict(outputs=("y",)),
    "FUNCTION": {},
    "LOCKS": {},
    "LAYER": dict(outputs=("y",), dim="N"),
    "SOFTMAX": {},
    "CROSS_ENTROPY": dict(outputs=("loss",), labels="target"),
}
NORM = norm()
DEFINITIONS = dict.fromkeys(BASES, NORM) | {"SOFTMAX": softmax()}
DEFINITIONS |= {"CROSS_ENTROPY": cross_entropy()}


def launcher(line):
    """(base, text, a pattern of words) of a line of verify_launchers.txt."""
    base, edits, words = parts(line)
    base = base.removesuffix(":")
    return base, edited(BASES[base], edits, base), words


def imported(text, folder):
    """A module of a text, whose kernels Triton's interpreter runs."""
    path = folder / "launcher.py"
    path.write_text(text, encoding="utf8")
    spec = importlib.util.spec_from_file_location("launcher", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sizes_of(verdict, default):
    """The last sizes that a verdict names."""
    found = re.findall(r"M ?= ?(\d+), N ?= ?(\d+)", str(verdict))
    return tuple(map(int, found[-1])) if found else default
