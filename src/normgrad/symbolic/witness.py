"""The second witness: claims checked entry by entry at fixed sizes, with scalar symbols and scalar derivatives.

Sums are written out, names are unfolded at their entries, and derivatives are SymPy's own, with respect to scalars. The
normal form is used for nothing but where a claim is defined. A claim without derivatives is also compared where two
branches meet.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, product
from math import prod

import sympy
from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Indexed,
    Integer,
    KroneckerDelta,
    Max,
    Min,
    Ne,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    log,
    sign,
)

from .admission import check_forms
from .calculus import all_ranges, free_letters, index_ranges
from .conditions import side_conditions
from .definitions import Defs, check_claim
from .measured import Largest
from .notation import (
    Local,
    Partial,
    dim,
    indices_of,
    rename_bound,
    shape_of,
    with_parts,
)
from .opaque import Opaque, concrete
from .patience import look

_ANY = dim("any")
# points at which two sides are compared
TRIES = 4
# at which conditions are tried, and how large their numbers are
POINTS = 200
SCALES = (Rational(1), Rational(1, 20), Rational(1, 400), Rational(20))
BRANCHED = (Abs, sign, Heaviside, Max, Min)


class Explicit:
    """Expressions as scalar expressions, at fixed sizes.

    Args:  defs: the definitions that names are unfolded by; sizes: a number for every dimension
    """

    def __init__(self, defs: Defs, sizes: dict[Symbol, int]):
        self.defs, self.sizes, self._values = defs, sizes, {}

    def entry(self, e: Expr, indices: dict[Symbol, int]) -> Expr:
        """The value of e at the given indices."""
        look()
        # a sum's letter before a free one of the same name
        if e in indices:
            return Integer(indices[e])
        if e in self.sizes:
            return Integer(self.sizes[e])
        if isinstance(e, Sum):
            return Add(*self._entries(e.function, indices, e.limits))
        if isinstance(e, Largest):
            body, letter, last = e.args
            return Max(*self._entries(body, indices, [(letter, 1, last)]))
        if isinstance(e, KroneckerDelta):
            i, k = (self.entry(letter, indices) for letter in e.indices)
            return Integer(i == k)
        if isinstance(e, Partial):
            f, v = e.args
            writer = self
            if v in self.defs:
                writer = Explicit(self.defs.without(v), self.sizes)
            return self._slope(writer.entry(f, indices), v, indices)
        if isinstance(e, Local):
            names = Explicit(Defs(), self.sizes)
            formula = names.entry(self.defs.opened_for(e), indices)
            return self._slope(formula, e.args[1], indices)
        if isinstance(e, Indexed) or e.is_Symbol:
            place = [int(self.entry(r, indices)) for r in indices_of(e)]
            return self._value(e, place)
        return with_parts(e, lambda part: self.entry(part, indices))

    def _entries(self, body, indices, limits):
        """The entries of a body as letters run over their dimensions."""
        letters = [letter for letter, _, _ in limits]
        for place in self._places([last for _, _, last in limits]):
            point = dict(zip(letters, place, strict=True))
            yield self.entry(body, indices | point)

    def _places(self, shape):
        return product(*[range(1, self.sizes[size] + 1) for size in shape])

    def _value(self, name, place):
        """What a name is at a place: a scalar symbol for an input."""
        symbol = _symbol(name, place)
        if name not in self.defs:
            return symbol
        if symbol not in self._values:
            head, formula = self.defs.line(name)
            letters = zip(indices_of(head), place, strict=True)
            self._values[symbol] = self.entry(formula, dict(letters))
        return self._values[symbol]

    def _slope(self, e, v, indices):
        """The derivative of a scalar expression, in which names that are held fixed become what they stand for."""
        slope = e.diff(Explicit(Defs(), self.sizes).entry(v, indices))
        values = {}
        for head, _ in self.defs:
            for place in self._places(shape_of(head)):
                if slope.has(_symbol(head, place)):
                    values[_symbol(head, place)] = self._value(head, place)
        return slope.xreplace(values)


def _symbol(name, place):
    """The scalar symbol of an entry."""
    if not isinstance(name, Indexed):
        return name
    text = f"{name.base}[{', '.join(map(str, place))}]"
    return Symbol(text, **name.base.label.assumptions0)


def _meetings(e):
    """Expressions that are 0 where two branches of e meet."""
    for part in e.atoms(*BRANCHED):
        if isinstance(part, Max | Min):
            yield from (first - second for first, second in combinations(part.args, 2))
        else:
            yield part.args[0]


def _points(sides, draw, meet):
    """Points drawn at random, and where `meet` is true points where two branches meet."""
    symbols = sorted(sides.free_symbols, key=str)

    def drawn():
        return {symbol: drawn_for(symbol, draw) for symbol in symbols}

    for _ in range(TRIES):
        yield drawn()
    for meeting in sorted({*_meetings(sides)}, key=str) if meet else ():
        values = drawn()
        for symbol in sorted(meeting.free_symbols, key=str):
            for number in _tried(meeting.xreplace({**values, symbol: symbol}), symbol):
                point = {**values, symbol: number}
                allowed = number.is_positive or not symbol.is_positive
                if number.is_real and allowed and meeting.xreplace(point) == 0:
                    yield point


def _tried(e, symbol):
    """Numbers at which an expression in one symbol may be 0, that of the straight line through 0 and 1 among them."""
    yield from (S.Zero, S.One, S.NegativeOne)
    at_0, at_1 = (e.xreplace({symbol: number}) for number in (S.Zero, S.One))
    if at_0 != at_1:
        yield at_0 / (at_0 - at_1)


@dataclass(frozen=True)
class Counterexample:
    """A point where two sides differ.

    Args:  numbers, values: the dimensions and free indices, and the inputs at that point
           lhs, rhs: what the two sides are there; stand_ins: what was put in for the opaque functions, as f(t) = t**2
    """

    numbers: dict
    values: dict
    lhs: Expr
    rhs: Expr
    stand_ins: tuple[str, ...] = ()

    def point(self) -> str:
        """The point in words: sizes, indices and inputs, the entries of a tensor behind one another.

        Of a tensor of which not all entries are in the claim, each is named.
        """
        tensors, inputs = {}, {}
        for symbol, value in self.values.items():
            tensors.setdefault(str(symbol).partition("[")[0], {})[symbol] = value
        for name, row in tensors.items():
            places = [str(symbol).partition("[")[2].split(", ") for symbol in row]
            axes = zip(*places, strict=True)
            shown = ", ".join(map(str, row.values()))
            if len(row) == prod(len(set(axis)) for axis in axes):
                inputs[name] = f"({shown})" if len(row) > 1 else shown
            else:
                inputs |= row
        return self._in_words(inputs)

    def _in_words(self, values):
        shown = {**self.numbers, **values}
        parts = [f"{name} = {value}" for name, value in shown.items()]
        functions = [f"with {text}, one function among many" for text in self.stand_ins]
        return ", ".join(parts + functions)

    def __str__(self):
        left, right = in_digits((self.lhs, self.rhs), 6)
        return f"at {self._in_words(self.values)}: left = {left}, right = {right}"


def in_digits(sides: Sequence[Expr], digits: int) -> list[str]:
    """Two values in so many digits, or in as many as tell them apart; as they are where one is not a number.

    Of terms that cancel, SymPy finds no digit and gives a power of ten such as 0E-143: that is 0.
    """
    if not all(side.is_number for side in sides):
        return list(map(str, sides))
    with evaluate(True):
        values = [float(side.evalf(15, chop=1e-50)) for side in sides]
    for places in range(digits, 18):
        texts = [f"{value:.{places}g}" for value in values]
        if texts[0] != texts[1]:
            break
    return texts


def patterns(
    letters: dict[Symbol, Expr], sizes: dict[Expr, int]
) -> Iterable[dict[Symbol, int]]:
    """One choice of the free indices for every way in which they can coincide.

    The claims look the same under a permutation of the columns, so that one choice stands for all of its kind;
    drawing indices at random instead can miss the diagonal.
    """
    names = sorted(letters, key=str)
    pairs = [
        pair for pair in combinations(names, 2) if len({*map(letters.get, pair)}) == 1
    ]
    choices = {}
    for point in product(*[range(1, sizes[letters[name]] + 1) for name in names]):
        choice = dict(zip(names, point, strict=True))
        kind = tuple(choice[first] == choice[second] for first, second in pairs)
        choices.setdefault(kind, choice)
    return choices.values()


def sizes_in(e: Expr, columns: int) -> dict[Symbol, int]:
    """A number for every dimension. No two have one, or a claim that takes one for the other would pass.

    The number of rows is now smaller and now greater than that of the columns.
    """
    rows = columns % 3 + 1
    numbers = (size for size in count(columns + 1) if size != rows)
    sizes = {_ANY: columns}
    for dimension in sorted(dimensions(e), key=str):
        if str(dimension) in "MN":
            sizes[dimension] = rows if str(dimension) == "M" else columns
        else:
            sizes[dimension] = next(numbers)
    return sizes


def entries(
    lhs: Expr, rhs: Expr, defs: Defs, sizes: Iterable[int]
) -> Iterator[tuple[dict, Tuple, bool]]:
    """(sizes and free indices, the two sides there, whether they may be compared where branches meet), all of them."""
    (claim, defs), lengths = check_claim(lhs, rhs, defs), tuple(sizes)
    whole = [type(size) is int and size > 0 for size in lengths]
    if not whole or not all(whole):
        raise ValueError(
            f"sizes: got {lengths}, needs at least one length of a row, a whole number from 1 on"
        )
    everything = check_forms(Tuple(claim, *defs))
    # a derivative has no value where two branches meet
    meet = not everything.has(Partial, Local)
    # a summed index may run to another size in another line
    ranges = index_ranges(rename_bound(everything))
    free = sorted(free_letters(claim), key=str)
    letters = {letter: ranges.get(letter, _ANY) for letter in free}
    for columns in lengths:
        writer = Explicit(defs, sizes_in(everything, columns))
        for indices in patterns(letters, writer.sizes):
            numbers = {**writer.sizes, **indices}
            del numbers[_ANY]
            yield numbers, writer.entry(claim, indices), meet


def dimensions(e: Expr) -> set[Symbol]:
    """The dimensions in an expression: its whole numbers but the letters of indices."""
    entries = e.atoms(Indexed, KroneckerDelta)
    letters = {index for entry in entries for index in entry.args}
    letters.update(*[part.variables for part in e.atoms(Sum)])
    return {symbol for symbol in e.atoms(Symbol) - letters if symbol.is_integer}


def _is_zero(e):
    return sympy.expand(sympy.fraction(sympy.together(_settled(e)))[0]) == 0


def _settled(e):
    """The expression with the radicands inside opaque functions factored, so that equal arguments look equal."""
    e = with_parts(e, _settled)
    if not isinstance(e, Opaque):
        return e
    roots = {part for part in e.args[0].atoms(Pow) if part.exp == S.Half}
    factored = {
        root: sympy.sqrt(sympy.factor(sympy.expand(root.base))) for root in roots
    }
    return e.func(e.args[0].xreplace(factored))


def _same(sides, meet):
    """Whether two scalar sides are one identity; of derivatives of branches, whether their values are equal."""
    if _is_zero(sides[0] - sides[1]):
        return True
    if meet or not sides.has(*BRANCHED):
        return False
    points = list(compared(sides, random.Random(0), meet))
    return bool(points) and not any(map(_apart, points))


def check_fixed(
    lhs: Expr, rhs: Expr, sizes: Iterable[int] = (2, 3, 4), defs: Defs | None = None
) -> int:
    """Check lhs = rhs for rows of the given lengths, entry by entry, as identities in every input.

    Derivatives of what has branches are compared at points as well; where there is no point at which both sides have a
    value, the entry fails.

    The number of rows M is another one at each length: 3 for rows of 2, 1 for rows of 3, 2 for rows of 4.

    Args:     lhs, rhs: the two sides; sizes: lengths of a row, at least 1; defs: the definitions
    Returns:  the number of entries checked
    Raises:   AssertionError naming the sizes and indices of an entry that differs; ValueError for sizes below 1
    """
    checked = 0
    with evaluate(True):
        for numbers, sides, meet in entries(lhs, rhs, defs, sizes):
            if not _same(sides, meet):
                where = ", ".join(f"{name} = {n}" for name, n in numbers.items())
                raise AssertionError(f"{lhs} = {rhs} fails for rows at {where}")
            checked += 1
    return checked


def counterexample(
    lhs: Expr,
    rhs: Expr,
    defs: Defs | None = None,
    columns: Sequence[int] = (2, 3, 1, 4),
) -> Counterexample | None:
    """A point where lhs and rhs are defined and differ, found among rational points at small sizes; None for none.

    Args:  columns: their numbers that are tried
    """
    draw, conditions = random.Random(0), None
    claim, defs = check_claim(lhs, rhs, defs)
    with evaluate(True):
        for numbers, sides, meet in entries(*claim, defs, columns):
            for point in compared(sides, draw, meet):
                if not _apart(point):
                    continue
                if conditions is None:
                    conditions = side_conditions(claim, defs)
                if _hold(conditions, defs, numbers, point[0], draw):
                    words = {part.stands_for() for part in sides.atoms(Opaque)}
                    return Counterexample(numbers, *point, tuple(sorted(words)))
    return None


def defined_somewhere(conditions: Sequence[Expr], defs: Defs) -> bool:
    """Whether conditions hold at a point and around it, which is looked for among rational points at small sizes.

    Args:  conditions: as `side_conditions` finds them; defs: what their names stand for
    """
    draw, everything = random.Random(0), Tuple(*conditions)
    with evaluate(True):
        ranges = index_ranges(everything)
        free = [letter for letter in free_letters(everything) if not letter.is_Dummy]
        letters = {letter: ranges.get(letter, _ANY) for letter in free}
        for columns in (2, 3, 1):
            sizes = sizes_in(Tuple(everything, *defs.reached(everything)), columns)
            for indices in patterns(letters, sizes):
                if _hold(conditions, defs, sizes | indices, {}, draw):
                    return True
    return False


def _hold(conditions, defs, numbers, values, draw):
    """Whether conditions hold at a point and around it; of an input without a value some are tried.

    A letter without a number is one of a sum: its condition holds at every place.
    """
    writer, bases = Explicit(defs, numbers), []
    for condition in conditions:
        if condition is S.false:
            return False
        base = condition.args[0]
        ranges = all_ranges(base)
        letters = sorted(free_letters(base) - numbers.keys(), key=str)
        for place in writer._places([ranges[letter] for letter in letters]):
            point = dict(zip(letters, place, strict=True))
            bases.append((concrete(writer.entry(base, point)), condition.func))
    symbols = sorted(Tuple(*[base for base, _ in bases]).free_symbols, key=str)
    missing = [symbol for symbol in symbols if symbol not in values]
    for _ in range(POINTS if missing else 1):
        look()
        drawn = {s: drawn_for(s, draw) * draw.choice(SCALES) for s in missing}
        point = values | drawn
        if all(_above(base.xreplace(point), relation) for base, relation in bases):
            return True
    return False


def _above(number, relation):
    """Whether a number is not 0, or greater than 0 where a condition says so."""
    value = number.evalf(30)
    if not value.is_real or abs(value) < 10**-20:
        return False
    return relation == Ne or value > 0


def _apart(point):
    _, left, right = point
    return abs((left - right).evalf(30)) > 10**-20 * (1 + abs(left.evalf(30)))


def compared(sides: Tuple, draw: random.Random, meet: bool) -> Iterator[tuple]:
    """(values, left, right) at points; where a side is infinite or not real, the claim says nothing."""
    sides = concrete(sides)
    for values in _points(sides, draw, meet):
        look()
        if _is_real(sides, values):
            left, right = sides.xreplace(values)
            if left.evalf(30).is_real and right.evalf(30).is_real:
                yield values, left, right


def _is_real(e, values):
    """Whether no root or logarithm in e is one of a negative number, where SymPy would go on with complex ones."""
    bases = [part.base for part in e.atoms(Pow) if not part.exp.is_integer]
    bases += [part.args[0] for part in e.atoms(log)]
    return all(base.xreplace(values).is_nonnegative is not False for base in bases)


def drawn_for(symbol: Symbol, draw: random.Random) -> Rational:
    """A number for a symbol, of the sign that it promises."""
    value = Rational(draw.randint(1, 20), draw.randint(1, 7))
    return value if symbol.is_nonnegative or draw.random() < 0.5 else -value
