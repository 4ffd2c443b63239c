"""Which one mistake a false line has: a sign, a factor, a term, an index, a place inside or outside of a sum.

Mended lines are tried in numbers, at points that are the same everywhere. A mistake is named only if the line that
mends it is proved; where none is, nothing is named.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
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
    cancel,
    evaluate,
    sqrt,
)

from ..symbolic.calculus import free_letters
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import multiply_out
from ..symbolic.notation import (
    Local,
    Partial,
    indices_of,
    name_of,
    names_in,
    rename_bound,
    shape_of,
)
from ..symbolic.opaque import Opaque, concrete
from ..symbolic.patience import OutOfPatience
from ..symbolic.proof import NotProved
from ..symbolic.proof import prove as kernel_prove
from ..symbolic.witness import Explicit, compared, dimensions, entries
from .candidates import (
    Mistake,
    changed_lines,
    entries_of,
    ranges_of,
    replaced,
    terms_of,
)
from .names import page_latex

FALSE, NUMBERS, TERM, DIFFERENCE, ANSWER = 1, 2, 3, 4, 5
# lengths of a row at which lines are compared: one of 2 is too small to tell N - 1 from 1
SIZES = (3, 4)
# points at each place; relative distance up to which two numbers of 30 digits are one
POINTS = 2
NEAR = 1e-18
ALIKE = 1e-10
# terms of a line of which several are off by one factor
TERMS = 5
# proofs of mended lines that are tried, and lines that are tried in numbers
PROOFS = 4
MOST = 800
EMPTY = "0 is not the answer: what is asked does not vanish"
ZERO = "the line comes to 0, and what is asked does not"
CANNOT = (NotProved, OutOfPatience, ValueError, TypeError, NotImplementedError)


def mistake(left: Expr, right: Expr, defs: Defs) -> Mistake | None:
    """The first mistake that is found whose mended line is proved to be the left side; None for none."""
    with evaluate(True):
        right = rename_bound(defs.opened(right))
        try:
            points = list(_points(left, right, defs))
        except CANNOT:
            return None
        if _vanishes(right, points, defs):
            return Mistake(EMPTY if right == 0 else ZERO, "", left)
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


def _vanishes(right, points, defs):
    """Whether a line is 0, wherever it is defined."""
    if right == 0:
        return True
    if not points or any(abs(rhs) > NEAR for _, _, rhs in points):
        return False
    try:
        return bool(kernel_prove(right, S.Zero, defs))
    except CANNOT:
        return False


def agreeing(left: Expr, right: Expr, defs: Defs) -> list[Expr]:
    """The terms of a line that also stand in an answer, where it has others, too. Args: left: the answer"""
    with evaluate(True):
        right = rename_bound(defs.opened(right))
        terms = Add.make_args(multiply_out(right))
        answered = Add.make_args(multiply_out(left))
        if len(terms) < 2:
            return []
        try:
            points = [point for point, _, _ in _points(left, right, defs)]
        except CANNOT:
            return []
        rows = [[_value(point, term) for point in points] for term in answered]
        rows = [row for row in rows if None not in row]
        found = []
        for term in terms if points else ():
            row = [_value(point, term) for point in points]
            if None not in row and any(all(map(_near, row, other)) for other in rows):
                found.append(term)
        return found if len(found) < len(terms) else []


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
    side, _ = unasked(left, right, defs)
    names = _names(left, right, defs)
    lines += changed_lines(side, right, names)
    lines += _inner(right)
    lines += _summed(left, right, defs)
    for candidate in islice(_unlike(right, lines), MOST):
        if _fits(points, candidate.line):
            yield candidate
    fitting = [
        candidate
        for candidate in _unlike(right, replaced(right, names))
        if _fits(points, candidate.line)
    ]
    # which of several it was that was typed for another one, nobody can say
    where = "one name stands where another one belongs"
    yield from fitting if len(fitting) < 2 else [Mistake(where, "", fitting[0].line)]
    yield from _several(right, points, pool, divisors)
    yield from _factors(right, ratios, pool, divisors, _pair)
    yield from _difference(left, right, defs, points)


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
        wanted = [float(ratio) for _, ratio in values]
        valued = [(S.One, [1.0] * len(wanted))]
        for factor in [*pool, *_parts(term)]:
            if _divides(factor, term, divisors):
                row = [_number_at(point, factor) for point, _ in values]
                if None not in row:
                    valued.append((factor, row))
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


def _parts(term):
    """What would take a bracket or a root out of a term, change its power, or turn it or a name upside down."""
    for base, power in term.as_powers_dict().items():
        if base.is_Number or free_letters(base) - free_letters(term):
            continue
        yield base ** (-2 * power)
        if isinstance(base, Add) and term != base:
            yield base**-power
            yield from (base, 1 / base)


def _number_at(point, e):
    """A number of 30 digits as Python has it; None for none."""
    value = _value(point, e)
    return None if value is None else float(value)


def _alike(a, b):
    """Whether two rounded numbers are one: what fits is proved later."""
    return abs(a - b) <= ALIKE * (1 + abs(b))


def _number(valued, wanted):
    number = Rational(str(wanted[0])).limit_denominator(12)
    if all(_alike(float(number), ratio) for ratio in wanted):
        yield number


def _single(valued, wanted):
    for factor, row in valued[1:]:
        quotients = [ratio / v for v, ratio in zip(row, wanted, strict=True) if v]
        number = Rational(str(quotients[0])).limit_denominator(12) if quotients else 0
        pairs = zip(row, wanted, strict=True)
        if number and all(
            _alike(float(number) * value, ratio) for value, ratio in pairs
        ):
            yield number * factor


def _pair(valued, wanted):
    for (first, row), (second, column) in combinations(valued[1:], 2):
        for sign in (1, -1):
            triples = zip(row, column, wanted, strict=True)
            if all(_alike(sign * a * b, ratio) for a, b, ratio in triples):
                yield sign * first * second


def _several(right, points, pool, divisors) -> Iterator[Mistake]:
    """One factor that is missing, or too many, in more than one term; or the signs of more than one."""
    terms = Add.make_args(multiply_out(right))
    if not 2 <= len(terms) <= TERMS:
        return
    rows = [[_number_at(point, term) for term in terms] for point, _, _ in points]
    asked = [float(lhs) for _, lhs, _ in points]
    if any(None in row for row in rows):
        return
    parts = [part for term in terms for part in _parts(term)]
    for factor in [-S.One, *pool, *dict.fromkeys(parts)]:
        values = [_number_at(point, factor) for point, _, _ in points]
        if None in values or not all(
            _divides(factor, term, divisors) for term in terms
        ):
            continue
        powers = (0, 1) if factor == -1 or 0.0 in values else (0, 1, -1)
        for chosen in product(powers, repeat=len(terms)):
            if sum(map(bool, chosen)) < 2:
                continue
            fits = (
                _alike(sum(v * f**k for v, k in zip(row, chosen, strict=True)), lhs)
                for row, f, lhs in zip(rows, values, asked, strict=True)
            )
            if all(fits):
                yield _off_in_several(terms, chosen, factor)
                return


def _off_in_several(terms, chosen, factor):
    line = Add(*[term * factor**k for term, k in zip(terms, chosen, strict=True)])
    wrong = [term for term, k in zip(terms, chosen, strict=True) if k]
    shown = " and ".join(f"${page_latex(term)}$" for term in wrong)
    if factor == -1:
        return Mistake(f"look at the signs of {shown}", "change them", line)
    where = f"only a factor is wrong, of more than one term: look at what multiplies and divides {shown}"
    mended = [f"${page_latex(factor**k)}$" for k in chosen if k]
    return Mistake(where, f"multiply them by {' and '.join(mended)}", line)


def _pool(left, right, defs):
    """What a term may be multiplied by: sizes and names that the claim reaches, at its own indices."""
    everything = _everything(left, right, defs)
    letters = sorted(free_letters(Tuple(left, right)), key=str)
    sizes = sorted(dimensions(everything) - set(letters), key=str)
    for size in sizes:
        yield from (size, 1 / size, size**2, size**-2, sqrt(size), 1 / sqrt(size))
    for size in sizes:
        yield from ((size - 1) / size, size / (size - 1))
        yield from ((size + 1) / size, size / (size + 1))
        yield from ((size + 1) ** 2 / size**2, size**2 / (size + 1) ** 2)
    ranges = ranges_of(everything)
    for first, second in combinations(letters, 2):
        if ranges.get(first) == ranges.get(second):
            yield KroneckerDelta(first, second)
    scalars = _scalars(left, right, defs)
    names = list({*_entries_at(letters, left, right, defs), *scalars})
    powers = [power for power in everything.atoms(Pow) if power.exp.is_Rational]
    roots = {power.base**S.Half for power in powers if not power.exp.is_Integer}
    names += [root for root in roots if free_letters(root) <= {*letters}]
    names += [f for f in everything.atoms(Opaque) if free_letters(f) <= {*letters}]
    for name in sorted(names, key=str):
        yield from (name, 1 / name, name**2, name**-2, name**3, name**-3)


def _scalars(left, right, defs):
    """The scalars that the claim reaches, but the question's own, as they may stand in an answer."""
    everything, asked = _everything(left, right, defs), _asked(left, right, defs)
    bases = {base.label for base in everything.atoms(IndexedBase)}
    names = everything.atoms(Symbol) - {*asked, *bases}
    names = [name for name in names if name.is_real and not name.is_integer]
    return sorted(names, key=str)


