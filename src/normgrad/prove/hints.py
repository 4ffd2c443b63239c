"""Which one mistake a false line has: a sign, a factor, a term, an index, a place inside or outside of a sum.

Mended lines are tried in numbers, at points that are the same everywhere. A mistake is named only if the line that
mends it is proved; where none is, nothing is named.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, permutations, product

from sympy import (
    Add,
    Expr,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    Tuple,
    evaluate,
)

from ..symbolic.calculus import RangeError, all_ranges, free_letters
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import multiply_out
from ..symbolic.notation import (
    Local,
    Partial,
    entry_of,
    indices_of,
    name_of,
    names_in,
    rename_bound,
    shape_of,
)
from ..symbolic.opaque import concrete
from ..symbolic.patience import OutOfPatience
from ..symbolic.proof import NotProved
from ..symbolic.proof import prove as kernel_prove
from ..symbolic.render import latex
from ..symbolic.witness import Explicit, compared, dimensions, entries

FALSE, NUMBERS, TERM, DIFFERENCE, ANSWER = 1, 2, 3, 4, 5
# lengths of a row at which lines are compared: one of 2 is too small to tell N - 1 from 1
SIZES = (3, 4)
# points at each place; relative distance up to which two numbers of 30 digits are one
POINTS = 2
NEAR = 1e-18
# proofs of mended lines that are tried, and lines that are tried in numbers
PROOFS = 4
MOST = 400
CANNOT = (NotProved, OutOfPatience, ValueError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Mistake:
    """One mistake. Args: where: what is wrong, in Markdown; cure: what mends it; line: the mended line"""

    where: str
    cure: str
    line: Expr


def mistake(left: Expr, right: Expr, defs: Defs) -> Mistake | None:
    """The first mistake that is found whose mended line is proved to be the left side; None for none."""
    with evaluate(True):
        right = rename_bound(defs.opened(right))
        try:
            points = list(_points(left, right, defs))
        except CANNOT:
            return None
        tried = 0
        for candidate in _candidates(left, right, defs, points):
            if tried == PROOFS:
                return None
            tried += 1
            try:
                kernel_prove(left, candidate.line, defs)
            except CANNOT:
                continue
            return candidate
    return None


def unasked(left: Expr, right: Expr, defs: Defs) -> tuple[Expr, Defs]:
    """(the left side without the names that only the question uses, the definitions of the others)."""
    asked = _asked(left, right, defs)
    reached = {name_of(head) for head, _ in defs.reached(left, right)}
    left = defs.unfold(left, asked)
    for name in {name_of(head) for head, _ in defs} - (reached - asked):
        defs = defs.without(name)
    return left, defs


def _asked(left, right, defs):
    """The names in the left side that stand for something and that the right side does not reach."""
    answered = names_in(right) | {name_of(head) for head, _ in defs.reached(right)}
    return names_in(left) & {name_of(head) for head, _ in defs} - answered


class _Point:
    """Values of all inputs at one choice of sizes and indices, and what an expression is there."""

    def __init__(self, writer, letters, values):
        self.writer, self.letters, self.values = writer, letters, values

    def __call__(self, e):
        value = concrete(self.writer.entry(e, self.letters)).xreplace(self.values)
        return value.evalf(30)


def _points(left, right, defs) -> Iterator[tuple]:
    """(a point, what the left side is there, and the right side), at a few points."""
    draw, free = random.Random(0), free_letters(Tuple(left, right))
    for numbers, sides, _ in entries(left, right, defs, SIZES):
        letters = {letter: numbers[letter] for letter in free}
        sizes = {size: n for size, n in numbers.items() if size not in free}
        writer = Explicit(defs, sizes)
        for values, lhs, rhs in islice(compared(sides, draw, False), POINTS):
            yield _Point(writer, letters, values), lhs.evalf(30), rhs.evalf(30)


def _near(a, b):
    return a.is_number and b.is_number and abs(a - b) <= NEAR * (1 + abs(a))


def _value(point, e):
    """A finite number, or None where an expression has no value at a point."""
    try:
        value = point(e)
    except (IndexError, KeyError, ValueError, TypeError):
        return None
    return value if value.is_number and value.is_finite else None


def _fits(points, line):
    """Whether a line has the left side's value at all points."""
    for point, lhs, _ in points:
        value = _value(point, line)
        if value is None or not _near(lhs, value):
            return False
    return True


