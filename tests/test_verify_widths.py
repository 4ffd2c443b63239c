"""Conditions of integers' widths, compared with integers of 8 bits that wrap.

A kernel of a random address is read, with 8 bits in the place of 32. Its text then runs on integers that wrap, beside
itself on integers that do not, for small sizes: where the condition holds, no address and no mask may differ, and where
it does not, they have to at one tile of rows more.
"""

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import launchers
import numpy as np
from sympy import S, evaluate, expand, lambdify, symbols
from verify_kernels import HEAD

from normgrad.verify import COLUMNS, ROWS, WHOLE, M, N, Out, T, norm, verify
from normgrad.verify.binding import PIDS, PROGRAMS, Launch, letter
from normgrad.verify.kernel import Kernel
from normgrad.verify.places import FLOOR, Places
from normgrad.verify.source import source_of
from normgrad.verify.values import LANES
from normgrad.verify.widths import Widths

BITS, ADDRESSES = 8, 200
LIMIT = 2 ** (BITS - 1)
KERNEL = """
@triton.jit
def kernel(x, y, m, n, s, R: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    ROWS_
    LOOP_
        mask = (rows < m) & (cols < n)
        BASE_
        a = tl.load(ADDRESS_, mask=mask, other=0.0)
        tl.store(y + rows.to(tl.int64) * s + cols, a, mask=mask)
"""
ROW_LINES = {
    "rows": "rows = pid",
    "row tiles": "rows = pid * R + tl.arange(0, R)[:, None]",
}
LOOPS = {
    WHOLE: "if True:\n        cols = tl.arange(0, B)",
    COLUMNS: "for off in range(0, n, B):\n        cols = off + tl.arange(0, B)",
}
# row * s, and what is the same
PRODUCTS = (
    "rows * s",
    "s * rows",
    "rows.to(tl.int64) * s",
    "rows * tl.cast(s, tl.int64)",
    "(rows * s).to(tl.int64)",
    "((rows + 1) * s - s)",
    "(rows * (s + 1) - rows)",
    "(2 * rows * s - rows * s)",
)
TILES = "pid * R * s + LANES_ * s", "pid.to(tl.int64) * (R * s) + LANES_ * s"
ROW_LANES = "tl.arange(0, R)[:, None]"
COLUMNS_OF = "cols", "cols.to(tl.int64)", "(cols + 1 - 1)"


@dataclass
class Int:
    """Integers of a width, or of any; one of Python's has none, and gets that of what it meets."""

    value: np.ndarray
    bits: int | None

    def __post_init__(self):
        self.value = np.asarray(self.value, dtype=np.int64)
        if self.bits is not None and self.bits < 64:
            half = 2 ** (self.bits - 1)
            self.value = (self.value + half) % (2 * half) - half

    def _of(self, other, function):
        other = other if isinstance(other, Int) else Int(other, self.bits)
        bits = None
        if self.bits is not None:
            bits = max(self.bits, other.bits)
        return Int(function(self.value, other.value), bits)

    def __add__(self, other):
        return self._of(other, np.add)

    def __sub__(self, other):
        return self._of(other, np.subtract)

    def __mul__(self, other):
        return self._of(other, np.multiply)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other):
        return self.value < other.value

    def __getitem__(self, key):
        return Int(self.value[key], self.bits)

    def to(self, bits):
        return Int(self.value, self.bits and bits)


@dataclass
class Address:
    """A pointer: an offset of 64 bits."""

    offset: np.ndarray

    def __add__(self, by):
        return Address(self.offset + by.value)


def test_a_sum_of_small_integers_wraps():
    assert Int(100, 8) * 2 + 1 == Int(-55, 8)
    assert Int(100, 8).to(64) * 2 == Int(200, 64)
    assert Int(100, None) * 2 == Int(200, None)


