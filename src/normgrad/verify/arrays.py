"""Arrays with symbolic shapes: an axis has 1, M or N entries, and an entry is an expression of the proof kernel.

An entry stands in one letter per axis, counted from the last axis, so that what NumPy broadcasts has equal letters.
No size is ever put in. What depends on one is refused: an index, a branch, a remainder, a table.

What is trusted: that the operations below are those of real arithmetic, so that a cast between floats, the order of a
sum, overflow and NaN are left out; that views share memory as they do in NumPy and torch; and the rows of
`tables`. A comparison of values is a step function, right where the two sides differ, and is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import zip_longest
from operator import add, mul, sub
from typing import Any

import sympy
from sympy import Dummy, Expr, Heaviside, Integer, Rational, S, Sum, evaluate

from ..symbolic.normal_form import nf
from ..symbolic.notation import index
from ..symbolic.signs import is_nonnegative, is_positive
from ..symbolic.symbols import M, N
from .binding import PIDS
from .binding import PROGRAMS as PROGRAM_COUNTS
from .definitions import LETTERS, is_target
from .digits import (
    ROUNDED,
    Exponentials,
    is_cancelling,
    is_exact,
    is_scaled,
    is_variance,
    overflowing,
)
from .maxima import Maximum, head_of
from .over_rows import Turn, summed
from .places import FLOOR
from .sizes import LEADING, Way, bit_and, bit_length, floor, in_rows, power_of_2
from .values import BEFORE, Misfit, NotRead, Wrong, check_bits
from .values import power as power_of_numbers

# AXES[0] is the letter of the last axis
AXES = index("a1", "a2", "a3", "a4")
ONE = Integer(1)
PROGRAM, PROGRAMS = PIDS[0], PROGRAM_COUNTS[0]
LASTS = "what __init__ made, which lasts from call to call"


@dataclass
class State:
    """What one trace notes.

    Args:  library: "numpy" or "torch", the arguments' own; dtype: the arguments' own, by name
           loops: the turns of the loops that run; domain: powers and logarithms as written, for their side conditions
           kinks: pairs of values that were compared; zeros: values that are taken for 0
           words: what else is assumed
           sizes: that axes may have besides 1, M and N; zero: whether what is compared with 0 is 0
           writes: how often memory was written; cut: whether a gradient does not pass somewhere
           dtypes: the names of all that hold a number; values: all numbers and entries of arrays on the way
           way: through the branches of a function that launches kernels, None for another function
           needed: the conditions of its kernels; filled: their lines where a masked lane counts as 0
           narrowed: what else the claim needs to say of them; numbers: of dtypes
           widths: (what has to be below 2^31, the line) of the integers in its kernels
           line: that is read; cancelling: the lines of variances that are differences of nearly equal numbers
           narrow: (what is rounded below float32, the line) of sums, of rows' statistics and of what is used further
           exponentials: that may overflow
           maxima: {the largest of a row: its Maximum}
           made: the memories that the __init__ of a layer makes, while it is read; None else
           is_turned: whether a tensor has been transposed, whose layout later ones may have
    """

    library: str
    dtype: str
    loops: list[Turn] = field(default_factory=list)
    domain: list[Expr] = field(default_factory=list)
    kinks: list[tuple[Expr, Expr]] = field(default_factory=list)
    zeros: list[Expr] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    sizes: tuple[Expr, ...] = ()
    zero: bool = False
    writes: int = 0
    cut: bool = False
    dtypes: set[str] = field(default_factory=set)
    values: list[Expr] = field(default_factory=list)
    way: Way | None = None
    needed: list = field(default_factory=list)
    filled: set[int] = field(default_factory=set)
    narrowed: dict[str, None] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    widths: list[tuple] = field(default_factory=list)
    line: int = 0
    cancelling: list[int] = field(default_factory=list)
    narrow: list[tuple[str, int]] = field(default_factory=list)
    exponentials: Exponentials = field(default_factory=Exponentials)
    maxima: dict = field(default_factory=dict)
    is_turned: bool = False
    made: list | None = None

    def beside(self, other: State) -> State:
        """This state with all that another trace rests on."""
        names = (
            "domain kinks zeros words needed numbers widths cancelling narrow".split()
        )
        notes = {name: getattr(self, name) + getattr(other, name) for name in names}
        return replace(self, maxima=self.maxima | other.maxima, **notes)


LEAST_FLOAT = Rational(1, 2**1000)
HALVES = ("float16", "bfloat16")
# the dtype of the arguments, for a program that does the same for every dtype
UNNAMED = "unnamed"
_state: ContextVar[State] = ContextVar("state")


def state() -> State:
    """The state of the trace that runs."""
    return _state.get()


@contextmanager
def tracing(library: str, dtype: str, way: Way | None = None) -> Iterator[State]:
    """A new trace; way: as of State."""
    token = _state.set(State(library, dtype, way=way))
    try:
        yield _state.get()
    finally:
        _state.reset(token)


@dataclass(frozen=True)
class DType:
    """A dtype of floating point numbers; "mixed" for what comes of two."""

    library: str
    name: str


@dataclass(frozen=True)
class Scalar:
    """A number of Python's that is not a plain int: an expression, and "int" or "float".

    Args:  rounded: whether it is a float that arithmetic made, whose digits Python rounds
    """

    e: Expr
    kind: str
    rounded: bool = False


@dataclass(frozen=True)
class Stride(Scalar):
    """A stride; memory: of the tensor. Where an axis has one entry torch takes any stride for that of its size."""

    memory: Any = None


def note_stride(*values: Any) -> None:
    """Note that a launcher does more with a stride than to hand it to a kernel.

    For `assert x.stride(1) == 1`. It stops `if x.stride(0) != N: return x`, as a tensor of one row may have any stride.
    """
    if any(isinstance(value, Stride) for value in values):
        way = state().way
        sizes = "B, T and N" if way and way.leading else "M and N"
        state().narrowed[f"{sizes} of at least 2, as it computes with strides"] = None


def number(e: Expr, kind: str) -> int | Scalar:
    """A number of Python's; a plain int where it is one."""
    check_bits(e)
    if kind == "int":
        e = in_rows(e) if state().way else sympy.expand(e)
    else:
        state().values.append(e)
    return (
        int(e) if kind == "int" and e.is_Integer else Scalar(e, kind, kind == "float")
    )