def _candidates(left, right, defs, points) -> Iterator[Mistake]:
    """Mistakes whose mended lines have the left side's values, the likeliest first."""
    if not points:
        return
    ratios = list(_ratios(right, points))
    pool = list(_pool(left, right, defs))
    divisors = _divisors(left, right, defs)
    yield from _factors(right, ratios, pool, divisors, _number, _single)
    lines = [*_indices(left, right), *_added(left, right), *_moved(right)]
    lines += _moved(multiply_out(right))
    lines += _inner(right)
    lines += _summed(left, right, defs)
    for candidate in islice(_unlike(right, lines), MOST):
        if _fits(points, candidate.line):
            yield candidate
    yield from _factors(right, ratios, pool, divisors, _pair)
    yield from _missing(left, right, defs)


def _unlike(right, candidate):
    """Those whose line is another one, each line once."""
    seen = {right}
    for first in candidate:
        if first.line not in seen:
            seen.add(first.line)
            yield first


# -- signs, factors, and terms that do not belong


def _ratios(right, points) -> Iterator[tuple]:
    """(a term or the whole line, [(a point, what the term should be times there)])."""
    expanded = multiply_out(right)
    terms = [*Add.make_args(expanded), *Add.make_args(right), right]
    for term in dict.fromkeys(term for term in terms if term != 0):
        ratios = []
        for point, lhs, rhs in points:
            value = _value(point, term)
            if value == 0 and _near(lhs, rhs):
                continue
            if not value:
                break
            ratios.append((point, (lhs - rhs + value) / value))
        else:
            if ratios:
                yield term, ratios


def _factors(right, ratios, pool, divisors, *ways) -> Iterator[Mistake]:
    """One term of the line, or the whole line, is off by a factor."""
    for term, values in ratios:
        wanted = [ratio for _, ratio in values]
        valued = [(S.One, [S.One] * len(wanted))]
        for factor in pool:
            if _divides(factor, term, divisors):
                valued.append((factor, [_value(point, factor) for point, _ in values]))
        valued = [(factor, row) for factor, row in valued if None not in row]
        for way in ways:
            yield from (_off_by(right, term, f) for f in way(valued, wanted))


def _divides(factor, term, divisors):
    """Whether a factor has no denominator that may be 0, but one by which the claim divides or that the term has."""
    below = factor.as_numer_denom()[1]
    never = below.is_positive or below.is_integer
    return never or any(below.has(divisor) for divisor in divisors) or term.has(below)


def _divisors(left, right, defs):
    powers = _everything(left, right, defs).atoms(Pow)
    return {power.base for power in powers if power.exp.is_negative}


def _number(valued, wanted):
    number = Rational(str(wanted[0])).limit_denominator(12)
    if all(_near(number.evalf(30), ratio) for ratio in wanted):
        yield number


def _single(valued, wanted):
    for factor, row in valued[1:]:
        for sign in (1, -1):
            pairs = zip(row, wanted, strict=True)
            if all(_near(sign * value, ratio) for value, ratio in pairs):
                yield sign * factor


def _pair(valued, wanted):
    for (first, row), (second, column) in combinations(valued[1:], 2):
        for sign in (1, -1):
            triples = zip(row, column, wanted, strict=True)
            if all(_near(sign * a * b, ratio) for a, b, ratio in triples):
                yield sign * first * second


def _pool(left, right, defs):
    """What a term may be multiplied by: sizes and names that the claim reaches, at its own indices."""
    everything = _everything(left, right, defs)
    letters = sorted(free_letters(Tuple(left, right)), key=str)
    sizes = sorted(dimensions(everything) - set(letters), key=str)
    yield from (power for size in sizes for power in (size, 1 / size))
    for size in sizes:
        yield from ((size - 1) / size, size / (size - 1))
        yield from ((size + 1) / size, size / (size + 1))
    ranges = _ranges(everything)
    for first, second in combinations(letters, 2):
        if ranges.get(first) == ranges.get(second):
            yield KroneckerDelta(first, second)
    asked = _asked(left, right, defs)
    bases = {base.label for base in everything.atoms(IndexedBase)}
    scalars = everything.atoms(Symbol) - {*sizes, *letters, *asked, *bases}
    names = _entries_at(letters, left, right, defs)
    names += [name for name in scalars - {*names} if name.is_real]
    powers = [power for power in everything.atoms(Pow) if power.exp.is_Rational]
    roots = {power.base**S.Half for power in powers if not power.exp.is_Integer}
    names += [root for root in roots if free_letters(root) <= {*letters}]
    for name in sorted(names, key=str):
        if not name.is_integer:
            yield from (name, 1 / name, name**2, name**-2)


