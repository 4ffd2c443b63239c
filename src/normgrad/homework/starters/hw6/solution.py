"""Homework 6: write a test that rejects ten wrong backwards. Replace `raise NotImplementedError`.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np

EPS = 1e-5


def layernorm_forward(x, weight, bias):
    """LayerNorm of every row: (y, mean, rstd). Given; it is right."""
    mean = x.mean(-1)
    q = x - mean[:, None]
    rstd = 1 / np.sqrt((q * q).mean(-1) + EPS)
    return q * rstd[:, None] * weight + bias, mean, rstd


def check_backward(backward):
    """Raises AssertionError if a backward of LayerNorm is wrong, returns nothing if it is right.

    Args:     backward: backward(dy, x, weight, mean, rstd) -> (dx, dw, db), with dy, x (M, N), weight (N,), and
              mean, rstd (M,) as layernorm_forward returns them; the inputs are yours to choose
    Equations: ln-forward, ln-dx, ln-dw, ln-db (chapter LayerNorm); the chapter Testing gradients
    """
    raise NotImplementedError
