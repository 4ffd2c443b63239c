"""Sums over rows and columns: of the lanes of a tile, of the turns of a loop, and of all programs.

A sum is pending until every tile is in it and its lanes are added up. What is pending may only be multiplied by
factors from outside the sum, or added to a sum over the same places, or over the tiles that follow.
"""

from __future__ import annotations

from dataclasses import replace
from operator import add, mul, sub, truediv

from sympy import Expr, S, Sum, Symbol, expand, nan

from ..symbolic.normal_form import nf
from ..symbolic.notation import total
from ..symbolic.signs import is_nonnegative, is_positive
from ..symbolic.symbols import M, N, i, j
from .conditions import NEEDED, TAKEN, Condition
from .digits import is_cancelling, is_exact, is_scaled, is_variance
from .maxima import Maxima
from .places import LEAST, Places
from .tables.dtypes import HALVES, NARROW, results, spelled
from .tables.elementary import DIVISOR, NONNEGATIVE, POSITIVE
from .values import (
    COLUMN,
    INSIDE,
    ROW,
    NotRead,
    Number,
    Pending,
    Unknown,
    fit,
    incomplete,
    known,
    merged,
)
from .welford import Running, held

SIZES = {"R": M, "C": N}
WORDS = {"R": "row", "C": "column"}
# in which a variance of float32 loses no digit of it
EXACT_ENOUGH = frozenset({"float64"})


