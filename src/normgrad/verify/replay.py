"""A refutation in numbers: small inputs, what the program stores for them, what is defined, and what a run gives.

The numbers are SymPy's, so that this works without NumPy, too; a program alone is run with NumPy's arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from math import nan
from typing import Any

from sympy import (
    Eq,
    Expr,
    Float,
    IndexedBase,
    Integer,
    Rational,
    S,
    Symbol,
    Tuple,
    evaluate,
    symbols,
)

from ..symbolic.calculus import RangeError, all_ranges, free_letters
from ..symbolic.definitions import Defs
from ..symbolic.notation import Partial, indices_of, name_of
from ..symbolic.opaque import concrete
from ..symbolic.patience import OutOfPatience, limited
from ..symbolic.symbols import M, N, eps, i, j
from ..symbolic.witness import Counterexample, Explicit, in_digits
from .definitions import ONEHOT

# (M, N) that are tried before those of the counterexample, and the signs of inputs at each
SIZES = ((2, 3), (3, 2), (2, 5))
SIGNS = ((1, -1), (-1, 1), (1,))
# an eps for which a root has a value whatever is subtracted in it
LARGE = Rational(10**4)
# how far the two sides are to be apart, of their size: as everybody sees, or as float32 shows
APART = (1e-2, 1e-6)
# how far a run in float64 may be from what was read, of its size and 1
CLOSE = 1e-6
DIGITS = 30
SECONDS = 5


@dataclass(frozen=True)
class Replay:
    """A small case in which a program does not give what is defined; arrays are lists of their rows.

    Args:  sizes: {"M": 2, "N": 3}; inputs: {name: number or array}; output: the name of what is refuted
           stored, defined: the output, as the program was read and as it is defined; nan where it has no value
           at: the index, from 0 on, of the first entry that differs
           run: what the program gave when it was run, in words where it gave no such array; None where it was not run
           stand_ins: what was put in for functions of which nothing is known, in words
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, Any]
    output: str
    stored: Any
    defined: Any
    at: tuple[int, ...]
    run: Any = None
    stand_ins: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The case as one line, with the first entry that differs."""
        return f"fails at {self._point}: {self._entry}"

    def data(self) -> dict[str, Any]:
        """The case as JSON holds it, with null for nan."""
        return {name: _plain(value) for name, value in vars(self).items()}

    @property
    def is_misread(self) -> bool:
        """Whether a run gives what is defined rather than what was read, in the entry that differs."""
        if self.run is None or isinstance(self.run, str):
            return False
        sides = (self.run, self.stored, self.defined)
        got, stored, defined = (_at(side, self.at) for side in sides)
        return abs(got - defined) < abs(got - stored)

    @property
    def is_as_read(self) -> bool:
        """Whether a run gives what was read, wherever that has a value."""
        for at, stored in _entries(self.stored):
            if abs(_at(self.run, at) - stored) > CLOSE * (1 + abs(stored)):
                return False
        return True

    @property
    def _point(self):
        parts = [f"{name}={size}" for name, size in self.sizes.items()]
        parts += [f"{name}={_text(value)}" for name, value in self.inputs.items()]
        parts += [f"with {text}, one function among many" for text in self.stand_ins]
        return ", ".join(parts)

    @property
    def _entry(self):
        sides = [Float(_at(side, self.at)) for side in (self.stored, self.defined)]
        stored, defined = in_digits(sides, 6)
        place = f"[{', '.join(map(str, self.at))}]" if self.at else ""
        return f"{self.output}{place} is {stored}, defined {defined}"

    def __str__(self):
        lines = [
            self._entry,
            f"inputs: {self._point}",
            f"stored: {self.output} = {_text(self.stored)}",
            f"defined: {self.output} = {_text(self.defined)}",
        ]
        if isinstance(self.run, str):
            lines.append(f"run: {self.run}")
        elif self.run is not None:
            words = "" if self.is_as_read else ", which is not what was read"
            lines.append(f"run: {self.output} = {_text(self.run)}{words}")
        return "\n".join(lines)


def _plain(value):
    """A value with None for nan."""
    match value:
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return list(map(_plain, value))
        case float() if value != value:
            return None
    return value


def _text(value):
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return f"{value:.6g}"


def _entries(value, place=()) -> Iterator[tuple[tuple[int, ...], float]]:
    """(index from 0 on, number) of each entry."""
    if isinstance(value, list):
        for k, part in enumerate(value):
            yield from _entries(part, (*place, k))
    else:
        yield place, value


def _at(value, place):
    for k in place:
        value = value[k]
    return value


def _array(shape, entry, place=()):
    """The entries at places from 1 on, as lists."""
    if len(place) == len(shape):
        return entry(place)
    return [_array(shape, entry, (*place, k)) for k in range(1, shape[len(place)] + 1)]


@dataclass(eq=False)
class Case:
    """The two sides of a refutation, for numbers that are made when they are asked for.

    Args:  stored, defined: the sides, in the indices i and j; defs: what names stand for
           at: the counterexample of the prover
           largest: {the largest of a row: its Maximum}
           relations: what holds where the program has a value, and where its comparisons are decided
           given: {symbol: its number in the program's text}
           sized: sizes with numbers for the blocks that a launcher chooses
           fits: whether a launch at sizes {M: 2, N: 3} is of the way that was read
           run: (the run of the program, the name of the output there)
    """

    stored: Expr
    defined: Expr
    defs: Defs
    at: Counterexample
    largest: Mapping[Expr, Any] = field(default_factory=dict)
    relations: Sequence[Expr] = ()
    given: Mapping[Symbol, Expr] = field(default_factory=dict)
    sized: Callable[[dict], dict] | None = None
    fits: Callable[[dict], bool] | None = None
    run: tuple[Callable, str] | None = None

    @cached_property
    def replay(self) -> Replay | None:
        """The case in numbers; None where none are found in time."""
        found = self._found()
        return found and self._replay(*found)

    def counterexample(self) -> Counterexample | None:
        """A counterexample at which all relations hold; None where none is found in time."""
        found = self._found()
        if found is None:
            return None
        numbers, sides, at = found
        places = {k: n + 1 for k, n in zip(self.letters, at, strict=True)}
        values = sorted(numbers.inputs.items(), key=str)
        left, right = (Float(_at(side, at)) for side in sides)
        point = numbers.sizes | places, dict(values), left, right
        return Counterexample(*point, self.at.stand_ins)

    def _found(self):
        """(numbers, the two sides there, the index of an entry that differs); None where none are found in time."""
        failures = NotImplementedError, OutOfPatience, RangeError, RecursionError
        with suppress(*failures), evaluate(True), limited(SECONDS):
            for numbers, apart in self._points():
                sides = self.stored, self.defined
                arrays = [numbers.array(side, self.letters) for side in sides]
                at = _difference(*arrays, apart)
                if at is not None and all(map(numbers.holds, self.relations)):
                    return numbers, arrays, at
        return None

    def agrees(self, defs: Defs) -> bool:
        """Whether both sides are the same in numbers by other definitions, which may be more than chance."""
        case = replace(self, defs=defs)
        numbers, _ = next(case._points())
        sides = [
            numbers.array(side, self.letters) for side in (self.stored, self.defined)
        ]
        return _difference(*sides, APART[-1]) is None

    @property
    def letters(self) -> dict[Symbol, Symbol]:
        """{index of an entry: its size}."""
        return {k: size for k, size in ((i, M), (j, N)) if self.defined.has(k)}

    def _points(self):
        """(numbers, how far the sides are to be apart), those of few digits first, the counterexample's last."""
        sizes = {s: n for s, n in self.at.numbers.items() if s not in self.letters}
        drawn = [sizes | dict(zip((M, N), pair, strict=True)) for pair in SIZES]
        if self.sized:
            drawn = [self.sized({M: s[M], N: s[N]}) for s in drawn]
        if self.fits is not None:
            drawn = list(filter(self.fits, drawn))
        for apart, own, signs in product(APART, drawn, SIGNS):
            yield Numbers(self, own, self.given, signs), apart
        for own in drawn:
            yield Numbers(self, own, {eps: LARGE} | self.given), APART[-1]
        values = self.at.values
        if self.sized or self.fits and not self.fits(sizes):
            return
        short = {s: round(value, 2) or value for s, value in values.items()}
        for known in (short | self.given, values | self.given, values):
            yield Numbers(self, sizes, known), APART[-1]

    def _replay(self, numbers, arrays, at):
        """The record; an input is what is not defined, or is read by the program nevertheless."""
        lines = self.defs.reached(self.stored, self.defined)
        bases = Tuple(self.stored, self.defined, *chain(*lines)).atoms(IndexedBase)
        inputs, derived = numbers.scalars, {}
        for base in sorted(bases - numbers.largest.keys(), key=str):
            letters = dict(
                zip(symbols(f"i:{len(base.shape)}"), base.shape, strict=True)
            )
            entry = base[tuple(letters)]
            if base not in self.defs:
                inputs[str(base)] = numbers.array(entry, letters)
            elif self.stored.has(base):
                derived[str(base)] = numbers.array(entry, letters)
        sizes = [s for s in numbers.sizes if s in (M, N) or self.stored.has(s)]
        sizes = {str(size): numbers.sizes[size] for size in sizes}
        run = None
        if self.run is not None:
            from .confront import array_of

            run = array_of(*self.run, sizes, inputs, self.defs, arrays[0])
        output, stand_ins = str(name_of(self.defined)), self.at.stand_ins
        return Replay(sizes, inputs | derived, output, *arrays, at, run, stand_ins)


def _difference(stored, defined, apart):
    """The index of the first entry in which two arrays differ by more than this share of their size."""
    for at, left in _entries(stored):
        right = _at(defined, at)
        if abs(left - right) > apart * max(abs(left), abs(right)):
            return at
    return None


class Numbers(Explicit):
    """Expressions as numbers, for inputs that are drawn.

    Args:  case: whose; sizes: a number for every dimension; known: {symbol: number} of inputs that are not drawn
           signs: that the others may have
    """

    def __init__(self, case: Case, sizes: dict, known: Mapping, signs=SIGNS[0]):
        super().__init__(case.defs, sizes)
        self.largest = {name_of(head): (head, e) for head, e in case.largest.items()}
        self.known, self.signs, self.inputs = known, signs, {}
        # what is taken for 0 is, where the inputs in it are
        taken = [case.defs.unfold(e.lhs) for e in case.relations if isinstance(e, Eq)]
        self.zeros = {str(base) for base in Tuple(*taken).atoms(IndexedBase)}

    @property
    def scalars(self) -> dict[str, float]:
        """The inputs that are numbers and no entries, by name."""
        names = sorted(str(symbol) for symbol in self.inputs)
        values = {str(symbol): float(value) for symbol, value in self.inputs.items()}
        return {name: values[name] for name in names if "[" not in name}

    def array(self, e: Expr, letters: Mapping[Symbol, Symbol]) -> Any:
        """The values of an expression, nan where it has no real one; letters: {its index: the size of that axis}."""

        def number(place):
            value = self.entry(e, dict(zip(letters, place, strict=True)))
            return float(value) if value.is_real else nan

        return _array([self.sizes[size] for size in letters.values()], number)

    def holds(self, relation: Expr) -> bool:
        """Whether a relation of a number to 0 holds in every place."""
        ranges = all_ranges(relation.lhs)
        letters = sorted(free_letters(relation.lhs), key=str)
        for place in self._places([ranges[letter] for letter in letters]):
            point = dict(zip(letters, place, strict=True))
            value = self.entry(relation.lhs, point)
            if not value.is_real or not relation.func(round(value, DIGITS // 2), 0):
                return False
        return True

    def entry(self, e: Expr, indices: dict[Symbol, int]) -> Expr:
        """The value of e at the given indices: a fraction, or a number in digits."""
        if isinstance(e, Partial):
            return self._in_numbers(Explicit(self.defs, self.sizes).entry(e, indices))
        try:
            value = concrete(super().entry(e, indices))
        except ValueError:  # the larger one of complex numbers
            return S.NaN
        return value if value.is_Rational else value.evalf(DIGITS)

    def _value(self, name, place):
        if name_of(name) in self.largest:
            head, maximum = self.largest[name_of(name)]
            if maximum.e is None:
                return S.NaN
            point = dict(zip(indices_of(head), place, strict=True))
            size = N if maximum.over == j else M
            limits = [(maximum.over, 1, size)]
            value = maximum.of(list(self._entries(maximum.e, point, limits)))
            is_known = value.is_real and value >= maximum.past
            return value if is_known else S.NaN
        if name_of(name) == ONEHOT:
            row, column = place
            target = random.Random(f"target {row}").randrange(self.sizes[N])
            return Integer(target == column - 1)
        value = super()._value(name, place)
        return self._number(value) if value.is_Symbol else value

    def _slope(self, e, v, indices):
        return self._in_numbers(super()._slope(e, v, indices))

    def _in_numbers(self, e):
        return concrete(e).xreplace({s: self._number(s) for s in e.free_symbols})

    def _number(self, symbol):
        """The number of an input, by its name: a half of a whole number, and never 0."""
        if symbol.is_integer:
            raise NotImplementedError(f"{symbol}, which is no size")
        if symbol not in self.inputs:
            draw = random.Random(str(symbol))
            value = Rational(draw.randint(1, 8) * draw.choice(self.signs), 2)
            value = abs(value) if symbol.is_nonnegative else value
            if symbol.name.partition("[")[0] in self.zeros:
                value = S.Zero
            self.inputs[symbol] = self.known.get(symbol, value)
        return self.inputs[symbol]
