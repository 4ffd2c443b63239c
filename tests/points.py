"""The values of definitions, and of what a program was read as, at one size: beside what the program returns."""

import ast
from functools import reduce

import numpy as np
from sympy import (
    Abs,
    Add,
    Heaviside,
    Indexed,
    KroneckerDelta,
    Max,
    Min,
    Mul,
    Pow,
    Sum,
    exp,
    log,
    sign,
    tanh,
)

from normgrad.symbolic.calculus import resolve
from normgrad.symbolic.elementary import sigmoid
from normgrad.symbolic.symbols import M, N, i, p
from normgrad.verify.interpreter import flat

# relative to the largest entry: rounding is smaller, and an error of a formula at random values is larger
APART = 1e-7
VALUES = {
    exp: np.exp,
    log: np.log,
    tanh: np.tanh,
    Abs: np.abs,
    sign: np.sign,
    sigmoid: lambda t: 1 / (1 + np.exp(-t)),
    Heaviside: lambda t, at_0=0.5: np.heaviside(t, at_0),
    Add: lambda *parts: reduce(np.add, parts),
    Mul: lambda *parts: reduce(np.multiply, parts),
    Max: lambda *parts: reduce(np.maximum, parts),
    Min: lambda *parts: reduce(np.minimum, parts),
    Pow: lambda base, exponent: np.power(np.asarray(base, float), exponent),
}


class Point:
    """Values of tensors at one size.

    Args:  sizes: (M, N); defs: what defined names stand for; draw: a NumPy generator, for the others
           values: {name: array or number}, of those that are not drawn
    """

    def __init__(self, sizes, defs, draw):
        self.sizes = dict(zip((M, N), sizes, strict=True))
        self.defs, self.draw, self.values = defs, draw, {}

    def shape(self, sizes):
        """A shape in 1, M and N as numbers."""
        return tuple(int(self.sizes.get(size, 1)) for size in sizes)

    def tensor(self, head):
        """A tensor's entries, or a scalar's value: those of a name that is defined are worked out."""
        name = str(getattr(head, "base", head))
        if name not in self.values:
            if head in self.defs:
                self.values[name] = self.value(head, getattr(head, "indices", ()))
            elif isinstance(head, Indexed):
                shape = self.shape(head.base.shape)
                self.values[name] = self.draw.standard_normal(shape)
            else:
                self.values[name] = self.draw.uniform(0.2, 1)
        return self.values[name]

    def value(self, e, letters):
        """An expression's values, with an axis for each of the letters, of which i and p run over the rows."""
        sizes = [self.sizes[M if letter in (i, p) else N] for letter in letters]
        axes = dict(zip(letters, enumerate(sizes), strict=True))
        e = resolve(self.defs.unfold(e))
        return np.broadcast_to(self._at(e, axes), sizes)

    def _at(self, e, axes):
        """The values of e, with an axis for each letter, or a number.

        Args:  axes: {letter: (its axis, its size)}
        """
        if isinstance(e, Sum):
            return self._sum(e.function, list(e.limits)[::-1], axes)
        if isinstance(e, Indexed):
            places = [self._places(letter, axes) for letter in e.indices]
            return self.tensor(e)[tuple(places)]
        if isinstance(e, KroneckerDelta):
            rows, columns = (self._places(letter, axes) for letter in e.args[:2])
            return (rows == columns) * 1.0
        if e in self.sizes:
            return float(self.sizes[e])
        if e.is_Symbol:
            return self.tensor(e)
        if e.is_number:
            return float(e)
        if type(e) not in VALUES:
            raise NotImplementedError(f"the values of {type(e).__name__}")
        return VALUES[type(e)](*[self._at(part, axes) for part in e.args])

    def _sum(self, body, limits, axes):
        if not limits:
            return self._at(body, axes)
        letter, _, last = limits[0]
        size = self.sizes[last]
        values = self._sum(body, limits[1:], {**axes, letter: (len(axes), size)})
        if not np.ndim(values):
            return values * size
        return np.broadcast_to(values, (*values.shape[:-1], size)).sum(-1)

    @staticmethod
    def _places(letter, axes):
        axis, size = axes[letter]
        shape = [1] * len(axes)
        shape[axis] = size
        return np.arange(size).reshape(shape)


def loaded(program):
    """The last function of a text."""
    names = {"__name__": "program"}
    exec(compile(program, "program", "exec"), names)
    last = [n.name for n in ast.parse(program).body if hasattr(n, "name")]
    return names[last[-1]]


def results(target, library, arguments):
    """What a function returns, one after the other; arguments: {parameter: array}."""
    if library == "numpy":
        return [np.asarray(v, float) for v in flat(target(**arguments))]
    import torch

    values = {name: torch.from_numpy(value.copy()) for name, value in arguments.items()}
    return [value.detach().numpy() for value in flat(target(**values))]


def apart(value, right):
    """Whether an array differs from the right one by more than rounding, or has another shape."""
    if value.shape != right.shape:
        return True
    scale = 1 + np.max(np.abs(right), initial=0)
    return not bool(np.all(np.abs(value - right) <= APART * scale))