def _names(left, right, defs):
    """The scalars, and an entry of each tensor."""
    heads = _heads(left, right, defs)
    return _scalars(left, right, defs) + [head for head in heads if shape_of(head)]


def _everything(left, right, defs):
    return Tuple(left, right, *[body for _, body in defs.reached(left, right)])


def _entries_at(letters, left, right, defs):
    """The entries of all tensors that the claim reaches, but the question's own, at letters that run to their sizes."""
    ranges = ranges_of(_everything(left, right, defs))
    return entries_of(_heads(left, right, defs), letters, ranges)


def _heads(left, right, defs):
    """An entry of each tensor that the claim reaches, and the defined scalars, but the question's own."""
    everything, asked = _everything(left, right, defs), _asked(left, right, defs)
    heads = [head for head, _ in defs.reached(left, right)]
    for base in sorted(everything.atoms(IndexedBase), key=str):
        if base.shape and base not in defs:
            heads.append(base[tuple(Symbol("_") for _ in base.shape)])
    return [head for head in heads if name_of(head) not in asked]


def _off_by(right, term, factor):
    line = right + (factor - 1) * term
    if term == right:
        line = factor * right
    shown = f"${page_latex(term)}$"
    if factor == 0:
        return Mistake(f"the term {shown} does not belong there", "delete it", line)
    if factor == -1:
        return Mistake(f"look at the sign of {shown}", "change it", line)
    where = f"only a factor is wrong: {_of_factor(term, factor, shown)}"
    return Mistake(where, f"multiply it by ${page_latex(factor)}$", line)


