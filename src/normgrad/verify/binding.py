"""What a launcher promises of a kernel: what each argument is, and how many programs there are."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sympy import Expr, IndexedBase, Integer, S, Symbol, symbols, sympify

from ..symbolic.symbols import M, N, eps, i, j, p
from .definitions import ENTRIES, LETTERS, NUMBERS, TENSORS, Norm
from .text import check_fields, check_type, tree_of, value_of


class _Word(str):
    """A word that is no text of the kernel's."""


WHOLE = _Word("a block of at least N columns")
COLUMNS = _Word("a block of columns")
ROWS = _Word("a block of rows")
CHUNK = _Word("the rows, or tiles of rows, of one program")
PROGRAM_COUNT = _Word("the number of programs along axis 0")
FLOAT = _Word("a dtype of floating-point numbers")
PROGRAM = _Word("the number of this program")
LIMIT = _Word("the largest number of the sums' dtype")
# the axes of a grid with a program for each row of B*T
LEADING_AXES = ("rows of B", "rows of T")
WORDS = ("WHOLE", "COLUMNS", "ROWS", "CHUNK", "PROGRAM_COUNT", "FLOAT")
BLOCKS = (WHOLE, COLUMNS, ROWS)
SIZED = (*BLOCKS, CHUNK)
STRIDES = ("stride", "column_stride", "start")
AXES = ("rows", "row tiles", "column tiles", "programs", *LEADING_AXES)
INDICES = (("i", "j"), ("i",), ("j",), ("p", "j"), ("p",), ())


def check_stride(argument: str, value: Any) -> None:
    """TypeError for what is no stride: a whole number, an expression, or the name of the argument that holds it."""
    is_name = isinstance(value, str) and value.isidentifier()
    if not (is_name or type(value) is int or isinstance(value, Expr)):
        raise TypeError(
            f"{argument}: got {value!r}, needs a whole number, a symbol or an argument's name"
        )


