"""The largest number of a row or column: a real number, on which the result of a right softmax does not depend.

A proof takes it for any real number. A refutation has the number itself, where it is known of what it is the largest.
In a loop over tiles the largest of a tile, and of all tiles up to it, is another number at each turn: it is stored
nowhere, and no sum over turns has it. But a sum s that each turn multiplies by exp(m - m'), where m' is the next m, is
proved by induction: s exp(m) only adds. Where m is -inf before the first turn, exp(m) is 0, whatever s is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sympy import (
    Expr,
    Indexed,
    IndexedBase,
    Max,
    Pow,
    S,
    Symbol,
    Tuple,
    exp,
    expand,
    nan,
    oo,
)

from ..symbolic.normal_form import equal
from ..symbolic.notation import name_of, tensor
from ..symbolic.signs import is_positive
from ..symbolic.symbols import M, N, i, j
from .definitions import ONEHOT
from .digits import Exponentials
from .tables.elementary import LOGARITHMS
from .values import (
    COLUMN,
    CORNER,
    ROW,
    NotRead,
    Number,
    Unknown,
    fit,
    incomplete,
    merged,
)
from .verdict import REFUTED, WRONG, Verdict
from .welford import held

SIZES = {i: M, j: N}
# the lowest number of float16: what lanes past the end hold below it is no row's
LOWEST = -65504
NUMBERS = count()
STARTS = "what is -inf before the first turn"
ANY_NUMBER = (
    "it differs for some number in the place of the largest, or first, of a row, and "
    "nowhere is seen to differ for that itself"
)


@dataclass(frozen=True)
class Maximum:
    """What a number is the largest of.

    Args:  e: in i and j, None where that is not known; over: the index that runs
           past: what may be among the numbers besides, as lanes past the end hold it
           is_first: whether it is the first of them instead, of which a proof knows as little
    """

    e: Expr | None
    over: Symbol = j
    past: Expr = -oo
    is_first: bool = False

    def of(self, numbers: Sequence[Expr]) -> Expr:
        """Which one of the numbers of a row, or of a column, it is."""
        return numbers[0] if self.is_first else Max(*numbers)

    @property
    def is_whole(self) -> bool:
        """Whether it is known which number it is, whatever the blocks."""
        return self.e is not None and self.past == -oo


# {what a whole row's or column's number is the largest of: its name}, by which two readings know it
NAMES: dict[Maximum, str] = {}


def head_of(maxima: dict[Indexed, Maximum], maximum: Maximum) -> Indexed:
    """The number as an entry of a tensor of its own, with the index that does not run.

    For `exp(x - max(x)) / sum(exp(x - max(x)))`, where two of one expression are one number. It leaves apart what is
    the largest of something that is not known, or of lanes past the end besides, which blocks decide.
    """
    index = i if maximum.over == j else j
    kind = "first" if maximum.is_first else "largest"
    name = f"{kind}_{next(NUMBERS)}"
    if maximum.is_whole and getattr(maximum.e, "indices", ()) == (i, j):
        name = f"{kind}_{maximum.e.base}" + "_of_column" * (index == j)
    elif maximum.is_whole:
        name = NAMES.setdefault(replace(maximum, e=maximum.e.as_dummy()), name)
    head = tensor(name, SIZES[index])[index]
    maxima[head] = maximum
    return head


def of_maxima(verdict: Verdict, maxima: Mapping[Indexed, Maximum]) -> Verdict:
    """A refutation at numbers for which the largest of a row is the largest.

    For a program that adds exp(0 - max(x)) to a sum. It stops an accusation by a row whose largest number is below
    another one of it, and by a row with two targets.
    """
    if verdict.case is None or verdict.kind not in (REFUTED, WRONG):
        return verdict
    verdict.case.largest = maxima
    bases = {ONEHOT, *map(name_of, maxima)}
    lines = verdict.case.defs.reached(verdict.case.stored, verdict.case.defined)
    entries = Tuple(verdict.case.stored, *[e for _, e in lines]).atoms(Indexed)
    if bases.isdisjoint(map(name_of, entries)):
        return verdict
    at = verdict.case.counterexample()
    if at is None:
        return verdict.unread(ANY_NUMBER)
    return replace(verdict, counterexample=at if verdict.kind == REFUTED else None)


def check_steady(e: Expr, maxima: Iterable[Indexed]) -> None:
    """Refuses a result of a forward that depends on the largest of a row.

    For exp(x - max(x)) / sum(exp(x - max(x))), whose derivative with respect to max(x) is 0. It stops x - max(x), whose
    gradient through the maximum is worked out nowhere.
    """
    replacements = {}
    for base in map(name_of, maxima):
        replacements[base] = tensor(f"another_{base}", *base.shape)
    if not equal(e, e.xreplace(replacements)):
        raise NotRead("a gradient through the largest, or first, of a row")


class Maxima:
    """The largest numbers in one launch.

    Args:  sums: the arithmetic of its numbers; heads: {entry: its Maximum}
           moving: {tensor: the turn on which it depends, or "grid"}
           tiles: {tensor: the tile that it is the largest of}
           running: {tensor: (the name before the turn, the tile) that it is the larger of}
           unbounded: what loops carry that is -inf before the first turn
           exponentials: that may overflow; overflowing: the lines of those by which a number is nan
    """

    def __init__(self, sums):
        self.sums, self.places = sums, sums.places
        self.heads: dict[Indexed, Maximum] = {}
        self.moving: dict[IndexedBase, object] = {}
        self.tiles: dict[IndexedBase, Number] = {}
        self.running: dict[IndexedBase, tuple] = {}
        self.unbounded: set[Symbol] = set()
        # the names of what a loop leaves that is not known to be the largest of its row
        self.loose: set[str] = set()
        self.exponentials = Exponentials()
        self.overflowing: dict[int, None] = {}

    def is_one(self, e: Expr) -> bool:
        """Whether an expression is the largest of something, and nothing else."""
        return isinstance(e, Indexed) and e.base in set(map(name_of, self.heads))

    def raised(self) -> set[str]:
        """The names of what may be far from the largest of its row.

        For lanes past the end that hold 0, which is larger than all of some rows, and for what a loop leaves that
        begins at 0 or forgets the tiles before. It leaves out -1e9 in lanes past the end.
        """
        higher = {
            str(name_of(head))
            for head, maximum in self.heads.items()
            if maximum.past.is_finite and maximum.past > LOWEST
        }
        return higher | self.loose

    def _moving(self, *parts):
        """{tensor: the turn} of what is another number at each turn."""
        bases = {name_of(e) for part in parts for e in part.atoms(Indexed)}
        return {base: turn for base, turn in self.moving.items() if base in bases}

    @staticmethod
    def _number(base, value):
        """A tensor of what is largest as a number of each row; value: of what, or one that is not larger."""
        row, past = value.place("R"), value.parts[ROW]
        e = base[row.symbol]
        if past != value.parts[CORNER] or not past.is_number:
            past = nan
        parts = (e, e, past, past)
        return replace(value, parts=parts, places=frozenset({row}))

    @staticmethod
    def _of(value, columns):
        """What the largest of all lanes of columns is the largest of."""
        row, past = value.place("R"), value.parts[COLUMN]
        if not columns.past:
            past = -oo
        if past != -oo and not past.is_number:
            return Maximum(None)
        letters = {columns.symbol: j, row.symbol: i}
        return Maximum(value.inside.xreplace(letters), past=past)

    def largest(self, value: Number) -> Number:
        """The largest of the lanes of columns, which have an axis still.

        For rows that are loaded with other=-inf, or any other number. It stops lanes past the end of which nothing is
        known, which may hold nan, and those that hold inf, which no number of a row is.
        """
        columns = value.place("C")
        if columns is None or not columns.lanes or not value.complete:
            raise NotRead("a maximum over lanes of what no kernel loaded there")
        if columns.past and value.parts[COLUMN] is nan:
            raise Unknown("a column past the end is not known, and is in a maximum")
        if columns.past and value.parts[COLUMN].has(oo):
            raise NotRead("a maximum over lanes past the end that hold inf")
        if value.inside in (nan, oo, -oo) or self._moving(*value.parts):
            raise NotRead("a maximum of what is not known")
        if value.place("R") is None:
            raise NotRead("a maximum of what is the same in every row")
        is_open = columns.loop in self.places.active
        is_row = self.sums.full("C", columns.cover) and not is_open
        if is_row:
            return self._number(self._base(self._of(value, columns)), value)
        for base, tile in self.tiles.items():
            if (tile.parts, tile.places) == (value.parts, value.places):
                return self._number(base, value)
        base = self._base(Maximum(None))
        self.tiles[base] = value
        if columns.cover == "grid" or columns.loop is not None:
            self.moving[base] = columns.loop or "grid"
        return self._number(base, value)

    def _base(self, maximum):
        return name_of(head_of(self.heads, maximum))

    def larger(self, x: Number, y: Number) -> Number | None:
        """The larger of what a loop carries and the largest of a tile, None for other numbers.

        For a running maximum. It leaves the largest of what is in lanes apart.
        """
        carried, tile = sorted((x, y), key=lambda value: self.is_one(value.inside))
        if not self.is_one(tile.inside) or "C" in (*x.axes, *y.axes):
            return None
        is_carried = carried.inside in held(carried.inside)
        if not (is_carried or self.is_one(carried.inside)):
            return None
        if not (x.complete and y.complete):
            raise incomplete(x, y)
        base = self._base(Maximum(None))
        if self.places.active and (is_carried or self._moving(x.inside, y.inside)):
            self.moving[base] = self.places.active[-1]
        if is_carried and name_of(tile.inside) in self.tiles:
            self.running[base] = carried.inside, self.tiles[name_of(tile.inside)]
        parts, axes = (nan,) * 4, fit(x.axes, y.axes)
        value = replace(tile, parts=parts, axes=axes, places=merged(x, y))
        return self._number(base, value)

    # what a loop carries

    def begin(self, marker: Symbol, value: Number) -> None:
        """Keeps what a loop carries that is -inf before the first turn."""
        if value.inside == -oo:
            self.unbounded.add(marker)

    def check_operation(self, operator: str, x: Expr, y: Expr) -> None:
        """Refuses what has another value for -inf than it has for numbers.

        For `s * exp(m - new)`, which is 0 where m is -inf. It stops `s * exp(2 * m - new) / exp(m)`, where that is nan.
        """
        both = x.free_symbols | y.free_symbols
        if not self.unbounded & both:
            return
        bare = [self._is_bare(x), self._is_bare(y)]
        is_wrong = operator == "Sub" and bare[1]
        if operator == "Mult":
            for is_bare, factor in ((bare[0], y), (bare[1], x)):
                is_wrong |= is_bare and not self._is_factor(factor)
        if operator == "Div":
            is_wrong = bare[0] and not self._is_factor(y)
            is_wrong |= bool(self.unbounded & y.free_symbols)
        if is_wrong:
            raise NotRead(f"{STARTS}, other than in exp(m - new)")

    def check_function(self, name: str, value: Number, line: int) -> None:
        """Refuses functions of what may be -inf, but exponentials that are 0 there."""
        e = expand(value.inside)
        if name in LOGARITHMS:
            lines = self.exponentials.of_logarithm(value.inside, line)
            self.overflowing.update(dict.fromkeys(lines))
        for marker in self.unbounded & e.free_symbols:
            times = e.coeff(marker, 1)
            is_linear = times.is_positive and not self._is_bare(e - times * marker)
            if name not in ("exp", "exp2") or not is_linear:
                raise NotRead(f"{name} of {STARTS}")

    def _is_bare(self, e):
        """Whether what is -inf stands in an expression outside of exponentials."""
        powers = e.atoms(exp) | {part for part in e.atoms(Pow) if part.base.is_number}
        outside = e.xreplace(dict.fromkeys(powers, S.One))
        return bool(self.unbounded & outside.free_symbols)

    def _is_factor(self, e):
        return is_positive(e) and not self.unbounded & e.free_symbols

    def check_steady(self, *parts: Expr, turn: Symbol) -> None:
        """Refuses terms of a sum over turns that hold another number at each turn.

        For the largest of a whole row. It stops a sum of exp(x - m) with a running m, which is not rescaled.
        """
        if turn in self._moving(*parts).values():
            raise NotRead("a sum with a running maximum, by which it is not rescaled")

    def after(self, carried: tuple, turns: Expr, turn: Symbol) -> Number:
        """What a maximum holds after a loop.

        For the largest of all tiles. It stops that of the last tile, which is taken for the largest of a row.

        Args:  carried: (what a name held before the loop, what it holds after a turn, its symbol)
        """
        start, end, before = carried
        if start.inside == oo:
            raise NotRead("a maximum that is inf before the first turn")
        if start.inside == -oo and not turns.is_positive:
            raise NotRead("a maximum in a loop that may make no turn")
        symbol, tile = self.running.get(name_of(end.inside), (None, None))
        maximum = Maximum(None)
        if symbol == before and start.inside == -oo:
            columns = tile.place("C")
            if self.sums.full("C", columns.cover) and columns.loop == turn:
                maximum = self._of(tile, columns)
        base = self._base(maximum)
        if maximum.e is None:
            self.loose.add(str(base))
        if maximum.e is None and self.places.active:
            self.moving[base] = self.places.active[-1]
        return self._number(base, end)

    def weight(self, end: Number, marker: Symbol, m: Symbol, new: Expr) -> Expr:
        """f(m), such as exp(m), of a sum s that a turn multiplies by f(m) / f(new).

        For an online softmax. It stops one that is multiplied by exp(new - m).

        Args:  end: the sum after a turn; marker, m: the sum and the maximum before it; new: the maximum after it
        """
        share = expand(end.inside).coeff(marker)
        inverse = expand(share.xreplace({m: S.Zero}))
        weight = expand(share / inverse) if inverse != 0 else S.Zero
        whole = expand(weight.xreplace({m: new}) * inverse)
        if not is_positive(weight) or whole != 1 or weight.has(new):
            raise NotRead("a sum that a turn scales otherwise than by its maximum")
        return weight
