"""Sizes that a launcher computes, and the ways through its branches on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

from sympy import (
    Dummy,
    Eq,
    Expr,
    Function,
    IndexedBase,
    Integer,
    Max,
    Min,
    Mul,
    Ne,
    S,
    Symbol,
    expand,
    sympify,
)
from sympy.core.relational import Relational

from ..symbolic.symbols import M, N
from ..symbolic.witness import counterexample
from .binding import LEADING
from .places import CEILING, FLOOR, exact
from .values import SMALL, NotRead

# of a launcher's branches on sizes: how many ways through them are read
WAYS = 16
# at which a way is looked for: around powers of 2, and around the blocks that programs have
ROWS_TRIED = (1, 2, 3, 5, 64, 4097)
COLUMNS_TRIED = sorted(
    {1, 2, 3, 5, 7, 10, 100, 1000, 5000, 70000, 200000}
    | {2**k + d for k in range(2, 18) for d in (-1, 0, 1)}
)

REMEMBERED = 1 << 16  # answers on sizes, which launchers of all kinds ask again


class next_power_of_2(Function):  # noqa: N801 - SymPy prints a function by its class
    """The smallest power of 2 that is at least an integer, as triton.next_power_of_2 has it."""

    is_integer = True
    is_positive = True

    @classmethod
    def eval(cls, n):
        """The power itself, of a number."""
        if n.is_Integer and n > 0:
            return Integer(1 << (int(n) - 1).bit_length())
        return None


class bit_length(Function):  # noqa: N801 - as next_power_of_2
    """How many bits an integer of at least 0 has."""

    is_integer = True
    is_nonnegative = True


class bit_and(Function):  # noqa: N801 - as next_power_of_2
    """The bits that two integers share."""

    is_integer = True

    @classmethod
    def eval(cls, a, b):
        """The number itself, of numbers."""
        return Integer(int(a) & int(b)) if a.is_Integer and b.is_Integer else None


def bits_of(n: Any) -> Expr:
    """int.bit_length of a size."""
    e = sympify(getattr(n, "e", n))
    if not e.is_nonnegative:
        raise NotRead(f"the bits of {e}, which may be negative")
    return bit_length(e)


def power_of_2(exponent: Expr) -> Expr:
    """2**exponent, where that is a number of bits, or one less than that of a size."""
    if isinstance(exponent, bit_length):
        return next_power_of_2(exponent.args[0] + 1)
    bits = exponent + 1
    if isinstance(bits, bit_length) and bits.args[0].is_positive:
        return next_power_of_2(floor(bits.args[0], Integer(2)) + 1)
    if exponent.is_Integer and 0 <= exponent <= SMALL:
        return Integer(2) ** exponent
    raise NotRead("a power of 2 whose exponent is no number of bits")


def doubled(start: Expr, bounds: Sequence[Expr]) -> Expr:
    """What `while n < bound: n *= 2` makes of a power of 2; bounds: each of which ends it."""
    if not (start.is_Integer and is_power_of_2(start)):
        raise NotRead("a while loop that doubles what is no power of 2")
    if not all(bound.is_positive for bound in bounds):
        raise NotRead("a while loop that doubles up to what may be no positive number")
    return Min(*[Max(start, next_power_of_2(bound)) for bound in bounds])


def floor(a: Expr, b: Expr) -> Expr:
    """a // b of integers, b of at least 1."""
    a, b = expand(a), expand(b)
    if not b.is_positive:
        raise NotRead(f"a division of integers by {b}, which may be no positive number")
    if a.is_negative:
        return -ceiling(-a, b)
    quotient = exact(a, b)
    if quotient is not None:
        return quotient
    top = expand(a + 1 - b)
    return CEILING(top, b) if top.is_positive else FLOOR(a, b)


def ceiling(a: Expr, b: Expr) -> Expr:
    """a / b rounded up, as triton.cdiv has it."""
    return floor(a + b - 1, b)


def in_rows(e: Expr) -> Expr:
    """A size with M for B*T."""
    return expand(expand(e).subs(Mul(*LEADING), M))