def _everything(left, right, defs):
    return Tuple(left, right, *[body for _, body in defs.reached(left, right)])


def _entries_at(letters, left, right, defs):
    """The entries of all tensors that the claim reaches, but the question's own, at letters that run to their sizes."""
    everything, asked = _everything(left, right, defs), _asked(left, right, defs)
    ranges = _ranges(everything)
    heads = [head for head, _ in defs.reached(left, right)]
    for base in everything.atoms(IndexedBase):
        if base.shape and base not in defs:
            heads.append(base[tuple(Symbol("_") for _ in base.shape)])
    names = []
    for head in heads:
        if name_of(head) in asked:
            continue
        fitting = [
            [letter for letter in letters if ranges.get(letter, size) == size]
            for size in shape_of(head)
        ]
        names += [entry_of(name_of(head), position) for position in product(*fitting)]
    return sorted(names, key=str)


def _ranges(e):
    try:
        return all_ranges(e)
    except (RangeError, ValueError):
        return {}


def _off_by(right, term, factor):
    line = right + (factor - 1) * term
    if term == right:
        line = factor * right
    shown = f"${latex(term)}$"
    if factor == 0:
        return Mistake(f"the term {shown} does not belong there", "delete it", line)
    if factor == -1:
        return Mistake(f"look at the sign of {shown}", "change it", line)
    where = f"only a factor is wrong: look at what multiplies and divides {shown}"
    return Mistake(where, f"multiply it by ${latex(factor)}$", line)


# -- indices, sums, missing terms


def _indices(left, right) -> Iterator[Mistake]:
    """Two free indices exchanged, or one index of one entry that is another one."""
    free = sorted(free_letters(Tuple(left, right)), key=str)
    for first, second in combinations(free, 2):
        line = right.xreplace({first: second, second: first})
        yield Mistake(f"two indices are exchanged: ${first}$ and ${second}$", "", line)
    for entry, replaced, line in _reindexed(right, free):
        where = f"one index of ${latex(entry)}$ is another one"
        yield Mistake(where, f"it is ${latex(replaced)}$", line)


def _added(left, right) -> Iterator[Mistake]:
    """A sum that is missing, over an index that the left side does not have."""
    ranges = _ranges(right)
    for letter in sorted(free_letters(right) - free_letters(left), key=str):
        if letter in ranges:
            line = Sum(right, (letter, 1, ranges[letter]))
            yield Mistake(f"a sum over ${letter}$ is missing", "", line)


def _reindexed(e, letters) -> Iterator[tuple]:
    """(an entry, the one in its place, the line), for each entry and each letter that stands where it does."""
    if isinstance(e, Indexed | KroneckerDelta):
        for position, old in enumerate(e.args):
            if not isinstance(old, Symbol) or isinstance(e, Indexed) and not position:
                continue
            for letter in letters:
                if letter != old:
                    args = [*e.args[:position], letter, *e.args[position + 1 :]]
                    yield e, e.func(*args), e.func(*args)
        return
    if isinstance(e, Partial | Local):
        return
    if isinstance(e, Sum):
        inner = [*letters, *e.variables]
        for entry, replaced, body in _reindexed(e.function, inner):
            yield entry, replaced, Sum(body, *e.limits)
        return
    if e.is_Pow and e.exp.is_Integer and e.exp > 1:
        for entry, replaced, changed in _reindexed(e.base, letters):
            yield entry, replaced, e.base ** (e.exp - 1) * changed
        return
    for position, part in enumerate(e.args):
        for entry, replaced, changed in _reindexed(part, letters):
            yield (
                entry,
                replaced,
                e.func(*e.args[:position], changed, *e.args[position + 1 :]),
            )


