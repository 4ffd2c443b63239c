"""The gated norms in torch: written by `python -m normgrad.fused.gated_layers`, not by hand."""

import torch

from .call import Call


def rms_norm_then_gate_forward(*, g, w, x, eps):
    """The forward of rms_norm_then_gate, as its kernel computes it."""
    M = g.shape[0]
    N = g.shape[1]
    p = x
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((p ** 2), dim=-1)))))
    x_hat = (p * rstd[:, None])
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    y = (w * g * x_hat * sigmoid_g)
    return y, rstd,


def rms_norm_then_gate_backward(*, dy, g, w, x, eps):
    """The backward of rms_norm_then_gate, as its kernel computes it."""
    M = dy.shape[0]
    N = dy.shape[1]
    p = x
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((p ** 2), dim=-1)))))
    x_hat = (p * rstd[:, None])
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    wdy = (w * dy * g * sigmoid_g)
    c1 = ((N ** (-1)) * torch.sum((wdy * x_hat), dim=-1))
    dp = ((((-1) * c1[:, None] * x_hat) + wdy) * rstd[:, None])
    dg = ((1 + ((1 + ((-1) * sigmoid_g)) * g)) * w * dy * x_hat * sigmoid_g)
    dw = torch.sum((dy * g * x_hat * sigmoid_g), dim=-2)
    return dp, dg, dw,


def gate_then_rms_norm_forward(*, g, w, x, eps):
    """The forward of gate_then_rms_norm, as its kernel computes it."""
    M = g.shape[0]
    N = g.shape[1]
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    p = (g * x * sigmoid_g)
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((p ** 2), dim=-1)))))
    x_hat = (p * rstd[:, None])
    y = (w * x_hat)
    return y, rstd,


def gate_then_rms_norm_backward(*, dy, g, w, x, eps):
    """The backward of gate_then_rms_norm, as its kernel computes it."""
    M = dy.shape[0]
    N = dy.shape[1]
    sigmoid_g = (0.5 * (1 + torch.tanh(0.5 * g)))
    p = (g * x * sigmoid_g)
    rstd = (1 / torch.sqrt((eps + ((N ** (-1)) * torch.sum((p ** 2), dim=-1)))))
    x_hat = (p * rstd[:, None])
    wdy = (w * dy)
    c1 = ((N ** (-1)) * torch.sum((wdy * x_hat), dim=-1))
    dp = ((((-1) * c1[:, None] * x_hat) + wdy) * rstd[:, None])
    dx = (dp * g * sigmoid_g)
    dg = ((1 + ((1 + ((-1) * sigmoid_g)) * g)) * dp * x * sigmoid_g)
    dw = torch.sum((dy * x_hat), dim=-2)
    return dx, dg, dw,


CALLS = {'gate_then_rms_norm': Call(name='gate_then_rms_norm',
                            kinds={'c1': 'row',
                                   'dg': 'tile',
                                   'dp': 'tile',
                                   'dw': 'column',
                                   'dx': 'tile',
                                   'dy': 'tile',
                                   'eps': 'number',
                                   'g': 'tile',
                                   'p': 'tile',
                                   'rstd': 'row',
                                   'sigmoid_g': 'tile',
                                   'w': 'column',
                                   'wdy': 'tile',
                                   'x': 'tile',
                                   'x_hat': 'tile',
                                   'y': 'tile'},
                            inputs=('g', 'x', 'w'),
                            constants=('eps',),
                            outputs=('y',),
                            stored=('y', 'rstd'),
                            loaded=('dy', 'g', 'x', 'w', 'rstd'),
                            written=('dx', 'dg', 'dw'),
                            gradients={'g': 'dg', 'w': 'dw', 'x': 'dx'},
                            seeds={'y': 'dy'},
                            forward_constants=('eps',),
                            backward_constants=()),
 'rms_norm_then_gate': Call(name='rms_norm_then_gate',
                            kinds={'c1': 'row',
                                   'dg': 'tile',
                                   'dp': 'tile',
                                   'dw': 'column',
                                   'dy': 'tile',
                                   'eps': 'number',
                                   'g': 'tile',
                                   'p': 'tile',
                                   'rstd': 'row',
                                   'sigmoid_g': 'tile',
                                   'w': 'column',
                                   'wdy': 'tile',
                                   'x': 'tile',
                                   'x_hat': 'tile',
                                   'y': 'tile'},
                            inputs=('x', 'g', 'w'),
                            constants=('eps',),
                            outputs=('y',),
                            stored=('y', 'rstd'),
                            loaded=('dy', 'x', 'g', 'w', 'rstd'),
                            written=('dp', 'dg', 'dw'),
                            gradients={'g': 'dg', 'w': 'dw', 'x': 'dp'},
                            seeds={'y': 'dy'},
                            forward_constants=('eps',),
                            backward_constants=())}
SOURCES = {'gate_then_rms_norm': ('g', 'w', 'x'), 'rms_norm_then_gate': ('g', 'w', 'x')}
GRADIENTS = {'gate_then_rms_norm': ('dx', 'dg', 'dw'), 'rms_norm_then_gate': ('dp', 'dg', 'dw')}
