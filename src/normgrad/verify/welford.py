"""Running statistics: a mean m, and a sum s of squared deviations, that a loop carries from tile to tile.

Welford's and Chan's recurrences are proved by induction: where c' m' - c m holds nothing that is carried, c m is a sum
over all turns, P, if the turns lead from c terms to c'. So is s + c m^2, Q; both hold before the first turn, too.

Symbols stand for such sums, and for the sums over one tile. Over lanes only that is added up which is linear in them
once c m is P and s is Q - c m^2. That is so for c = 0, too, as in a lane without a term: nothing is divided by it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from operator import truediv

from sympy import Add, Expr, S, Symbol, cancel, expand, factor, fraction, nan

from ..symbolic.signs import is_nonnegative, is_positive
from .tables.elementary import DIVISOR
from .values import COLUMN, INSIDE, NotRead, Number, Pending, apply, plain

HELD = "what a loop carries"


def held(*parts: Expr) -> set[Symbol]:
    """The symbols that stand for what a loop carries, for its turns, and for sums."""
    symbols = set().union(*[part.free_symbols for part in parts])
    return {symbol for symbol in symbols if "_before_" in str(symbol)}


def _regular(e):
    """An expression as a sum; NotRead where a divisor may be 0."""
    e = cancel(e)
    if not is_positive(factor(fraction(e)[1])):
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
        """Whether it is greater than 0, if the counts in it are at least 0.

        For a mean by a count from 0 on; `left` looks whether it is one. It stops a count that starts at -1.
        """
        counts = held(part) - set(self.terms) - set(self.rules)
        counts = {count for count in counts if not count.is_nonnegative}
        signs = {count: Symbol(str(count), nonnegative=True) for count in counts}
        positive = is_positive(part.xreplace(signs))
        if positive:
            self.counts |= counts
        return positive

    # sums over lanes

    def gathered(self, value: Number) -> Number:
        """What is to be added up over lanes, as a sum that lacks no more than these.

        For a mean in each lane. It stops lanes past the end that hold something else than the others.
        """
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
        """({symbol of a sum: its coefficient}, the rest); NotRead for what is not linear in sums.

        For lanes that are merged. It stops squares without the spread of the lanes' means.
        """
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
        terms = [(self.terms[symbol], times) for symbol, times in coefficients.items()]
        number, (p,) = terms[0][0], terms[0][0].pending
        if constant != 0:  # a share of it for each of the tiles
            if p.place.past:
                raise NotRead(f"a sum over lanes of {HELD}, past the end")
            share = _regular(constant / (p.cover[1] - p.cover[0] + 1))
            terms.append((replace(number, parts=(S.One, S.Zero, nan, nan)), share))
        parts = [S.Zero, S.Zero]
        for number, times in terms:
            lanes = ("C" in number.axes) == ("C" in value.axes)
            if number.pending != (p,) or not lanes or self._moves(times, "C"):
                raise NotRead(f"sums of different tiles in {HELD}")
            for part in (INSIDE, COLUMN):
                parts[part] += expand(times * number.parts[part])
        places = _rows(value, *[number for number, _ in terms])
        return Number((*parts, nan, nan), value.axes, places, (p,))

    def _moves(self, e, axes):
        """Whether an expression depends on a row or column that an index runs through."""
        moving = {p.symbol for p in self.places.found() if p.axis in axes}
        return bool(moving & e.free_symbols)

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
        for name, carried in names.items():
            if self.sums.maxima.is_one(carried[1].inside):
                pairs[name] = self.sums.maxima.after(carried, turns, turn)
        for pair in permutations(reasons, 2):
            with suppress(NotRead):
                if pair[0] in pairs:
                    pairs[pair[1]] = self._rescaled(pair, names, pairs, turn, turns)
                else:
                    pairs |= self._pair(pair, names, sums, turn, turns)
        for name in sorted(reasons.keys() - pairs.keys()):
            if held(*names[name][1].parts) & {symbol for *_, symbol in names.values()}:
                raise reasons[name]
        return sums | pairs

    def _sum(self, name, start, value, symbol, turn, turns):
        """What a loop leaves that adds to a name.

        For counts, c m and s + c m^2. It stops a count that gets one more at each tile.
        """
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

    def _rescaled(self, pair, names, maxima, turn, turns):
        """What a sum holds after a loop that multiplies it, at each turn, by exp(m - m'), where m' is the next m.

        For an online softmax. It stops a sum to which exp(x - m) is added, not exp(x - m').
        """
        m, name = pair
        (m_start, m_end, m_before), (start, end, before) = names[m], names[name]
        weight = self.sums.maxima.weight(end, before, m_before, m_end.inside)

        def times(e, m):
            return e * weight.xreplace({m_before: m})

        parts = []
        for part in end.parts:
            if part is not nan:
                part = expand(times(expand(part), m_end.inside))
                part += before - expand(times(before, m_before))
            parts.append(part)
        value = replace(end, parts=tuple(parts))
        begin = apply(times, start, m_start)
        total = self._sum(name, begin, value, before, turn, turns)
        return apply(lambda e, m: e / times(S.One, m), total, maxima[m])

    def _pair(self, pair, names, sums, turn, turns):
        """{name: what it holds after the loop} of a mean and a sum of squares; NotRead where they are none.

        For Welford's and Chan's recurrences. It stops one with a wrong factor, after which c m is no sum of terms.

        Args:  sums: {name: what it holds after the loop} of the others; some of them count
        """
        starts = {name: start for name, (start, *_) in names.items()}
        ends = {name: self.named(end, [turn]) for name, (_, end, _) in names.items()}
        m, s = (names[name][2] for name in pair)
        c, made = fraction(cancel(ends[pair[0]].inside.diff(m)))[0], self.turn(turn)
        counts = {n: names[n][2] for n in sums if names[n][2] in c.free_symbols}
        counted = bool(held(c)) and held(c) <= {made, *counts.values()}
        if not counted or self._moves(c, "RC") or not turns.is_nonnegative:
            raise NotRead(f"{pair[0]} is no running mean")

        def count(turns, parts):
            symbols = dict(zip(counts.values(), parts, strict=True))
            return c.xreplace({made: turns, **symbols})

        def product(power, turns, values):
            """c m, or s + c m^2, after so many turns."""
            return apply(
                lambda m, s, *n: (power - 1) * s + count(turns, n) * m**power,
                *[values[name] for name in (*pair, *counts)],
            )

        totals = []
        for power in (1, 2):
            before = m - (power - 1) * s - c * m**power
            end = product(power, made + 1, ends)
            end = apply(lambda e, before=before: cancel(e + before), end)
            start = product(power, S.Zero, starts)
            totals.append(self._sum(pair[0], start, end, m, turn, turns))
        sums |= {name: self._symbolic(sums[name]) for name in counts}
        p, q = map(self._symbolic, totals)
        numbers = [sums[name] for name in counts]
        number = apply(lambda p, *n: count(turns, n), p, *numbers)
        mean = apply(truediv, p, number)
        results = {pair[0]: mean, pair[1]: apply(lambda q, p, m: q - p * m, q, p, mean)}
        if not held(mean.inside):
            self.sums.needs(number, DIVISOR)
            return results
        for name, value in results.items():
            symbol = Symbol(f"{name}_before_end_of_{turn}", real=True)
            self.rules[symbol], self.axes[symbol] = value.inside, value.axes
            results[name] = replace(value, parts=(symbol, symbol, nan, nan))
        return results

    def _symbolic(self, total):
        """A sum as a symbol, where it is not complete."""
        if total.complete:
            return total
        symbol = self._standing(total)
        return Number((symbol, symbol, nan, nan), total.axes, _rows(total))