def is_power_of_2(e: Expr) -> bool | None:
    """Whether an integer is a power of 2 at every size; None where that depends."""
    match e:
        case Integer():
            return bool(e > 0) and int(e).bit_count() == 1
        case next_power_of_2():
            return True
        case Min() | Max() | Mul():
            return all(map(is_power_of_2, e.args)) or None
    return None


def _bounds(e: Expr) -> Iterable[Expr]:
    """What is at least 0 by what the functions in an expression are."""
    for part in e.atoms(Function, Min, Max):
        match part:
            case next_power_of_2(args=(n,)):
                yield part - n
                yield 2 * n - 1 - part
                half = n - 1
                if half.func is FLOOR and half.args[1] == 2:
                    yield 2 * part - half.args[0] - 1
            case Min():
                yield from [a - part for a in part.args]
            case Max():
                yield from [part - a for a in part.args]


@dataclass
class Way:
    """One way through a launcher's branches on sizes, the same in all traces that a verdict needs.

    Args:  apart: whether the rows of the arguments may lie further apart than N
           leading: whether what has M rows has the axes B and T for them
           heads: whether a vector of columns has the shape (T, N) then
           choices: {a relation between sizes: whether it holds on this way}
           shared: what all ways have in common: texts, and what launches have come to
           asked: how often it was asked for a choice
    """

    apart: bool
    leading: bool = False
    heads: bool = False
    choices: dict[Relational, bool] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)
    asked: int = 0

    def holds(self, relation: Relational) -> bool:
        """Whether a relation between integers holds; one that nothing decides is chosen."""
        self.asked += 1
        if relation in self.choices:
            return self.choices[relation]
        answer = self._decided(relation)
        if answer is None:
            if len(self.choices) >= WAYS:
                raise NotRead("more branches on sizes than are followed")
            answer = self.choices[relation] = True
        return answer

    def _decided(self, relation):
        if isinstance(relation, Ne):
            answer = self._decided(Eq(relation.lhs, relation.rhs, evaluate=False))
            return None if answer is None else not answer
        if isinstance(relation, Eq):
            e = relation.lhs - relation.rhs
            if self.is_least(e - 1) or self.is_least(-e - 1):
                return False
            return True if self.is_least(e) and self.is_least(-e) else None
        if self.is_least(_at_least_0(relation, True)):
            return True
        return False if self.is_least(_at_least_0(relation, False)) else None

    @property
    def known(self) -> list[Expr]:
        """What is at least 0 by the choices."""
        known = []
        for relation, holds in self.choices.items():
            e = relation.lhs - relation.rhs
            if not isinstance(relation, Eq | Ne):
                known.append(_at_least_0(relation, holds))
            elif holds == isinstance(relation, Eq):
                known += [e, -e]
        return known

    @property
    def equations(self) -> bool:
        """Whether an equation between sizes is among the choices, as N % B == 0 is."""
        return any(
            holds == isinstance(relation, Eq)
            for relation, holds in self.choices.items()
            if isinstance(relation, Eq | Ne)
        )

    def is_least(self, e: Expr) -> bool:
        """Whether e >= 0 follows from the choices, by at most two of them."""
        return _is_least(expand(e), tuple(self.known))

    def divides(self, block: Expr, size: Expr) -> bool:
        """Whether a block divides a size by the choices, so that its tiles need no mask.

        For a launcher that asks for N % B == 0. It stops a load without a mask where M % B == 0 is asked.
        """
        rests = size - block * floor(size, block), size - block
        return any(self.is_least(rest) and self.is_least(-rest) for rest in rests)

    def following(self) -> Way | None:
        """The next way, None after the last."""
        choices = dict(self.choices)
        while choices:
            relation, holds = choices.popitem()
            if holds:
                choices[relation] = False
                return replace(self, choices=choices, asked=0)
        return None

    def words(self) -> str:
        """The choices, as a condition on sizes."""
        parts = []
        for relation, holds in self.choices.items():
            relation = relation if holds else relation.negated
            sign = {Eq: "=", Ne: "!="}.get(relation.func, relation.rel_op)
            parts.append(f"{relation.lhs} {sign} {relation.rhs}")
        return ", ".join(parts)

    def sizes(self) -> Iterator[dict[Symbol, Integer]]:
        """Some sizes at which a launch takes this way."""
        for n, m in product(COLUMNS_TRIED, ROWS_TRIED):
            sizes = {N: Integer(n), M: Integer(m)}
            if self.leading:
                sizes |= dict(zip(LEADING, (Integer(1), Integer(m)), strict=True))
            if self.holds_at(sizes):
                yield sizes

    def where(self, is_met: Callable[[dict], bool | None]) -> str:
        """The first sizes of this way that meet a condition, in words; "" where none are found."""
        return next((in_words(sizes) for sizes in self.sizes() if is_met(sizes)), "")

    def example(self, relations: Sequence[Relational] = ()) -> str:
        """Sizes of this way at which relations hold, as "M = 1, N = 1025"."""
        return self.where(lambda sizes: all(_at(r, sizes) for r in relations))

    def no_power(self, e: Expr) -> str:
        """Sizes of this way at which an integer is no power of 2."""
        return self.where(lambda sizes: is_power_of_2(e.xreplace(sizes)) is False)

    def holds_at(self, sizes: dict) -> bool:
        """Whether sizes are of this way, as far as they decide it."""
        return all(_at(r, sizes) is holds for r, holds in self.choices.items())