def kind_of(value: Any) -> str:
    """ "float" or "bool" of an array, "float" or "int" of a number; "int" of what is none of these, too."""
    return getattr(value, "kind", "int")


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python's, True and False included."""
    return isinstance(value, int | Scalar)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python's."""
    return is_number(value) and kind_of(value) == "int"


def plain(value: int | Scalar | Array) -> Expr:
    """The expression of a number, or of an array's entry."""
    return Integer(value) if isinstance(value, int) else value.e


def check_shape(shape: Sequence[Expr]) -> None:
    """Refuse an axis of another size than 1, M and N, and more axes than there are letters."""
    for size in shape:
        counted = state().way and size.is_integer and size.is_positive
        if size not in (ONE, M, N, *state().sizes) and not counted:
            raise NotRead(f"an axis of {size} entries, neither 1, M nor N")
    if len(shape) > len(AXES):
        raise NotRead(f"an array of {len(shape)} axes")


class Memory:
    """The entries that an array shares with its views.

    Args:  shape: of the array that was made first; e: an entry, None until one is written; kind: "float" or "bool"
           cell: of a sum that a loop adds up, what it is made of: "int", "float" or "array"; else ""
    """

    def __init__(self, shape, e, library, dtype, kind="float", cell=""):
        check_shape(shape)
        state().dtypes.add(dtype)
        self.shape, self.e, self.library, self.dtype = tuple(shape), e, library, dtype
        if e is not None:
            state().values.append(check_bits(e))
        self.kind, self.cell, self.fixed, self.argument = kind, cell, "", False
        self.written, self.changed = True, False
        # where its entries lost digits in 16 bits, as (("float16", 9),)
        self.rounded: tuple = ()
        # whether NumPy has a number for it, which += does not change
        self.scalar = False
        # from row to row, None where rows follow each other; whether each program holds the sum of its own rows
        self.row_stride, self.partial, self.per_head = None, False, False
        # whether the rows of partial sums hold nothing of which no program has a row
        self.is_short = False
        # whether its entries are known to follow each other row by row; whether it is made without a device
        self.is_ordered, self.is_on_cpu = not state().is_turned, False
        # the memories that may be this one, and whether one of them was written since
        self.group: list[Memory] = [self]
        self.is_lost = False
        self.born, self.zero_before = list(state().loops), ""
        self.read_whole = False
        # {open loop: the axis that its turn looks into, None where it looks into none}
        if state().made is not None:
            state().made.append(self)
        self.read_in: dict[Turn, int | None] = {}
        self.written_in: dict[Turn, int | None] = {}

    def outside(self) -> list[Turn]:
        """The open loops around which it was made."""
        return [loop for loop in state().loops if loop not in self.born]

    def check_whole(self) -> None:
        """Refuses what a write to a memory that may be this one has left.

        For dx in the place of dy.contiguous(). It stops a kernel that reads dy again, which may hold dx by then.
        """
        if self.is_lost:
            raise NotRead("what is read, or written, after what may be a view of it")

    def lose_others(self) -> None:
        """Keeps that the memories which may be this one hold it, or what they held."""
        self.check_whole()
        others = [memory for memory in self.group if memory is not self]
        for memory in others:
            if memory.fixed:
                raise NotRead(f"a write to what may be a view of {memory.fixed}")
            memory.is_lost = memory.changed = True


