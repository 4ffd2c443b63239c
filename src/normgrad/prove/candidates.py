"""Lines that differ from a reader's in one place: in a name, in an index, in a sum, in a bracket.

Each is a `Mistake` with the line that mends it. Whether one is the mistake that was made, `hints` finds out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from sympy import (
    Add,
    Dummy,
    Expr,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    Pow,
    Sum,
    Symbol,
    Tuple,
)

from ..symbolic.calculus import RangeError, all_ranges, free_letters
from ..symbolic.normal_form import multiply_out
from ..symbolic.notation import INDEX, entry_of, indices_of, name_of, shape_of
from ..symbolic.opaque import Opaque
from .names import page_latex

# factors that a summed product may have to be put together from; terms of a bracket that are parted
MANY = 3


@dataclass(frozen=True)
class Mistake:
    """One mistake. Args: where: what is wrong, in Markdown; cure: what mends it; line: the mended line"""

    where: str
    cure: str
    line: Expr


def ranges_of(e: Expr) -> dict:
    """The size of every index; none where they contradict each other."""
    try:
        return all_ranges(e)
    except (RangeError, ValueError):
        return {}


def changed_lines(left: Expr, right: Expr, names: list[Expr]) -> Iterator[Mistake]:
    """The lines. Args: names: scalars, and an entry of each tensor, that may stand in the right side"""
    yield from _transposed(right)
    yield from _exchanged(right)
    yield from _brackets(right)
    yield from _arguments(left, right)
    yield from _everywhere(right, names)
    yield from _unsummed(left, right)
    yield from _over_another(left, right)
    yield from _outside(left, right)
    yield from _sums_of_products(right)
    yield from _not_summed(right)


def _shown(e):
    return f"${page_latex(e)}$"


def _sorted(e, *kinds):
    return sorted(e.atoms(*kinds), key=str)


# -- names


def _transposed(right):
    """Two indices of one entry exchanged."""
    for entry in _sorted(right, Indexed):
        for first, second in combinations(range(len(entry.indices)), 2):
            shape, indices = entry.base.shape or (), list(entry.indices)
            if shape and shape[first] == shape[second]:
                indices[first], indices[second] = indices[second], indices[first]
                line = right.xreplace({entry: entry.base[tuple(indices)]})
                where = f"two indices of {_shown(entry)} are exchanged"
                yield Mistake(where, "", line)


def _names(right):
    """The scalars of a line, and its entries."""
    labels = {base.label for base in right.atoms(IndexedBase)}
    symbols = [
        name
        for name in _sorted(right, Symbol)
        if not (name.is_integer or name in labels)
    ]
    return symbols + _sorted(right, Indexed)


def _exchanged(right):
    """Two names exchanged."""
    for first, second in combinations(_names(right), 2):
        if indices_of(first) == indices_of(second):
            line = right.xreplace({first: second, second: first})
            where = f"{_shown(first)} and {_shown(second)} are exchanged"
            yield Mistake(where, "", line)
    for first, second in combinations(_sorted(right, IndexedBase), 2):
        if first.shape and first.shape == second.shape:
            entries = {}
            for base, counterpart in ((first, second), (second, first)):
                for entry in right.atoms(Indexed):
                    if entry.base == base:
                        entries[entry] = counterpart[entry.indices]
            where = f"{_shown(first.label)} and {_shown(second.label)} are exchanged"
            yield Mistake(where, "", right.xreplace(entries))


def _with_base(e, name, change):
    """An expression whose entries of one tensor are what a function makes of them."""
    entries = {e_: change(e_) for e_ in e.atoms(Indexed) if e_.base == name}
    return e.xreplace(entries)


def replaced(right: Expr, names: list[Expr]) -> Iterator[Mistake]:
    """One name in the place of another, wherever it stands."""
    tensors = {name.base: name for name in names if isinstance(name, Indexed)}
    for base in _sorted(right, IndexedBase):
        for counterpart in tensors:
            if counterpart == base or counterpart.shape != base.shape:
                continue
            line = _with_base(
                right, base, lambda e, counterpart=counterpart: counterpart[e.indices]
            )
            where = f"another name belongs where {_shown(base.label)} stands"
            yield Mistake(where, f"it is {_shown(counterpart.label)}", line)
    scalars = [name for name in names if isinstance(name, Symbol)]
    for name in _names(right):
        for counterpart in scalars if isinstance(name, Symbol) else ():
            if counterpart != name:
                line = right.xreplace({name: counterpart})
                where = f"another name belongs where {_shown(name)} stands"
                yield Mistake(where, f"it is {_shown(counterpart)}", line)


def _everywhere(right, names):
    """A factor that is missing at every entry of a tensor."""
    tensors = {name.base: name for name in names if isinstance(name, Indexed)}
    for base in _sorted(right, IndexedBase):
        entries = [entry for entry in right.atoms(Indexed) if entry.base == base]
        if len(entries) < 2:
            continue
        for counterpart in tensors:
            for places in _suffixes(base.shape or (), counterpart.shape or ()):

                def times(entry, counterpart=counterpart, places=places):
                    return (
                        entry
                        * counterpart[tuple(entry.indices[axis] for axis in places)]
                    )

                where = f"a factor is missing wherever {_shown(base.label)} stands"
                cure = f"it is {_shown(counterpart.label)}"
                yield Mistake(where, cure, _with_base(right, base, times))


def _suffixes(shape, counterpart):
    """The places of a shape at which another one stands in it."""
    for places in combinations(range(len(shape)), len(counterpart)):
        if counterpart and tuple(shape[axis] for axis in places) == tuple(counterpart):
            yield places


def _arguments(left, right):
    """A function of another argument."""
    for applied in _sorted(right, Opaque):
        for counterpart in _sorted(left, Opaque):
            if type(counterpart) is type(applied) and counterpart != applied:
                where = f"the argument of {_shown(applied)} is another one"
                line = right.xreplace({applied: counterpart})
                yield Mistake(where, f"it is {_shown(counterpart.args[0])}", line)


# -- brackets


def _brackets(right):
    """A bracket of which one term belongs there, a factor of one of its terms before it, or a product in its place."""
    for added in _sorted(right, Add):
        for term in added.args if len(added.args) == 2 else ():
            where = (
                f"of {_shown(added)} only one term belongs there, with the other sign"
            )
            yield Mistake(
                where, f"it is {_shown(-term)}", right.xreplace({added: -term})
            )
        if len(added.args) <= MANY:
            line = right.xreplace({added: Mul(*added.args)})
            where = f"a product belongs where the sum {_shown(added)} stands"
            yield Mistake(where, "", line)
    for multiplied in _sorted(right, Mul):
        for added in [part for part in multiplied.args if isinstance(part, Add)]:
            if len(added.args) > MANY:
                continue
            for factor in multiplied.args:
                if factor == added or factor.is_Number:
                    continue
                remainder = multiplied / factor / added
                for term in added.args:
                    parted = remainder * (factor * term + added - term)
                    line = right.xreplace({multiplied: parted})
                    where = f"the factor {_shown(factor)} does not belong to all of {_shown(added)}"
                    yield Mistake(where, f"it belongs to {_shown(term)} alone", line)


# -- sums


def _sums(right):
    return _sorted(right, Sum)


def _fitting(letters, size, ranges):
    return [letter for letter in letters if ranges.get(letter) == size]


def _without(summed, letter, body, *further):
    """A sum of another body, without the limits of a letter and with further ones."""
    limits = [*further, *[limit for limit in summed.limits if limit[0] != letter]]
    return Sum(body, *limits) if limits else body


def _with_places(left, right, ranges):
    """(a sum on the right, a letter that it binds, a letter of the left side that runs as far)."""
    letters = sorted(free_letters(left), key=str)
    for summed in _sums(right):
        for bound, _, size in summed.limits:
            for letter in _fitting(letters, size, ranges):
                yield summed, bound, letter


def _unsummed(left, right):
    """A sum that does not belong there."""
    ranges = ranges_of(Tuple(left, right))
    for summed, bound, letter in _with_places(left, right, ranges):
        body = summed.function.xreplace({bound: letter})
        entry = _without(summed, bound, body)
        where = f"the sum over ${page_latex(bound)}$ in {_shown(summed)} does not belong there"
        line = right.xreplace({summed: entry})
        yield Mistake(where, f"it is {_shown(entry)}", line)


def _over_another(left, right):
    """A sum over another index: what is summed stays free on the left, and the index of a sum is free on the right."""
    ranges = ranges_of(Tuple(left, right))
    for summed, bound, letter in _with_places(left, right, ranges):
        for over in sorted(free_letters(summed), key=str):
            if over not in ranges or over == letter:
                continue
            fresh = Dummy(str(over), **INDEX)
            body = summed.function.xreplace({bound: letter, over: fresh})
            entry = _without(summed, bound, body, (fresh, 1, ranges[over]))
            where = f"the sum {_shown(summed)} runs over another index"
            line = right.xreplace({summed: entry})
            yield Mistake(where, f"it is {_shown(entry)}", line)


def _outside(left, right):
    """A term in a sum that belongs outside of it."""
    ranges = ranges_of(Tuple(left, right))
    letters = sorted(free_letters(left), key=str)
    for summed in _sums(right):
        body = multiply_out(summed.function)
        if not body.is_Add or len(summed.limits) > 1:
            continue
        ((bound, _, size),) = summed.limits
        for term in body.args:
            remainder = Sum(body - term, *summed.limits)
            places = _fitting(letters, size, ranges) if term.has(bound) else [bound]
            for letter in places:
                line = right.xreplace(
                    {summed: remainder + term.xreplace({bound: letter})}
                )
                where = f"the term {_shown(term)} belongs outside of the sum"
                yield Mistake(where, "", line)


def _sums_of_products(right):
    """A sum of products and a product of sums, one in the place of the other."""
    for power in _sorted(right, Pow):
        if isinstance(power.base, Sum) and power.exp == 2:
            summed = power.base
            line = right.xreplace({power: Sum(summed.function**2, *summed.limits)})
            where = "the square of a sum stands where a sum of squares belongs"
            yield Mistake(where, f"in {_shown(power)}", line)
    for multiplied in _sorted(right, Mul):
        sums = [part for part in multiplied.args if isinstance(part, Sum)]
        for first, second in [*combinations(sums, 2), *combinations(sums[::-1], 2)]:
            merged = _merged(first, second)
            if merged:
                line = right.xreplace(
                    {multiplied: multiplied / first / second * merged}
                )
                where = "a product of sums stands where a sum of products belongs"
                yield Mistake(where, f"in {_shown(multiplied)}", line)
    for summed in _sums(right):
        parts = Mul.make_args(summed.function)
        squares = [part.base for part in parts if part.is_Pow and part.exp == 2]
        if len(parts) == 1 and squares:
            line = right.xreplace({summed: Sum(squares[0], *summed.limits) ** 2})
            where = "a sum of squares stands where the square of a sum belongs"
            yield Mistake(where, f"in {_shown(summed)}", line)
        for part in parts if len(parts) > 1 else ():
            parted = Sum(part, *summed.limits) * Sum(
                summed.function / part, *summed.limits
            )
            line = right.xreplace({summed: parted})
            where = "a sum of products stands where a product of sums belongs"
            yield Mistake(where, f"in {_shown(summed)}", line)


def _merged(first, second):
    """The sum of the products, over the indices of the first sum."""
    if len(second.limits) != 1:
        return None
    ((letter, _, size),) = second.limits
    for bound, _, last in first.limits:
        if last == size:
            body = second.function.xreplace({letter: bound})
            return Sum(first.function * body, *first.limits)
    return None


def _not_summed(right):
    """A sum that is missing, over some of the factors of a term."""
    ranges = ranges_of(right)
    for term in Add.make_args(multiply_out(right)):
        factors = [*_single_factors(term)]
        for letter in sorted(free_letters(term), key=str):
            holding = [part for part in factors if part.has(letter)]
            for count in range(1, MANY + 1):
                for chosen in dict.fromkeys(combinations(holding, count)):
                    if letter not in ranges:
                        continue
                    fresh = Dummy("r", **INDEX)
                    body = Mul(*chosen).xreplace({letter: fresh})
                    summed = Sum(body, (fresh, 1, ranges[letter]))
                    new = term / Mul(*chosen) * summed
                    where = f"a sum is missing in the term {_shown(term)}"
                    cure = f"the term is {_shown(new)}"
                    yield Mistake(where, cure, right - term + new)


def _single_factors(term):
    """The entries and deltas of a product, each as often as it stands there."""
    for factor, power in term.as_powers_dict().items():
        if isinstance(factor, Indexed | KroneckerDelta) and power.is_Integer:
            for _ in range(int(power)):
                yield factor


def terms_of(e: Expr) -> tuple[Expr, ...]:
    """The terms of an expression that is multiplied out; a sum of terms is their sums."""
    e = multiply_out(e)
    for summed in _sums(e):
        parts = Add.make_args(multiply_out(summed.function))
        if len(parts) > 1:
            parted = Add(*[Sum(part, *summed.limits) for part in parts])
            return terms_of(e.xreplace({summed: parted}))
    return Add.make_args(e)


def entries_of(heads: list[Expr], letters: list[Symbol], ranges: dict) -> list[Expr]:
    """The entries of tensors at all letters that run to their sizes."""
    names = []
    for head in heads:
        fitting = [
            [letter for letter in letters if ranges.get(letter, size) == size]
            for size in shape_of(head)
        ]
        names += [entry_of(name_of(head), position) for position in product(*fitting)]
    return sorted(names, key=str)
