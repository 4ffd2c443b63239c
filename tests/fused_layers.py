"""Layers as a reader types them, and the same in torch, written without looking at the definitions."""

import torch
from sympy import Max, Rational, exp, log, sqrt, tanh
from torch.nn import functional

from normgrad.symbolic import Defs, dim, index, largest, mean, sigmoid, tensor, total

M, N = dim("M"), dim("N")
i, j = index("i", "j")
eps, a = tensor("eps", positive=True), tensor("a")
MATRICES = "x g residual y p q x_hat e s t h dy dx dg dp_out"
x, g, residual, y, p, q, x_hat, e, s, t, h, dy, dx, dg, dp_out = (
    tensor(name, M, N) for name in MATRICES.split()
)
w, b, dw, db = (tensor(name, N) for name in ("w", "b", "dw", "db"))
average, v, m, z, k = (tensor(name, M) for name in ("mean", "v", "m", "z", "k"))
size = tensor("s", M)
rstd, norm, D = (tensor(name, M, positive=True) for name in ("rstd", "norm", "D"))


def rms(defs, rows):
    defs[rstd[i]] = 1 / sqrt(mean(N, lambda r: rows[i, r] ** 2) + eps)
    defs[x_hat[i, j]] = rows[i, j] * rstd[i]


def centred(defs, rows):
    defs[average[i]] = mean(N, lambda r: rows[i, r])
    defs[q[i, j]] = rows[i, j] - average[i]
    defs[v[i]] = mean(N, lambda r: q[i, r] ** 2)


def standard(defs, rows):
    centred(defs, rows)
    defs[rstd[i]] = 1 / sqrt(v[i] + eps)
    defs[x_hat[i, j]] = q[i, j] * rstd[i]


def shifted(defs):
    defs[m[i]] = largest(N, lambda r: x[i, r])
    defs[e[i, j]] = exp(x[i, j] - m[i])


def rms_norm(defs):
    rms(defs, x)
    defs[y[i, j]] = w[j] * x_hat[i, j]


def layer_norm(defs):
    standard(defs, x)
    defs[y[i, j]] = w[j] * x_hat[i, j] + b[j]


def add_layer_norm(defs):
    defs[p[i, j]] = x[i, j] + residual[i, j]
    standard(defs, p)
    defs[y[i, j]] = w[j] * x_hat[i, j] + b[j]


def l2_norm(defs):
    defs[norm[i]] = sqrt(total(N, lambda r: x[i, r] ** 2) + eps)
    defs[y[i, j]] = x[i, j] / norm[i]


def l2_clamp(defs):
    defs[size[i]] = sqrt(total(N, lambda r: x[i, r] ** 2))
    defs[D[i]] = Max(size[i], eps)
    defs[y[i, j]] = x[i, j] / D[i]


def gated_rms_norm(defs):
    rms(defs, x)
    defs[s[i, j]] = g[i, j] * sigmoid(g[i, j])
    defs[y[i, j]] = w[j] * x_hat[i, j] * s[i, j]


def softmax(defs):
    shifted(defs)
    defs[z[i]] = total(N, lambda r: e[i, r])
    defs[y[i, j]] = e[i, j] / z[i]


def scaled_residual(defs):
    defs[p[i, j]] = a * x[i, j] + residual[i, j]
    rms(defs, p)
    defs[y[i, j]] = w[j] * x_hat[i, j]


def dyt(defs):
    defs[t[i, j]] = tanh(a * x[i, j])
    defs[y[i, j]] = w[j] * t[i, j] + b[j]


def log_sum_exp(defs):
    shifted(defs)
    defs[z[i]] = m[i] + log(total(N, lambda r: e[i, r]))


def l4_norm(defs):
    defs[norm[i]] = (total(N, lambda r: x[i, r] ** 4) + eps) ** Rational(1, 4)
    defs[y[i, j]] = x[i, j] / norm[i]


def row_scaled(defs):
    """Each row has a number of its own, and a ReLU comes first."""
    defs[p[i, j]] = Max(x[i, j], 0)
    rms(defs, p)
    defs[y[i, j]] = k[i] * x_hat[i, j] * w[j]


def softmax_with_sink(defs):
    """One more place, whose logit is 0 and which no output has."""
    shifted(defs)
    defs[z[i]] = exp(-m[i]) + total(N, lambda r: e[i, r])
    defs[y[i, j]] = e[i, j] / z[i]


def tempered_softmax(defs):
    """The largest number is one of a line; the temperature is trained."""
    defs[t[i, j]] = a * x[i, j]
    defs[m[i]] = largest(N, lambda r: t[i, r])
    defs[e[i, j]] = exp(t[i, j] - m[i])
    defs[z[i]] = total(N, lambda r: e[i, r])
    defs[y[i, j]] = e[i, j] / z[i]


def pooled(defs):
    """A row's mean alone: all columns have one gradient."""
    defs[z[i]] = mean(N, lambda r: x[i, r] + b[r])


