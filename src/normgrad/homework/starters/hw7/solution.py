"""Homework 7: an operator of your own. Replace each `raise NotImplementedError`.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np  # noqa: F401


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
        raise NotImplementedError

    @staticmethod
    def degenerate(rng):
        """Inputs at which your operator might divide by 0, overflow or have nothing to do.

        Args:     rng: a numpy.random.Generator
        Returns:  a list of dictionaries like that of inputs
        """
        raise NotImplementedError

    @staticmethod
    def forward(*inputs):
        """y, in the dtype of the inputs.

        Args:     the arrays that inputs returns
        """
        raise NotImplementedError

    @staticmethod
    def backward(dy, *inputs):
        """The gradients of the loss with the cotangent dy.

        Args:     dy: of y's shape; the arrays that inputs returns
        Returns:  a tuple with one gradient for each array, of its shape and dtype
        Equations: index-loss, index-gradient (chapter Notation), diff-fan-out (chapter Differentials)
        """
        raise NotImplementedError
