"""The values of definitions, and of what a program was read as, at one size: beside what the program returns."""

from itertools import count, product

import numpy as np
from sympy import Indexed, Sum, Symbol, lambdify

from normgrad.symbolic.calculus import resolve
from normgrad.symbolic.symbols import M, N, i, p
from normgrad.verify.interpreter import flat

# relative to the largest entry: rounding is smaller, and an error of a formula at random values is larger
APART = 1e-7
FUNCTIONS = {"sigmoid": lambda t: 1 / (1 + np.exp(-t))}


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
        e = resolve(self.defs.unfold(e)).replace(Sum, _apart_from_others)
        entries = {part.base: part for part in e.atoms(Indexed)}
        labels = {base.label for base in entries}
        scalars = e.free_symbols - {*letters, *self.sizes, *labels}
        scalars = [symbol for symbol in scalars if symbol.is_Symbol]
        heads = [*entries.values(), *scalars]
        names = [*letters, *self.sizes, *entries, *scalars]
        function = lambdify(names, e, [FUNCTIONS, "numpy"])
        values = [_from_1(self.tensor(head)) for head in heads]
        sizes = [self.sizes[M if letter in (i, p) else N] for letter in letters]
        result = np.empty(sizes)
        for index in product(*map(range, sizes)):
            place = [k + 1 for k in index]
            result[index] = function(*place, *self.sizes.values(), *values)
        return result


NUMBERS = count()


def _apart_from_others(*args):
    """A sum whose index is that of no other sum."""
    part = Sum(*args)
    return part.xreplace({r: Symbol(f"r_{next(NUMBERS)}") for r, *_ in part.limits})


def _from_1(entries):
    """Entries whose indices count from 1."""
    shape = np.shape(entries)
    return np.pad(entries, [(1, 0)] * len(shape)) if shape else entries


def results(target, library, arguments):
    """What a function returns, one after the other; arguments: arrays and numbers."""
    if library == "numpy":
        return [np.asarray(value, float) for value in flat(target(*arguments))]
    import torch

    values = [
        torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for value in arguments
    ]
    return [value.detach().numpy() for value in flat(target(*values))]


def apart(value, right):
    """Whether an array differs from the right one by more than rounding, or has another shape."""
    if value.shape != right.shape:
        return True
    scale = 1 + np.max(np.abs(right), initial=0)
    return not bool(np.all(np.abs(value - right) <= APART * scale))
