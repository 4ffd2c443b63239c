"""Which rows or columns an index runs through, by a table of the patterns that cover each of them once.

An index with lanes is `block * q + lane`, one without is `q` itself. The number q is a constant, a program's number,
or A, A + s, A + 2 s and so on below E, as a loop counts. What the table does not hold is not read.

| q | columns | rows |
|---|---|---|
| 0 where a row has one tile, or the last tile | that tile | |
| the program's number | its own tile | its own row or tile |
| b T + t of the programs (b, t) | | its own row |
| 0, 1, ..., T - 1 | all | all |
| from a tile to a tile, upwards or downwards, each counted from the first or the last | these | |
| pid, pid + P, ..., below T | | the program's share |
| pid K, ..., below pid K + K, or below min(that, T) | | the program's share |

One pattern is of tiles whose first index is no multiple of the block: they start where a program's share of rows does.
"""

from __future__ import annotations

from functools import lru_cache

from sympy import Add, Expr, Function, S, Symbol, cancel, expand, fraction

from ..symbolic.symbols import M, N
from .binding import LEADING, LEADING_AXES, PIDS, ROW_TILES, Launch, letter
from .values import LANES, NotRead, Place


class cdiv(Function):  # noqa: N801 - SymPy prints a function by its class
    """A quotient of integers, rounded up; the divisor is at least 1."""

    is_integer = True

    @classmethod
    def eval(cls, a, b):
        """The quotient itself, of numbers."""
        return -(-a // b) if a.is_Integer and b.is_Integer and b > 0 else None

    def _eval_is_positive(self):
        return True if self.args[0].is_positive else None


class floordiv(Function):  # noqa: N801 - as cdiv
    """A quotient of integers, rounded down; the divisor is at least 1."""

    is_integer = True

    @classmethod
    def eval(cls, a, b):
        """The quotient itself, of numbers."""
        return a // b if a.is_Integer and b.is_Integer and b > 0 else None

    def _eval_is_nonnegative(self):
        return True if self.args[0].is_nonnegative else None


CEILING, FLOOR = cdiv, floordiv
LEAST = Function("least", integer=True)


def least(*integers: Expr) -> Expr:
    """The smallest of integers."""
    parts: set[Expr] = set()
    for e in map(expand, integers):
        parts |= set(e.args) if isinstance(e, LEAST) else {e}
    smallest = {
        a for a in parts if not any((a - b).is_nonnegative and a != b for b in parts)
    }
    return LEAST(*sorted(smallest, key=str)) if len(smallest) > 1 else smallest.pop()


@lru_cache(maxsize=10_000)
def exact(a: Expr, b: Expr) -> Expr | None:
    """a / b where that is a polynomial with whole coefficients, else None.

    For (n * b) // b. It stops (2 * n + 1) // 2, which is n, and not n + 1/2.
    """
    quotient = expand(a) / b
    if b.is_Add:
        quotient = cancel(quotient)
    quotient = expand(quotient)
    for term in Add.make_args(quotient):
        if not term.as_coeff_Mul()[0].is_Integer or fraction(term)[1] != 1:
            return None
    return quotient


class Places:
    """The table, for one launch; assumed: what it relies on, in words; active: the turns of the open loops."""

    def __init__(self, launch: Launch, assumed: dict):
        self.launch, self.assumed = launch, assumed
        self.loops: dict[Symbol, tuple] = {}
        self.active: list[Symbol] = []
        # {the column of a row's target: (its place, that of the row)}
        self.targets: dict[Symbol, tuple[Place, Place]] = {}
        self._places: dict[tuple, Place] = {}
        self.row_block = launch.block("a block of rows")
        self.column_block = launch.block(
            "a block of columns", "a block of at least N columns"
        )
        # {axis: how many lanes a tile has along it}
        self.lanes = {"1": S.One, "R": self.row_block, "C": self.column_block or N}

    # integers

    def cdiv(self, a: Expr, b: Expr) -> Expr:
        """a / b rounded up, for a of at least 0."""
        a, b = expand(a), expand(b)
        for size, block, tiles in (
            (N, self.column_block, self.launch.column_tiles),
            (M, self.row_block, ROW_TILES),
        ):
            more = exact(a - size, b) if b == block else None
            if more is not None:
                return expand(tiles + more)
        quotient = exact(a, b)
        return CEILING(a, b) if quotient is None else quotient

    def floor(self, a: Expr, b: Expr) -> Expr:
        """a // b, where its rounding is known, else a symbol of its own.

        For the start of the last tile, and for heads. It stops (n // b) * b, where no tile starts if b divides n.
        """
        a, b = expand(a), expand(b)
        if not b.is_positive:
            return FLOOR(a, b)
        if b.is_Integer and a.is_nonnegative:
            whole = sum(
                (c // b) * power for power, c in a.as_coefficients_dict().items()
            )
            rest = expand(a - b * whole)
            return expand(whole + (S.Zero if rest.is_Integer else FLOOR(rest, b)))
        if a in PIDS and b == self.launch.programs(PIDS.index(a)):
            return S.Zero
        quotient = exact(a, b)
        if quotient is not None:
            return quotient
        shared = self._shared(a, b)
        if shared is not None:
            return self.floor(*shared)
        for top, less in ((expand(a + 1 - b), 0), (expand(a + 1), 1)):
            if top.is_Symbol and top.is_positive:
                return self.cdiv(top, b) - less
        return FLOOR(a, b)

    def _shared(self, a, b):
        """(c, d) with a // b = c // d and a < b if c < d, where b is a multiple of the programs of an axis.

        Such an a is a multiple of their number and the number of the program looked at, or 1 less than a multiple.
        """
        for number, count in self.launch.shares:
            below = exact(b, count)
            above = exact(a - number, count)
            if above is None:
                above = exact(a + 1 - count, count)
            if None not in (below, above):
                return above, below
        return None

    def bound(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """A comparison a < b as one of rows, where it is one of all rows of all heads.

        Lanes below N - start are those for which start + lanes is below N; so are lanes of row * N below row * N + N.
        """
        a, b = expand(a), expand(b)
        for size in (N, M):
            start = expand(size - b)
            if a.has(*LANES.values()) and start.free_symbols & {*PIDS, *self.loops}:
                if not start.has(size) or not expand(a + start).has(size):
                    return expand(a + start), size
        return self._shared(a, b) or (a, b)

    def below(self, a: Expr, b: Expr) -> bool | None:
        """Whether a < b for every program; None where that depends.

        For a branch that is the same in all programs. It stops an early return of some, as that of rows from N on.
        """
        difference = expand(b - a)
        if difference.is_positive or a in self.targets and b == N:
            return True
        if difference.is_nonpositive:
            return False
        for axis in range(len(self.launch.grid)):
            number, programs = self.launch.number(axis), self.launch.programs(axis)
            if number.is_Symbol and (a - number).is_nonpositive:
                if (b - programs).is_nonnegative:
                    return True
        return None

    # loops

    def turns(self, low: Expr, high: Expr, step: Expr) -> Expr:
        """How many turns a loop makes."""
        return self.cdiv(high - low, step)

    def _progression(self, q, unit, size, tiles):
        """(A, s, E, turn): q is A, A + s, ... below E, at each turn one, if A is the same in all.

        For a loop whose counter is a row, a column or a tile. It stops one that ends at another size.
        """
        turns = [turn for turn in self.loops if q.has(turn)]
        if not turns:
            return q, S.Zero, None, None
        turn = turns[-1]
        s = q.coeff(turn, 1)
        first = expand(q - s * turn)
        low, high, step = self.loops[turn]
        if step == s:
            return first, s, expand(high + first - low), turn
        if expand(step - s * unit) == 0:  # the counter counts rows or columns
            last = expand(high - low + first * unit)
            end = tiles if last == size else exact(last, unit)
            if end is not None:
                return first, s, end, turn
        return first, s, expand(first + s * self.turns(low, high, step)), turn

    # the table

    def at(self, axis: str, e: Expr) -> Place:
        """The place of an index; NotRead for one that the table does not hold."""
        e = expand(e)
        name, covered = {"R": ("row", self._row), "C": ("column", self._column)}[axis]
        if (axis, e) not in self._places:
            pattern = covered(e)
            if pattern is None:
                why = f"which {name}s these are is not known"
                if e == LANES["C"]:
                    why = "the first of several blocks; bind it as WHOLE if it is the only one"
                raise NotRead(f"{name} {e}: {why}")
            cover, past, end, turn, pids = pattern
            symbol, lanes = letter(f"{name} {len(self._places)}"), e.has(LANES[axis])
            place = Place(symbol, axis, cover, past, end, turn, lanes, pids)
            self._places[axis, e] = place
        place = self._places[axis, e]
        if place.loop not in (None, *self.active):
            raise NotRead(f"{name} {e} of a loop that has ended")
        return place

    def target_of(self, row: Place) -> Symbol:
        """The column of a row's target, from 0 on, which is below N.

        For labels of classes. It stops those of a tile of rows, past whose end nothing is known.
        """
        if row.lanes:
            raise NotRead("the targets of a tile of rows")
        name = f"target of {row.symbol}"
        column = Symbol(name, integer=True, nonnegative=True)
        columns = Place(column, "C", None, False, N, row.loop, False, row.pids)
        self.targets[column] = columns, row
        return column

    def of(self, e: Expr) -> Place | None:
        """The place that an index was found to have, None for another one."""
        places = [p for (_, index), p in self._places.items() if index == expand(e)]
        return places[0] if len(places) == 1 else None

    def example(self, place: Place) -> str:
        """Sizes at which index 3 is in a last tile and past the end, as "N = 3, B = 4"; "" where none are known.

        For a block that the binding names. It stops numbers for a launcher's block, which is of one size.
        """
        block = self.row_block if place.axis == "R" else self.column_block
        sizes = self.launch.at({M: 3, N: 3})
        if not place.lanes:
            # the second of two programs with a chunk of two rows
            rows = [e for (_, e), p in self._places.items() if p == place]
            sizes = {k: 2 for k in self.launch.chunks if rows[0].has(k)}
            block = next(iter(sizes), None)
        known = place.past and place.end in (M, N) and block in sizes
        if self.launch.called or not known:
            return ""
        return f"{place.end} = 3, {block} = {sizes[block]}"

    def columns(self, place: Place) -> Expr:
        """How many columns a tile has, in its place."""
        (e,) = [e for (_, e), p in self._places.items() if p == place]
        return least(self.column_block, N - e + LANES["C"])

    def found(self) -> list[Place]:
        """All places."""
        return list(self._places.values())

    def _column(self, e):
        """What a pattern says of columns, None for none.

        For a sweep over tiles. It stops tiles that are shifted, left out, or those of a program of another axis.
        """
        lane, block, tiles = LANES["C"], self.column_block, self.launch.column_tiles
        if e == lane and block is None:  # exactly N lanes
            return (S.Zero, S.Zero), False, N, None, frozenset()
        q = None if block is None else exact(e - lane, block)
        if q is None:
            return None
        for axis, kind in enumerate(self.launch.grid):
            if q == PIDS[axis] and kind == "column tiles":
                past = N not in self.launch.even
                return "grid", past, N, None, frozenset({axis})
        first, s, end, turn = self._progression(q, block, N, tiles)
        if s == 0:
            last = first
        elif s == 1:
            last = expand(end - 1)
        elif s == -1:
            first, last = expand(end + 1), first
        else:
            return None
        left = expand(tiles - 1 - last)
        starts = first.is_number and first >= 0 or expand(first - tiles + 1) == 0
        ends = left.is_number and left >= 0
        if not starts or not ends:
            return None
        past = left == 0 and N not in self.launch.even
        return (first, last), past, N, turn, frozenset()

    def _row(self, e):
        """What a pattern says of rows, None for none.

        For a program's own rows, or all of them. It stops one entry for two rows, and rows that two programs take.
        """
        lane, lanes = LANES["R"], e.has(LANES["R"])
        unit, tiles, q = S.One, M, e
        if lanes:
            unit, tiles = self.row_block, ROW_TILES
            q = exact(e - lane, unit)
            if q is None:
                return self._unaligned(expand(e - lane))
        if not lanes and self._of_leading(q):
            return (
                "own",
                False,
                M,
                None,
                frozenset(map(self.launch.grid.index, LEADING_AXES)),
            )
        first, s, end, turn = self._progression(q, unit, M, tiles)
        past = lanes and M not in self.launch.even
        if (first, s, end) == (0, 1, tiles):
            return "all", past, M, turn, frozenset()
        for axis, kind in enumerate(self.launch.grid):
            pid, own = PIDS[axis], frozenset({axis})
            if s == 0 and q == pid and kind == ("row tiles" if lanes else "rows"):
                return "own", past, M, None, own
            programs = self.launch.programs(axis)
            if s != 0 and (first, s, end) == (pid, programs, tiles):
                return "own", past, M, turn, own
        share = self._share(first, end, tiles) if s == 1 else None
        if share is None:
            return None
        axis, last = share
        return "own", past or end != last, M, turn, frozenset({axis})

    def _of_leading(self, q):
        """Whether an index is b*T + t, of a grid that has the programs (b, t) of all B*T rows.

        For a grid of two axes, (B, T). It stops b*B + t, by which two programs have one row.
        """
        if not set(LEADING_AXES) <= set(self.launch.grid):
            return False
        b, t = (PIDS[self.launch.grid.index(kind)] for kind in LEADING_AXES)
        return expand(q - b * LEADING[1] - t) == 0

    def _unaligned(self, start):
        """Tiles that start at a program's first row, whatever that is: they end where the program's rows do.

        For a share of rows that is no multiple of the block. It stops tiles that start one later, or leave some out.
        """
        turns = [turn for turn in self.loops if start.has(turn)]
        if len(turns) != 1:
            return None
        low, high, step = self.loops[turns[0]]
        if step != self.row_block or start != low + turns[0] * step:
            return None
        share = self._share(low, high, M)
        if share is None:
            return None
        axis, last = share
        return "own", True, last, turns[0], frozenset({axis})

    def _share(self, first, end, total):
        """(an axis of the grid, where its program's share ends), where it has a size and all of them take everything.

        The launcher promises that, or it is the kernel's own division. For chunks of rows. It stops a chunk of another
        size, with which rows are left out or are taken twice.
        """
        for axis, kind in enumerate(self.launch.grid):
            size, programs = first.coeff(PIDS[axis], 1), self.launch.programs(axis)
            ends = [total * PIDS[axis], total * (PIDS[axis] + 1)]
            even = [FLOOR(expand(a), programs) for a in ends]
            if kind == "programs" and [first, end] == even:
                return axis, end
            last = least(first + size, total)
            own = kind == "programs" and first == expand(PIDS[axis] * size)
            if not own or end not in (last, expand(first + size)):
                continue
            if size == CEILING(total, programs):
                return axis, last
            if size in self.launch.chunks:
                words = "rows" if total == M else "tiles of rows"
                promise = f"{programs} * {size} is at least the number of {words}"
                if not self.launch.called:
                    self.assumed[promise] = None
                return axis, last
        return None
