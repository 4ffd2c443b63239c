"""Differentiation of index expressions, and the check that every letter has one range."""

from __future__ import annotations

from sympy import (
    Basic,
    DiracDelta,
    Expr,
    Indexed,
    KroneckerDelta,
    S,
    Sum,
    Symbol,
    evaluate,
    sympify,
)
from sympy.core.function import Application

from .domains import slope_needs
from .measured import Largest
from .notation import Local, Partial, name_of, no_text, rename_bound, with_parts


class RangeError(ValueError):
    """A letter that would have to run over two different dimensions, or an index that is no letter with a range."""


def D(e: Expr, v: Expr) -> Expr:
    """The derivative of e with respect to v; the only differentiation in the package.

    Every bound letter is renamed first: SymPy takes a bound letter that equals an index of v for that index. A jump
    has the derivative 0 on either side, and none where it jumps, which `conditions` excludes.

    Raises:  ValueError when v is no entry and no real scalar: letters and dimensions do not vary;
             NotImplementedError for a function whose derivative is not in the table of domains, such as floor
    """
    e, v = no_text(e, v)
    if not (isinstance(v, Indexed) or isinstance(v, Symbol) and not v.is_integer):
        raise ValueError(f"{v}: only an entry of a tensor or a real scalar can vary")
    with evaluate(True):
        e = rename_bound(resolve(e))
        _check_functions(e, v)
        slope = e.diff(v)
        return (
            slope.replace(DiracDelta, lambda *parts: S.Zero)
            if slope.has(DiracDelta)
            else slope
        )


def _check_functions(e, v):
    """Refuse a function of v of which the table does not say where it has a derivative."""
    for part in e.atoms(Application):
        if part.has(name_of(v)):
            slope_needs(part, lambda value: value.has(name_of(v)))


def resolve(e: Expr) -> Expr:
    """The expression with its derivative nodes carried out."""
    if isinstance(e, Partial | Local):
        return D(e.args[0], e.args[1])
    return with_parts(e, resolve)


def free_letters(e: Expr) -> set[Symbol]:
    """The index letters of e that no sum and no maximum around them binds."""
    if isinstance(e, Sum):
        return free_letters(e.function) - set(e.variables)
    if isinstance(e, Largest):
        return free_letters(e.args[0]) - {e.args[1]}
    if isinstance(e, Indexed | KroneckerDelta):
        return {letter for letter in e.indices if letter.is_Symbol}
    return set().union(*map(free_letters, e.args))


def index_ranges(*expressions: Expr) -> dict[Symbol, Basic]:
    """The dimension of every letter but those made by `total`; RangeError as `all_ranges`."""
    ranges = all_ranges(*expressions)
    return {letter: size for letter, size in ranges.items() if not letter.is_Dummy}


def all_ranges(*expressions: Expr) -> dict[Symbol, Basic]:
    """The dimension of every letter, read off tensor shapes, sums and deltas.

    Raises:  RangeError when a letter has two ranges or stands for a number, a delta joins letters of different ranges,
             an index is no letter, a sum does not run from 1 to a dimension, or a tensor has two shapes
    """
    ranges, first_places = {}, {}
    shapes = {}
    deltas, numbers = set(), set()

    def assign(letter, size, where):
        if not (size.is_Symbol and size.is_integer and size.is_positive):
            raise RangeError(
                f"{size}: is what {letter} runs to, and is not declared as a dimension; write "
                f'{size} = dim("{size}")'
            )
        first_place = first_places.setdefault(letter, where)
        if ranges.setdefault(letter, size) != size:
            raise RangeError(
                f"{letter}: runs to {ranges[letter]} in {first_place} and to {size} in {where}; "
                "another letter is needed for one of them"
            )

    waiting = list(map(sympify, expressions))
    while waiting:
        e = waiting.pop()
        if isinstance(e, Sum):
            for letter, first, last in e.limits:
                if first != 1 or not last.is_Symbol:
                    raise RangeError(
                        f"{letter}: runs from {first} to {last}, and needs to run from 1 to a dimension"
                    )
                assign(letter, last, "a sum over it")
            waiting.append(e.function)
        elif isinstance(e, Largest):
            body, letter, last = e.args
            assign(letter, last, e)
            waiting.append(body)
        elif isinstance(e, Indexed | KroneckerDelta):
            if not all(letter.is_Symbol for letter in e.indices):
                raise RangeError(f"{e}: an index is a letter")
            if isinstance(e, KroneckerDelta):
                deltas.add(e.indices)
                continue
            shape = e.base.shape or ()
            if shapes.setdefault(str(e.base), shape) != shape:
                raise RangeError(
                    f"{e.base}: has the shape {shape} and the shape {shapes[str(e.base)]}"
                )
            for letter, size in zip(e.indices, shape, strict=bool(shape)):
                assign(letter, size, e)
        elif e.is_Symbol:
            numbers.add(e)
        else:
            waiting += e.args
    for _ in deltas:
        for pair in deltas:
            for letter, partner in (pair, pair[::-1]):
                if letter in ranges:
                    assign(partner, ranges[letter], KroneckerDelta(*pair))
    # a proof takes every letter for a place that all claims treat alike
    letters = set(ranges).union(*deltas)
    for letter in sorted(letters & (numbers | set(ranges.values())), key=str):
        raise RangeError(
            f"{letter.name}: is an index, and cannot be a number or a dimension too; what depends on the order of the "
            f"places, such as {letter.name} < i or a sum of the first i terms, has no form here"
        )
    return ranges
