"""The operands of a launch: what each argument is bound as, for one way of taking its blocks.

A pointer is the memory of its tensor, an axis of the grid rows, tiles, one program or any number of them. What the
launcher computes of sizes has a letter in the kernel, for which `Operands.back` gives the launch's own number again.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, Min, S

from ..symbolic.notation import tensor
from ..symbolic.symbols import M, N, eps, i, j
from .arrays import (
    AXES,
    UNNAMED,
    Array,
    DType,
    Memory,
    Stride,
    is_number,
    kind_of,
    plain,
    state,
)
from .binding import (
    ADDRESS,
    CHUNK,
    COLUMN_TILES,
    COLUMNS,
    FLOAT,
    LEADING,
    LEADING_AXES,
    PIDS,
    PROGRAMS,
    ROW_TILES,
    ROWS,
    WHOLE,
    InOut,
    Launch,
    Lock,
    Out,
    Same,
    Zeros,
    letter,
)
from .definitions import is_target
from .memory import group_of
from .places import CEILING
from .sizes import ceiling
from .tables.signatures import Address, Fields
from .values import NotRead, Unsupported

LETTERS = {
    (M, N): "i, j",
    (M,): "i",
    (N,): "j",
    (): "",
}


class Operands:
    """The binding that a launch is.

    Args:  names: of the kernel's arguments; values: {name: what is handed in}; grid: how many programs each axis has
           kinds: {a block: what it is taken for}; axes: {an axis of the grid: what it is taken for}
           stride: the block that rows are taken to lie apart
    """

    def __init__(self, names, values, grid, kinds, axes=(), stride=None):
        self.values, self.stride = values, stride
        self.kinds = {key: kind for key, kind in kinds.items() if kind is not None}
        self.blocks = {letter(key): plain(values[key]) for key in self.kinds}
        # {what a launcher computes: what stands for it}
        self.exchange: list[tuple[Expr, Expr]] = []
        even = set()
        for key, kind in self.kinds.items():
            e = self.blocks[letter(key)]
            if kind is CHUNK:
                continue
            size, tiles = {
                WHOLE: (N, S.One),
                COLUMNS: (N, COLUMN_TILES),
                ROWS: (M, ROW_TILES),
            }[kind]
            self.exchange.append((ceiling(size, e), tiles))
            if state().way.divides(e, size):
                even.add(size)
            if not e.is_number:
                self.exchange.append((e, letter(key)))
        self.counts = grid
        taken = dict(axes)
        self.grid = [
            taken.get(axis) or self._axis(axis, count)
            for axis, count in enumerate(grid)
        ]
        while len(self.grid) > 1 and self.grid[-1] == 0:
            self.grid.pop()
        self.tensors: dict[str, Array] = {}
        # {a tensor that is handed in with its stride: what stands for that, as torch takes any for a single row}
        self.strides = {}
        for value in values.values():
            if isinstance(value, Stride) and value.e == N and state().way.apart:
                name = f"row_stride_{len(self.strides)}"
                self.strides.setdefault(id(value.memory), letter(name))
        self.locks = [a.memory.shape[0] / 2 for a in values.values() if is_lock(a)]
        self.groups = {}
        self.parts = [
            value.memory
            for value in values.values()
            if isinstance(value, Array) and value.memory.partial
        ]
        if self.parts:
            self._exchange_rows(values)
        given = [key for key in names if key in values]
        arguments = {key: self._argument(key, values[key]) for key in given}
        self.launch = Launch(
            arguments,
            tuple(self.grid),
            called=True,
            groups=self.groups,
            even=frozenset(even),
        )

    def _exchange_rows(self, values):
        """Takes the rows of partial sums for M, in a kernel that adds them up and is handed nothing else with M rows.

        For the second kernel of dw. It stops one that adds up rows which no program may have written.
        """
        rows = self.parts[0].shape[0]
        fewer = Min(rows, M)
        sizes = {plain(v) for v in values.values() if is_number(v)}
        if any(part.shape != self.parts[0].shape for part in self.parts):
            raise NotRead("partial sums of several shapes")
        size = fewer if fewer in sizes else rows
        if size == rows and any(part.is_short for part in self.parts):
            raise NotRead("rows of partial sums that may not be written are added up")
        others = [*(sizes - {size}), *[c for c in self.counts if c != size]]
        arrays = [value.memory for value in values.values() if isinstance(value, Array)]
        others += [e for a in arrays if a not in self.parts for e in a.shape]
        if any(e.has(M) for e in others):
            raise NotRead("a kernel that adds up partial sums and takes rows besides")
        self.exchange.insert(0, (size, M))
        self.rows = size

    def _tiles(self, *kinds):
        """How many tiles there are of a block of these kinds."""
        for key, kind in self.kinds.items():
            if kind in kinds:
                return ceiling(M if kind is ROWS else N, plain(self.values[key]))
        return None

    def needed(self, kind):
        """How many programs an axis of the grid has that is of a kind."""
        tiles = {"row tiles": ROWS, "column tiles": COLUMNS}
        return M if kind == "rows" else self._tiles(tiles[kind])

    def _axis(self, axis, count):
        """What an axis of the grid is: rows, tiles, 0 for one program, or any number of programs."""
        if count == 1 or count == self._tiles(WHOLE):
            return 0
        if count in LEADING and set(LEADING) <= set(self.counts):
            return LEADING_AXES[LEADING.index(count)]
        kinds = ["rows", "row tiles", "column tiles"]
        if ROWS in self.kinds.values():  # of one row each, there are as many as rows
            kinds = ["row tiles", "rows", "column tiles"]
        for kind in kinds:
            if count == self.needed(kind):
                return kind
        share = ceiling(M, count), CEILING(M, PROGRAMS[axis])
        self.exchange.append(share)
        if not (count.is_number or count == N):
            self.exchange.append((count, PROGRAMS[axis]))
        return "programs"

    def _argument(self, key, value):
        """What an argument is bound as."""
        if key in self.kinds:
            return self.kinds[key]
        if isinstance(value, Array):
            return self._tensor(key, value)
        if isinstance(value, Fields):
            value = value.values.get("value", value)
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, DType):
            return FLOAT
        if isinstance(value, Address):
            return letter(f"{ADDRESS}{key}")
        if is_number(value):
            e = plain(value)
            is_float = kind_of(value) == "float"
            if is_float and e.is_Integer:
                return float(e)
            if is_float and e.is_integer is not False and not e.has(eps):
                raise NotRead(
                    f"{key}: a float is handed to a kernel that may be an integer"
                )
            if (
                isinstance(value, Stride)
                and id(value.memory) in self.strides
                and e == N
            ):
                return self.strides[id(value.memory)]
            if self.parts and e == self.rows:
                return M
            if e.is_number:
                return e
            # the whole before its parts, and of two names for one number the first
            return e.xreplace(dict(reversed(self.exchange)))
        raise NotRead(f"{key}: {type(value).__name__} is handed to a kernel")

    def _tensor(self, key, value):
        """A pointer: memory that holds nothing, zeros, or what was written there."""
        memory = value.memory
        memory.check_whole()
        for name, other in self.tensors.items():
            if other.memory is memory:
                return Same(name)
        if memory.is_on_cpu:
            raise NotRead(
                f"{key} is made without a device, so on the CPU: say device=x.device"
            )
        if not memory.is_ordered:
            raise NotRead(
                f"{key} is made after a transposition, whose layout it may have"
            )
        if is_lock(value):
            self.tensors[key] = value
            return Lock(memory.shape[0] / 2)
        is_read = memory.kind == "float" or is_target(memory.e)
        if value.turns or value.library != "torch" or not is_read:
            raise NotRead(f"{key}: a part of an array is handed to a kernel")
        index = self._index(key, memory)
        self.tensors[key] = value
        stride = memory.row_stride or self.strides.get(id(memory))
        if self.stride is not None and index == "i, j":
            stride = plain(self.values[self.stride])
            if self.stride in self.kinds:
                stride = letter(self.stride)
        if not memory.written:
            return Out(key, index, stride)
        if memory.e == 0 and not memory.argument:
            return Zeros(key, index, stride)
        if memory.partial:
            entry = tensor(f"partial_{key}", M, N)[i, j]
            return InOut(entry, "i, j", stride, then=key)
        start = self._head(key) * N if memory.per_head else S.Zero
        return InOut(of_rows(memory), index, stride, start=start, then=key)

    def _head(self, key):
        """The head of a program's row, whose vector it is to take.

        For a weight of the shape (T, N), by t of a grid (B, T), or by the row modulo T. It stops the weight of b.
        """
        for axis, kind in enumerate(self.grid):
            if kind == LEADING_AXES[1]:
                return PIDS[axis]
            if kind == "rows":
                return group_of(PIDS[axis], LEADING[1])
        raise NotRead(f"{key}, a vector for each head, in a grid without heads")

    def _index(self, key, memory):
        sizes = tuple(size for size in memory.shape if size != 1)
        if memory.partial and sizes[1:] == (N,):
            return "i, j"
        if sizes[1:] == (N,) and sizes[0] in self.locks:
            return self._group(key, memory)
        if sizes in LETTERS:
            return LETTERS[sizes]
        for axis, kind in enumerate(self.grid):
            if sizes and kind in ("programs", "row tiles"):
                if sizes[0] == self.counts[axis] and sizes[1:] in ((), (N,)):
                    return "p, j" if sizes[1:] else "p"
        raise NotRead(f"{key} of the shape {memory.shape} is handed to a kernel")

    def _group(self, key, memory):
        """A row for all programs whose number is the same modulo the number of locks."""
        if memory.dtype == UNNAMED:
            state().dtypes.add("asked for")
            raise NotRead("which dtype partial sums have")
        if memory.dtype == "float64":
            raise Unsupported("partial sums of float64 under a lock")
        self.groups[key] = memory.shape[0], memory.dtype == state().dtype
        return "p, j"

    @property
    def back(self) -> dict[Expr, Expr]:
        """{what stands for a number in the kernel: the launch's own}."""
        back = {stride: N for stride in self.strides.values()} | self.blocks
        numbers = *PROGRAMS, ROW_TILES, COLUMN_TILES
        return back | {e: own for own, e in self.exchange if e in numbers}


def letters_of(memory: Memory) -> dict:
    """{i or j: the letter of the memory's axis}."""
    last, letters = len(memory.shape) - 1, {}
    for axis, size in enumerate(memory.shape):
        if size in (M, N):
            letters[{M: i, N: j}[size]] = AXES[last - axis]
    return letters


def of_rows(memory: Memory) -> Expr:
    """An entry in i and j."""
    back = {axis: index for index, axis in letters_of(memory).items()}
    return memory.e.xreplace(back)


def is_lock(value: Any) -> bool:
    """Whether a tensor is of locks and their counts: zeros of int32, of which there are twice as many as locks."""
    if not isinstance(value, Array) or value.memory.kind != "int":
        return False
    shape = value.memory.shape
    is_whole = value.shape == shape and len(shape) == 1 and not value.turns
    return is_whole and value.memory.e == 0 and shape[0].is_even is True
