"""The gated norms in torch: written by `python -m normgrad.fused.gated_layers`, not by hand."""

import torch


def rms_norm_then_gate_forward(*, g, w, x, eps):
    """The forward of rms_norm_then_gate, as its kernel computes it."""
    M = g.shape[0]
    N = g.shape[1]
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((x ** 2), dim=-1)))))
    x_hat = (x * rstd[:, None])
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    y = (w * g * x_hat * sigmoid_g)
    return y,


def rms_norm_then_gate_backward(*, dy, g, w, x, eps):
    """The backward of rms_norm_then_gate, as its kernel computes it."""
    M = dy.shape[0]
    N = dy.shape[1]
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((x ** 2), dim=-1)))))
    x_hat = (x * rstd[:, None])
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    wdy = (w * dy * g * sigmoid_g)
    c1 = ((N ** (-1)) * torch.sum((wdy * x_hat), dim=-1))
    dq = ((((-1) * c1[:, None] * x_hat) + wdy) * rstd[:, None])
    dx = dq
    dg = ((1 + ((1 + ((-1) * sigmoid_g)) * g)) * w * dy * x_hat * sigmoid_g)
    dw = torch.sum((dy * g * x_hat * sigmoid_g), dim=-2)
    return dg, dx, dw,


def gate_then_rms_norm_forward(*, g, w, x, eps):
    """The forward of gate_then_rms_norm, as its kernel computes it."""
    M = g.shape[0]
    N = g.shape[1]
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    q = (g * x * sigmoid_g)
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((q ** 2), dim=-1)))))
    x_hat = (q * rstd[:, None])
    y = (w * x_hat)
    return y,


def gate_then_rms_norm_backward(*, dy, g, w, x, eps):
    """The backward of gate_then_rms_norm, as its kernel computes it."""
    M = dy.shape[0]
    N = dy.shape[1]
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    q = (g * x * sigmoid_g)
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((q ** 2), dim=-1)))))
    x_hat = (q * rstd[:, None])
    wdy = (w * dy)
    c1 = ((N ** (-1)) * torch.sum((wdy * x_hat), dim=-1))
    dq = ((((-1) * c1[:, None] * x_hat) + wdy) * rstd[:, None])
    dx = (dq * g * sigmoid_g)
    dg = ((1 + ((1 + ((-1) * sigmoid_g)) * g)) * dq * x * sigmoid_g)
    dw = torch.sum((dy * x_hat), dim=-2)
    return dg, dx, dw,