class Array:
    """An array, or a view of one.

    Args:  memory: its entries; shape: its sizes; axes: for every axis the memory's own, or None for one that
           broadcasts; turns: {axis of the memory: the row or column at which it is looked into}
    """

    def __init__(self, memory, shape, axes, turns=None):
        self.memory, self.shape, self.axes = memory, tuple(shape), tuple(axes)
        self.turns = turns or {}

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def library(self) -> str:
        """ "numpy" or "torch"."""
        return self.memory.library

    @property
    def kind(self) -> str:
        """ "float" or "bool"."""
        return self.memory.kind

    @property
    def dtype(self) -> str:
        """The name of its dtype."""
        return self.memory.dtype

    @property
    def mutable(self) -> bool:
        """Whether += changes it in place. NumPy's results without axes are numbers, which it does not change."""
        return self.library == "torch" or self.ndim > 0 or bool(self.memory.cell)

    def letter(self, axis: int) -> Expr:
        """The letter of an axis."""
        return AXES[self.ndim - 1 - axis]

    def _letters(self):
        """{letter in the memory: letter, or turn, here}."""
        last = len(self.memory.shape) - 1
        letters = {
            AXES[last - own]: self.letter(axis)
            for axis, own in enumerate(self.axes)
            if own is not None
        }
        return letters | {
            AXES[last - own]: turn.letter for own, turn in self.turns.items()
        }

    @property
    def e(self) -> Expr:
        """An entry. What a loop writes it may read at the same turn alone, and the other way round."""
        memory = self.memory
        if PROGRAMS in memory.shape or memory.partial:
            raise NotRead("a sum of a program's own rows is read")
        if self._elsewhere(memory.written_in):
            raise NotRead("an array that is read in the loop that writes it")
        if self._of_all_programs() and memory.changed:
            raise NotRead("what other programs may write is read")
        memory.read_whole = memory.read_whole or self._of_all_programs()
        self._note(memory.read_in)
        return self.unnoted()

    def _of_all_programs(self):
        """Whether a program looks into an argument outside of its own rows."""
        several = PROGRAMS in state().sizes and self.memory.argument
        return several and not any(turn.shared for turn in self.turns.values())

    def _axes_of_loops(self):
        axes = {turn: axis for axis, turn in self.turns.items()}
        return {loop: axes.get(loop) for loop in self.memory.outside()}

    def _elsewhere(self, accesses):
        """Whether one of the accesses may be to this entry in another turn of an open loop."""
        return any(
            loop in accesses and (axis is None or accesses[loop] != axis)
            for loop, axis in self._axes_of_loops().items()
        )

    def _note(self, accesses):
        for loop, axis in self._axes_of_loops().items():
            accesses[loop] = axis if accesses.get(loop, axis) == axis else None

    def unnoted(self) -> Expr:
        """An entry, for the statement that writes it."""
        self.memory.check_whole()
        if not self.memory.written:
            raise NotRead("an entry that was never written")
        return self.memory.e.xreplace(self._letters())

    def write(self, e: Expr, add: bool = False) -> None:
        """Write an entry, or add to it, at every turn of the loops around it.

        Args:  e: the entry, in this array's letters
        """
        memory = self.memory
        own = list(self.turns.values())
        if memory.fixed:
            raise NotRead(f"a write to {memory.fixed}")
        memory.lose_others()
        if not (memory.shape or memory.cell) and memory.library == "numpy":
            raise NotRead("a write to an array without axes")
        if memory.kind != "float":
            raise NotRead("a write to truth values")
        if any(
            axis is None and size != 1
            for axis, size in zip(self.axes, self.shape, strict=True)
        ):
            raise NotRead("a write to a broadcast view")
        if self._elsewhere(memory.read_in) or self._elsewhere(memory.written_in):
            raise NotRead("an array that is read, or written twice, in one loop")
        # e[j] of an e that is made in the turn of j is one entry
        is_short = any(t not in state().loops or t in memory.born for t in own)
        if len(set(own)) < len(own) or is_short:
            raise NotRead("a write to some entries only")
        over = [loop for loop in memory.outside() if loop not in own]
        if over and not add:
            raise NotRead("what the last turn of a loop leaves")
        if add and memory.zero_before:
            state().words.append(f"{memory.zero_before} {BEFORE}")
        elif add and not memory.written:
            raise NotRead("a sum that was not set to 0 first")
        self._check_share(own, over)
        self._note_digits(e, over)
        back = {here: there for there, here in self._letters().items()}
        e = summed(e, {turn.letter: turn.size for turn in over}).xreplace(back)
        memory.e = check_bits(memory.e + e if add else e)
        state().values.append(memory.e)
        memory.written = memory.changed = True
        memory.zero_before = ""
        state().writes += 1
        self._note(memory.written_in)

    def _note_digits(self, e, over):
        """Notes what is kept below float32: a sum that turns of a loop add to, and a number of each row.

        For `dw = torch.zeros(N, dtype=torch.float16)` and `dw += dy[i] * x_hat[i]` over the rows, which stops at 2048
        where 5000 is right. It leaves out a result that is added up in float32 and stored in 16 bits.
        """
        dtype = self.memory.dtype
        note_cancelling(dtype, e, {turn.letter: turn.size for turn in over})
        if dtype not in HALVES:
            return
        if over:
            state().narrow.append((f"sums in {dtype}", state().line))
        elif is_statistic(self.memory.shape, e):
            state().narrow.append((f"a row's statistic in {dtype}", state().line))
        else:
            keep_rounding(self, e)

    def _check_share(self, own, over):
        """Refuse a write that depends on which of several programs has a row."""
        if PROGRAMS not in state().sizes:
            return
        shared = {loop for loop in state().loops if loop.shared}
        in_own_place = PROGRAMS in self.memory.shape
        if PROGRAMS in self.shape or len(shared) > 1:
            raise NotRead("a write in the places of several programs")
        if in_own_place != bool(shared & set(over)):
            raise NotRead(
                "a sum of some rows, or a program's own place, without the other"
            )
        if self.memory.argument and not in_own_place:
            if not shared & set(own):
                raise NotRead("an array that every program writes")
            if self.memory.read_whole:
                raise NotRead("what other programs may read is written")


# what a claim says of a program that takes (B, T, N) and returns (M, N)
TWO_AXES = "results of two axes"


class Split(Array):
    """A tensor of three axes whose rows are those of two: M is the product of the first axes.

    For programs that take (B, T, N). What is done with each entry, or over a row, is done with the rows. It stops what
    tells B from T: a sum over one of them, and their exchange.

    Args:  rows: the same memory as (M, N) or (M,)
    """

    def __init__(self, rows: Array):
        self.rows, self.memory, self.turns = rows, rows.memory, {}
        self.shape = self._sizes()

    def _sizes(self):
        return (*LEADING, *self.rows.shape[1:])

    @property
    def axes(self):
        """Refused: an axis of the memory is none of these."""
        raise NotRead(f"arithmetic of a tensor {self.shape}, which is read by rows")

    e = axes


class PerHead(Split):
    """A vector for each of the heads T of x, of the shape (T, N); else as a Split.

    Args:  rows: the vector of the head that is looked at, as (N,)
    """

    def _sizes(self):
        self.memory.per_head = True
        return LEADING[1], *self.rows.shape


class Flat(Split):
    """A view of all entries of (M, N) one after the other, of the shape (M*N,); else as a Split."""

    def _sizes(self):
        return (M * N,)


def by_rows(a: Any) -> Any:
    """A tensor of three axes, or of one axis for all entries, as one of two; any other value as it is."""
    return a.rows if isinstance(a, Split) else a


def as_result(a: Any) -> Any:
    """A result as one of two axes, unless its entries are on one axis, which is no shape of y.

    For y of (B, T, N). It stops a claim that leaves out that y of such an x has two axes.
    """
    if state().way and state().way.leading and type(a) is Array and a.shape[:1] == (M,):
        state().narrowed[TWO_AXES] = None
    return a if isinstance(a, Flat) else by_rows(a)


def array(shape, e, library, dtype, kind="float", cell="") -> Array:
    """A new array."""
    if tuple(shape) == (M * N,) and state().way:
        return Flat(array((M, N), e, library, dtype, kind, cell))
    if tuple(shape[:2]) == LEADING:
        return Split(array((M, *shape[2:]), e, library, dtype, kind, cell))
    memory = Memory(shape, e, library, dtype, kind, cell)
    return Array(memory, memory.shape, range(len(memory.shape)))


