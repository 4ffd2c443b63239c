"""A kernel's text, read: what it stores, as index expressions for every number of rows and columns.

The reader runs the text of a Triton kernel on expressions. It follows every function that the kernel calls, and works
out addresses and masks like all else. Each value is held three times: in a place that exists, in a column past N and in
a row past M, because a tile may be larger than what is left of the matrix. A sum is taken only of what is 0 past the
edge; what was loaded there without a mask is not known, and neither is 0 times it.

A program may hold a tile of rows, or one row: then `tl.program_id(0)` is its number.

Where there are heads, row r of an input is head r % heads of token r // heads, each with a stride of its own. Where
each head has a weight of its own, what is read is one head's share of the kernel: i counts that head's M rows, which
are the rows i * heads + head of all, and the tensors are those of that head.

A load gives what the kernel has stored there before. A comparison is followed where the expressions decide it, and
where the norm of a row is compared with EPS or 0: which side holds is then an assumption of the reading.

What is trusted: that tl.load, tl.store, tl.sum, tl.join, tl.where, tl.exp and their like, and arithmetic do what their
names say, that a cast between floating-point dtypes only rounds, that integers do not overflow, and what TRUSTED says.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from sympy import (
    Abs,
    Basic,
    Expr,
    Heaviside,
    Max,
    S,
    Symbol,
    evaluate,
    exp,
    log,
    nan,
    oo,
    sqrt,
    sympify,
    tanh,
)

from .calculus import free_letters
from .elementary import sigmoid
from .normal_form import nf
from .notation import tensor, total
from .proof import lettered
from .signs import is_positive
from .symbols import M, N, i, j
from .text_reader import (
    FLOOR,
    OPERATIONS,
    PROGRAM,
    PROGRAMS,
    REMAINDER,
    Reading,
    TextReader,
)
from .text_reader import Unread as Unread

ROWS, BLOCK, VECTOR = (
    Symbol(name, integer=True, positive=True) for name in ("ROWS", "BLOCK", "VECTOR")
)
COLUMNS = Symbol("program_id_1", integer=True)
HEADS, HEAD = Symbol("heads", integer=True, positive=True), Symbol("head", integer=True)
LANE_ROW, LANE_COLUMN = (
    Symbol(name, integer=True) for name in ("row_of_tile", "column_of_tile")
)
ROW_TURN, COLUMN_TURN = (
    Symbol(name, integer=True) for name in ("turn_over_rows", "turn_over_columns")
)
TILE, ROW, COLUMN, NUMBER = ("R", "C"), ("R",), ("C",), ()
# The loops that there are: of all programs together over the tiles of rows, or over the rows; of one over the blocks of
# columns; and, in the reduction, of one over the rows of partial sums. Each takes every tile once.
with evaluate(
    True
):  # a notebook may import this while it keeps expressions as they are typed
    ROW_LOOPS = ((PROGRAM, FLOOR(M - 1, ROWS) + 1, PROGRAMS), (PROGRAM, M, PROGRAMS))
    # As many tiles as the M rows of one head have.
    HEAD_LOOP = (PROGRAM, FLOOR(M * HEADS - 1, ROWS * HEADS) + 1, PROGRAMS)
COLUMN_LOOP = (S.Zero, N, BLOCK)
PARTIAL_LOOP = (S.Zero, M, ROWS)
STRIDES = ("_step", "_stride")
# What a number of a program is before it is added to those of the others: a sum over the rows that the program took.
SHARE = "P"
# Functions of the package, by module, that are not read: they stand for what Triton lacks, or only round.
PACKAGE = {
    "tanh": "normgrad.fused.arithmetic",
    "cast": "normgrad.triton_kernels.arithmetic",
}
# What is assumed where a row is one block.
WHOLE = "BLOCK >= N"
TRUSTED = (
    "the grid has one program for each tile, and for each head",
    "arguments do not overlap in memory, and strides are the tensors' own",
    "pointers and dtypes that are arguments are of floating-point numbers; rounding is left out",
)
FLOATS = ("tl.float64", "tl.float32", "tl.float16", "tl.bfloat16")
INTEGERS = ("tl.int64", "tl.int32")
# A bound from here on can only be the end of a dtype's range: the largest rstd of float32 rows is 2**63.
FAR = 2**63


@dataclass(frozen=True)
class Held:
    """A number, or a tile of numbers.

    Args:  inside: where row i and column j exist; column: in a column past N; row: in a row past M; nan: not known
           shape: of "R", "C" and "1"; along: the axis over which a loop has added it up, lane by lane, "" for none,
           SHARE once the lanes of a loop over the rows are added up
    """

    inside: Expr
    column: Expr
    row: Expr
    shape: tuple[str, ...] = NUMBER
    along: str = ""

    @property
    def parts(self) -> tuple[Expr, Expr, Expr]:
        """The three expressions."""
        return self.inside, self.column, self.row


@dataclass(frozen=True)
class Mask:
    """Places that exist: "R" where rows < M, "C" where cols < N, both in a set."""

    axes: frozenset


@dataclass(frozen=True)
class Pointer:
    """An argument that ends in _ptr, and how far from its first element."""

    name: str
    offset: Held


@dataclass(frozen=True)
class Joined:
    """Two tiles of one shape, side by side along an axis of their own."""

    both: tuple[Held, Held]


class Opaque(str):
    """A dtype, or an argument without a value: nothing is computed from it."""


# What a dtype is, where it is known.
FLOAT, INTEGER = Opaque("a floating-point dtype"), Opaque("an integer dtype")


@dataclass(frozen=True)
class Test:
    """A comparison of numbers that are not known before the kernel runs."""

    kind: type
    left: Held
    right: Held


@dataclass(frozen=True)
class Both:
    """Two comparisons that have to hold."""

    first: Test
    second: Test


class Turn(dict):
    """Local names in one turn of a loop, and which of them hand a value on from turn to turn.

    Args:  local: the names before the loop
    """

    def __init__(self, local):
        super().__init__(local)
        self.read, self.assigned = set(), set()

    def __getitem__(self, name):
        if name not in self.assigned:
            self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name, value):
        self.assigned.add(name)
        super().__setitem__(name, value)

    @property
    def carried(self) -> set[str]:
        """The names that are read before the turn gives them another value."""
        return self.read & self.assigned


def plain(e, shape=NUMBER) -> Held:
    """The same expression everywhere."""
    e = sympify(e)
    return Held(e, e, e, shape)


def read(
    kernel,
    constants: dict[str, Any],
    above: bool | None = True,
    zero: bool = False,
    names: dict[str, str | Basic] | None = None,
) -> Reading:
    """What a kernel stores for every M and N.

    Args:     kernel: a function with @triton.jit; constants: {argument: value} of those that decide what runs, None for
              an absent pointer, an expression for a number
              above: whether a row's size exceeds EPS, where a kernel asks for it; None keeps both, as Max and Heaviside
              zero: whether a row's size is 0
              names: {argument without _ptr: the tensor that it points to, or its name}
    Raises:   Unread, with the line
    """
    return _Reader(constants, above, zero, names or {}).read(kernel)


class _Reader(TextReader):
    language, trusted, package = "Triton", TRUSTED, PACKAGE

    def __init__(self, constants, above, zero, names):
        super().__init__(constants, above, zero, names)
        # {pointer: the letters of the place that it was read or written at}, and which are both read and written.
        self.loaded, self.places, self.in_place = {}, {}, set()
        self.second_axis = False
        self.blocks, self.exact, self.after_rows = False, False, False
        self.per_head = constants.get("PER_HEAD", False)
        # The place of row i among all rows, and how many they are; a head's own place among what each head has one of.
        self.row, self.rows = (i * HEADS + HEAD, M * HEADS) if self.per_head else (i, M)
        self.head, self.share = (HEAD, HEADS) if self.per_head else (S.Zero, S.One)

    @property
    def reduces(self):
        """Whether this is the reduction, in which a row is a program's partial sum."""
        return "programs" in self.arguments

    def argument(self, name):
        if name in self.constants:
            value = self.constants[name]
            return plain(value) if isinstance(value, Expr) else value
        if name.endswith("_ptr"):
            return Pointer(name.removesuffix("_ptr"), plain(0))
        if name in ("M", "programs"):
            return plain(self.rows)
        if name == "N":
            return plain(N)
        if name == "heads":
            return plain(HEADS)
        if name.endswith(STRIDES) or name in ("stride", "ROWS", "BLOCK", "VECTOR"):
            return plain(Symbol(name, integer=True, positive=True))
        return Opaque(name)

    # statements

    def assign(self, target, value, local):
        if isinstance(value, Held) and value.inside == LANE_COLUMN:
            self.reading.assumed.add(WHOLE)
            value = plain(j, COLUMN)
        super().assign(target, value, local)

    def loop(self, line, local):
        head = self.line
        bounds = tuple(self.value(each, local).inside for each in line.iter.args)
        loops = dict.fromkeys(
            (HEAD_LOOP,) if self.per_head else ROW_LOOPS, ("R", ROW_TURN)
        ) | {COLUMN_LOOP: ("C", COLUMN_TURN * BLOCK)}
        if self.reduces:
            loops = {PARTIAL_LOOP: ("R", ROW_TURN * ROWS)}
        if bounds not in loops:
            self.refuse("a loop that may leave out tiles or take one twice")
        along, turn = loops[bounds]
        if along in self.loops:
            self.refuse("a loop within its like")
        before = dict(local)
        # numbers of the rows are added up in so many words; a row of zeros may also be a statistic
        added = {
            part.target.id for part in ast.walk(line) if isinstance(part, ast.AugAssign)
        }
        tiles = {name: v for name, v in before.items() if isinstance(v, Held)
                 and (v.shape in (TILE, COLUMN) or v.shape == ROW and name in added)}  # fmt: skip
        sums = {
            name for name, value in tiles.items() if value.inside == 0 or value.along
        }
        for name in sums:
            local[name] = plain(Symbol(f"{name}_before"), before[name].shape)
        turn_names = Turn(local)
        turn_names[line.target.id] = plain(turn)
        self.loops.append(along)
        self.block(line.body, turn_names)
        self.loops.pop()
        self.line, self.after_rows = head, self.after_rows or along == "R"
        for name in sorted(turn_names.read & set(local)):
            local[name]  # a loop around this one has read it, too
        for name in sorted(turn_names.carried & set(before) - sums):
            if turn_names[name] != before[name]:
                self.refuse(
                    f"{name} holds in each turn what the turn before has left there"
                )
        for name, value in turn_names.items():
            if name in sums:
                local[name] = self.added_up(name, before[name], value, along)
            elif name not in before:
                continue
            elif value != before[name]:
                del local[name]  # what it holds is the last tile's

    def added_up(self, name, start, value, along):
        """A tile to each element of which a loop adds, for all turns."""
        symbol = Symbol(f"{name}_before")
        if value.inside == symbol:
            return start
        added = [nan if part is nan else part - symbol for part in value.parts]
        if start != plain(0, start.shape) or any(part.has(symbol) for part in added):
            self.refuse(f"{name} is not added up from 0")
        return Held(*added, value.shape, along)

    # expressions

    def value_constant(self, e, local):
        if e.value is None or isinstance(e.value, str | bool):
            return e.value
        return plain(sympify(str(e.value), rational=True))

    value_list = TextReader.value_tuple

    def value_attribute(self, e, local):
        text = ast.unparse(e)
        if text in (*FLOATS, *INTEGERS):
            return FLOAT if text in FLOATS else INTEGER
        if e.attr == "element_ty" and getattr(e.value, "attr", "") == "dtype":
            return (
                FLOAT
                if isinstance(self.value(e.value.value, local), Pointer)
                else Opaque(text)
            )
        value = self.value(e.value, local) if e.attr == "dtype" else None
        if not isinstance(value, Held):
            return Opaque(text)
        return INTEGER if value.inside.is_integer else FLOAT

    def value_ifexp(self, e, local):
        test = self.value(e.test, local)
        if isinstance(test, bool):
            return self.value(e.body if test else e.orelse, local)
        limits = [self.value(part, local) for part in (e.body, e.orelse)]
        if not all(
            isinstance(limit, Held) and limit.inside.is_number and limit.inside >= FAR
            for limit in limits
        ):
            self.refuse("a choice that depends on a dtype")
        return limits[0]

    def value_unaryop(self, e, local):
        if isinstance(e.op, ast.Not):
            return not self.decided(e.operand, local)
        if not isinstance(e.op, ast.USub):
            self.refuse(ast.unparse(e))
        return self.operate(ast.Sub(), plain(0), self.value(e.operand, local))

    def value_compare(self, e, local):
        if len(e.ops) > 1:
            self.refuse("a comparison of more than two numbers")
        left, right, op = (
            self.value(e.left, local),
            self.value(e.comparators[0], local),
            e.ops[0],
        )
        if isinstance(op, ast.Is | ast.IsNot) and right is None:
            return (left is None) == isinstance(op, ast.Is)
        if isinstance(left, Opaque) or isinstance(right, Opaque):
            return Opaque(ast.unparse(e))
        if (
            isinstance(left, str)
            and isinstance(right, str)
            and isinstance(op, ast.Eq | ast.NotEq)
        ):
            return (left == right) == isinstance(op, ast.Eq)
        if not (isinstance(left, Held) and isinstance(right, Held)):
            self.refuse(f"{ast.unparse(e)}, which this reader does not know")
        if isinstance(op, ast.Lt) and (left.inside, right.inside) in (
            (self.row, self.rows),
            (j, N),
        ):
            return Mask(frozenset("C" if left.inside == j else "R"))
        if isinstance(op, ast.Lt) and right.inside in (self.rows, N):
            self.refuse(
                f"{ast.unparse(e.left)} is {left.inside}, which is not its tile's place"
            )
        self.check_value(
            "what is compared",
            *(part for part in (*left.parts, *right.parts) if part is not nan),
        )
        difference = left.inside - right.inside
        if isinstance(op, ast.Eq | ast.NotEq) and (
            difference.is_zero or difference.is_nonzero
        ):
            return bool(difference.is_zero) == isinstance(op, ast.Eq)
        return Test(type(op), left, right)

    def value_subscript(self, e, local):
        value, cut = self.value(e.value, local), ast.unparse(e.slice)
        if isinstance(value, Mask):
            return value
        wanted = {
            "(:, None)": (ROW, ("R", "1")),
            "(None, :)": (COLUMN, ("1", "C")),
        }.get(cut)
        if wanted is None or not isinstance(value, Held) or value.shape != wanted[0]:
            self.refuse(
                f"{ast.unparse(e)} of the shape {getattr(value, 'shape', None)}"
            )
        return replace(value, shape=wanted[1])

    def shape(self, one, other):
        if NUMBER in (one, other):
            return one or other
        if len(one) != len(other) or any(
            a != b and "1" not in (a, b) for a, b in zip(one, other, strict=True)
        ):
            self.refuse(f"shapes {one} and {other} do not fit")
        return tuple(b if a == "1" else a for a, b in zip(one, other, strict=True))

    def operate(self, op, a, b):
        if isinstance(a, Mask) and isinstance(b, Mask) and isinstance(op, ast.BitAnd):
            return Mask(a.axes | b.axes)
        if isinstance(a, Test) and isinstance(b, Test) and isinstance(op, ast.BitAnd):
            return Both(a, b)
        if isinstance(a, Pointer) and isinstance(op, ast.Add):
            return Pointer(a.name, self.operate(op, a.offset, b))
        if (
            not (isinstance(a, Held) and isinstance(b, Held))
            or type(op) not in OPERATIONS
        ):
            self.refuse("an operation that this reader does not know")
        if (a.along or b.along) and (a.inside.free_symbols or b.inside.free_symbols):
            self.refuse("a sum over a loop is used before its lanes are added up")
        self.check_whole(op, a.inside, b.inside)
        parts = [
            _computed(OPERATIONS[type(op)], *pair)
            for pair in zip(a.parts, b.parts, strict=True)
        ]
        return self.placed(Held(*parts, self.shape(a.shape, b.shape)))

    def placed(self, value):
        """The row i or the column j where an index says it, each tile being as the grid or a loop gives it."""
        if self.reduces:
            row = ROW_TURN * ROWS + LANE_ROW
            column = PROGRAM * BLOCK + LANE_COLUMN
        else:
            row = (ROW_TURN if "R" in self.loops else PROGRAM) * ROWS + LANE_ROW
            column = (
                COLUMN_TURN if "C" in self.loops else COLUMNS
            ) * BLOCK + LANE_COLUMN
        if value.inside == row and value.shape == ROW:
            return plain(i, ROW)
        if value.inside == column and value.shape == COLUMN:
            self.blocks = self.blocks or "C" not in self.loops
            return plain(j, COLUMN)
        return value

    # calls

    def value_call(self, e, local):
        name = ast.unparse(e.func)
        given = [self.value(each, local) for each in e.args]
        named = {each.arg: self.value(each.value, local) for each in e.keywords}
        if name.endswith(".to"):
            return self.converted(self.value(e.func.value, local), *given, **named)
        if self.is_own(name, "cast"):
            return self.converted(*given)
        if self.is_own(name, "tanh"):
            return self.applied(tanh, *given)
        if name.startswith("tl.") or name == "float" and name not in self.scope:
            if getattr(self.scope.get("tl"), "__name__", "") != "triton.language":
                self.refuse("tl is not triton.language")
            method = getattr(self, f"call_{name.removeprefix('tl.')}", None)
            if method is None:
                self.refuse(f"{name}, which this reader does not know")
            return method(*given, **named)
        function = self.scope.get(name)
        if function is None:
            self.refuse(f"{name} has no value")
        return self.inlined(function, given, named)

    def converted(self, value, dtype, **options):
        """The same number in another dtype, where that only rounds it."""
        if options or not isinstance(value, Held) or not isinstance(dtype, Opaque):
            self.refuse(
                f"a cast {'with ' + ', '.join(options) if options else 'of what is not a number'}"
            )
        whole, floating = (
            value.inside.is_integer,
            dtype == FLOAT or dtype in self.arguments,
        )
        index = whole and bool(value.inside.free_symbols - {M, N})
        if dtype == INTEGER and whole or floating and not index:
            return value
        return self.refuse(f"a cast to {dtype}, which may change the number")

    def call_program_id(self, axis):
        axes = {"program_id_0": PROGRAM, "program_id_1": COLUMNS} | self.constants
        found = axes.get(f"program_id_{axis.inside}")
        self.second_axis = self.second_axis or found == COLUMNS
        return (
            plain(found)
            if found is not None
            else self.refuse("a third axis of programs")
        )

    def call_num_programs(self, axis):
        return (
            plain(PROGRAMS)
            if axis.inside == 0
            else self.refuse("the number of programs along another axis")
        )

    def call_arange(self, start, stop):
        if (start.inside, stop.inside) == (0, ROWS):
            return plain(LANE_ROW, ROW)
        if (start.inside, stop.inside) == (0, BLOCK):
            return plain(LANE_COLUMN, COLUMN)
        if (start.inside, stop.inside) == (0, N):
            self.exact = True
            return plain(j, COLUMN)
        return self.refuse("a range that is no tile's")

    def call_zeros(self, shape, dtype):
        self.converted(plain(0), dtype)
        return plain(0, tuple({ROWS: "R", BLOCK: "C"}[each.inside] for each in shape))

    def applied(self, function, value):
        """A function of each number; not of a sum whose lanes or programs are still to be added up."""
        if value.along:
            self.refuse("a function of a sum that is not complete")
        return Held(
            *[part if part is nan else function(part) for part in value.parts],
            value.shape,
        )

    def call_zeros_like(self, value):
        return plain(0, value.shape)

    def call_full(self, shape, value, dtype):
        if any(each.inside != 1 for each in shape):
            self.refuse("a tile of one number that is larger than 1")
        if dtype == INTEGER:
            self.refuse("a tile of integers")
        return replace(self.converted(value, dtype), shape=("1",) * len(shape))

    def call_sqrt(self, value):
        return self.applied(sqrt, value)

    def call_abs(self, value):
        return self.applied(Abs, value)

    def call_exp(self, value):
        return self.applied(exp, value)

    def call_log(self, value):
        return self.applied(log, value)

    def call_sigmoid(self, value):
        return self.applied(sigmoid, value)

    def call_float(self, text):
        found = {"nan": nan, "-inf": -oo}.get(text)
        return plain(found) if found is not None else self.refuse("a number as a text")

    def call_max(self, value, axis):
        if (
            (axis.inside, value.shape) != (1, TILE)
            or value.along
            or self.blocks
            or "C" in self.loops
        ):
            self.refuse("a maximum over something else than whole rows")
        if value.column != -oo:
            self.refuse("the largest of a row needs -inf in the columns past N")
        name = f"largest{len(self.reading.maxima)}"
        self.reading.maxima[name] = value.inside
        past = nan if value.row is nan or j in free_letters(value.row) else value.row
        return Held(*[tensor(name, M)[i]] * 2, past, ROW)

    def address(self, pointer, does, offsets):
        """The letters of the row and the column that an address says."""
        offset, row = pointer.offset.inside.expand(), None
        if "ROWS" not in self.arguments:
            row = (
                ROW_TURN if "R" in self.loops else None if self.after_rows else PROGRAM
            )
        offsets = {
            (place.expand(), shape): letters
            for (place, shape), letters in offsets.items()
        }
        letters = offsets.get(
            (offset if row is None else offset.xreplace({row: i}), pointer.offset.shape)
        )
        if letters is None:
            self.refuse(
                f"{pointer.name} is {does} at {offset}, which is not its own row and column"
            )
        return letters

    def call_load(self, pointer, mask=None, other=None, eviction_policy=""):
        steps = [f"{pointer.name}{end}" for end in STRIDES] + ["stride"]
        stride = next(
            (
                Symbol(name, integer=True, positive=True)
                for name in steps
                if name in self.arguments
            ),
            N,
        )
        vector = VECTOR if "VECTOR" in self.arguments and stride != N else 1
        start = self.row * stride * vector
        if stride != N and isinstance(self.constants.get("heads"), Symbol):
            to_head = Symbol(f"{pointer.name}_head_step", integer=True, positive=True)
            start = (
                FLOOR(self.row, HEADS) * stride + REMAINDER(self.row, HEADS) * to_head
            ) * vector
        own = self.head * N + j
        offsets = {
            (start + j, TILE): (i, j),
            (start + j, COLUMN): (i, j),
            (own, COLUMN): (j,),
            (S.Zero, NUMBER): (),
        }
        letters = self.address(
            pointer, "read", offsets | {(self.row, ROW): (i,), (self.row, NUMBER): (i,)}
        )
        self.check_mask(mask, letters, pointer.offset.shape, "reads")
        value = self.in_memory(pointer.name, letters)
        rest = nan if other is None else other.inside
        return Held(
            value,
            rest if j in letters else value,
            rest if i in letters else value,
            pointer.offset.shape,
        )

    def in_memory(self, pointer, letters):
        """What is at a place: what the kernel has stored there, or what the tensor holds before it runs."""
        if pointer in self.reading.stored:
            self.check_in_place(pointer, letters, self.places[pointer])
            return self.reading.stored[pointer]
        self.loaded[pointer] = letters
        name = self.names.get(pointer, pointer)
        shape = tuple(M if letter == i else N for letter in letters)
        source = tensor(name, *shape) if isinstance(name, str) else name
        if getattr(source, "shape", ()) != shape:
            self.refuse(f"{pointer} is read as a tensor of the shape {shape}")
        return source[letters] if letters else source

    def check_in_place(self, pointer, read_at, written_at):
        """Refuse what is read and written, unless a place belongs to one program, which comes to it once."""
        once = written_at == (i, j) or written_at == (i,) and "C" not in self.loops
        self.in_place.add(pointer)
        if read_at != written_at or not once:
            self.refuse(
                f"{pointer} is read and written at places that turns or programs may share"
            )

    def finish(self):
        if self.in_place and (self.second_axis or self.reduces):
            self.refuse(
                f"{', '.join(sorted(self.in_place))} is read and written by several programs"
            )

    def call_store(self, pointer, value, mask=None):
        shape = pointer.offset.shape
        row, program = self.row, PROGRAM * self.share + self.head
        offsets = {
            (row * N + j, TILE): (i, j),
            (row * N + j, COLUMN): (i, j),
            (row, ROW): (i,),
            (row, NUMBER): (i,),
        }
        share = {(program * N + j, COLUMN): (j,), (program, NUMBER): ()}
        offsets |= {(j, COLUMN): (j,)} if self.reduces else share
        letters = self.address(pointer, "written", offsets)
        self.check_mask(mask, letters, shape, "writes")
        if letters == (j,) and shape == COLUMN and value.along == "R":
            value = self.call_sum(
                value, plain(0)
            )  # a program's own row of partial sums
        if value.along == SHARE and i not in letters or value.inside == 0:
            value = replace(value, along="")
        elif i not in letters and not self.reduces:
            self.refuse(
                f"{pointer.name} gets from each program what is no sum over its rows"
            )
        self.check_value(f"what {pointer.name} gets", value.inside)
        if value.shape != shape or value.along or value.inside.has(nan):
            self.refuse(
                f"{pointer.name} gets a value of the shape {value.shape}, needs {shape}"
            )
        before = self.reading.stored.setdefault(pointer.name, value.inside)
        if before != value.inside:
            self.refuse(f"{pointer.name} is written twice")
        self.places[pointer.name] = letters if i in letters else None
        if pointer.name in self.loaded:
            self.check_in_place(
                pointer.name, self.loaded[pointer.name], self.places[pointer.name]
            )
            self.reading.overwritten.add(pointer.name)

    def check_mask(self, mask, letters, shape, does):
        wanted = {"R"} & set(shape) if i in letters else set()
        wanted |= {"C"} if j in letters and not self.exact else set()
        if (mask.axes if isinstance(mask, Mask) else mask or set()) != wanted:
            edge = " and ".join(
                f"{'rows < M' if axis == 'R' else 'cols < N'}"
                for axis in sorted(wanted, reverse=True)
            )
            self.refuse(f"{does} past the edge: its mask needs {edge}")

    def call_join(self, one, other):
        if (
            not (isinstance(one, Held) and isinstance(other, Held))
            or one.shape != other.shape
        ):
            self.refuse("what is joined needs one shape")
        return Joined((one, other))

    def call_split(self, value):
        return (
            value.both
            if isinstance(value, Joined)
            else self.refuse("only what was joined can be split")
        )

    def call_sum(self, value, axis):
        if isinstance(value, Joined):
            return Joined(tuple(self.call_sum(each, axis) for each in value.both))
        across = {(0, TILE): "R", (1, TILE): "C", (0, COLUMN): "C", (0, ROW): "R"}.get(
            (axis.inside, value.shape)
        )
        if value.shape == COLUMN and value.along == "R":
            across = "R"
        if across is None:
            self.refuse(f"a sum over axis {axis.inside} of the shape {value.shape}")
        if value.along != across and (
            value.along or across == "R" or self.blocks or "C" in self.loops
        ):
            self.refuse("a sum over one tile where the sum over all of them is needed")
        letter, size, past = (
            (i, M, value.row) if across == "R" else (j, N, value.column)
        )
        if across == "R" and "R" not in value.shape or across == "C" and self.exact:
            past = S.Zero  # there is no such place
        if past is nan or nf(past) != 0:
            edge = "a row past M" if across == "R" else "a column past N"
            self.refuse(
                f"{edge} adds {'what is not known' if past is nan else lettered(past)[0]}"
            )

        def added(part):
            return (
                part
                if part is nan or part == 0
                else total(size, lambda r: part.xreplace({letter: r}))
            )

        # one expression for both, so that a choice in a column past N is known to be that of its row
        whole = added(value.inside)
        if across == "R":
            shape, share = (
                NUMBER if value.shape == ROW else COLUMN,
                "" if self.reduces else SHARE,
            )
            return Held(whole, added(value.column), whole, shape, share)
        return Held(
            whole, whole, added(value.row), tuple(a for a in value.shape if a == "R")
        )

    def call_where(self, condition, a, b):
        shape = self.shape(a.shape, b.shape)
        if isinstance(condition, Mask):
            column = b.column if "C" in condition.axes else a.column
            return Held(
                a.inside, column, b.row if "R" in condition.axes else a.row, shape
            )
        if isinstance(condition, Both):
            return self.in_range(condition, a, b)
        if not isinstance(condition, Test) or condition.kind not in (ast.Gt, ast.Eq):
            self.refuse("a choice that this reader does not know")
        pairs = list(zip(condition.left.parts, condition.right.parts, strict=True))
        if self.above is None and condition.kind is ast.Gt:
            parts = [
                self.kept(*each) for each in zip(pairs, a.parts, b.parts, strict=True)
            ]
            return Held(*parts, self.shape(shape, condition.left.shape))
        choices = [self.chosen(condition.kind, pair, pairs[0]) for pair in pairs]
        parts = [
            nan if c is None else one if c else other
            for c, one, other in zip(choices, a.parts, b.parts, strict=True)
        ]
        return Held(*parts, self.shape(shape, condition.left.shape))

    def in_range(self, condition, a, b):
        """rstd where 0 < rstd <= the end of a dtype's range, else nan."""
        low, high = condition.first, condition.second
        kinds = (low.kind, high.kind) == (ast.Gt, ast.LtE)
        bounds = kinds and low.right.inside == 0 and bool(high.right.inside >= FAR)
        if (
            not bounds
            or not low.left == high.left == a
            or b.inside is not nan
            or not is_positive(a.inside)
        ):
            self.refuse("a choice that this reader does not know")
        self.reading.assume_range()
        return a

    def kept(self, pair, one, other):
        """Both branches of a choice: the larger of two numbers, or 1 where one is larger."""
        if nan in (*pair, one, other):
            return nan
        if (one, other) == pair:
            return Max(one, other)
        if (one, other) != (1, 0):
            self.refuse(
                "a choice that is neither the larger of two numbers nor 1 where one is larger"
            )
        return Heaviside(pair[0] - pair[1])

    def chosen(self, kind, pair, inside):
        """Whether the first of two values is taken; where numbers decide it, as is assumed."""
        if nan in pair:
            return None
        difference = pair[0] - pair[1]
        known = difference.is_zero if kind is ast.Eq else difference.is_positive
        if known is not None:
            return bool(known)
        if pair != inside:
            return None
        return self.asked_of_a_norm(kind, *pair)


def _computed(operation, a, b):
    return nan if a is nan or b is nan else operation(a, b)
