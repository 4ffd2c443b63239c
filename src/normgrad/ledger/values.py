"""The value of a symbolic expression where its names are numbers, arrays and functions: by its NumPy code."""

from __future__ import annotations

import numpy as np
from sympy import Indexed, KroneckerDelta, Sum, evaluate

from ..symbolic.calculus import free_letters
from ..symbolic.codegen import NUMPY, ArrayCode
from ..symbolic.measured import Largest
from ..symbolic.notation import tensor
from ..symbolic.opaque import Opaque


class Values:
    """Expressions as numbers. Every free letter is an axis; a dimension is as long as the arrays say.

    Args:  values: numbers and arrays by the names of scalars and tensors; functions, or what they give, by theirs
    """

    def __init__(self, values):
        self.values = {
            name: value if callable(value) else _wide(value)
            for name, value in values.items()
        }
        self.scope = {"numpy": np}
        self.ranges = {}
        self.sizes = {}
        self.used = set()

    def __call__(self, e) -> np.ndarray:
        """The value of e, one axis for every free letter of it, in alphabetical order."""
        for entry in sorted(e.atoms(Indexed), key=str):
            self._measure(entry)
        with evaluate(False):  # of a tensor, which is real, SymPy takes no part
            e = self._in_arrays(e)
        letters = sorted(free_letters(e), key=str)
        code = ArrayCode(NUMPY, letters, self.ranges).doprint(e)
        value = eval(code, self.scope | self.sizes)  # noqa: S307 - the code was written by the line above
        shape = [self.sizes[str(self.ranges[letter])] for letter in letters]
        return np.broadcast_to(value, shape)

    def check_all_used(self, label):
        """Raises:  ValueError for a value that the formula has no name for"""
        for name in sorted(self.values.keys() - self.used):
            raise ValueError(f"values: {label} has no {name}")

    def _value_of(self, name):
        if name not in self.values:
            names = ", ".join(sorted(self.values)) or "none"
            raise ValueError(f"values: got none for {name}; given are {names}")
        self.used.add(name)
        return self.values[name]

    def _measure(self, entry):
        """Read the sizes of an entry's dimensions off its array."""
        name, shape = str(entry.base), entry.base.shape
        array = self.scope[name] = self._value_of(name)
        self.ranges |= zip(entry.indices, shape, strict=True)
        for size, length in zip(map(str, shape), array.shape, strict=True):
            if self.sizes.setdefault(size, length) != length:
                raise ValueError(
                    f"values: {name} makes {size} = {length}, others make it {self.sizes[size]}"
                )

    def _in_arrays(self, e):
        """The expression with a tensor for every function, and for every letter that stands as a number."""
        if isinstance(e, Indexed | KroneckerDelta):
            return e
        if isinstance(e, Sum | Largest):
            return e.func(self._in_arrays(e.args[0]), *e.args[1:])
        if isinstance(e, Opaque):
            return self._applied(e)
        if e in self.ranges:
            length = self.sizes[str(self.ranges[e])]
            return self._stored(np.arange(1, length + 1), [e])
        if e.is_Symbol and e.name not in self.sizes:
            self.scope[e.name] = self._value_of(e.name)
        return e.func(*map(self._in_arrays, e.args)) if e.args else e

    def _applied(self, e):
        """A function of the formula: computed from its argument, or given as what was computed."""
        value = self._value_of(e.letter + "'" * e.order)
        if callable(value):
            value = _wide(value(self(e.args[0])))
        else:
            self.used |= self.values.keys() & set(map(str, e.free_symbols))
        return self._stored(value, sorted(free_letters(e), key=str))

    def _stored(self, array, letters):
        """A name for an array with an axis for each of the letters."""
        if array.ndim != len(letters):
            raise ValueError(
                f"values: an array has {array.ndim} axes, and needs one for each of {letters}"
            )
        name = tensor(
            f"array_{len(self.scope)}", *[self.ranges[letter] for letter in letters]
        )
        self.scope[str(name)] = array
        return name[tuple(letters)] if letters else name


def _wide(value):
    """An array of a value; what is narrower than float64 becomes float64."""
    return np.asarray(value) * np.float64(1)