def like(a: Array, shape: Sequence[Expr], e: Expr) -> Array:
    """A new array of the library and dtype of another."""
    return array(shape, e, a.library, a.dtype, a.kind)


def floats(a: Any, words: str = "an operation") -> Array:
    """The argument itself; refused where it is not an array of floats."""
    if not isinstance(a, Array):
        raise NotRead(f"{words} of {type(a).__name__}, which is not an array")
    if a.kind != "float":
        raise NotRead(f"{words} of truth values, which count as integers")
    return a


def check_no_targets(*arrays: Array) -> None:
    """Refuses what is done with targets, which are integers.

    For cross entropy, whose launcher hands them to a kernel. It stops target.float(), which is no index of a column,
    and a comparison of targets, which leaves out more than single points.
    """
    for a in arrays:
        if is_target(a.memory.e):
            raise NotRead("arithmetic, a cast or a comparison of targets")


def copied(a: Array) -> Array:
    """A new array with the same entries."""
    return of_one_rounding(like(a, a.shape, a.e), a)


# digits that are lost in 16 bits


def of_one_rounding(new: Any, *values: Any) -> Any:
    """What holds entries of other arrays, which lost digits where theirs did."""
    for value in values:
        if isinstance(value, Array):
            new.memory.rounded += value.memory.rounded
    return new


def is_statistic(shape: Sequence[Expr], e: Expr) -> bool:
    """Whether an entry is a number of a whole row, and is none of a column's turn."""
    columns = {turn.letter for turn in state().loops if turn.size == N}
    return N not in shape and e.has(Sum) and not columns & e.free_symbols


def keep_rounding(a: Array, e: Expr) -> None:
    """Keeps that an array of 16 bits holds numbers that have more of them, whatever the arguments' dtype.

    For x_hat.half(), and a product of two tensors of float16. It leaves out an entry of an argument, which may be of
    that dtype, and a row's statistic, which is named as one.
    """
    of_a_row = is_statistic(a.memory.shape, e)
    if a.dtype in HALVES and not of_a_row and not is_exact(e):
        a.memory.rounded += ((a.dtype, state().line),)


def use_rounded(*values: Any) -> None:
    """Notes where what is used further has lost digits."""
    for value in values:
        if isinstance(value, Array):
            for dtype, line in value.memory.rounded:
                state().narrow.append((f"{ROUNDED} in {dtype}", line))


def note_digits(operation: str, a: Expr, b: Expr, dtype: str) -> None:
    """Notes a variance in one pass, and a product or quotient that is nan where an exponential overflows.

    Args:  dtype: of the result
    """
    wider = dtype == "float64" != state().dtype
    if not wider and is_variance(operation, a, b):
        state().cancelling.append(state().line)
    note_overflow(state().exponentials.of_operation(operation, a, b))


def note_cancelling(dtype: str, e: Expr, sizes: dict) -> None:
    """Notes a sum whose terms cancel to a variance; sizes: {letter: size} of what it is over."""
    wider = dtype == "float64" != state().dtype
    columns = [letter for letter, size in sizes.items() if size == N]
    if columns and not wider and is_cancelling(e, columns[0]):
        state().cancelling.append(state().line)


def note_overflow(lines: list[int]) -> None:
    """Notes the lines of exponentials that overflow."""
    if lines:
        state().numbers.append(overflowing(lines))


def scalar(a: Array) -> Array:
    """The array itself, of which NumPy makes a number where it has no axes."""
    a.memory.scalar = True
    return a


def perhaps_view(a: Array, new: Array) -> Array:
    """A result that shares memory with its argument in some cases: neither is written from now on.

    In a launcher one may be written, and the other is then not read.
    """
    if state().way is None:
        a.memory.fixed = new.memory.fixed = "what may be a view of another array"
        return new
    group = [*a.memory.group, *new.memory.group]
    for memory in group:
        memory.group = group
    return new


def broadcast(*shapes: Sequence[Expr]) -> tuple[Expr, ...]:
    """The shape to which shapes are broadcast.

    Raises:  Misfit where they do not fit at some sizes, as (M, N) and (M,) do not where M, N and 1 differ
    """
    result = []
    from_last = zip_longest(*map(reversed, shapes), fillvalue=ONE)
    for sizes in reversed(list(from_last)):
        longer = [size for size in dict.fromkeys(sizes) if size != 1]
        if len(longer) > 1:
            both = " and ".join(str(tuple(shape)) for shape in shapes)
            sizes = " and ".join(map(str, longer))
            raise Misfit(f"the shapes {both} do not fit together for every {sizes}")
        result += longer or [ONE]
    return tuple(result)


def elementwise(
    f: Callable[..., Expr], *operands: Any, kind: str = "float", is_chosen: bool = False
) -> Array:
    """f of every entry, with broadcasting.

    Args:  f: of expressions; operands: arrays of floats of one library, and numbers
           is_chosen: whether each entry is one of an operand
    """
    for value in operands:
        if not isinstance(value, Array | Scalar | int):
            raise NotRead(f"arithmetic of an array with {type(value).__name__}")
    arrays = [value for value in operands if isinstance(value, Array)]
    if any(type(a) is Split for a in arrays):
        operands = map(beside_rows, operands)
        return Split(elementwise(f, *operands, kind=kind, is_chosen=is_chosen))
    library, dtype = _common(arrays)
    shape = broadcast(*[a.shape for a in arrays])
    value = array(shape, f(*map(plain, operands)), library, dtype, kind)
    _keep_roundings(value, arrays, is_chosen)
    return scalar(value)


def beside_rows(value):
    """An operand as it stands beside the rows of a tensor (B, T, N)."""
    if type(value) is Split:
        if value.rows.shape[:1] != (M,):
            raise NotRead("a tensor (B, T, N) beside one that has other rows")
        return value.rows
    if isinstance(value, Array) and value.ndim == 3 and value.shape[:1] == (ONE,):
        value = moved(value, [1, 2])
    if isinstance(value, Array) and value.ndim == 2 and value.shape[:1] != (ONE,):
        raise NotRead(f"a tensor (B, T, N) beside one of the shape {value.shape}")
    return value


