"""Homework 7: an operator of your own.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np

### BEGIN SOLUTION
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


### END SOLUTION


class Operator:
    """Your operator in one sentence: what it normalizes, over which axes, with which parameters.

    NumPy or torch, as you like: the arrays that `inputs` returns decide. Numbers such as eps or a number of groups are
    constants of this file.
    """

    @staticmethod
    def inputs(rng):
        """Ordinary inputs, all different and all random.

        Args:     rng: a numpy.random.Generator
        Returns:  {name: float64 array} in the order in which forward takes them, at most 400 numbers together
        """
        ### BEGIN SOLUTION
        scale = np.array([0.5, 3.0])[:, None, None]
        x = scale * (rng.standard_normal((2, 4, 3)) + rng.uniform(-2, 2, (2, 4, 1)))
        return {
            "x": x,
            "weight": rng.standard_normal(4),
            "bias": rng.standard_normal(4),
        }
        ### END SOLUTION

    @staticmethod
    def degenerate(rng):
        """Inputs at which your operator might divide by 0, overflow or have nothing to do.

        Args:     rng: a numpy.random.Generator
        Returns:  a list of dictionaries like that of inputs
        """
        ### BEGIN SOLUTION
        usual = Operator.inputs(rng)
        flat, none, single = usual["x"].copy(), usual["x"][:0], usual["x"][:, :2, :1]
        flat[0, :2], flat[1] = 1.5, 0
        short = {"weight": usual["weight"][:2], "bias": usual["bias"][:2]}
        return [usual | {"x": flat}, usual | {"x": none}, short | {"x": single}]
        ### END SOLUTION

    @staticmethod
    def forward(*inputs):
        """y, in the dtype of the inputs.

        Args:     the arrays that inputs returns
        """
        ### BEGIN SOLUTION
        x, weight, bias = inputs
        x_hat, _ = statistics(x)
        return x_hat.reshape(x.shape) * weight[:, None] + bias[:, None]
        ### END SOLUTION

    @staticmethod
    def backward(dy, *inputs):
        """The gradients of the loss with the cotangent dy.

        Args:     dy: of y's shape; the arrays that inputs returns
        Returns:  a tuple with one gradient for each array, of its shape and dtype
        Equations: index-loss, index-gradient (chapter Notation), diff-fan-out (chapter Differentials)
        """
        ### BEGIN SOLUTION
        x, weight, bias = inputs
        x_hat, rstd = statistics(x)
        wdy = grouped(dy * weight[:, None])
        c1 = (x_hat * wdy).mean(-1, keepdims=True)
        c2 = wdy.mean(-1, keepdims=True)
        dx = (rstd * (wdy - c2 - x_hat * c1)).reshape(x.shape)
        dweight = (dy * x_hat.reshape(x.shape)).sum((0, 2))
        dbias = dy.sum((0, 2))
        return dx, dweight, dbias
        ### END SOLUTION
