"""The second witness: claims checked entry by entry at fixed sizes, with scalar symbols and scalar derivatives.

Nothing here uses the normal form: sums are written out, names are unfolded at their entries, and derivatives are
SymPy's own, with respect to scalars. What has branches is not differentiated: at points, those where two branches meet
included, the derivative is the limit of quotients.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, count, product

import sympy
from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Indexed,
    Integer,
    KroneckerDelta,
    Max,
    Min,
    Piecewise,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    evaluate,
    sign,
)
from sympy.core.relational import Relational

from .admission import check_branches, check_expression
from .calculus import free_letters, index_ranges
from .definitions import Defs, check_defs
from .measured import Largest
from .notation import Local, Partial, dim, name_of, rename_bound
from .opaque import Opaque, concrete
from .patience import look

_ANY = dim("any")
BRANCHED = (Abs, sign, Heaviside, Max, Min, Piecewise)
# how far apart the points of a quotient are, and to how many digits its ends are worked out
STEP, DIGITS = Rational(1, 10**20), 300


class Explicit:
    """Expressions as scalar expressions, at fixed sizes.

    Args:  defs: the definitions that names are unfolded by; sizes: a number for every dimension
    """

    def __init__(self, defs: Defs, sizes: dict[Symbol, int]):
        self.defs, self.sizes, self._values = defs, sizes, {}

    def entry(self, e: Expr, indices: dict[Symbol, int]) -> Expr:
        """The value of e at the given indices."""
        look()
        if e in self.sizes:
            return Integer(self.sizes[e])
        if e in indices:
            return Integer(indices[e])
        if isinstance(e, Sum):
            return Add(*self._entries(e.function, indices, e.limits))
        if isinstance(e, Largest):
            body, letter, last = e.args
            return Max(*self._entries(body, indices, [(letter, 1, last)]))
        if isinstance(e, KroneckerDelta):
            i, k = (self.entry(letter, indices) for letter in e.args[:2])
            return Integer(i == k)
        if isinstance(e, Partial):
            f, v = e.args
            writer = self
            if v in self.defs:
                writer = Explicit(self.defs.without(v), self.sizes)
            return self._slope(writer.entry(f, indices), v, indices)
        if isinstance(e, Local):
            f, v = e.args[:2]
            formula = self.defs.body(f) if f in self.defs else f
            if formula.has(Partial, Local):
                raise ValueError(
                    f"{e}: its formula holds a derivative, in which nothing can be held fixed"
                )
            names = Explicit(Defs(), self.sizes)
            return self._slope(names.entry(formula, indices), v, indices)
        if isinstance(e, Indexed) or e.is_Symbol:
            letters = getattr(e, "indices", ())
            return self._value(e, [int(self.entry(r, indices)) for r in letters])
        parts = [self.entry(part, indices) for part in e.args]
        return e.func(*parts) if parts else e

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
            letters = zip(getattr(head, "indices", ()), place, strict=True)
            self._values[symbol] = self.entry(formula, dict(letters))
        return self._values[symbol]

    def _slope(self, e, v, indices):
        """The derivative of a scalar expression, in which names that are held fixed become what they stand for."""
        slope = _slope(e, Explicit(Defs(), self.sizes).entry(v, indices))
        values = {}
        for head, _ in self.defs:
            for place in self._places(getattr(name_of(head), "shape", ())):
                if slope.has(_symbol(head, place)):
                    values[_symbol(head, place)] = self._value(head, place)
        return slope.xreplace(values)


def _symbol(name, place):
    """The scalar symbol of an entry."""
    if not isinstance(name, Indexed):
        return name
    text = f"{name.base.label}[{', '.join(map(str, place))}]"
    return Symbol(text, **name.base.label.assumptions0)


def _slope(e, v):
    """The derivative by a scalar; where branches meet in e a Partial by h, at h = 0, of e at v + h."""
    if not e.has(*BRANCHED, Partial):
        return e.diff(v)
    h = Dummy("h", real=True)
    return Partial(e.xreplace({v: v + h}), h)


def _number(e, values, step=STEP):
    """e at a point; None where it is not real, or a derivative in it does not exist."""
    slopes = {}
    for part in _outermost(e):
        slopes[part] = _quotient(*part.args, values, step)
        if slopes[part] is None:
            return None
    value = (
        _at_0(concrete(e.xreplace(slopes))).xreplace(values).evalf(DIGITS, maxn=DIGITS)
    )
    return value if value.is_real and value.is_finite else None


def _outermost(e):
    if isinstance(e, Partial):
        return {e}
    return set().union(*map(_outermost, e.args))


def _at_0(e):
    """The expression without the small changes of its derivatives."""
    return e.xreplace(dict.fromkeys(e.atoms(Dummy), S.Zero))


def _quotient(e, h, values, step):
    """The derivative of e by h at 0, where the quotients on either side have one limit; else None."""
    # a derivative inside e takes much smaller steps, and there is no third one inside
    if step < Rational(1, 10**DIGITS):
        return None
    here = _number(e, values, step**6)
    quotients = []
    for change in (step, -step, step**2, -(step**2)):
        beside = _number(e.xreplace({h: change}), values, step**6)
        if here is None or beside is None:
            return None
        quotients.append((beside - here) / change)
    apart = max(quotients) - min(quotients)
    return (
        quotients[2] if apart < Rational(1, 10**12) * (1 + abs(quotients[2])) else None
    )


def _meetings(e):
    """Expressions that are 0 where two branches of e meet."""
    for part in e.atoms(*BRANCHED):
        if isinstance(part, Max | Min):
            yield from (first - second for first, second in combinations(part.args, 2))
        elif isinstance(part, Piecewise):
            yield from (
                relation.lhs - relation.rhs for relation in part.atoms(Relational)
            )
        else:
            yield part.args[0]


def _points(sides, draw, tries=4):
    """Points drawn at random, and points where two branches meet."""
    used = set().union(*[_at_0(side).free_symbols for side in sides])
    symbols = sorted(used, key=str)
    meetings = {_at_0(meeting) for side in sides for meeting in _meetings(side)}

    def drawn():
        return {symbol: _rational(symbol, draw) for symbol in symbols}

    for _ in range(tries):
        yield drawn()
    for meeting in sorted(map(concrete, meetings), key=str):
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
        """The point in words: sizes, indices and inputs, the entries of a tensor behind one another."""
        rows: dict[str, list] = {}
        for symbol, value in self.values.items():
            rows.setdefault(str(symbol).partition("[")[0], []).append(str(value))
        inputs = {
            name: f"({', '.join(row)})" if len(row) > 1 else row[0]
            for name, row in rows.items()
        }
        return self._in_words(inputs)

    def _in_words(self, values):
        shown = {**self.numbers, **values}
        parts = [f"{name} = {value}" for name, value in shown.items()]
        parts += [f"with {one}, one function among many" for one in self.stand_ins]
        return ", ".join(parts)

    def __str__(self):
        left, right = in_digits(self.lhs), in_digits(self.rhs)
        return f"at {self._in_words(self.values)}: left = {left}, right = {right}"


def in_digits(side: Expr) -> str:
    """What a side is at a point, in six digits; what is not a number, as it is.

    Of terms that cancel, SymPy finds no digit and gives a power of ten such as 0E-143: that is 0.
    """
    with evaluate(True):
        return (
            f"{float(side.evalf(15, chop=1e-50)):.6g}" if side.is_number else str(side)
        )


def patterns(
    letters: dict[Symbol, Expr], sizes: dict[Expr, int]
) -> Iterator[dict[Symbol, int]]:
    """One choice of the free indices for every way in which they can coincide.

    The claims look the same under a permutation of the columns, so that one choice stands for all of its kind;
    drawing indices at random instead can miss the diagonal.
    """
    names = sorted(letters, key=str)
    for point in product(*[range(1, sizes[letters[name]] + 1) for name in names]):
        choice = dict(zip(names, point, strict=True))
        highest = dict.fromkeys(letters.values(), 0)
        for name in names:
            if choice[name] > highest[letters[name]] + 1:
                break
            highest[letters[name]] = max(highest[letters[name]], choice[name])
        else:
            yield choice


def _sizes(expressions, columns):
    """A number for every dimension. No two have one, or a claim that takes one for the other would pass.

    The number of rows is now smaller and now greater than that of the columns.
    """
    rows = columns % 3 + 1
    others = (size for size in count(columns + 1) if size != rows)
    sizes = {_ANY: columns}
    for dimension in sorted({size for e in expressions for size in _dims(e)}, key=str):
        if str(dimension) in "MN":
            sizes[dimension] = rows if str(dimension) == "M" else columns
        else:
            sizes[dimension] = next(others)
    return sizes


def _entries(lhs, rhs, defs, sizes):
    """(the sizes and free indices, the two sides there) for every length of a row and choice of the free indices."""
    lhs, rhs = (
        check_branches(check_expression(name, side))
        for name, side in (("lhs", lhs), ("rhs", rhs))
    )
    defs, lengths = check_defs(defs), tuple(sizes)
    whole = [type(size) is int and size > 0 for size in lengths]
    if not whole or not all(whole):
        raise ValueError(
            f"sizes: got {lengths}, needs at least one length of a row, a whole number from 1 on"
        )
    expressions = [lhs, rhs, *[side for line in defs for side in line]]
    # a summed index may run to another size in another line
    ranges = index_ranges(*map(rename_bound, expressions))
    free = sorted(free_letters(lhs) | free_letters(rhs), key=str)
    letters = {letter: ranges.get(letter, _ANY) for letter in free}
    for columns in lengths:
        writer = Explicit(defs, _sizes(expressions, columns))
        for indices in patterns(letters, writer.sizes):
            sides = [writer.entry(side, indices) for side in (lhs, rhs)]
            numbers = {**writer.sizes, **indices}
            del numbers[_ANY]
            yield numbers, sides


def _dims(e):
    """Symbols that are dimensions: ranges of sums, shapes of tensors, and every positive integer symbol left."""
    yield from (limit[2] for part in e.atoms(Sum) for limit in part.limits)
    for part in e.atoms(Indexed):
        yield from part.base.shape or ()
    letters = {
        letter for part in e.atoms(Indexed, KroneckerDelta) for letter in part.args
    }
    bound = {limit[0] for part in e.atoms(Sum) for limit in part.limits}
    yield from (
        symbol for symbol in e.atoms(Symbol) - letters - bound if symbol.is_integer
    )


def _is_zero(e):
    return sympy.expand(sympy.fraction(sympy.together(_settled(e)))[0]) == 0


def _settled(e):
    """The expression with the radicands inside opaque functions factored, so that equal arguments look equal."""
    if not e.args:
        return e
    parts = [_settled(part) for part in e.args]
    if isinstance(e, Opaque):
        roots = {part for part in parts[0].atoms(Pow) if part.exp == S.Half}
        parts = [
            parts[0].xreplace(
                {
                    root: sympy.sqrt(sympy.factor(sympy.expand(root.base)))
                    for root in roots
                }
            )
        ]
    return e.func(*parts)


def _same(sides):
    """Whether two scalar sides are one identity; where a derivative is a limit, one value at every point."""
    if not _limits(sides):
        return _is_zero(sides[0] - sides[1])
    points = list(_compared(sides, random.Random(0)))
    return bool(points) and not any(
        _apart(left, right, sides) for _, left, right in points
    )


def check_fixed(
    lhs: Expr, rhs: Expr, sizes: Iterable[int] = (2, 3, 4), defs: Defs | None = None
) -> int:
    """Check lhs = rhs for rows of the given lengths, entry by entry, as identities in every input.

    Derivatives of what has branches are compared at points instead, those where two branches meet included; where there
    is no point at which both sides have a value, the entry fails.

    The number of rows M is another one at each length: 3 for rows of 2, 1 for rows of 3, 2 for rows of 4.

    Args:     lhs, rhs: the two sides; sizes: lengths of a row, at least 1; defs: the definitions
    Returns:  the number of entries checked
    Raises:   AssertionError naming the sizes and indices of an entry that differs; ValueError for sizes below 1
    """
    checked = 0
    with evaluate(True):
        for numbers, sides in _entries(lhs, rhs, defs, sizes):
            if not _same(sides):
                where = ", ".join(f"{name} = {n}" for name, n in numbers.items())
                raise AssertionError(f"{lhs} = {rhs} fails for rows at {where}")
            checked += 1
    return checked


def counterexample(
    lhs: Expr,
    rhs: Expr,
    defs: Defs | None = None,
    sizes: Iterable[int] = (2, 3, 1, 4),
    seed: int = 0,
) -> Counterexample | None:
    """A point where lhs and rhs differ, found among rational points at small sizes; None when none is found."""
    draw = random.Random(seed)
    with evaluate(True):
        for numbers, sides in _entries(lhs, rhs, defs, sizes):
            for values, left, right in _compared(sides, draw):
                if _apart(left, right, sides):
                    functions = {part for side in sides for part in side.atoms(Opaque)}
                    words = tuple(sorted({one.stands_for() for one in functions}))
                    return Counterexample(numbers, values, left, right, words)
    return None


def _limits(sides):
    """Whether a derivative is left in the sides, as a limit."""
    return any(side.has(Partial) for side in sides)


def _apart(left, right, sides):
    within = Rational(1, 10 ** (9 if _limits(sides) else 20))
    return abs((left - right).evalf(30)) > within * (1 + abs(left.evalf(30)))


def _compared(sides, draw):
    """(values, left, right) at points; where a side is infinite, not real or no limit, the claim says nothing."""
    for values in _points(sides, draw):
        look()
        if not all(_is_real(side, values) for side in sides):
            continue
        if _limits(sides):
            both = [_number(side, values) for side in sides]
            # what is left of a step that should be 0 is cut off
            both = [
                number if number is None else number.round(20).evalf(30)
                for number in both
            ]
        else:
            both = [concrete(side).xreplace(values) for side in sides]
        if all(number is not None and number.evalf(30).is_real for number in both):
            yield values, *both


def _is_real(e, values):
    """Whether no root in e is taken of a negative number, where SymPy would go on with complex ones."""
    roots = [part.base for part in e.atoms(Pow) if not part.exp.is_integer]
    return all(
        concrete(base).xreplace(values).is_nonnegative is not False for base in roots
    )


def _rational(symbol, draw):
    value = Rational(draw.randint(1, 20), draw.randint(1, 7))
    return value if symbol.is_nonnegative or draw.random() < 0.5 else -value