def _by_rows(reduce):
    """A reduction that is also one of a tensor (B, T, N), over the entries of a row or over all rows.

    For x.sum(-1) and dy.sum((0, 1)) of such tensors. It stops a sum over one of B and T.
    """

    @wraps(reduce)
    def reduced(a, axes, keep=False, *options, **named):
        if type(a) is not Split:
            return reduce(a, axes, keep, *options, **named)
        if sorted(axes) == [2] and a.rows.ndim == 2:
            return Split(reduce(a.rows, [1], keep, *options))
        if sorted(axes) == [0, 1] and not keep:
            return reduce(a.rows, [0], keep, *options)
        words = "over other axes than its rows'"
        raise NotRead(f"a reduction of a tensor (B, T, N) {words}")

    return reduced


def _keep_roundings(value, arrays, is_chosen):
    """Keeps where a result, and what it is made of, lose digits.

    For x_hat * w of a rounded x_hat. It leaves out a power of 2 and a sign, by which no digit is lost.
    """
    e = by_rows(value).memory.e
    if is_chosen:
        of_one_rounding(by_rows(value), *arrays)
        return
    for a in arrays:
        if a.memory.rounded and is_scaled(e, a.e):
            of_one_rounding(value, a)
            return
    use_rounded(*arrays)
    keep_rounding(by_rows(value), e)


def _common(arrays):
    """(library, dtype) of what is made of arrays; the dtype "mixed" of two."""
    check_no_targets(*arrays)
    if len({a.library for a in arrays}) > 1:
        raise NotRead("arithmetic of a NumPy array with a torch tensor")
    dtypes = {a.dtype for a in arrays if a.kind == "float"}
    return arrays[0].library, dtypes.pop() if len(dtypes) == 1 else "mixed"


# arithmetic of entries, with what must hold for a result to be one


def check_defined(f: Callable[[Expr], Expr], e: Expr) -> None:
    """Notes where f may not be defined at e; refuses a power or a logarithm of 0."""
    if not is_positive(e):
        if e.is_zero:
            raise NotRead("a division by 0, or a root, a power or a logarithm of 0")
        with evaluate(False):
            state().domain.append(f(e))


def power(base: Expr, exponent: Expr) -> Expr:
    """base**exponent; the exponent is a number."""
    if not exponent.is_number:
        raise NotRead("a power whose exponent depends on sizes or values")
    if not (exponent.is_Integer and exponent >= 0):
        check_defined(lambda e: e**exponent, base)
    return power_of_numbers(base, exponent) if base.is_number else base**exponent


def divide(a: Expr, b: Expr) -> Expr:
    """a / b."""
    return a * power(b, S.NegativeOne)


def check_comparison(a: Expr, b: Expr) -> None:
    """Refuses a comparison of numbers, and of equal values."""
    if (a - b).is_number:
        raise NotRead("a comparison of numbers in arrays, which may be rounded")
    if nf(a - b) == 0:
        raise NotRead("a comparison of equal values")


def is_case_of_zero(a: Expr, b: Expr) -> bool:
    """Whether a is compared with 0 and taken for 0; else the claim says where a is not b."""
    if b == 0 and state().zero and is_nonnegative(a):
        state().zeros.append(a)
        return True
    state().kinks.append((a, b))
    return False


def above(a: Expr, b: Expr) -> Expr:
    """1 where a > b, and 0 where a < b."""
    check_comparison(a, b)
    if is_positive(a - b):
        return S.One
    if is_case_of_zero(a, b):
        return S.Zero
    return S.One if is_nonnegative(a - b) else Heaviside(a - b)


def alike(a: Expr, b: Expr) -> Expr:
    """0, since a is not b but at single points, which stand in the claim; 1 where it is a case of its own.

    For np.where(n == 0, 1, n). It stops np.where(x * 0 == 0, y, 0): two values that are equal everywhere.
    """
    check_comparison(a, b)
    differ = is_positive(a - b) or is_positive(b - a)
    return S.Zero if differ else S(int(is_case_of_zero(a, b)))


ARITHMETIC: dict[str, Callable[[Expr, Expr], Expr]] = {
    "Add": add,
    "Sub": sub,
    "Mult": mul,
    "Div": divide,
    "Pow": power,
}


# of integers in a launcher
OF_SIZES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "FloorDiv": floor,
    "Mod": lambda a, b: a - b * floor(a, b),
    "LShift": lambda a, b: a * power_of_2(b),
    "RShift": lambda a, b: floor(a, power_of_2(b)),
    "BitAnd": bit_and,
}
LOGIC = {"BitAnd": mul, "BitOr": lambda p, q: p + q - p * q}


def arithmetic(operation: str, a: Any, b: Any) -> Any:
    """a + b and the like, of arrays and numbers.

    Args:  operation: the name of its node in Python's syntax tree
    """
    if operation == "MatMult":
        return matmul(a, b)
    if is_number(a) and is_number(b):
        return _of_numbers(operation, a, b)
    kinds = [kind_of(a), kind_of(b)]
    if operation in LOGIC and kinds == ["bool", "bool"]:
        return elementwise(LOGIC[operation], a, b, kind="bool")
    if operation not in ARITHMETIC:
        raise NotRead(f"{operation} of arrays")
    if operation == "Sub" and bool in (type(a), type(b)):
        raise NotRead("a difference with True or False, which torch refuses")
    if "bool" in kinds and not (operation == "Mult" and "float" in kinds):
        raise NotRead(f"{operation} of truth values, which count as integers")
    value = elementwise(ARITHMETIC[operation], a, b)
    if isinstance(value, Array):
        sides = [by_rows(v).e if isinstance(v, Array) else plain(v) for v in (a, b)]
        note_digits(operation, *sides, value.dtype)
    return value


