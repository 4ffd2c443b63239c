"""Variants of homeworks 1 to 3 as they are solved on paper: {(homework, seed): text of a solution.py}."""

HEAD = """
from sympy import KroneckerDelta, Sum, symbols
r, i = (symbols(name, integer=True, positive=True) for name in "ri")
"""
THREE_MEANS = f"""{HEAD}
def contract_delta(x, w, k, N):
    return w[k] * x[k] - 3 * Sum(w[r] * x[r], (r, 1, N)) / N
def local_and_total(x, j, k, N):
    local = 3 * KroneckerDelta(j, k) * Sum(x[r], (r, 1, N)) / N
    return local, local + 3 * x[j] / N
def jacobian_layouts(w, a, b, N):
    entry = KroneckerDelta(a, b) - 3 / N
    return w[b] * entry, w[a] * entry
def cotangent(w, dy, j, N):
    return w[j] * dy[j] - 3 * w[j] * Sum(dy[r], (r, 1, N)) / N
def parameter_sums(x, dy, j, M, N):
    row = x[i, j] - 3 * Sum(x[i, r], (r, 1, N)) / N
    return Sum(dy[i, j] * row, (i, 1, M)), Sum(dy[i, j], (i, 1, M))
"""
TWO_MEANS_ADDED = f"""{HEAD}
def contract_delta(x, w, k, N):
    return w[k] * x[k] + 2 * Sum(w[r] * x[r], (r, 1, N)) / N
def local_and_total(x, j, k, N):
    mean = Sum(x[r], (r, 1, N)) / N
    return -2 * KroneckerDelta(j, k) * mean, -2 * (KroneckerDelta(j, k) * mean + x[j] / N)
def jacobian_layouts(w, a, b, N):
    return tuple(w[index] * KroneckerDelta(a, b) + 2 * w[index] / N for index in (b, a))
def cotangent(w, dy, j, N):
    return w[j] * (dy[j] + 2 * Sum(dy[r], (r, 1, N)) / N)
def parameter_sums(x, dy, j, M, N):
    means = Sum(x[i, r], (r, 1, N)) / N
    dw = Sum(dy[i, j] * x[i, j], (i, 1, M)) + 2 * Sum(dy[i, j] * means, (i, 1, M))
    return dw, Sum(dy[i, j], (i, 1, M))
"""
EPS_OUTSIDE = """
import numpy as np
def rmsnorm_forward(x, weight, eps):
    rstd = 1 / (np.sqrt((x * x).mean(-1)) + eps)
    return (weight + 2) * x * rstd[:, None], rstd
def rmsnorm_backward(dy, x, weight, rstd):
    rstd, g = rstd[:, None], (weight + 2) * dy
    s = np.sqrt((x * x).mean(-1, keepdims=True))
    s = np.where(s == 0, 1, s)
    dx = rstd * g - rstd**2 / s * x * (x * g).mean(-1, keepdims=True)
    return dx, (dy * x * rstd).sum(0)
"""
SUM_OF_SQUARES = """
import numpy as np
def rmsnorm_forward(x, weight, eps):
    rstd = 1 / np.sqrt((x * x).sum(-1) + eps)
    return (weight - 1) * x * rstd[:, None], rstd
def rmsnorm_backward(dy, x, weight, rstd):
    x_hat, g = x * rstd[:, None], (weight - 1) * dy
    dx = rstd[:, None] * (g - x_hat * (x_hat * g).sum(-1, keepdims=True))
    return dx, (dy * x_hat).sum(0)
"""
LAYER = """
import torch
def wide(t):
    return t.float() if t.dtype == torch.bfloat16 else t
def normalized(x, eps):
    q = x - x.mean(-1, keepdim=True)
    rstd = ((q * q).{reduce}(-1, keepdim=True) + eps).rsqrt()
    return q * rstd, rstd
def layernorm_backward(dy, x, weight, mean, rstd):
    x_hat, g = (x - mean[:, None]) * rstd[:, None], (weight {offset}) * dy
    along = x_hat * (x_hat * g).{reduce}(-1, keepdims=True)
    dx = rstd[:, None] * (g - g.mean(-1, keepdims=True) - along)
    return dx, (dy * x_hat).sum(0), dy.sum(0)
class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        y = normalized(wide(x), eps)[0] * (wide(weight) {offset}) + wide(bias)
        return y.to(x.dtype)
    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        (x_hat, rstd), dy = normalized(wide(x), ctx.eps), wide(dy)
        g = (wide(weight) {offset}) * dy
        along = x_hat * (x_hat * g).{reduce}(-1, keepdim=True)
        dx = rstd * (g - g.mean(-1, keepdim=True) - along)
        dw, db = (dy * x_hat).sum(0), dy.sum(0)
        return dx.to(x.dtype), dw.to(weight.dtype), db.to(weight.dtype), None
"""
SOLVED = {
    ("hw1", 3): TWO_MEANS_ADDED,
    ("hw1", 4): THREE_MEANS,
    ("hw2", 1): SUM_OF_SQUARES,
    ("hw2", 5): EPS_OUTSIDE,
    ("hw3", 0): LAYER.format(reduce="sum", offset="+ 2"),
    ("hw3", 9): LAYER.format(reduce="mean", offset="- 1"),
}