def kernel_of(text, rng):
    """(text, kind of the grid, kind of the columns) of a kernel with a random address."""
    grid, columns = rng.choice(list(ROW_LINES)), rng.choice([0, 1])
    columns = (WHOLE, COLUMNS)[columns]
    first, second = rng.choice(PRODUCTS), rng.choice(COLUMNS_OF)
    if grid == "row tiles" and rng.random() < 0.3:
        first = rng.choice(TILES).replace("LANES_", ROW_LANES)
    terms = [f"({first})" if rng.random() < 0.5 else first, second]
    rng.shuffle(terms)
    sum_ = " + ".join(terms)
    form = rng.choice(["apart", "one", "moved"])
    base, address = "pass", f"x + {sum_}"
    if form == "one":
        address = f"x + ({sum_})"
    if form == "moved":
        base, address = f"base = x + {terms[0]}", f"base + {terms[1]}"
    text = text.replace("ROWS_", ROW_LINES[grid]).replace("LOOP_", LOOPS[columns])
    return text.replace("BASE_", base).replace("ADDRESS_", address), grid, columns


def conditions_of(text, grid, columns, monkeypatch):
    """What has to be below 2**(BITS - 1)."""
    binding = {"x": T("x", stride="s"), "y": Out("y", stride="s"), "m": M, "n": N}
    binding |= {"R": ROWS, "B": columns}
    source, name = source_of(HEAD + text)
    reader = Kernel(source, Launch(binding, (grid,)))
    monkeypatch.setattr(reader.tiles.widths, "bits", BITS)
    with evaluate(True):
        reader.read(name)
    assert not reader.tiles.memory.faults
    return reader.tiles.widths.conditions()