def _of_numbers(operation, a, b):
    note_stride(a, b)
    kind = "int" if is_integer(a) and is_integer(b) else "float"
    exact = isinstance(a, int) and isinstance(b, int)
    if exact and b != 0 and operation in ("FloorDiv", "Mod"):
        return a // b if operation == "FloorDiv" else a % b
    left, right = plain(a), plain(b)
    if operation == "FloorDiv" and PROGRAMS in state().sizes:
        return number(FLOOR(sympy.expand(left), right), kind)
    if kind == "int" and state().way:
        if operation == "Pow" and left == 2 and right.has(bit_length):
            left, operation = ONE, "LShift"
        if operation in OF_SIZES:
            return number(OF_SIZES[operation](left, right), kind)
    if operation not in ARITHMETIC:
        raise NotRead(f"{operation} of numbers that depend on a size")
    if operation == "Div":
        kind = "float"
    if operation == "Pow":
        if not right.is_number or abs(right) > 64:
            raise NotRead("a power whose exponent is large, or depends on a size")
        if right < 0 and kind == "int" and state().sizes:
            raise NotRead("a negative power of an integer, which Numba cuts")
        kind = "float" if right < 0 else kind
    e = ARITHMETIC[operation](left, right)
    if kind == "float" and e.is_number and operation in ("Add", "Sub"):
        _check_digits(e, left, right)
    if kind == "float" and e.is_Rational:
        _check_range(e)
    return number(e, kind)


def _check_digits(e, left, right):
    """Refuses a sum of floats that has few of their digits.

    For `1.0 - 0.1`. It stops K = 1e16 + 1 - 1e16, which is 1 of real numbers and 0 of Python's.
    """
    if abs(e) * 10**9 < max(abs(left), abs(right)):
        raise NotRead(f"a sum of {left} and {right}, floats that cancel")


def _check_range(e):
    """Refuses a number that a float has no digits for.

    For `1e-5 * 1e-5`. It stops 1e-200 * 1e-200 * 1e200 * 1e200, which is 1 of real numbers and 0 of Python's.
    """
    if e != 0 and not LEAST_FLOAT < abs(e) < 1 / LEAST_FLOAT:
        raise NotRead("arithmetic of floats, past the largest or the smallest")


def inverted(condition: Array) -> Array:
    """True where truth values are false."""
    return elementwise(lambda h: 1 - h, condition, kind="bool")


def compared(operation: str, a: Any, b: Any) -> Array:
    """a > b, a >= b, a < b, a <= b, a == b or a != b, of arrays: truth values."""
    if "bool" in (kind_of(a), kind_of(b)):
        raise NotRead("a comparison of truth values")
    if operation in ("Eq", "NotEq"):
        equal = elementwise(alike, a, b, kind="bool")
        return equal if operation == "Eq" else inverted(equal)
    if operation in ("Lt", "LtE"):
        a, b = b, a
    return elementwise(above, a, b, kind="bool")


def chosen(condition: Any, a: Any, b: Any) -> Array:
    """where(condition, a, b)."""
    if kind_of(condition) != "bool":
        raise NotRead("where of a condition that is not a comparison of values")
    kinds = [kind_of(a), kind_of(b)]
    if "bool" in kinds or "float" not in kinds:
        raise NotRead("where of truth values, or of integers")
    # np.where makes an array without axes, and no number
    return copied(
        elementwise(
            lambda h, p, q: h * p + (1 - h) * q, condition, a, b, is_chosen=True
        )
    )


# axes


def axis_of(a: Array, axis: Any, more: int = 0) -> int:
    """An axis counted from the first."""
    ndim = a.ndim + more
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise NotRead(f"an axis that is {type(axis).__name__}, not a plain int")
    if not ndim:
        raise NotRead("an axis of an array without axes")
    if not -ndim <= axis < ndim:
        raise Misfit(f"axis {axis} of an array with {ndim} axes")
    return axis % ndim


def axes_of(a: Array, axis: Any) -> list[int]:
    """The axes of a reduction: all of them for None."""
    if axis is None:
        return list(range(a.ndim))
    if a.library == "numpy" and isinstance(axis, list):
        raise Wrong("axes in a list, which NumPy refuses")
    axes = [axis_of(a, k) for k in (axis if isinstance(axis, tuple | list) else [axis])]
    if len(set(axes)) < len(axes):
        raise Misfit("an axis that is given twice")
    if not axes:
        raise NotRead("a reduction over an empty tuple of axes")
    return axes


def moved(a: Array, order: Sequence[int | None], turns=None) -> Array:
    """A view whose axis k is order[k]; None makes a new axis of one entry."""
    if type(a) is Split:
        if list(order[:2]) != [0, 1] or turns:
            raise NotRead("a tensor (B, T, N) whose first axes change their places")
        rest = [axis if axis is None else axis - 1 for axis in order[2:]]
        return Split(moved(a.rows, [0, *rest]))
    shape = [ONE if axis is None else a.shape[axis] for axis in order]
    kept = [axis for axis in order if axis is not None]
    state().is_turned |= kept != sorted(kept)
    axes = [None if axis is None else a.axes[axis] for axis in order]
    return Array(a.memory, shape, axes, {**a.turns, **(turns or {})})


# the first entry of each row, as a column
FIRST_OF_ROW = slice(None, 1), slice(0, 1)


