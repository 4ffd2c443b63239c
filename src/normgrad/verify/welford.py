"""Running statistics: a mean m, and a sum s of squared deviations, that a loop carries from tile to tile.

Welford's and Chan's recurrences are proved by induction: where c' m' - c m holds nothing that is carried, c m is a sum
over all turns, P, if the turns lead from c terms to c'. So is s + c m^2, Q; both hold before the first turn, too.

Symbols stand for such sums, and for the sums over one tile. Over lanes only that is added up which is linear in them
once c m is P and s is Q - c m^2. That is so for c = 0, too, as in a lane without a term: nothing is divided by it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from sympy import Add, Expr, S, Symbol, cancel, expand, factor, fraction, nan

from ..symbolic.signs import is_nonnegative, is_positive
from .values import COLUMN, INSIDE, NotRead, Number, Pending, merged, plain

HELD = "what a loop carries"


def held(*parts: Expr) -> set[Symbol]:
    """The symbols that stand for what a loop carries, for its turns, and for sums."""
    symbols = set().union(*[part.free_symbols for part in parts])
    return {symbol for symbol in symbols if "_before_" in str(symbol)}


def _regular(e):
    """An expression as a sum; NotRead where a divisor may be 0."""
    e = cancel(e)
    divisor = fraction(e)[1]
    if held(divisor) or not is_positive(factor(divisor)):
        raise NotRead(f"a division of {HELD} by what may be 0")
    return expand(e)


def _rows(*values):
    return frozenset(p for value in values for p in value.places if p.axis != "C")


class Running:
    """What the loops of one launch carry.

    Args:  sums: the arithmetic of its numbers; axes: {symbol: the axes of what it stands for}
           terms: {symbol: the sum that it stands for}; rules: {a mean or square after its loop: in such sums}
           counts: symbols that have to be at least 0, as a kernel divides by what is then positive
    """

    def __init__(self, sums):
        self.sums, self.places = sums, sums.places
        self.axes: dict[Symbol, tuple] = {}
        self.terms: dict[Symbol, Number] = {}
        self.rules: dict[Symbol, Expr] = {}
        self.counts: set[Symbol] = set()
        self._symbols: dict[tuple, Symbol] = {}

    # in a turn

    def turn(self, turn: Symbol) -> Symbol:
        """How many turns were made, as a number."""
        return Symbol(f"_before_{turn}", integer=True, nonnegative=True)

    def counted(self, e: Expr) -> Number:
        """An integer as a number, where it depends on the turns of open loops, or is how many columns a tile has."""
        for p in self.places.found():
            if p.axis == "C" and p.lanes and p.loop in self.places.active:
                e = e.xreplace({self.places.columns(p): self._tile(S.One, p)})
        return plain(e.xreplace({turn: self.turn(turn) for turn in self.places.active}))

    def named(self, value: Number, loops: list[Symbol]) -> Number:
        """A sum over the columns of a tile of one of the loops, in symbols for its terms; another number as it is."""
        if len(value.pending) != 1 or value.share or "C" in value.axes:
            return value
        (p,) = value.pending
        if p.place.axis != "C" or p.place.loop not in loops:
            return value
        terms = Add.make_args(expand(value.inside))
        outside = Add(*[term for term in terms if held(term)])
        if p.place.past and expand(value.parts[COLUMN] - outside) != 0:
            return value
        e = outside + self._tile(value.inside - outside, p.place)
        return Number((e, e, nan, nan), value.axes, value.places)

    def _tile(self, e, place):
        """The sum of e over the columns of a tile, in symbols for its terms."""
        added = S.Zero
        for term in Add.make_args(expand(e)):
            coefficient, body = term.as_independent(place.symbol, as_Add=False)
            if held(body) or any(
                "C" in self.axes.get(s, ()) for s in held(coefficient)
            ):
                raise NotRead(f"a sum over lanes of {HELD}")
            pending = (Pending(place, place.cover),)
            number = Number((body, S.Zero, nan, nan), pending=pending)
            added += coefficient * self._standing(number, body == 1 or None)
        return added

    def _standing(self, number, positive=None):
        """A symbol that stands for a sum; positive: whether it is greater than 0, as the columns of a tile are."""
        if len(number.pending) != 1:
            raise NotRead(f"{HELD} is no sum over tiles of columns")
        key = number, positive  # of one turn, or of all of them
        if key not in self._symbols:
            name = f"sum_{len(self.terms)}_before_end"
            symbol = Symbol(name, real=True, positive=positive)
            self._symbols[key] = symbol
            self.terms[symbol], self.axes[symbol] = number, number.axes
        return self._symbols[key]

    def divisor(self, part: Expr) -> bool:
        """Whether it is greater than 0, if the counts in it are at least 0."""
        counts = held(part) - set(self.terms) - set(self.rules)
        counts = {count for count in counts if not count.is_nonnegative}
        signs = {count: Symbol(str(count), nonnegative=True) for count in counts}
        positive = is_positive(part.xreplace(signs))
        if positive:
            self.counts |= counts
        return positive

    # sums over lanes

    def gathered(self, value: Number) -> Number:
        """What is to be added up over lanes, as a sum that lacks no more than these."""
        if not value.complete:
            raise NotRead(f"a sum over lanes of {HELD}, and of another sum")
        place = value.place("C")
        if place is not None and place.past and place.loop in self.places.active:
            if value.parts[COLUMN] != 0:
                raise NotRead(f"a sum over lanes of {HELD}, past the end")
            e = self._tile(value.inside, place)
            return replace(value, parts=(e, e, nan, nan), places=_rows(value))
        sums, rest = self._linear(value.inside)
        if place is None:
            return self._total(sums, rest, value)
        past, constant = self._linear(value.parts[COLUMN])
        if past != sums or not place.past:
            raise NotRead(f"a sum over lanes of {HELD}, which differs past the end")
        last = (expand(rest - constant), S.Zero, nan, nan)
        last = Number(last, value.axes, value.places)
        return self.sums.joined(self._total(sums, constant, value), last)

    def _linear(self, e):
        """({symbol of a sum: its coefficient}, the rest); NotRead for what is not linear in sums."""
        while held(e) & set(self.rules):
            e = e.xreplace(self.rules)
        e = _regular(e)
        symbols = held(e) & set(self.terms)
        coefficients = {symbol: expand(e.diff(symbol)) for symbol in symbols}
        rest = e.xreplace(dict.fromkeys(symbols, S.Zero))
        if not symbols or held(rest, *coefficients.values()):
            raise NotRead(f"a sum of what is not linear in {HELD}")
        return coefficients, rest

    def _total(self, coefficients, constant, value):
        """Sums over the same tiles, and a constant in each lane, with the axes and rows of a value."""
        numbers = [self.terms[symbol] for symbol in coefficients]
        pending = {number.pending for number in numbers}
        lanes = {"C" in number.axes for number in numbers}
        columns = {p.symbol for p in self.places.found() if p.axis == "C"}
        if len(pending) != 1 or lanes != {"C" in value.axes}:
            raise NotRead(f"sums of different tiles in {HELD}")
        if any(times.free_symbols & columns for times in coefficients.values()):
            raise NotRead(f"a sum in {HELD} is multiplied by what differs in its terms")
        ((p,),) = pending
        if constant != 0:  # a share of it for each of the tiles
            if p.place.past:
                raise NotRead(f"a sum over lanes of {HELD}, past the end")
            constant = _regular(constant / (p.cover[1] - p.cover[0] + 1))
        parts = [constant, S.Zero]
        for number, times in zip(numbers, coefficients.values(), strict=True):
            for part in (INSIDE, COLUMN):
                parts[part] += expand(times * number.parts[part])
        places = _rows(value, *numbers)
        return Number((*parts, nan, nan), value.axes, places, (p,))

    # after a loop

    def left(self, names: dict[str, tuple], turn: Symbol, turns: Expr) -> dict:
        """{name: what it holds after a loop}, of those that are known.

        Args:  names: {name: (what it held before the loop, what a turn leaves, its symbol)}
        """
        sums, reasons = {}, {}
        for name, carried in names.items():
            start, value, symbol = carried
            try:
                sums[name] = self._sum(name, *carried, turn, turns)
            except NotRead as reason:
                reasons[name] = reason
                continue
            added = [part - symbol for part in value.parts if part is not nan]
            if all(map(is_nonnegative, [*start.parts, *added])):
                self.counts.discard(symbol)
        if self.counts:
            raise NotRead(f"a division by {HELD}, which may be 0")
        pairs = {}
        for pair in permutations(reasons, 2):
            pairs |= self._pair(pair, names, sums, turn, turns)
        for name in reasons.keys() - pairs.keys():
            if held(*names[name][1].parts) & {symbol for *_, symbol in names.values()}:
                raise reasons[name]
        return sums | pairs

    def _sum(self, name, start, value, symbol, turn, turns):
        """What a loop leaves that adds to a name."""
        added = [part if part is nan else expand(part - symbol) for part in value.parts]
        if added == [0] * 4:
            return start
        symbols = held(*added)
        if symbols and symbols <= set(self.terms) and not value.pending:
            sums, rest = self._linear(added[INSIDE])
            if rest != 0:
                raise NotRead(f"{name}: each turn adds what is no term of a sum")
            value = self._total(sums, rest, value)
            value = replace(value, parts=tuple(symbol + part for part in value.parts))
        steady = not value.places and value.complete and start.complete
        if steady and all(part.is_number for part in added):
            if turns.is_nonnegative and not turns.free_symbols & set(self.places.loops):
                parts = zip(start.parts, added, strict=True)
                return replace(start, parts=tuple(a + turns * b for a, b in parts))
        return self.sums.added_up(name, start, value, symbol, turn)

    def _pair(self, pair, names, sums, turn, turns):
        """{name: what it holds after the loop} of a mean and a sum of squares; empty where they are none.

        Args:  sums: {name: what it holds after the loop} of the others; some of them count
        """
        (m0, m1, m), (s0, s1, s) = (names[name] for name in pair)
        m1, s1 = self.named(m1, [turn]), self.named(s1, [turn])
        c, made = fraction(cancel(m1.inside.diff(m)))[0], self.turn(turn)
        symbols = {n: names[n][2] for n in sums if names[n][2] in c.free_symbols}
        starts = {name: names[name][0] for name in symbols}
        ends = {name: self.named(names[name][1], [turn]) for name in symbols}
        numbers = [m0, m1, s0, s1, *starts.values(), *ends.values()]
        moving = held(c) | {p.symbol for p in self.places.found()} & c.free_symbols
        if not moving or not moving <= {made, *symbols.values()}:
            return {}
        if not turns.is_nonnegative or not all(n.complete for n in numbers):
            return {}

        def count(part, turns, values):
            state = {
                symbol: values[name].parts[part] for name, symbol in symbols.items()
            }
            return c.xreplace({made: turns, **state})

        def products(part, c, m, s):
            return c * m.parts[part], s.parts[part] + c * m.parts[part] ** 2

        lanes = INSIDE, COLUMN
        first = [products(p, count(p, S.Zero, starts), m0, s0) for p in lanes]
        after = [products(p, count(p, made + 1, ends), m1, s1) for p in lanes]
        totals, place = [], m1.place("C")
        for before, *parts in zip((c * m, s + c * m**2), *after, *first, strict=True):
            added = [
                part if part is nan else cancel(part - before) for part in parts[:2]
            ]
            if place is not None and not place.past:
                added[COLUMN] = S.Zero
            if held(*added) - set(self.terms):
                return {}
            value = (*[m + part for part in added], nan, nan)
            start = (*parts[2:], S.Zero, S.Zero)
            carried = (
                replace(m0, parts=start, places=merged(m0, s0)),
                replace(m1, parts=value, places=merged(m1, s1, *ends.values())),
                m,
            )
            totals.append(self._sum(pair[0], *carried, turn, turns))
        for name in symbols:
            total = sums[name]
            if total.pending:
                sums[name] = self._symbolic(self._standing(total), total.axes, [total])
        c = count(INSIDE, turns, sums)
        complete = all(total.complete for total in totals) and is_positive(c)
        if complete:
            p, q = (total.inside for total in totals)
        else:
            p, q = map(self._standing, totals)
        results = {}
        for name, e in zip(pair, (p / c, q - p**2 / c), strict=True):
            if not complete:
                symbol = Symbol(f"{name}_before_end_of_{turn}", real=True)
                self.rules[symbol], self.axes[symbol] = e, m0.axes
                e = symbol
            results[name] = self._symbolic(e, m0.axes, totals)
        return results

    @staticmethod
    def _symbolic(e, axes, sums):
        """A number that stands for sums."""
        return Number((e, e, nan, nan), axes, _rows(*sums))
