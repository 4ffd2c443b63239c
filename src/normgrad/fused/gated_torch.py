"""The gated norms in torch's operations: what runs where no kernel does, and what is differentiated again.

They are the formulas of gated_layers, and a test proves both functions.
"""

from __future__ import annotations

import torch


def forward(*, g, x, w, eps, gate_first):
    """(y,) for rows g and x (M, N), w (N,)."""
    silu = g * torch.sigmoid(g)
    q = x * silu if gate_first else x
    # not rsqrt, whose derivative torch takes by the third power of it, which float32 may not hold
    rstd = 1 / torch.sqrt((q * q).mean(-1, keepdim=True) + eps)
    y = w * (q * rstd)
    return (y if gate_first else y * silu,)


def backward(*, dy, g, x, w, eps, gate_first):
    """(dg, dx, dw) for the cotangent dy of y."""
    opened = torch.sigmoid(g)
    silu, slope = g * opened, opened * (1 + g * (1 - opened))
    q = x * silu if gate_first else x
    rstd = 1 / torch.sqrt((q * q).mean(-1, keepdim=True) + eps)
    x_hat = q * rstd
    of_norm = dy if gate_first else dy * silu
    wdy = w * of_norm
    c1 = (x_hat * wdy).mean(-1, keepdim=True)
    dq = rstd * (wdy - x_hat * c1)
    dw = (of_norm * x_hat).sum(0)
    if gate_first:
        return dq * x * slope, dq * silu, dw
    return dy * w * x_hat * slope, dq, dw