def indexed(a: Array, key: Any, write: bool = False) -> Array:
    """a[key], a view: full slices, None, ..., turns of loops, and 0 in an axis of one entry.

    The first entry of each row, to be read, is any number in a proof, as the largest is.

    Args:  write: whether it is written; to be read, an entry of a NumPy array is a number of its own
    """
    key = key if isinstance(key, tuple) else (key,)
    parts = list(key) if Ellipsis in key else [*key, Ellipsis]
    count = len(parts) - parts.count(None) - 1
    if count > a.ndim:
        raise Misfit(f"{count} indices of an array with {a.ndim} axes")
    at = parts.index(Ellipsis)
    parts[at : at + 1] = [slice(None)] * (a.ndim - count)
    order, turns, axis, firsts = [], {}, 0, {}
    for part in parts:
        if part is None:
            order.append(None)
            continue
        is_in_row = a.shape[axis] == N and not write
        if is_in_row and (part in FIRST_OF_ROW or type(part) is int and part == 0):
            firsts[len(order)] = isinstance(part, slice)
            order.append(axis)
        elif isinstance(part, slice):
            _check_whole(part, a.shape[axis])
            order.append(axis)
        elif a.shape[axis] == PROGRAMS and part == Scalar(PROGRAM, "int"):
            pass
        elif isinstance(part, Turn):
            if a.shape[axis] != part.size:
                raise Misfit(
                    f"a loop over {part.size} looks into an axis of {a.shape[axis]} entries"
                )
            if a.axes[axis] is None:
                raise NotRead("a row of a broadcast view")
            turns[a.axes[axis]] = part
        elif not (type(part) is int and part in (0, -1) and a.shape[axis] == 1):
            raise NotRead("one entry, or a part, of an array")
        axis += 1
    view = moved(a, order, turns)
    if len(firsts) > 1:
        raise NotRead("one entry, or a part, of an array")
    if firsts:
        ((position, keep),) = firsts.items()
        first = greatest(view, [position], keep, is_first=True)
        is_number_of_its_own = a.library == "numpy" and not first.ndim
        return scalar(first) if is_number_of_its_own else perhaps_view(a, first)
    if write or order or a.library == "torch":
        return view
    return perhaps_view(a, copied(view)) if Ellipsis in key else scalar(copied(view))


def _check_whole(part, size):
    ends = part.stop is None or is_number(part.stop) and plain(part.stop) == size
    if isinstance(part.stop, Scalar):
        sizes_of([part.stop])
    starts = part.start is None or type(part.start) is int and part.start == 0
    if not (starts and ends and part.step is None):
        raise NotRead("a part of an array")


def sizes_of(shape: Sequence[Any]) -> list[Expr]:
    """The sizes of a shape as expressions.

    It stops np.zeros(x.size / N), whose size is a float of the value M, which NumPy and torch refuse.
    """
    if not all(map(is_integer, shape)) or bool in map(type, shape):
        words = "a float, as / and float() make one, or a truth value"
        raise NotRead(f"a size that is no integer, but {words}")
    note_stride(*shape)
    return list(map(plain, shape))


def strides_of(a: Array) -> list[Expr]:
    """How far it is from entry to entry along each axis, in entries."""
    if isinstance(a, PerHead):
        return [N, ONE]
    if isinstance(a, Flat):
        return [ONE]
    if isinstance(a, Split):
        first, *rest = strides_of(a.rows)
        return [LEADING[1] * first, first, *rest]
    if not a.memory.is_ordered:
        raise NotRead("the strides of what is made after a transposition")
    if None in a.axes or a.turns:
        raise NotRead("the strides of a view that has other axes than its tensor")
    shape = a.memory.shape
    strides = [sympy.prod(shape[axis + 1 :], start=ONE) for axis in range(len(shape))]
    if a.memory.row_stride is not None:
        strides[0] = a.memory.row_stride
    return [strides[axis] for axis in a.axes]


def reshaped(a: Array, shape: Sequence[Any], copy: bool = True) -> Array:
    """The entries in another shape, where only axes of one entry come and go; a view, or what may be one."""
    sizes, count = sizes_of(shape), sympy.prod(a.shape)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = in_rows(-count / sympy.prod(sizes))
    if isinstance(a, Split) and tuple(sizes) == a.shape:
        return a
    if isinstance(a, PerHead):
        raise NotRead(f"{a.shape} reshaped to {tuple(sizes)}")
    if tuple(sizes[:2]) == LEADING:
        return Split(
            reshaped(by_rows(a), [number(s, "int") for s in (M, *sizes[2:])], copy)
        )
    is_flat = isinstance(a, Flat)
    a = by_rows(a)
    if tuple(sizes) == (M * N,) and strides_of(a) == [N, ONE]:
        if not copy and not state().way:
            # what its arguments and cotangents hold may be of any strides
            state().narrowed["contiguous tensors"] = None
        return Flat(a)
    kept = [axis for axis in range(a.ndim) if a.shape[axis] != 1]
    if is_flat and sizes != [M, N]:
        raise NotRead(f"(M*N,) reshaped to {tuple(sizes)}")
    if [size for size in sizes if size != 1] != [a.shape[axis] for axis in kept]:
        words = f"{a.shape} reshaped to {tuple(sizes)}"
        raise NotRead(words) if sympy.prod(sizes) == count else Misfit(words)
    old = iter(kept)
    view = moved(a, [None if size == 1 else next(old) for size in sizes])
    return perhaps_view(a, copied(view)) if copy else view


def expanded(a: Array, shape: Sequence[Any]) -> Array:
    """A view that is broadcast to a shape."""
    sizes = sizes_of(shape)
    check_shape(sizes)
    if broadcast(a.shape, sizes) != tuple(sizes):
        raise Misfit(f"{a.shape} broadcast to {tuple(sizes)}")
    axes = [None] * (len(sizes) - a.ndim)
    for own, mine, size in zip(a.axes, a.shape, sizes[len(axes) :], strict=True):
        axes.append(own if size == mine else None)
    return Array(a.memory, sizes, axes, a.turns)


# sums


def note_sum(library: str, dtype: str) -> None:
    """Notes a sum below float32; torch adds up in float32 and rounds the result."""
    if dtype in HALVES:
        verb = "in" if library == "numpy" else "rounded to"
        state().narrow.append((f"sums {verb} {dtype}", state().line))


@_by_rows
def total(a: Array, axes: Sequence[int], keep: bool = False) -> Array:
    """The sum over axes; keep leaves them with one entry."""
    note_sum(a.library, a.dtype)
    use_rounded(a)
    if a.memory.is_short:
        raise NotRead("a sum over rows that may not be written, where there are fewer")
    if a.memory.partial and [a.axes[axis] for axis in axes] == [0]:
        return _reduced(a, a.memory.e, axes, keep)
    sizes = {a.letter(axis): a.shape[axis] for axis in axes}
    e = floats(a, "a sum").e
    note_cancelling(a.dtype, e, sizes)
    return _reduced(a, summed(e, sizes), axes, keep)


