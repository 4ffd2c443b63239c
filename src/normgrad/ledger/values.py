"""The value of a symbolic expression where its names are numbers, arrays and functions: NumPy, entry by entry."""

from __future__ import annotations

import math

import numpy as np
from sympy import Abs, Add, Indexed, KroneckerDelta, Mul, Number, Pow, Sum, im
from sympy import I as IMAGINARY
from sympy.functions.elementary.integers import ceiling

from ..symbolic.calculus import free_letters
from ..symbolic.measured import Divides, Largest, Log2
from ..symbolic.opaque import Opaque


class Values:
    """Expressions as numbers. Every letter, free or bound, is an axis; a dimension is as long as the arrays say.

    Args:  values: numbers and arrays by the names of scalars and tensors; functions, or what they give, by theirs
    """

    def __init__(self, values):
        self.values = {
            name: value if callable(value) else np.asarray(value)
            for name, value in values.items()
        }
        self.sizes: dict[str, int] = {}
        self.lengths: dict = {}
        self.used: set[str] = set()

    def __call__(self, e) -> np.ndarray:
        """The value of e, one axis for every free letter of it, in alphabetical order."""
        for part in sorted(e.atoms(Indexed), key=str):
            self._measure(part)
        free = free_letters(e) | e.free_symbols & self.lengths.keys()
        free = sorted(free - {part.args[1] for part in e.atoms(Largest)}, key=str)
        bound = [limit[0] for part in e.atoms(Sum) for limit in part.limits]
        bound += [part.args[1] for part in e.atoms(Largest)]
        letters = [
            *free,
            *(letter for letter in dict.fromkeys(bound) if letter not in free),
        ]
        axes = {letter: axis for axis, letter in enumerate(letters)}
        array = self._value(e, axes)
        return array.reshape(array.shape[: len(free)])

    def check_all_used(self, label):
        """Raises:  ValueError for a value that the formula has no name for"""
        for name in sorted(self.values.keys() - self.used):
            raise ValueError(f"values: {label} has no {name}")

    def _given(self, name):
        if name not in self.values:
            raise ValueError(
                f"values: got none for {name}; given are {', '.join(sorted(self.values)) or 'none'}"
            )
        self.used.add(name)
        return self.values[name]

    def _measure(self, entry):
        name = str(entry.base.label)
        array = self._given(name)
        if array.ndim != len(entry.indices):
            raise ValueError(
                f"values: {name} has {array.ndim} axes, and {len(entry.indices)} indices in the formula"
            )
        self.lengths |= {
            letter: n
            for letter, n in zip(entry.indices, array.shape, strict=True)
            if not letter.is_Dummy
        }
        for size, length in zip(entry.base.shape, array.shape, strict=True):
            if self.sizes.setdefault(str(size), length) != length:
                raise ValueError(
                    f"values: {name} makes {size} = {length}, others make it {self.sizes[str(size)]}"
                )

    def _value(self, e, axes):
        if isinstance(e, Number) or e == IMAGINARY:
            return _placed(np.asarray(1j if e == IMAGINARY else float(e)), [], axes)
        if isinstance(e, Indexed):
            return _placed(self.values[str(e.base.label)], e.indices, axes)
        if e in axes:
            return _placed(np.arange(1, self.lengths[e] + 1), [e], axes)
        if e.is_Symbol:
            length = self.sizes.get(e.name)
            return _placed(
                self._given(e.name) if length is None else np.asarray(length), [], axes
            )
        if isinstance(e, KroneckerDelta):
            return _placed(np.eye(max(self.sizes.values())), e.args[:2], axes)
        if isinstance(e, Sum):
            array = self._value(e.function, axes)
            for letter, _, last in e.limits:
                array = _over(np.sum, array, axes[letter], self.sizes[str(last)])
            return array
        if isinstance(e, Largest):
            array = self._value(e.args[0], axes)
            return _over(np.max, array, axes[e.args[1]], self.sizes[str(e.args[2])])
        if isinstance(e, Opaque):
            return self._function(e, axes)
        return self._operation(e, [self._value(part, axes) for part in e.args])

    def _function(self, e, axes):
        """A function of the formula: computed from its argument, or given as what was computed."""
        value = self._given(e.letter + "'" * e.order)
        if callable(value):
            return np.asarray(value(self._value(e.args[0], axes)))
        self.used |= {part.name for part in e.free_symbols if part.name in self.values}
        return _placed(value, sorted(free_letters(e), key=str), axes)

    def _operation(self, e, parts):
        if isinstance(e, Add):
            return sum(parts)
        if isinstance(e, Mul):
            return math.prod(parts)
        if isinstance(e, Pow):
            return np.asarray(parts[0]) ** parts[1]
        if isinstance(e, Divides):
            return (parts[1] % parts[0] == 0).astype(float)
        functions = {Abs: np.abs, ceiling: np.ceil, Log2: np.log2, im: np.imag}
        if type(e) not in functions:
            raise ValueError(f"{e}: no number is known for {type(e).__name__}")
        return functions[type(e)](parts[0])


def _placed(array, letters, axes):
    """The array with its axes where its letters are; a letter that stands twice takes its diagonal."""
    where = [axes[letter] for letter in letters]
    if array.ndim != len(where):
        raise ValueError(
            f"values: an array has {array.ndim} axes, and needs one for each of {letters}"
        )
    names = sorted(set(where))
    array = np.einsum(array, where, names) if where else array
    shape = [1] * len(axes)
    for axis, length in zip(names, array.shape, strict=True):
        shape[axis] = length
    return array.reshape(shape)


def _over(reduction, array, axis, length):
    """A sum or maximum along an axis, along which an array without it has `length` equal entries."""
    if array.shape[axis] == 1:
        array = np.broadcast_to(
            array, [*array.shape[:axis], length, *array.shape[axis + 1 :]]
        )
    return reduction(array, axis=axis, keepdims=True)