@dataclass(frozen=True, repr=False)
class T:
    """A pointer to a tensor that the kernel reads.

    Args:    name: in the definitions, such as "x"; an expression of theirs, such as "1/rstd"; or the tensor itself
             index: "i, j", "i", "j", "" for a number, or with a row for each program "p, j" or "p"; None for the
             definitions' own
             stride: from row to row, or from entry to entry of "i": a number, a symbol, or the name of the argument
             that holds it; None for N, or 1 where there are no columns
             column_stride: likewise, from column to column
             heads: (rows of each token, the stride from one to the next), where stride leads from token to token
             start: how far from the pointer the first entry is
    Raises:  ValueError for an index of another kind, TypeError for an argument of another type
    """

    name: str | Expr
    index: str | None = None
    stride: str | int | Expr | None = None
    column_stride: str | int | Expr = 1
    heads: tuple | None = None
    start: str | int | Expr = 0

    def __post_init__(self):
        for argument, value in self.strides:
            if (argument, value) != ("stride", None):
                check_stride(argument, value)
        check_fields(self)
        if self.heads is not None and len(self.heads) != 2:
            raise ValueError(
                f"heads: got {self.heads!r}, needs "
                "(rows of each token, the stride from one to the next)"
            )
        if self.name == "":
            raise ValueError("name: got '', needs a tensor's name, as \"x\"")
        if self.index is None and str(self.name) not in TENSORS:
            message = f'{self.name}: got no index, needs one such as "i, j"'
            names = ", ".join(TENSORS)
            raise ValueError(f"{message}; the definitions' tensors are {names}")
        if self.letters not in INDICES:
            choices = ", ".join(map(repr, map(", ".join, INDICES)))
            raise ValueError(f"index: got {self.index!r}, needs one of {choices}")

    @property
    def strides(self) -> list[tuple[str, Any]]:
        """(argument, stride) of all of them."""
        heads = self.heads if isinstance(self.heads, tuple) else ()
        strides = [(name, getattr(self, name)) for name in STRIDES]
        return strides + [("heads", value) for value in heads]

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the index."""
        if self.index is not None:
            return tuple(self.index.replace(",", " ").split())
        return tuple(str(LETTERS[size]) for size in TENSORS[str(self.name)].shape)

    def __repr__(self):
        is_tensor = isinstance(self.name, IndexedBase)
        parts = [repr(self.name if is_tensor else str(self.name))]
        if self.index is not None:
            parts.append(repr(self.index))
        for part in fields(self)[2:]:
            value = getattr(self, part.name)
            if value != part.default:
                parts.append(f"{part.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def before(self) -> str | None:
        """The tensor that the memory holds before the kernel runs."""
        return self.name

    @property
    def after(self) -> str | None:
        """The output that it is to hold afterwards."""
        return None


@dataclass(frozen=True)
class Filled:
    """An array that a loop's launcher hands in with one value everywhere; one without columns is absent.

    Args:  shape: in 0, 1, M, N and the number of programs; value: a number
    """

    shape: tuple
    value: int | float | Expr = 0

    def __post_init__(self):
        check_fields(self)
        for size in self.shape:
            check_type("shape: a size", size, int, Expr)


class Out(T):
    """A pointer to memory that holds nothing before, and afterwards the output of that name; else as T."""

    before = None

    @property
    def after(self):
        """The output."""
        return self.name


class Zeros(Out):
    """A pointer to memory that holds zeros before; else as Out."""

    before = S.Zero


@dataclass(frozen=True)
class Lock:
    """A pointer to locks that nobody holds, and behind them to counts of 0; size: how many there are of each."""

    size: Expr


@dataclass(frozen=True)
class Same:
    """A pointer to the memory of another argument; name: of that argument."""

    name: str


@dataclass(frozen=True, repr=False)
class InOut(T):
    """A pointer to a tensor that the kernel overwrites; then: the output that it is to hold afterwards; else as T."""

    then: str = ""

    @property
    def after(self):
        """The output."""
        return self.then or self.name


def check_roles(roles: Mapping[str, Any]) -> None:
    """ValueError where two arguments are one tensor.

    For a program with arguments w and gamma that are both the weight: w - gamma would be proved to be 0.
    """
    names: dict[Any, str] = {}
    for name, role in roles.items():
        if role is not None and role in names:
            raise ValueError(
                f"{names[role]} and {name} are both {role}: needs one argument for one tensor"
            )
        names[role] = name


def outputs_of(binding: Mapping, definitions: Norm) -> dict[str, T]:
    """{argument: the Out or InOut that it is}; ValueError where there is none, or one that is not defined."""
    tensors = {n: b for n, b in binding.items() if isinstance(b, T)}
    outputs = {n: b for n, b in tensors.items() if b.after}
    check_roles({n: b.before for n, b in tensors.items()})
    check_roles({n: b for n, b in binding.items() if b == eps})
    for bound in outputs.values():
        if bound.after not in definitions.outputs:
            names = ", ".join(definitions.outputs)
            raise ValueError(f"binding: got the output {bound.after}, needs {names}")
    if not outputs:
        raise ValueError("binding: got no Out or InOut, needs at least one output")
    return outputs


def resolved(binding: Mapping, definitions: Norm) -> tuple[dict, Norm]:
    """(binding, definitions) with what is bound as an expression of the definitions, as "1/rstd".

    Raises:  ValueError for an expression that the definitions lack a tensor of, or whose letters the index has not
    """
    check_arguments(binding)
    if not isinstance(definitions, Norm):
        got = type(definitions).__name__
        raise TypeError(f"definitions: got {got}, needs a Norm, as norm() makes one")
    arguments, outputs, needs = dict(binding), dict(definitions.outputs), ()
    tensors = ENTRIES | definitions.tensors
    for argument, bound in binding.items():
        if not isinstance(bound, T) or isinstance(bound.name, IndexedBase):
            continue
        e, is_name = bound.name, str(bound.name).isidentifier()
        if is_name:
            e = tensors.get(str(e))
        elif isinstance(e, str):
            e = value_of(argument, e, definitions.tensors | NUMBERS)
        if e is None or is_name and bound.before is None:
            continue
        letters = {str(letter) for letter in LETTERS.values() if e.has(letter)}
        if letters != set(bound.letters):
            got = f"{bound.name} has the index [{', '.join(sorted(letters))}]"
            raise ValueError(
                f"{argument}: {got}, and is bound as [{', '.join(bound.letters)}]"
            )
        if is_name:
            continue
        needs += definitions.where_defined(argument, e)
        arguments[argument] = replace(bound, name=e)
        if bound.after == bound.name:
            outputs[e] = e
    return arguments, replace(definitions, outputs=outputs, needs=needs)


# the first two of three axes, of which M is the product; not polar, which no other letter is said to be: a block that
# an argument B or T of a kernel holds is another number
LEADING = symbols("B T", integer=True, positive=True, polar=False)
PIDS = tuple(Symbol(f"program_{a}", integer=True, nonnegative=True) for a in range(3))
PROGRAMS = tuple(Symbol(f"programs_{a}", integer=True, positive=True) for a in range(3))
# {letter of a T: the size of its axis, its index}
AXIS_OF = {"i": (M, i), "j": (N, j), "p": (PROGRAMS[0], p)}
COLUMN_TILES, ROW_TILES = symbols("column_tiles row_tiles", integer=True, positive=True)
COUNTS = map(str, (*PROGRAMS, COLUMN_TILES, ROW_TILES))
TAKEN = {"M", "N", "eps", "i", "j", *TENSORS, *COUNTS}


# how a letter begins that stands for where a tensor's memory begins
ADDRESS = "the address "


def letter(name: str) -> Symbol:
    """An integer of at least 1: an argument of that name, which is no size and no number of the launch's own."""
    if name in TAKEN:
        name = f"the argument {name}"
    return Symbol(name, integer=True, positive=True)


