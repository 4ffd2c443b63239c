"""Source 003's function, a wrong layer that runs, so that tests keep it caught."""

from __future__ import annotations

import torch

from normgrad import LAYER_NORM

# Whatever weight a program happens to hold under this name; a second layer would put its own here.
gamma = None


class SavesIntermediates(torch.autograd.Function):
    """LayerNorm of x (M, N) that saves intermediates, and whose backward takes its weight from the module's `gamma`.

    The gradient is that of another layer as soon as `gamma` is; the intermediates look like constants to a second
    derivative, which is then silently wrong.

    Source:  source 003, the custom function
    """

    @staticmethod
    def forward(ctx, x, weight, bias):
        mean = x.mean(1, keepdim=True)
        q = x - mean
        v = (q * q).mean(1, keepdim=True)
        D = (v + LAYER_NORM.eps).sqrt()
        y = q / D * weight + bias
        ctx.save_for_backward(x, mean, q, v, D, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        _, _, q, _, D, _ = ctx.saved_tensors
        wdy = dy * gamma
        dx = (
            wdy / D
            - (wdy / D).mean(1, keepdim=True)
            - q * (wdy * q / D**3).mean(1, keepdim=True)
        )
        return dx, (dy * q / D).sum(0), dy.sum(0)