def centred_twice(defs):
    """The slope of a centred row is one number for all its columns, which is then summed."""
    defs[z[i]] = mean(N, lambda r: x[i, r] - k[i])
    defs[y[i, j]] = w[j] * tanh(x[i, j]) * k[i] + w[j] * (x[i, j] + b[j]) * z[i]


def one_line(defs):
    """LayerNorm in one line, whose sums stand within one another."""
    level = mean(N, lambda r: x[i, r])
    variance = mean(N, lambda r: (x[i, r] - level) ** 2)
    defs[y[i, j]] = w[j] * (x[i, j] - level) / sqrt(variance + Rational(1, 20))


def made(layer, outputs=(y[i, j],), scalars=()):
    """The arguments of Fused for one of the layers above."""
    defs = Defs()
    layer(defs)
    return {
        "defs": defs,
        "outputs": list(outputs),
        "scalars": scalars,
        "name": layer.__name__,
    }


def in_torch_rms(rows, weight, eps):
    return functional.rms_norm(rows, rows.shape[-1:], weight, eps)


def in_torch_layer_norm(rows, weight, bias, eps):
    return functional.layer_norm(rows, rows.shape[-1:], weight, bias, eps)


def in_torch_add(x, residual, w, b, eps):
    return in_torch_layer_norm(x + residual, w, b, eps), x + residual


def in_torch_scaled(x, residual, w, a, eps):
    return in_torch_rms(a * x + residual, w, eps), a * x + residual


def in_torch_sink(x):
    return torch.softmax(torch.cat([x, torch.zeros_like(x[..., :1])], -1), -1)[..., :-1]


def in_torch_one_line(x, w):
    return in_torch_layer_norm(x, w, None, 0.05)


# {name: (what Fused takes, the same in torch)}
LAYERS = {
    "rms_norm": (made(rms_norm), lambda x, w, eps: in_torch_rms(x, w, eps)),
    "layer_norm": (
        made(layer_norm),
        lambda x, w, b, eps: in_torch_layer_norm(x, w, b, eps),
    ),
    "add_layer_norm": (made(add_layer_norm, (y[i, j], p[i, j])), in_torch_add),
    "l2_norm": (
        made(l2_norm),
        lambda x, eps: x / (x.square().sum(-1, keepdim=True) + eps).sqrt(),
    ),
    "l2_clamp": (
        made(l2_clamp),
        lambda x, eps: functional.normalize(x, dim=-1, eps=eps),
    ),
    "gated_rms_norm": (
        made(gated_rms_norm),
        lambda x, g, w, eps: in_torch_rms(x, w, eps) * functional.silu(g),
    ),
    "softmax": (made(softmax), lambda x: torch.softmax(x, -1)),
    "scaled_residual": (
        made(scaled_residual, (y[i, j], p[i, j]), (a,)),
        in_torch_scaled,
    ),
    "dyt": (made(dyt, scalars=(a,)), lambda x, w, b, a: w * torch.tanh(a * x) + b),
    "log_sum_exp": (made(log_sum_exp, (z[i],)), lambda x: torch.logsumexp(x, -1)),
    "l4_norm": (
        made(l4_norm),
        lambda x, eps: x / ((x**4).sum(-1, keepdim=True) + eps) ** 0.25,
    ),
    "row_scaled": (
        made(row_scaled),
        lambda x, k, w, eps: k[..., None] * in_torch_rms(torch.relu(x), w, eps),
    ),
    "softmax_with_sink": (made(softmax_with_sink), in_torch_sink),
    "tempered_softmax": (
        made(tempered_softmax, scalars=(a,)),
        lambda x, a: torch.softmax(a * x, -1),
    ),
    "centred_twice": (
        made(centred_twice),
        lambda x, k, w, b: (
            w * torch.tanh(x) * k[..., None]
            + w * (x + b) * (x - k[..., None]).mean(-1, keepdim=True)
        ),
    ),
    "one_line": (made(one_line), in_torch_one_line),
    "pooled": (made(pooled, (z[i],)), lambda x, b: (x + b).mean(-1)),
}


def gated_with_closed_forms():
    """(definitions, closed forms) of gated RMSNorm, the forms named h, dx, dg and dw."""
    defs = Defs()
    gated_rms_norm(defs)
    defs[h[i, j]] = dy[i, j] * w[j] * s[i, j]
    defs[dx[i, j]] = rstd[i] * (
        h[i, j] - x_hat[i, j] * mean(N, lambda r: h[i, r] * x_hat[i, r])
    )
    defs[dg[i, j]] = (
        dy[i, j]
        * w[j]
        * x_hat[i, j]
        * sigmoid(g[i, j])
        * (1 + g[i, j] * (1 - sigmoid(g[i, j])))
    )
    defs[dw[j]] = total(M, lambda r: dy[r, j] * x_hat[r, j] * s[r, j])
    return defs, {x[i, j]: dx[i, j], g[i, j]: dg[i, j], w[j]: dw[j]}