def _reduced(a, e, axes, keep, *rounded):
    """The result of a reduction, with its axes of one entry or without them; rounded: whose digits it has."""
    shape = [ONE if axis in axes else size for axis, size in enumerate(a.shape)]
    kept = of_one_rounding(like(a, shape, e), *rounded)
    if keep:
        return kept
    order = [axis for axis in range(a.ndim) if axis not in axes]
    return scalar(copied(moved(kept, order)))


@_by_rows
def greatest(
    a: Array, axes: Sequence[int], keep: bool = False, is_first: bool = False
) -> Array:
    """The largest over an axis, or the first, which may be any number in a proof.

    For x - x.max(-1), and x - x[:, :1]. It stops the largest of a vector, and of several axes.
    """
    entry = floats(a, "a maximum").e
    axes = [axis for axis in axes if a.shape[axis] != 1]
    letters = {a.letter(k): LETTERS.get(size) for k, size in enumerate(a.shape)}
    letters |= {turn.letter: LETTERS.get(turn.size) for turn in state().loops}
    letters = {own: index for own, index in letters.items() if entry.has(own)}
    own = {index: letter for letter, index in letters.items()}
    if len(axes) != 1 or set(own) != set(LETTERS.values()) or len(letters) != 2:
        words = "is no matrix of rows and columns"
        if len(axes) != 1:
            words = "has rows and columns, over other than one axis"
        if is_first:
            raise NotRead("one entry, or a part, of an array")
        raise NotRead(f"a maximum of what {words}")
    over = letters[a.letter(axes[0])]
    maximum = Maximum(entry.xreplace(letters), over, is_first=is_first)
    head = head_of(state().maxima, maximum)
    return _reduced(a, head.xreplace(own), axes, keep, a)


def count_of(a: Array, axes: Sequence[int]) -> Expr:
    """The number of entries that a sum over axes adds up."""
    return sympy.prod([a.shape[axis] for axis in axes])


@_by_rows
def average(a: Array, axes: Sequence[int], keep: bool = False) -> Array:
    """The mean over axes."""
    count = count_of(a, axes)
    return elementwise(lambda e: e / count, total(a, axes, keep))


@_by_rows
def variance(a: Array, axes: Sequence[int], keep: bool, less: Expr) -> Array:
    """The mean square deviation over axes, with `less` subtracted from the number of entries."""
    count = count_of(a, axes) - less
    q = elementwise(lambda e, m: e - m, a, average(a, axes, keep=True))
    squares = total(elementwise(mul, q, q), axes, keep)
    return elementwise(lambda e: divide(e, count), squares)


def matmul(a: Any, b: Any, /) -> Array:
    """a @ b, of one or two axes each."""
    forms = {(1, 1): "i,i->", (2, 1): "ij,j->i", (1, 2): "i,ij->j", (2, 2): "ij,jk->ik"}
    axes = floats(a, "a matrix product").ndim, floats(b, "a matrix product").ndim
    if axes not in forms:
        raise NotRead(f"a matrix product of {axes[0]} and {axes[1]} axes")
    return einsum(forms[axes], (a, b))


def _spelled(text, arrays):
    """The text of an einsum with letters for the axes of "...", of which every operand has the same number."""
    names = text.replace(" ", "").partition("->")[0].split(",")
    counts = set()
    for a, own in zip(arrays, names, strict=False):
        if "..." in own:
            counts.add(floats(a, "einsum").ndim - len(own) + 3)
    is_clear = "..." in text.partition("->")[2] and not set("YZ") & set(text)
    if len(counts) != 1 or len(names) != len(arrays) or not is_clear:
        raise NotRead("einsum with ... of other numbers of axes")
    (count,) = counts
    if not 0 <= count <= 2:
        raise Misfit(f"einsum {text} of {count} axes for ...")
    return text.replace("...", "YZ"[:count])


def einsum(text: Any, arrays: Sequence[Any]) -> Array:
    """The sum over every letter that the result has not."""
    if isinstance(text, str) and "..." in text:
        text = _spelled(text, arrays)
    if not isinstance(text, str) or "." in text or "->" not in text or not arrays:
        raise NotRead("einsum in another form than letters, -> and arrays")
    operands, _, result = text.replace(" ", "").partition("->")
    names = operands.split(",")
    if [floats(a, "einsum").ndim for a in arrays] != list(map(len, names)):
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise Misfit(f"einsum {text} of the shapes {shapes}")
    letters = {c: Dummy("r", integer=True, positive=True) for c in operands}
    sizes, product = {}, ONE
    for a, own in zip(arrays, names, strict=True):
        for c, size in zip(own, a.shape, strict=True):
            if sizes.setdefault(c, size) != size:
                raise Misfit(f"einsum {text}: {c} is {sizes[c]} and {size}")
        product *= a.e.xreplace({a.letter(k): letters[c] for k, c in enumerate(own)})
    if len(set(result)) < len(result) or not set(result) <= set(sizes):
        raise Wrong(f"einsum {text}")
    library, dtype = _common(arrays)
    if library == "torch" and len({a.dtype for a in arrays}) > 1:
        raise NotRead("a product of tensors of two dtypes, which torch refuses")
    added = {letters[c]: size for c, size in sizes.items() if c not in result}
    use_rounded(*arrays)
    if added:
        note_sum(library, dtype)
        note_cancelling(dtype, product, added)
    product = summed(product, added)
    axes = {letters[c]: AXES[len(result) - 1 - k] for k, c in enumerate(result)}
    shape = [sizes[c] for c in result]
    new = scalar(array(shape, product.xreplace(axes), library, dtype))
    if not added:
        keep_rounding(new, new.memory.e)
    return perhaps_view(arrays[0], new) if set(result) == set(operands) else new