class Sums:
    """Arithmetic of numbers that may hold sums, for one launch."""

    def __init__(self, places: Places):
        self.places, self.tiles = places, places.launch.column_tiles
        self.line = 0  # that is being read
        self.domain: dict[Condition, None] = {}
        # the lines of variances that are differences of nearly equal numbers
        self.cancelling: dict[int, None] = {}
        # where numbers that are used further were rounded, as "float16 (line 9)"
        self.rounded: dict[str, None] = {}
        self.maxima = Maxima(self)
        self.running = Running(self)

    def full(self, axis: str, cover) -> bool:
        """Whether these are all of the columns, or all or the program's own of the rows."""
        if axis == "R":
            return cover in ("own", "all")
        return cover == (0, expand(self.tiles - 1))

    def operate(self, operator: str, a: Number, b: Number) -> Number:
        """a + b, a - b, a * b or a / b, lane by lane."""
        try:
            value = self._operate(operator, a, b)
        except NotRead:
            named = [self.running.named(n, self.places.active) for n in (a, b)]
            value = self._operate(operator, *named)
        dtype = results(a.dtype, b.dtype, operator)
        if not dtype <= EXACT_ENOUGH and is_variance(operator, a.inside, b.inside):
            self.cancelling[self.line] = None
        maxima = self.maxima
        lines = maxima.exponentials.of_operation(operator, a.inside, b.inside)
        maxima.overflowing.update(dict.fromkeys(lines))
        rounded = self.rounded_by(value, dtype, a, b)
        return replace(value, dtype=dtype, rounded=rounded)

    def keep_cancelling(self, value: Number) -> None:
        """Keeps a sum over lanes of columns whose terms cancel to a variance."""
        place = value.place("C")
        if place is not None and not value.dtype <= EXACT_ENOUGH:
            if is_cancelling(value.inside, place.symbol):
                self.cancelling[self.line] = None

    def rounding(self, value: Number, dtype: frozenset) -> str:
        """Where a number loses digits as one of a dtype, whatever the tensors' dtypes; "" where it does not.

        For x_hat.to(tl.float16), and a product of two numbers of float16. It leaves out an entry of a tensor, which may
        be of that dtype, and a row's statistic, of which the claim says more.
        """
        of_a_row = value.place("C") is None and value.inside.has(Sum)
        # float16 of what is bfloat16, or the other way, loses digits of an entry, too
        is_one = len(dtype) == len(value.dtype) == 1
        is_other = is_one and dtype | value.dtype == HALVES
        is_kept = of_a_row or is_exact(value.inside)
        if not dtype <= NARROW or is_kept and not is_other:
            return ""
        return f"{spelled(dtype)} (line {self.line})"

    def rounded_by(self, result: Number, dtype: frozenset, *operands: Number) -> str:
        """Where the result of an operation has lost digits; keeps where its operands have.

        For x_hat * w of a rounded x_hat. It leaves out a power of 2 and a sign, by which no digit is lost, and a store.
        """
        for operand in operands:
            if operand.rounded and is_scaled(result.inside, operand.inside):
                return operand.rounded
        self.use_rounded(*operands)
        return self.rounding(result, dtype)

    def use_rounded(self, *operands: Number) -> None:
        """Keeps where what is used further has lost digits."""
        self.rounded.update({n.rounded: None for n in operands if n.rounded})

    def _operate(self, operator, a, b):
        function = {
            "Add": add,
            "Sub": sub,
            "Mult": mul,
            "Div": truediv,
        }.get(operator)
        if function is None:
            raise NotRead(f"the operation {operator} of numbers")
        marked = has_marker(a) or has_marker(b)
        self.maxima.check_operation(operator, a.inside, b.inside)
        pending, share = a.pending, a.share
        if (a.pending, a.share) != (b.pending, b.share):
            pending, share = a.pending + b.pending, a.share | b.share
            if operator in ("Add", "Sub") and not marked:
                if operator == "Add" and a.pending and not a.share:
                    return self.settled(self.joined(a, b))
                raise NotRead("a sum that is not complete is added to something else")
        if pending or share:
            self._linear(operator, a, b)
        axes = fit(a.axes, b.axes)
        if operator == "Div":
            b = self._divisor(b)
        parts = []
        for x, y in zip(a.parts, b.parts, strict=True):
            parts.append(nan if nan in (x, y) else known(function(x, y)))
        return Number(tuple(parts), axes, merged(a, b), pending, share)

    def _divisor(self, value):
        """A divisor, which is not known in lanes where what a loop carries may be 0.

        For a mean by its count. It stops a count that is 0 at the first turn.
        """
        if value.inside == 0:
            raise NotRead("a division by 0")
        if not held(value.inside):
            self.needs(value, DIVISOR)
        parts = [
            nan if held(part) and not self.running.divisor(part) else part
            for part in value.parts
        ]
        if parts[INSIDE] is nan and value.inside is not nan:
            raise NotRead("a division by what a loop carries, which may be 0")
        return replace(value, parts=tuple(parts))

    def needs(self, value: Number, relation: type, kind: str = NEEDED) -> None:
        """Keeps what a number must be to 0 for an operation to be defined, where that is not seen."""
        e = value.inside
        if relation == POSITIVE and is_nonnegative(e):
            relation = DIVISOR
        seen = is_nonnegative(e) if relation == NONNEGATIVE else is_positive(e)
        if e is not nan and e != 0 and (kind == TAKEN or not seen):
            written = relation(e, 0, evaluate=False)
            self.domain[Condition(written, kind, self.line)] = None

    def conditions(self) -> list[Condition]:
        """What must hold for all operations to be defined, in i and j."""
        conditions = []
        for condition in self.domain:
            relation = condition.relation
            e = self.lettered(relation.lhs)
            written = relation.func(e, 0, evaluate=False)
            conditions.append(replace(condition, relation=written))
        return conditions

    def lettered(self, e: Expr) -> Expr:
        """A number in i and j."""
        letters = {p.symbol: {"R": i, "C": j}[p.axis] for p in self.places.found()}
        return e.xreplace(letters)

    def _linear(self, operator, a, b):
        """Refuses all but sums of one kind, and a sum times a factor from outside it.

        For a sum that is scaled as a whole. It stops the square of a part of it.
        """
        if operator in ("Add", "Sub"):
            for p in a.pending + b.pending:
                if (p.place.axis in a.axes) != (p.place.axis in b.axes):
                    raise NotRead("a sum is added to what has other lanes")
            return
        if operator == "Mult" and b.pending + tuple(b.share):
            a, b = b, a
        axes = {p.place.axis for p in a.pending}
        if a.share:
            axes.add("R")
        inside = axes & {*[p.axis for p in b.places], *b.axes}
        if inside or not b.complete or has_marker(b):
            raise incomplete(a, b)

    # lanes

    def over(self, value: Number, axis: str) -> Number:
        """The lanes of an axis added up; their place in value.axes becomes "1"."""
        axes = tuple("1" if a == axis else a for a in value.axes)
        if axis == "1":
            return value
        if has_marker(value):
            if axis == "R":
                raise NotRead("a sum over lanes of what a loop carries")
            value = self.running.gathered(value)
            if has_marker(value):
                return replace(value, axes=axes)
        pending = [p for p in value.pending if p.place.axis == axis]
        place = value.place(axis)
        if pending:
            p = pending[0]
        elif place is not None and place.lanes:
            p = Pending(place, place.cover)
        else:
            raise NotRead(
                f"a sum over the lanes of {WORDS[axis]}s, "
                "of what has none that a kernel loaded there"
            )
        if p.cover == "grid":
            raise NotRead("the sum over one tile of columns, where a row has several")
        self._ended(value, p)
        rest = tuple(q for q in value.pending if q.place.axis != axis)
        value = replace(value, axes=axes, pending=(*rest, p))
        return self.settled(value)

    def _ended(self, value, p):
        """Refuses lanes past the end of which nothing is known, or whose number is not.

        For loads with other=0. It stops other=nan, and rows past the end that add the weight. Rows past a program's own
        are another program's, if there are any: that accuses no kernel whose tiles divide its rows.
        """
        columns = p.place.axis == "C"
        past = value.parts[COLUMN if columns else ROW]
        where = f"a {WORDS[p.place.axis]} past the end"
        if past is nan and isinstance(p.place.end, LEAST):
            raise NotRead(f"{where} of a program's own may be another program's")
        if p.place.past and past is nan:
            raise Unknown(f"{where} adds what is not known to a sum")
        if p.place.past and not columns and nf(past) != 0:
            raise NotRead(f"{where} adds {past} to a sum")

    def settled(self, value: Number) -> Number:
        """The value, with each sum that has all its tiles and no lanes left written as a sum."""
        for p in value.pending:
            open_ = p.place.loop in self.places.active
            if p.place.axis in value.axes and p.place.lanes or open_:
                continue
            if self.full(p.place.axis, p.cover):
                value = self._summed(value, p)
        return value

    def _summed(self, value, p):
        """The value with one of its pending sums as a sum.

        For a tile that is 0 past the end. It stops a constant that the lanes past N add as well.
        """
        size, axis = SIZES[p.place.axis], p.place.axis

        def added(part: Expr) -> Expr:
            if part is nan or part == 0:
                return part
            if not part.has(p.place.symbol):
                return size * part
            return total(size, lambda r: part.xreplace({p.place.symbol: r}))

        inside, column, row, corner = value.parts
        if axis == "C":  # lanes past the end add, too
            extra = S.Zero
            if p.place.past:
                extra = self.tiles * self.places.column_block - N
            whole = added(inside) + extra * column
            past = nan if nan in (row, corner) else added(row) + extra * corner
            parts = (whole, whole, past, past)
        else:
            empty = corner == 0 or not p.place.past
            whole, past = added(inside), added(column) if empty else nan
            parts = (whole, past, whole, past)
        own = p.place.pids if p.cover == "own" else frozenset()
        pending = tuple(q for q in value.pending if q is not p)
        places = frozenset(q for q in value.places if q != p.place)
        return Number(parts, value.axes, places, pending, value.share | own)

    # turns

    def added_up(self, name: str, start: Number, value: Number, marker: Symbol, turn):
        """What a loop leaves in a name that was `start` before it, if each turn leaves `value`.

        For a running sum. It stops one that is scaled, or gets another running sum, at each turn.
        """
        parts = tuple(_without(part, marker) for part in value.parts)
        if held(*parts):
            raise NotRead(f"{name}: a turn of the loop does something else than add")
        self.maxima.check_steady(*parts, turn=turn)
        if value.axes != start.axes:
            raise NotRead(f"{name} changes its shape in a loop")
        added = replace(value, parts=parts)
        pending = [p for p in added.pending if p.place.loop == turn]
        found = {p.place for p in pending}
        found |= {place for place in added.places if place.loop == turn}
        if len(found) != 1:
            raise NotRead(f"{name}: each turn adds what is no term of a sum")
        (place,) = found
        if not pending:
            if (place.axis in added.axes) != place.lanes:
                raise NotRead(f"{name}: a tile is added to what has other lanes")
            rest = tuple(p for p in added.pending if p.place.axis != place.axis)
            added = replace(added, pending=(*rest, Pending(place, place.cover)))
        if start.pending or start.share or any(part != 0 for part in start.parts):
            added = self.joined(start, added)
        return self.settled(added)

    def joined(self, one: Number, another: Number) -> Number:
        """Two parts of one sum over columns, of tiles that follow each other.

        For the last tile apart. It stops parts that leave a tile out, or have other terms.
        """
        one, another = self._as_pending(one), self._as_pending(another)
        pending = (*one.pending, *another.pending)
        alike = one.axes == another.axes and not one.share | another.share
        alike &= len(one.pending) == 1 and "grid" not in [p.cover for p in pending]
        if not alike or [p.place.axis for p in pending] != ["C", "C"]:
            raise NotRead("a sum that is not complete is added to something else")
        a, b = pending
        if expand(b.cover[0] - a.cover[1]) != 1:
            one, another, a, b = another, one, b, a
        if expand(b.cover[0] - a.cover[1]) != 1:
            raise NotRead("the tiles of one sum leave out columns or take some twice")
        symbols = {a.place.symbol: b.place.symbol}
        moved = one.inside.xreplace(symbols)
        if a.place.past or expand(moved - another.inside) != 0:
            raise NotRead("two parts of one sum differ")
        rows = one.parts[ROW]
        same = rows is not nan and rows.xreplace(symbols) == another.parts[ROW]
        inside, column, row, corner = another.parts
        parts = another.parts if same else (inside, column, nan, nan)
        places = {p for p in one.places | another.places if p.axis != "C"}
        if len(places) > 1:
            raise NotRead("values of two different tiles meet in one lane")
        pending = (Pending(b.place, (a.cover[0], b.cover[1])),)
        return Number(parts, another.axes, frozenset(places | {b.place}), pending)

    def _as_pending(self, value):
        """A tile of columns as a part of a sum over them."""
        place = value.place("C")
        if value.pending or place is None or place.loop in self.places.active:
            return value
        if place.lanes and "C" not in value.axes:
            return value
        return replace(value, pending=(Pending(place, place.cover),))


def _without(part, marker):
    """What is added to the marker; not expanded where that is not needed, so that squares are still seen."""
    rest = part - marker
    return expand(rest) if marker in rest.free_symbols else rest


def marker_of(name: str, turn: Symbol) -> Symbol:
    """What a name holds before a turn of a loop."""
    return Symbol(f"{name}_before_{turn}", real=True, commutative=True)


def has_marker(value: Number) -> bool:
    """Whether a value holds what a loop carries."""
    return bool(held(*value.parts))