def _of_factor(term, factor, shown):
    """Where a factor is wrong: in a power, or on the other side of a fraction line."""
    powers, changes = term.as_powers_dict(), factor.as_powers_dict()
    number = abs(term.as_coeff_Mul()[0])
    for base, power in powers.items():
        if (
            not base.is_Number
            and number != 1
            and factor == (number * base**power) ** -2
        ):
            return f"${page_latex(number * base**power)}$ stands upside down in {shown}"
    for base, power in powers.items():
        if not base.is_Number and cancel(factor * base**power) == 1:
            return f"${page_latex(base**power)}$ does not belong in {shown}"
    changes = {base: power for base, power in changes.items() if base != 1}
    if len(changes) == 1:
        ((base, power),) = changes.items()
        present = powers.get(base, 0)
        if base.is_Number or not present:
            return f"look at what multiplies and divides {shown}"
        if power == -2 * present:
            side = "below" if present > 0 else "above"
            return f"${page_latex(base ** abs(present))}$ belongs {side} the fraction line in {shown}"
        return f"look at the power of ${page_latex(base)}$ in {shown}"
    gone = [base for base, power in changes.items() if powers.get(base, 0) == -power]
    if len(changes) == 2 and len(gone) == 1:
        return f"another one belongs in place of ${page_latex(gone[0])}$ in {shown}"
    return f"look at what multiplies and divides {shown}"


# -- indices, sums, missing terms