def accesses(text, sizes, bits):
    """The addresses and masks of all loads."""
    seen, program = [], {}

    def load(at, mask, other):
        lanes = np.broadcast_arrays(at.offset, mask)
        seen.append(np.where(lanes[1], lanes[0], -1))

    tl = SimpleNamespace(
        program_id=lambda axis: Int(program[axis], bits),
        arange=lambda start, end: Int(np.arange(end.value), bits),
        load=load,
        store=lambda at, value, mask: None,
        cast=lambda value, dtype: value.to(dtype),
        int64=64,
        constexpr=None,
    )

    def turns(start, end, step):
        for value in range(start, end.value, step.value):
            yield Int(value, bits)

    names = {"tl": tl, "triton": SimpleNamespace(jit=lambda f: f), "range": turns}
    exec(text, names)  # a text of this file's
    m, n, s, rows, columns, grid = sizes
    numbers = [Int(number, bits) for number in (m, n, s, rows, columns)]
    programs = m if grid == "rows" else -(-m // rows)
    for program[0] in range(programs):
        names["kernel"](Address(0), Address(0), *numbers)
    return seen


def wraps(text, sizes):
    """Whether 8 bits are too few for a launch."""
    pairs = zip(accesses(text, sizes, BITS), accesses(text, sizes, None), strict=True)
    return any(not np.array_equal(*pair) for pair in pairs)


SIZES = [
    (m, n, s, rows, columns)
    for m, n, gap, rows, columns in product(
        (1, 8, 13), (1, 9), (0, 20), (2, 4), (4, 16)
    )
    for s in [n + gap]
]


def test_where_a_condition_holds_nothing_wraps(monkeypatch, seed=7):
    rng = np.random.default_rng(seed)
    counts = {"no condition": 0, "held": 0, "failed": 0, "wrapped": 0}
    for _ in range(ADDRESSES):
        text, grid, columns = kernel_of(KERNEL, rng)
        conditions = conditions_of(text, grid, columns, monkeypatch)
        counts["no condition"] += not conditions
        for m, n, s, rows, block in SIZES:
            if columns is WHOLE and block < n:
                continue
            numbers = {M: m, N: n, letter("s"): s}
            numbers |= {letter("R"): rows, letter("B"): block}
            holds = all(bound.subs(numbers) < LIMIT for bound in conditions)
            if holds:
                counts["held"] += 1
                assert not wraps(text, (m, n, s, rows, block, grid)), (text, numbers)
                continue
            counts["failed"] += 1
            more = m + rows + 1
            counts["wrapped"] += wraps(text, (more, n, s, rows, block, grid))
    assert counts["wrapped"] == counts["failed"], counts
    # of an address in five, nothing wraps; elsewhere a condition is met at some sizes and not at others
    assert counts["no condition"] > ADDRESSES / 10, counts
    assert min(counts["held"], counts["failed"]) > 5 * ADDRESSES, counts


TURNS = symbols("turn_0 turn_1", integer=True, nonnegative=True)
MOVES = *PIDS[:2], LANES["R"], LANES["C"], *TURNS
HEADS = letter("h")
NUMBERS = M, N, letter("R"), letter("B"), HEADS, PROGRAMS[1], letter("s")
QUOTIENTS = {"floordiv": lambda a, b: a // b, "cdiv": lambda a, b: -(-a // b)}


def test_a_polynomial_never_exceeds_its_bound(seed=8):
    """Of programs, lanes, turns and quotients; the bound itself, less one, is reached by some at all sizes."""
    rng = np.random.default_rng(seed)
    launch = Launch({"R": ROWS, "B": COLUMNS}, ("row tiles", "programs"))
    exact = 0
    for _ in range(ADDRESSES):
        widths = Widths(Places(launch, {}))
        widths.places.loops[TURNS[0]] = S.Zero, N, letter("B")
        widths.places.loops[TURNS[1]] = PIDS[1], M, PROGRAMS[1]
        e = polynomial(rng)
        bound = widths.largest(e)
        assert bound is not None, e
        evaluated = lambdify(NUMBERS + MOVES, e, QUOTIENTS)
        evaluated_bound = lambdify(NUMBERS, bound, QUOTIENTS)
        is_exact = True
        for m, n, rows, block, heads, programs in product(
            (1, 5), (1, 7), (2,), (2, 4), (1, 3), (1, 2)
        ):
            sizes = m, n, rows, block, heads, programs, 3
            limit = evaluated_bound(*sizes)
            largest = max(evaluated(*sizes, *moving) for moving in moves(*sizes))
            assert largest <= limit, (e, bound, sizes)
            is_exact &= largest == limit - 1
        exact += is_exact
    assert exact > 10


def polynomial(rng):
    """Up to three terms: a number, a size or a stride, times what moves."""
    pid, lane = PIDS[0], LANES["R"]
    moving = [
        *(
            letter("R") * pid + lane,
            PIDS[1],
            *TURNS,
            PIDS[1] + PROGRAMS[1] * TURNS[1],
        ),
        *(letter("B") * TURNS[0] + LANES["C"], FLOOR(pid, HEADS), S.One),
        pid - HEADS * FLOOR(pid, HEADS),
    ]
    e = S.Zero
    for _ in range(rng.integers(1, 4)):
        number = int(rng.choice([1, 1, 1, 2, -1]))
        e += number * rng.choice([S.One, letter("s"), N]) * moving[rng.integers(9)]
    return expand(e)


def moves(m, n, rows, block, heads, programs, stride):
    """What MOVES are in a launch, with the turns that run."""
    for pid, other in product(range(-(-m // rows)), range(programs)):
        turns = range(-(-n // block)), range(-(-(m - other) // programs))
        for lanes in product(range(rows), range(block), *turns):
            yield pid, other, *lanes


MOVED = """
@triton.jit
def kernel(x, y, m, n, s, B: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    programs = tl.num_programs(0)
    cols = tl.arange(0, B)
    at = x + pid * s + cols
    for row in range(pid, m, programs):
        a = tl.load(at, mask=cols < n, other=0.0)
        tl.store(y + row * s + cols, a, mask=cols < n)
        at += programs * s
"""


def test_the_step_of_a_pointer_is_an_integer_of_its_own():
    binding = {"x": T("x", stride="s"), "y": Out("y", stride="s"), "m": M, "n": N}
    for text, bounds in (
        (MOVED, [PROGRAMS[0] * letter("s")]),
        (MOVED.replace("programs * s", "programs.to(tl.int64) * s"), []),
    ):
        source, name = source_of(HEAD + text)
        reader = Kernel(source, Launch({**binding, "B": WHOLE}, ("programs",)))
        with evaluate(True):
            reader.read(name)
        assert not reader.tiles.memory.faults
        assert list(reader.tiles.widths.conditions()) == bounds


def test_every_way_of_a_launcher_has_its_widths():
    kernel, host = launchers.ROWS.split("\n\n\ndef ")
    wide = kernel[kernel.index("@") :].replace("def kernel", "def wide")
    wide = wide.replace("tl.program_id(0)", "tl.program_id(0).to(tl.int64)")
    host = host.replace(
        "    kernel[(M,)]", "    f = wide if N < 9 else kernel\n    f[(M,)]"
    )
    verdict = verify(f"{kernel}\n\n\n{wide}\n\n\ndef {host}", norm())
    assert verdict and "M*x_row_stride < 2^31 (line 11)" in str(verdict).split("\n")[0]