def check_arguments(binding: Any) -> None:
    """TypeError for a binding that is no mapping of names to what arguments can be, ValueError for nan and infinity."""
    check_type("binding", binding, Mapping)
    for name, value in binding.items():
        check_type("binding: a name", name, str)
        kinds = (T, Filled, Expr, int, float, str)
        if value is not None and not isinstance(value, kinds):
            raise TypeError(
                f"binding: got {type(value).__name__} for {name}, needs "
                "T, Out or InOut, a size, number, flag, word or None"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"binding: got {value} for {name}, needs a finite number")


def meanings_of(helpers: Any) -> dict[str, tuple[list[str], str]]:
    """{helper: (its arguments, what it returns)}; TypeError or ValueError for helpers that are none."""
    meanings = {}
    for call, text in helpers.items():
        check_type("helpers: a name", call, str)
        parts = re.fullmatch(r"([^\W\d][\w.]*)(?:\(([\w, ]*)\))?", call)
        if not parts:
            raise ValueError(f'helpers: got {call!r}, needs "function(a, b)"')
        tree_of(f"helpers: {call}", text)
        meanings[parts[1]] = (re.findall(r"\w+", parts[2] or ""), text)
    return meanings


@dataclass(frozen=True)
class Launch:
    """The binding of a kernel's arguments, and its grid.

    Args:    arguments: {name: T, Out or InOut; a size, number, flag or None; WHOLE, COLUMNS, ROWS, CHUNK or FLOAT}
             grid: for each axis "rows" (M programs), "row tiles" (cdiv(M, the block of rows)), "column tiles",
             "programs" (any number), or a number, which is that of the one program looked at and no count; so is a
             symbol below a size, (symbol, size)
             helpers: {"function(a, b)": what it returns, as text}, taken for granted
             zero: whether what the kernel compares with 0 is 0
             called: whether the binding is a call that was read, and has every argument
             groups: {argument: (how many rows it has, to which programs add whose number is the same modulo that,
             whether it has the arguments' dtype)}
             even: the sizes that are multiples of their blocks
    Raises:  ValueError for what is none of these, and for two blocks of one kind; TypeError for another type
    """

    arguments: Mapping[str, Any]
    grid: tuple
    helpers: Mapping[str, str] = field(default_factory=dict)
    zero: bool = False
    called: bool = False
    groups: Mapping[str, tuple] = field(default_factory=dict)
    even: frozenset[Symbol] = frozenset()

    def __post_init__(self):
        check_fields(self)
        meanings_of(self.helpers)
        for axis in self.grid:
            if isinstance(axis, tuple):
                known = len(axis) == 2 and all(isinstance(e, Expr) for e in axis)
            else:
                known = axis in AXES or type(axis) is int and axis >= 0
            if not known:
                raise ValueError(f"grid: got {axis!r}, needs numbers or one of {AXES}")
        if not 1 <= len(self.grid) <= 3:
            raise ValueError(f"grid: got {len(self.grid)} axes, needs 1 to 3")
        kinds = [value for value in self.arguments.values() if value in BLOCKS]
        if len(set(kinds)) < len(kinds) or {WHOLE, COLUMNS} <= {*kinds}:
            raise ValueError(
                f"binding: got {sorted(kinds)}, "
                "needs at most one block of rows and one of columns"
            )

    def check_strides(self, names: list[str]) -> None:
        """ValueError for a stride by a name that the kernel has no argument of, and for an output's rows that overlap.

        For rows that lie apart by an argument. It stops `Out("y", stride=4)`, with which y is proved for N = 5, too.
        """
        for argument, bound in self.arguments.items():
            for kind, stride in getattr(bound, "strides", ()):
                if isinstance(stride, str):
                    self._check_named(argument, stride, names)
                rows = kind == "stride" and len(bound.letters) > 1
                if not rows or stride is None or not bound.after:
                    continue
                if self.stride(stride).is_Integer:
                    raise ValueError(
                        f"{argument}: got rows that are {self.stride(stride)} apart, "
                        "needs at least N, as the stride of N"
                    )

    def _check_named(self, argument, stride, names):
        if stride not in names:
            raise ValueError(
                f"{argument}: got the stride {stride!r}, "
                f"needs an argument of the kernel: {', '.join(names)}"
            )
        number = self.arguments.get(stride)
        text = isinstance(number, str) and number not in SIZED
        if text or isinstance(number, T | Filled | bool):
            raise ValueError(
                f"{argument}: got the stride {stride}, bound as {number!r}, "
                "needs one that is a whole number"
            )

    def block(self, *kinds: str) -> Symbol | None:
        """The symbol of the block of one of these kinds."""
        names = [name for name, kind in self.arguments.items() if kind in kinds]
        return letter(names[0]) if names else None

    @property
    def column_tiles(self) -> Expr:
        """How many blocks of columns a row has."""
        swept = COLUMNS in self.arguments.values()
        return COLUMN_TILES if swept else S.One

    def _axis(self, axis):
        """(the program's number along an axis of the grid, how many programs it has)."""
        if axis >= len(self.grid):
            return S.Zero, S.One
        kind = self.grid[axis]
        if isinstance(kind, tuple):
            return kind
        tiles = {"row tiles": ROW_TILES, "column tiles": self.column_tiles}
        leading = dict(zip(LEADING_AXES, LEADING, strict=True))
        count = ({"rows": M} | tiles | leading).get(kind, PROGRAMS[axis])
        return Integer(kind) if isinstance(kind, int) else PIDS[axis], count

    def programs(self, axis: int) -> Expr:
        """How many programs an axis of the grid has."""
        return self._axis(axis)[1]

    def number(self, axis: int) -> Expr:
        """The program's number along an axis."""
        return self._axis(axis)[0]

    @property
    def shares(self) -> list[tuple[Symbol, Expr]]:
        """(the program looked at, how many there are) of each axis that a symbol stands for."""
        return [kind for kind in self.grid if isinstance(kind, tuple)]

    @property
    def axes(self) -> set[int]:
        """The axes of the grid along which all programs are looked at."""
        return {axis for axis, kind in enumerate(self.grid) if isinstance(kind, str)}

    def stride(self, value) -> Expr:
        """A stride of a T as an expression."""
        if not isinstance(value, str):
            return sympify(value)
        bound = self.arguments.get(value)
        no_number = bound is None or isinstance(bound, str)
        return letter(value) if no_number else sympify(bound)

    def at(self, sizes: Mapping[Symbol, int]) -> dict[Symbol, int]:
        """Numbers of rows and columns with numbers for the blocks, and for how many tiles that makes."""
        numbers = dict(sizes)
        for name, kind in self.arguments.items():
            if kind not in BLOCKS:
                continue
            size = sizes[M if kind is ROWS else N]
            block = 2
            if kind is WHOLE:
                block = 1 << (size - 1).bit_length()
            tiles = ROW_TILES if kind is ROWS else COLUMN_TILES
            numbers |= {letter(name): block, tiles: -(-size // block)}
        return numbers

    @property
    def meanings(self) -> dict[str, tuple[list[str], str]]:
        """{helper: (its arguments, what it returns)}."""
        return meanings_of(self.helpers)

    @property
    def chunks(self) -> set[Symbol]:
        """The symbols of arguments that hold how much of the rows one program takes."""
        return {letter(name) for name, kind in self.arguments.items() if kind is CHUNK}
