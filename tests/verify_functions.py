"""Right gradients of RMSNorm and LayerNorm in many styles, for the tests of what reads them."""

import functools
import math

import numpy as np


def vectorized(dy, x, weight, mean, rstd):
    x_hat = (x - mean[:, None]) * rstd[:, None]
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    c2 = wdy.mean(-1, keepdims=True)
    dx = rstd[:, None] * (wdy - c2 - x_hat * c1)
    return dx, (dy * x_hat).sum(0), dy.sum(0)


def over_rows(dy, x, weight, mean, rstd):
    def one_row(g, x_hat, scale):
        return scale * (g - np.mean(g) - x_hat * (x_hat @ g) / n)

    m, n = x.shape
    dx, dw, db = np.empty_like(x), np.zeros_like(weight), 0
    for i in range(m):
        x_hat = (x[i] - mean[i]) * rstd[i]
        dx[i] = one_row(weight * dy[i], x_hat, rstd[i])
        dw += dy[i] * x_hat
    for row, _ in zip(dy, x, strict=True):
        db += row
    return {"dx": dx, "dw": dw, "db": db}


def rms_forward_in_loops(x, weight, eps):
    m, n = len(x), x.shape[1]
    y, rstd = np.empty_like(x), np.empty(m, x.dtype)
    for i, row in enumerate(x):
        rstd[i] = 1 / math.sqrt(np.dot(row, row) / n + eps)
        y[i] = row * weight / math.sqrt(sum([row[k] ** 2 for k in range(n)]) / n + eps)
    return y, rstd


def layer_norm_in_loops(x, weight, bias, eps, y, mean, rstd):
    M, N = x.shape
    for i in range(M):
        total = 0.0
        for j in range(N):
            total += x[i, j]
        mu = total / N
        square = 0.0
        for j in range(N):
            square += (x[i, j] - mu) ** 2
        r = 1 / np.sqrt(square / N + eps)
        mean[i] = mu
        rstd[i] = r
        for j in range(N):
            y[i, j] = (x[i, j] - mu) * r * weight[j] + bias[j]


def twice_as_large(function):
    @functools.wraps(function)
    def run(x, weight, bias, eps, y, mean, rstd):
        function(x, weight, bias, eps, y, mean, rstd)
        y[:] *= 2

    run.py_func = function
    return run


# A right autograd Function.
RMS_RESULT = "x * (x.square().mean(1, keepdim=True) + eps).rsqrt() * weight"
RMS_FUNCTION = f"""
import torch


class RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return {RMS_RESULT}

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        rstd = (x.square().mean(1, keepdim=True) + ctx.eps).rsqrt()
        wdy = dy * weight
        dx = rstd * wdy - x * rstd**3 * (wdy * x).mean(1, keepdim=True)
        dw = (dy * x * rstd).sum(0)
        return dx, dw, None
"""

# A forward, and the gradients that it has where torch differentiates all of it.
DIFFERENTIATED = """
import torch


def forward(x, weight, eps):
    rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x * rstd * weight


def backward(dy, x, weight, eps):
    rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    wdy = dy * weight
    dx = rstd * wdy - rstd**3 * x * (wdy * x).mean(-1, keepdim=True)
    return dx, (dy * x * rstd).sum(0)
"""
CUT = [
    ("rsqrt(x.pow", "rsqrt(x.detach().pow"),
    ("return x * rstd", "return x.detach() * rstd"),
    ("def forward", "@torch.no_grad()\ndef forward"),
    (
        "    return x",
        "    with torch.no_grad():\n        rstd = 1 * rstd\n    return x",
    ),
]
