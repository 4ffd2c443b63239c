"""Where an integer of 32 bits would wrap, as the condition under which none does: M*stride < 2^31.

Triton's integers are int32, but for what is cast to int64: the programs' numbers, lanes, and arguments below 2^31. What
two of them make is int32, too, and wraps. Sums and products that wrap are right modulo 2^32, so what counts is the
value where it is used: where it moves a pointer, is compared, divided, cast to int64, or bounds a loop.

The condition is plain rather than sharp. Each row is below M, each column below N, and each turn below the number of
turns; terms that are subtracted are left out. M*stride < 2^31 is asked for row*stride, whose largest is
(M - 1)*stride. That a size, stride or argument itself is below 2^31 is assumed once, with blocks or programs added.
"""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Add, Dummy, Expr, S, Symbol, default_sort_key, expand

from ..symbolic.symbols import M, N
from .binding import CHUNK, COLUMN_TILES, PROGRAMS, ROW_TILES, letter
from .places import CEILING, FLOOR, LEAST, Places, exact
from .tables.dtypes import LONG_INTEGERS, PYTHON
from .values import LANES, Index, NotRead

BITS = 32
# up to which a number in the text, or a number of blocks, may be added to a size
FEW = 64
QUOTIENTS = CEILING, FLOOR, LEAST

INTEGERS = (
    "integers have Triton's widths, and sizes, strides, arguments and numbers of "
    f"programs are below 2^{BITS - 1}, also with blocks or programs added; no tile has more "
    "than 2^20 lanes, with which Triton compiles none"
)


def below(conditions: Iterable[tuple[Expr | None, int]]) -> list[str]:
    """Conditions of Widths with their lines, as the claim says them: "with M*stride < 2^31 (line 14)"."""
    words, first = [], {}
    for bound, line in conditions:
        first.setdefault(bound, line)
    for bound, line in _needed(first).items():
        text = "its integers" if bound is None else str(bound)
        words.append(f"{text} < 2^{BITS - 1} (line {line})")
    return [f"with {', '.join(words)}"] if words else []


def _needed(conditions):
    """The conditions without those that follow from another."""
    needed = {}
    for bound, line in conditions.items():
        others = [other for other in conditions if None not in (other, bound)]
        if not any(_exceeds(other, bound) for other in others):
            needed[bound] = line
    return needed


def is_long(value: Index) -> bool:
    """Whether an integer is of 64 bits, or one of Python's, of any number of them."""
    return value.dtype <= LONG_INTEGERS or value.dtype <= PYTHON.keys()


def _signed(e: Expr) -> tuple[list[Expr], list[Expr]]:
    """(the terms with a positive number before them, the others)."""
    terms = Add.make_args(expand(e))
    positive = [term for term in terms if term.as_coeff_Mul()[0].is_positive]
    return positive, [e for e in terms if e != 0 and e not in positive]