def _indices(left, right) -> Iterator[Mistake]:
    """Two free indices exchanged, or one index of one entry that is another one."""
    free = sorted(free_letters(Tuple(left, right)), key=str)
    for first, second in combinations(sorted(free_letters(right), key=str), 2):
        line = right.xreplace({first: second, second: first})
        yield Mistake(f"two indices are exchanged: ${first}$ and ${second}$", "", line)
    for first, second in product(free_letters(right) - free_letters(left), free):
        # what stands in a delta with it would leave the delta
        joined = any(
            {first, second} <= {*delta.args} for delta in right.atoms(KroneckerDelta)
        )
        if first != second and not joined:
            line = right.xreplace({first: second})
            where = f"the index ${first}$ is another one"
            yield Mistake(where, f"it is ${second}$", line)
    for entry, mended, line in _reindexed(right, free):
        where = f"one index of ${page_latex(entry)}$ is another one"
        if mended == 1:
            where = f"the factor ${page_latex(entry)}$ does not belong there"
            yield Mistake(where, "delete it", line)
        else:
            yield Mistake(where, f"it is ${page_latex(mended)}$", line)


def _added(left, right) -> Iterator[Mistake]:
    """A sum that is missing, over an index that the left side does not have."""
    ranges = ranges_of(right)
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
                yield Mistake(f"${page_latex(name)}$ belongs {where} the sum", "", line)


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
                where = (
                    f"a factor is missing in ${page_latex(summed)}$, or one is too many"
                )
                cure = f"multiply what is summed by ${page_latex(factor)}$"
                yield Mistake(where, cure, right.xreplace({summed: body}))


def _inner(right) -> Iterator[Mistake]:
    """A sign inside a product, a root or a sum, where terms that are multiplied out do not have it."""
    for added in sorted(right.atoms(Add), key=str):
        for term in added.args:
            flipped = right.xreplace({added: added - 2 * term})
            shown = f"${page_latex(term)}$"
            if added != right:
                shown = f"{shown} in ${page_latex(added)}$"
            yield Mistake(f"look at the sign of {shown}", "change it", flipped)
            less = right.xreplace({added: added - term})
            yield Mistake(f"the term {shown} does not belong there", "delete it", less)
    for size in sorted(dimensions(right), key=str):
        for summed in sorted(right.atoms(Sum), key=str):
            for factor in (size, 1 / size):
                line = right.xreplace({summed: factor * summed})
                where = f"only a factor is wrong: look at what multiplies and divides ${page_latex(summed)}$"
                yield Mistake(where, f"multiply it by ${page_latex(factor)}$", line)
    for first, second in permutations(sorted(free_letters(right), key=str), 2):
        line = right.xreplace({first: second})
        yield Mistake(f"the index ${first}$ is another one", f"it is ${second}$", line)


def _difference(left, right, defs, points) -> Iterator[Mistake]:
    """One product is missing, or stands in the place of another one: so says the difference, in the page's names."""
    from .folding import in_short

    side, known = unasked(left, right, defs)
    difference = in_short(side - right, known)
    if difference == 0 or difference.has(Partial, Local):
        return
    terms = Add.make_args(multiply_out(difference))
    if len(terms) == 1 and difference != side:
        yield Mistake(_made_of(difference), "", right + difference)
    typed = terms_of(right)
    pairs = product(typed, (terms, terms[::-1]))
    for term, (wrong, mended) in pairs if len(terms) == 2 and len(typed) > 1 else ():
        values = [
            (_value(point, term), _value(point, -wrong)) for point, _, _ in points
        ]
        if all(None not in pair and _near(*pair) for pair in values):
            where = (
                f"the term ${page_latex(term)}$ is another one; the others are right"
            )
            yield Mistake(where, f"it is ${page_latex(mended)}$", right - term + mended)
    factors = Mul.make_args(difference)
    indexed = [factor for factor in factors if free_letters(factor)]
    is_of_entries = free_letters(left) and all(isinstance(e, Indexed) for e in indexed)
    if difference != side and is_of_entries:
        shown = f"${page_latex(Mul(*indexed))}$ times " if indexed else ""
        where = f"what is missing, or too much, is {shown}one number for all entries"
        yield Mistake(where, "", right + difference)


def _made_of(term):
    """That a term is missing, and the names that it is made of."""
    letters = free_letters(term)
    labels = {getattr(name, "label", name) for name in names_in(term)}
    labels = {name for name in labels if name not in letters and not name.is_integer}
    names = ", ".join(sorted(f"${page_latex(name)}$" for name in labels))
    return (
        f"one term is missing; it is made of {names}"
        if names
        else "one term is missing"
    )
