"""Homework 7, a worked example: group norm in NumPy, as it stands in the middle of a convolutional network."""

import numpy as np

GROUPS, EPS = 2, 1e-5


def grouped(t):
    """(B, C, L) as (B, groups, C / groups * L): what one mean and one variance are taken of."""
    return t.reshape(t.shape[0], GROUPS, t.shape[1] // GROUPS * t.shape[2])


def statistics(x):
    """(x_hat, rstd) of the groups of x, both of the grouped shape."""
    p = grouped(x)
    q = p - p.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt((q * q).mean(-1, keepdims=True) + EPS)
    return q * rstd, rstd


class Operator:
    """Group norm of x (B, C, L): the channels C in two groups, a weight and a bias a channel."""

    @staticmethod
    def inputs(rng):
        """Ordinary inputs: examples and channels of different size and offset."""
        scale = np.array([0.5, 3.0])[:, None, None]
        x = scale * (rng.standard_normal((2, 4, 3)) + rng.uniform(-2, 2, (2, 4, 1)))
        return {"x": x, "weight": rng.standard_normal(4), "bias": rng.standard_normal(4)}

    @staticmethod
    def degenerate(rng):
        """A constant group, a zero example, no examples, and groups of one entry."""
        usual = Operator.inputs(rng)
        flat, none, single = usual["x"].copy(), usual["x"][:0], usual["x"][:, :2, :1]
        flat[0, :2], flat[1] = 1.5, 0
        short = {"weight": usual["weight"][:2], "bias": usual["bias"][:2]}
        return [usual | {"x": flat}, usual | {"x": none}, short | {"x": single}]

    @staticmethod
    def forward(*inputs):
        """y (B, C, L).  {eq}`ln-forward`, with the entries of a group in the place of a row's"""
        x, weight, bias = inputs
        x_hat, _ = statistics(x)
        return x_hat.reshape(x.shape) * weight[:, None] + bias[:, None]

    @staticmethod
    def backward(dy, *inputs):
        """The gradients by x, weight and bias.  {eq}`ln-dx` group by group, {eq}`pg-dw`, {eq}`pg-db`"""
        x, weight, bias = inputs
        x_hat, rstd = statistics(x)
        wdy = grouped(dy * weight[:, None])
        c1 = (x_hat * wdy).mean(-1, keepdims=True)
        c2 = wdy.mean(-1, keepdims=True)
        dx = (rstd * (wdy - c2 - x_hat * c1)).reshape(x.shape)
        dweight = (dy * x_hat.reshape(x.shape)).sum((0, 2))
        dbias = dy.sum((0, 2))
        return dx, dweight, dbias