def _moved(right) -> Iterator[Mistake]:
    """A factor moved into a sum, or out of one."""
    free = sorted(free_letters(right), key=str)
    for product_ in sorted(right.atoms(Mul, Sum), key=str):
        factors = Mul.make_args(product_)
        for summed in [part for part in factors if isinstance(part, Sum)]:
            column = [part for part in factors if part != summed]
            for changed, name, where in _carried(summed, column, free):
                line = right.xreplace({product_: changed})
                yield Mistake(f"${latex(name)}$ belongs {where} the sum", "", line)


def _carried(summed, column, free) -> Iterator[tuple]:
    """(the product, the factor as it stands, the word for where it belongs), for each factor that is moved."""
    bound = list(summed.variables)
    rest = Mul(*column)
    for factor in column:
        for letters in _entries_in(factor, free):
            for old, new in product(letters, bound):
                inside = factor.xreplace({old: new})
                moved = Sum(inside * summed.function, *summed.limits)
                yield rest / factor * moved, factor, "inside"
    for factor in Mul.make_args(summed.function):
        for letters in _entries_in(factor, bound):
            for old, new in product(letters, free):
                outside = factor.xreplace({old: new})
                body = Sum(summed.function / factor, *summed.limits)
                yield rest * outside * body, factor, "outside of"


def _entries_in(factor, letters):
    """The letters of a factor that is an entry or a power of one."""
    entry = factor.base if factor.is_Pow else factor
    if isinstance(entry, Indexed):
        yield [letter for letter in entry.indices if letter in letters]


def _summed(left, right, defs) -> Iterator[Mistake]:
    """A factor that is missing in a sum, or too many there."""
    free = sorted(free_letters(right), key=str)
    for summed in sorted(right.atoms(Sum), key=str):
        size = {letter: last for letter, _, last in summed.limits}
        for entry in _entries_at([*free, *size], left, right, defs):
            if not set(indices_of(entry)) & set(size):
                continue
            fits = zip(indices_of(entry), shape_of(entry), strict=True)
            if any(size.get(letter, last) != last for letter, last in fits):
                continue
            for factor in (entry, 1 / entry):
                if factor != entry and not summed.has(entry):
                    continue
                body = Sum(factor * summed.function, *summed.limits)
                where = f"a factor is missing in ${latex(summed)}$, or one is too many"
                cure = f"multiply what is summed by ${latex(factor)}$"
                yield Mistake(where, cure, right.xreplace({summed: body}))


def _inner(right) -> Iterator[Mistake]:
    """A sign inside a product, a root or a sum, where terms that are multiplied out do not have it."""
    for added in sorted(right.atoms(Add), key=str):
        for term in added.args:
            flipped = right.xreplace({added: added - 2 * term})
            yield Mistake(f"look at the sign of ${latex(term)}$", "change it", flipped)
            less = right.xreplace({added: added - term})
            shown = f"${latex(term)}$"
            yield Mistake(f"the term {shown} does not belong there", "delete it", less)
    for size in sorted(dimensions(right), key=str):
        for summed in sorted(right.atoms(Sum), key=str):
            for factor in (size, 1 / size):
                line = right.xreplace({summed: factor * summed})
                where = f"only a factor is wrong: look at what multiplies and divides ${latex(summed)}$"
                yield Mistake(where, f"multiply it by ${latex(factor)}$", line)
    for first, second in permutations(sorted(free_letters(right), key=str), 2):
        line = right.xreplace({first: second})
        yield Mistake(f"the index ${first}$ is another one", f"it is ${second}$", line)


def _missing(left, right, defs) -> Iterator[Mistake]:
    """One product is missing: the difference, in the names of the page, is a single one."""
    from .folding import in_short

    side, known = unasked(left, right, defs)
    difference = in_short(side - right, known)
    if multiply_out(difference).is_Add or difference == 0:
        return
    if difference.has(Partial, Local) or right == 0 and difference == side:
        return
    names = sorted(
        f"${latex(name)}$"
        for name in {getattr(name, "label", name) for name in names_in(difference)}
        if name not in free_letters(difference) and not name.is_integer
    )
    made = f"; it is made of {', '.join(names)}" if names else ""
    yield Mistake(f"one term is missing{made}", "", right + difference)