class Widths:
    """What a launch's integers of 32 bits rest on.

    Args:  places: of the launch; bits: of an integer that is cast to no wider one
    """

    def __init__(self, places: Places, bits: int = BITS):
        self.places, self.bits = places, bits
        # {what has to be below 2^31, one of several bounds: the line}; None for a bound that is not known
        self.bounds: dict[tuple[Expr | None, ...], int] = {}
        # {a rest of a division: its largest}
        self._rests: dict[Symbol, Expr] = {}
        launch = places.launch
        arguments = launch.arguments
        self._single = {e for e in arguments.values() if isinstance(e, Expr)}
        blocks = [places.row_block, places.column_block, *PROGRAMS]
        self._small = {block for block in blocks if block is not None}
        self._chunks = {letter(k) for k, kind in arguments.items() if kind is CHUNK}
        self._tiles = {}
        for tiles, size, block in (
            (ROW_TILES, M, places.row_block),
            (COLUMN_TILES, N, places.column_block),
        ):
            if block is not None:
                self._tiles[tiles] = CEILING(size, block)
        # {a program's number, or a lane: its largest}
        self._fixed = {}
        for axis in range(len(launch.grid)):
            number, most = launch.number(axis), launch.programs(axis) - 1
            if number.is_Symbol:
                self._fixed[number] = most.xreplace(self._tiles)
        for axis, lane in LANES.items():
            self._fixed[lane] = (places.lanes[axis] or S.One) - 1

    # what is kept

    def use(self, value: Index, line: int) -> None:
        """Keeps what an integer needs where it is used, in every lane.

        For `rows < M`, whose rows past the end are below M and a block. It stops `row * N + col < end`, which is true
        of a product that wraps.
        """
        if not is_long(value):
            for e in (value.e, -value.e):
                self._keep([self.largest(e)], line)

    def use_address(self, parts: tuple, indices: list[tuple[Expr, Expr]]) -> None:
        """Keeps what the offsets need that were added to one pointer, in the lanes that exist.

        For `X + row * stride + cols`: the program's own row is below M. It stops no cast to int64 before the product.

        Args:  parts: (an offset of 32 bits, its line); indices: (of a row or column, its size)
        """
        for e, line in parts:
            most, rest = self._by_index(e, indices, self._moving)
            bounds = [self.largest(rest, most), self.largest(e)]
            if self._moving(rest):
                bounds.reverse()
            self._keep(bounds, line)
            self._keep([self.largest(-e)], line)

    def keep_target(self, column: Symbol) -> None:
        """Keeps that the column of a target is below N."""
        self._fixed[column] = N - 1

    def keep_unknown(self, line: int) -> None:
        """Keeps that nothing is known of how large an integer of 32 bits is.

        For a product of two counts. It stops `count * (n - count)`, which wraps from N = 92682 on.
        """
        self.bounds.setdefault((None,), line)

    def _keep(self, bounds, line):
        known = [bound for bound in bounds if bound is not None]
        if any(map(self._is_single, known)):
            return
        if len(known) > 1:
            known = [b for b in known if not any(_exceeds(b, a) for a in known)]
        self.bounds.setdefault(tuple(dict.fromkeys(known)) or (None,), line)

    def conditions(self) -> dict[Expr | None, int]:
        """{what has to be below 2^31: the line}, without what follows from the rest; None for what is not known."""
        sure = {bounds[0]: line for bounds, line in self.bounds.items()}
        for bounds in self.bounds:
            # either is enough, and the other may be asked for already
            if any(bound in sure for bound in bounds[1:]):
                sure.pop(bounds[0], None)
        return _needed(sure)

    def _is_single(self, bound):
        """Whether a bound is that of one size, stride or argument, with blocks or programs added to it."""
        terms = []
        for term in Add.make_args(bound):
            number, e = term.as_coeff_Mul()
            if not (e in self._small or e == 1) or number > FEW:
                terms.append(term)
        if bound.is_number:
            if bound >= 2 ** (self.bits - 1):
                raise NotRead(f"an integer of {self.bits} bits that is {bound}")
            return True
        if len(terms) > 1:
            return False
        return not terms or self._is_assumed(terms[0])

    def _is_assumed(self, e):
        """Whether an expression is one size, stride or argument; the shares of all programs are assumed to be one."""
        if e.is_Symbol or e in self._single:
            return True
        if isinstance(e, CEILING | FLOOR):
            return self._is_single(e.args[0])
        shares = {*e.as_ordered_factors()}
        if shares <= self._chunks | self._small and shares & {*PROGRAMS}:
            self.places.assumed[f"{e} is below 2^{self.bits - 1}"] = None
            return True
        return False

    # bounds

    def largest(self, e: Expr, more: Expr = S.Zero) -> Expr | None:
        """What a polynomial and more never exceed, without terms that are subtracted; None if that is not known."""
        self._rests.clear()
        e = self._bounded(e)
        return None if e is None else Add(*_signed(e + more.xreplace(self._tiles))[0])

    @staticmethod
    def _by_index(e, indices, moving):
        """(the largest of what is a multiple of a row or column that exists, the rest of an offset)."""
        most = S.Zero
        for index, size in indices:
            symbol = moving(index)[-1:]
            if not symbol:
                continue
            factor = exact(e.coeff(*symbol, 1), index.coeff(*symbol, 1))
            if factor is not None and not moving(factor) and not _signed(factor)[1]:
                most += factor * (size - 1)
                e = expand(e - factor * index)
        return most, e

    def _most(self, symbol: Symbol) -> Expr:
        """The largest of what moves in a program, or from one to the next."""
        if symbol in self._fixed:
            return self._fixed[symbol]
        if symbol in self._rests:
            return self._rests[symbol]
        low, high, step = self.places.loops[symbol]
        if step.is_negative:
            low, high, step = high, low, -step
        return self.places.turns(low, high, step).xreplace(self._tiles) - 1

    def _moving(self, e):
        """The symbols in an expression that move, those of inner loops last."""
        symbols = e.free_symbols
        moving = [*self._fixed, *self._rests, *self.places.loops]
        return [symbol for symbol in moving if symbol in symbols]

    def _bounded(self, e):
        """The largest of a polynomial in what moves; None where that is not known."""
        e = expand(e.xreplace(self._tiles))
        while True:
            e = self._without_quotients(e)
            if e is None or any(map(self._moving, e.atoms(*QUOTIENTS))):
                return None
            moving = self._moving(e)
            if not moving:
                return e if all(s.is_positive for s in e.free_symbols) else None
            symbol = moving[-1]
            positive, others = _signed(e)
            largest = Add(*positive).xreplace({symbol: self._most(symbol)})
            e = expand(largest + Add(*others).xreplace({symbol: S.Zero}))

    def _without_quotients(self, e):
        """The polynomial with b * (a // b) as a less a rest below b, and no other quotient of what moves."""
        while True:
            for part in sorted(e.atoms(*QUOTIENTS), key=default_sort_key):
                factor = e.coeff(part, 1)
                if factor != 0:
                    value = self._replaced(part, factor)
                    if value is None:
                        return None
                    if value != factor * part:
                        e = expand(e - factor * part + value)
                        break
            else:
                return e

    def _replaced(self, part, factor):
        """What is not less than a factor times a quotient, or the least of integers; None where none is known."""
        positive, others = _signed(factor)
        if isinstance(part, LEAST):
            fixed = [a for a in part.args if not self._moving(a)]
            return self._in_place(part, positive, others, [*fixed, *part.args][0])
        a, b = part.args
        if not b.is_positive:
            return None
        whole = Add(*[f for f in positive + others if exact(f, b) is not None])
        if whole != 0:
            rest = Dummy("rest", integer=True, nonnegative=True)
            self._rests[rest] = b - 1
            sign = 1 if isinstance(part, CEILING) else -1
            return exact(whole, b) * (a + sign * rest) + (factor - whole) * part
        if not self._moving(a):
            known = not others or a.is_nonnegative
            return factor * part if known else None
        most = self._bounded(a)
        if most is None or self._moving(b):
            return None
        if isinstance(part, CEILING):
            most = CEILING(most, b)
        else:
            most = CEILING(most + 1, b) - 1
        return self._in_place(part, positive, others, most)

    def _in_place(self, part, positive, others, most):
        """A quotient's largest times what is positive; what is subtracted is left out, as a quotient is at least 0."""
        if others:
            smallest = [self._bounded(-a) for a in part.args]
            if any(s is None or _signed(s)[0] for s in smallest):
                return None
        return Add(*positive) * most


def _exceeds(one: Expr, other: Expr) -> bool:
    """Whether one bound is not less than another term by term, as M*N + B is not less than N, and is another one."""
    larger = list(Add.make_args(one))
    for term in Add.make_args(other):
        for candidate in larger:
            if exact(candidate, term) is not None:
                larger.remove(candidate)
                break
        else:
            return False
    return one != other
