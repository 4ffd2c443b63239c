"""Programs run: at a few sizes, on random float64 values, against the values of their definitions.

What cannot be read is run at the sizes of `sizes_next_to`; a refutation is run at its counterexample. The program runs
in the process that calls this, with all that it does.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from sympy import (
    Abs,
    Add,
    Expr,
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

from ..symbolic.calculus import resolve
from ..symbolic.definitions import Defs
from ..symbolic.elementary import sigmoid
from ..symbolic.symbols import M, N, i, p
from .interpreter import flat

PLAIN = ((4, 3), (1, 1), (1, 4), (4, 1), (5, 5), (3, 16))
LARGEST = 2048
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


def sizes_next_to(text: str) -> list[tuple[int, int]]:
    """Sizes (M, N) at which a program is run: a few plain ones, and those next to every integer in its text."""
    sizes = list(PLAIN)
    nodes = ast.walk(ast.parse(text))
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    numbers = {value for value in values if type(value) is int}
    for k in sorted(number for number in numbers if 2 <= number <= LARGEST):
        near = (k - 1, k, k + 1)
        sizes += [(2, n) for n in near]
        if k <= 64:
            sizes += [(m, 3) for m in near] + [(k, k), (k - 1, k + 1), (k + 1, k - 1)]
    return list(dict.fromkeys(sizes))


def source_of(program: Any) -> str:
    """The text of a program; empty where it is not at hand."""
    if isinstance(program, str):
        return program
    try:
        return textwrap.dedent(inspect.getsource(program))
    except (OSError, TypeError):
        return ""


class Point:
    """Values of tensors at one size.

    Args:  sizes: (M, N); defs: what defined names stand for; draw: a NumPy generator, for the others
           values: {name: array or number}, of those that are not drawn
    """

    def __init__(self, sizes: Sequence[int], defs: Defs, draw: np.random.Generator):
        self.sizes = dict(zip((M, N), sizes, strict=True))
        self.defs, self.draw, self.values = defs, draw, {}

    def shape(self, sizes: Sequence[Expr]) -> tuple[int, ...]:
        """A shape in 1, M and N as numbers."""
        return tuple(int(self.sizes.get(size, 1)) for size in sizes)

    def tensor(self, head: Expr) -> Any:
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

    def value(self, e: Expr, letters: Sequence[Expr]) -> np.ndarray:
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


def loaded(program: Any, name: str = "") -> Any:
    """The function or class of a program; a text is executed."""
    if not isinstance(program, str):
        return program
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(program, "program", "exec"), names)
    last = [n.name for n in ast.parse(program).body if hasattr(n, "name")]
    return names[name or last[-1]]


def results(
    target: Any, library: str, arguments: dict[str, Any], cotangents: Sequence = ()
) -> list[np.ndarray | None]:
    """What a function returns, one after the other; of an autograd Function also the gradients.

    Args:  arguments: {parameter: array or plain value}; cotangents: arrays, of an autograd Function's results
    """
    if library == "numpy":
        return [np.asarray(v, float) for v in flat(target(**arguments))]
    import torch

    values = {
        name: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    if not isinstance(target, type):
        return [value.detach().numpy() for value in flat(target(**values))]
    leaves = [v.requires_grad_() for v in values.values() if torch.is_tensor(v)]
    outputs = list(flat(target.apply(*values.values())))
    gradients = torch.autograd.grad(
        outputs, leaves, [torch.from_numpy(c.copy()) for c in cotangents]
    )
    return [value.detach().numpy() for value in (*outputs, *gradients)]


def apart(value: Any, right: np.ndarray) -> bool:
    """Whether an array differs from the right one by more than rounding, or has another shape."""
    if value.shape != right.shape:
        return True
    scale = 1 + np.max(np.abs(right), initial=0)
    return not bool(np.all(np.abs(value - right) <= APART * scale))


def overridden(point: Point, values: dict[Any, Expr], heads: dict[str, Expr]) -> None:
    """Put the entries of a counterexample, such as x[1, 2], into the values of a point; the others are drawn.

    Args:  heads: {name: an entry of the tensor}
    """
    for symbol, number in values.items():
        name, *places = re.split(r"[\[\], ]+", str(symbol).rstrip("]"))
        if not places:
            point.values.setdefault(name, float(number))
        elif name in heads:
            entries = point.tensor(heads[name])
            entries[tuple(int(place) - 1 for place in places)] = float(number)