@lru_cache(maxsize=REMEMBERED)
def _is_least(e: Expr, known: tuple[Expr, ...]) -> bool:
    """Whether e >= 0 follows from at most two of what is at least 0."""
    if e.is_nonnegative:
        return True
    for part in e.args:
        # the least of some is at least a number where each of them is
        if isinstance(part, Min) and e.is_Add:
            return all(_is_least(expand(e - part + a), known) for a in part.args)
    bounds = [bound for part in (e, *known) for bound in _bounds(part)]
    known = [*known, *bounds]
    for position, first in enumerate(known):
        left = expand(e - first)
        if left.is_nonnegative:
            return True
        if any(expand(left - k).is_nonnegative for k in known[position + 1 :]):
            return True
    return False


def in_words(sizes: dict) -> str:
    """Sizes as "M = 1, N = 1025"."""
    return ", ".join(f"{size} = {sizes[size]}" for size in (M, N))


def _at_least_0(relation, holds):
    """What is at least 0 where an inequality of integers holds, or does not."""
    relation = relation if holds else relation.negated
    is_strict = relation.rel_op in ("<", ">")
    return expand(relation.gts - relation.lts - int(is_strict))


def of_sizes(e: Expr) -> list[Expr]:
    """The roundings, powers of 2 and bounds in an expression that stand in it otherwise than inside of another."""
    heads = CEILING, FLOOR, next_power_of_2, Min, Max
    parts = []
    for part in sorted(e.atoms(*heads), key=lambda p: (-p.count_ops(), str(p))):
        is_size = all(symbol.is_integer for symbol in part.free_symbols)
        if is_size and e.has(part) and not part.has(IndexedBase):
            parts.append(part)
            e = e.xreplace({part: Dummy()})
    return parts


def at_columns(e: Expr, sizes: dict) -> dict[Expr, Expr] | None:
    """{a rounding, power of 2 or bound: its number at sizes}; None where another symbol decides."""
    numbers = {part: part.xreplace(sizes) for part in of_sizes(e)}
    return numbers if all(n.is_Integer for n in numbers.values()) else None


def depends(e: Expr, chosen: Sequence[Symbol]) -> bool:
    """Whether a stored expression is another one for another block of a launcher's choice, by blocks of 16 and 32.

    For cdiv(N, B)*B, lanes that a sum counts. It stops an accusation where B, or its rounding, falls away.
    """
    sides = []
    for block in (16, 32):
        blocks = dict.fromkeys(chosen, Integer(block))
        numbers = at_columns(e, blocks | {N: Integer(3)})
        if numbers is None:
            return False
        sides.append(e.xreplace(numbers).xreplace(blocks))
    return counterexample(*sides, columns=(3,)) is not None


def _at(relation, sizes):
    """Whether a relation holds at sizes; None where another symbol decides."""
    return _decided_at(relation, tuple(sizes.items()))


@lru_cache(maxsize=REMEMBERED)
def _decided_at(relation, sizes):
    sizes = dict(sizes)
    answer = relation.func(*[side.xreplace(sizes) for side in relation.args])
    return bool(answer) if answer in (S.true, S.false) else None
