"""What a name in a kernel can hold: an integer, a number, a mask, a pointer or a dtype, each a kind of its own.

A number is held four times: in a lane that exists, in a column past the end, in a row past the end, and past both.
`nan` says that nothing is known of a lane; neither is anything then of 0 times it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from sympy import Expr, Rational, S, Symbol, nan, oo, sympify, zoo

from .tables.dtypes import ANY, BOOLEANS, SIZES

INSIDE, COLUMN, ROW, CORNER = range(4)
LANES = {
    "R": Symbol("row_lane", integer=True, nonnegative=True),
    "C": Symbol("column_lane", integer=True, nonnegative=True),
}


# of the longest number: a product or a power of a text's numbers may have more digits than the memory holds
BITS = 4096
SMALL = 64  # an exponent of what is no number


class NotRead(ValueError):
    """What is not followed, with the reason; line: where."""

    def __init__(self, why: str, line: int | None = None):
        super().__init__(why)
        self.line = line


class Wrong(NotRead):
    """A line that is followed and wrong whatever the definitions."""


class LeftOut(Wrong):
    """Rows or columns that one launch leaves out.

    Args:  tensors: the memory of what it stores into, which another statement of the launcher may write as well
    """

    tensors: tuple = ()


class Misfit(Wrong):
    """A line that is followed and does not fit the shapes that the arguments have been given, or are taken to have."""


# what a claim says of memory that a kernel adds to, after its name
BEFORE = "is 0 before the kernel runs"
# whether a lane is nan that a run may know: an infinity stands in a kernel, an operation of known numbers was infinite,
# as 1 / 0 in a lane past the end, or a choice by values is not known there
UNFOLLOWED: ContextVar[bool] = ContextVar("unfollowed", default=False)


class Unknown(Wrong):
    """A value is used that a masked load leaves undefined."""


class Unsupported(NotRead):
    """A dtype that a program has no way for."""


class Flag(NotRead):
    """A condition on an argument that is not bound, which is tried both ways; its words are the argument's name."""


UNCOMPILED = "does not compile: "


def uncompiled(why: str, line: int | None = None) -> Wrong:
    """What Triton refuses to compile, whatever the arguments."""
    return Wrong(f"{UNCOMPILED}{why}", line)


def unlaunched(why: str) -> Wrong:
    """What Triton refuses when the kernel is called, whatever its arguments hold."""
    return Wrong(f"does not launch: {why}")


@dataclass(frozen=True)
class Place:
    """The rows or columns that an index runs through, in a program and in all of them together.

    Args:  symbol: stands for it in numbers; axis: "R" or "C"
           cover: of columns (first tile, last tile) or "grid"; of rows "own", the program's share, or "all"
           past: whether a lane can be past the end; end: the first index that is past it
           loop: the turn that it depends on; lanes: whether it has lanes; pids: the axes of the grid it depends on
    """

    symbol: Symbol
    axis: str
    cover: object
    past: bool
    end: Expr
    loop: Symbol | None
    lanes: bool
    pids: frozenset


@dataclass(frozen=True)
class Pending:
    """A sum over a place that lacks terms as yet, or whose lanes are still apart; cover: as a Place's."""

    place: Place
    cover: object


@dataclass(frozen=True)
class Index:
    """An integer; e: a polynomial in lanes, turns, programs, sizes and strides; axes: of "R", "C" and "1".

    dtype: what it may be, as a Number's
    constant: which sizes have to be 1 for Triton to make a constant of it, which is no tensor, while it compiles:
    none for a number of the text; None where it is a tensor whatever they are
    line: of the product in it, 0 for none
    """

    e: Expr
    axes: tuple = ()
    dtype: frozenset = field(default=SIZES, compare=False)
    constant: frozenset | None = field(default=None, compare=False)
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Number:
    """A floating-point number, or a tile of them.

    Args:  parts: inside, past the columns, past the rows, past both; axes: as Index
           places: those that it depends on, one for each axis
           pending: sums that are not complete; share: axes of the grid over whose programs it is yet to be summed
           dtype: what it may be, in the names of tables/dtypes.py; all of floating point where a tensor's is loaded
           rounded: where it lost digits in 16 bits, as "float16 (line 9)"
           constant: as Index
    """

    parts: tuple
    axes: tuple = ()
    places: frozenset = frozenset()
    pending: tuple = ()
    share: frozenset = frozenset()
    dtype: frozenset = field(default=ANY, compare=False)
    rounded: str = field(default="", compare=False)
    constant: frozenset | None = field(default=None, compare=False)

    @property
    def inside(self) -> Expr:
        """The value in a lane that exists."""
        return self.parts[INSIDE]

    def place(self, axis: str) -> Place | None:
        """The place that it depends on along an axis."""
        return next((p for p in self.places if p.axis == axis), None)

    @property
    def is_of_rows(self) -> bool:
        """Whether it is one number for each row, the same in lanes past the end of the columns."""
        return self.place("C") is None and self.parts[COLUMN] == self.inside

    @property
    def complete(self) -> bool:
        """Whether no sum in it lacks terms."""
        return not self.pending and not self.share


@dataclass(frozen=True)
class Mask:
    """Whether each of some integers is below its bound; below: {(integer, bound)}; axes, constant: as Index."""

    below: frozenset
    axes: tuple = ()
    constant: frozenset | None = field(default=None, compare=False)
    dtype = BOOLEANS


@dataclass(frozen=True)
class Limit:
    """The largest number of a dtype, whichever it is; least: the smallest of those that a text has for the dtypes."""

    least: Expr | str = "its dtype holds"


@dataclass(frozen=True)
class Condition:
    """A comparison of numbers.

    Args:  holds: for each of a number's parts, whether it is sure to hold; axes: as Index
           a, b: where it is a > b; zero: where it says that this number is 0; limited: where it rests on a Limit
           indicator: 1 where it holds and 0 elsewhere, where it says that a column is a row's target
    """

    holds: tuple[bool, ...] = (False,) * 4
    axes: tuple = ()
    a: Number | None = None
    b: Number | None = None
    zero: Number | None = None
    limited: bool = False
    indicator: Number | None = None
    dtype = BOOLEANS


@dataclass(frozen=True)
class Pointer:
    """An argument, and an offset from its first element.

    Args:  edges: (index, size) of each axis of a block pointer, with its strides
           parts: (an offset of 32 bits that was added, its line)
    """

    name: str
    offset: Index
    edges: tuple = ()
    strides: tuple = ()
    parts: tuple = field(default=(), compare=False)
    dtype = frozenset({"pointer"})

    @property
    def axes(self) -> tuple:
        """Those of the offset."""
        return self.offset.axes


@dataclass(frozen=True)
class Dtype:
    """A dtype; names: what it may be, as a Number's, or a pointer."""

    names: frozenset


@dataclass(frozen=True)
class Undecided:
    """A condition on dtypes: the kernel does the same either way, or it is not read."""


@dataclass(frozen=True)
class Qualified:
    """A name of a library, such as triton.language.sum; bound: (the value that it is a method of,)."""

    path: str
    bound: tuple = field(default=(), compare=False)


def size_in_bits(e: Rational) -> int:
    """How many bits a fraction has, above or below its line."""
    return max(abs(e.p), e.q).bit_length()


def check_bits(e: Expr) -> Expr:
    """The expression; refused where the number that it is, or is multiplied by, is too long.

    For a loop with `a = a * a`. Without it the digits of what a text of five lines computes fill the memory.
    """
    number, _ = e.as_coeff_Mul()
    if number.is_Rational and size_in_bits(number) > BITS:
        raise NotRead(f"a number of more than {BITS} bits; write a smaller one")
    return e


def power(base: Expr, exponent: Expr) -> Expr:
    """base**exponent.

    Raises:  NotRead for numbers such as 9**9**9, whose digits would fill the memory
    """
    if exponent == -oo and base.is_number and base > 1:
        return S.Zero
    if exponent.is_number:
        bits = size_in_bits(base) if base.is_Rational else BITS // SMALL
        small = exponent.is_Rational
        small = small and bits * max(abs(exponent.p), exponent.q) <= BITS
        if not small:
            raise NotRead(f"the exponent {exponent}: needs to be a small number")
    return base**exponent


def plain(e, axes=(), dtype=ANY) -> Number:
    """A number that is the same in every lane."""
    return Number((sympify(e),) * 4, axes, dtype=dtype)


def constants(*values: object) -> frozenset | None:
    """Which sizes have to be 1 for Triton to make a constant of values' result; None where it makes a tensor."""
    sizes: frozenset = frozenset()
    for value in values:
        names = getattr(value, "constant", None)
        if isinstance(value, bool | str | None):
            names = frozenset()
        if names is None:
            return None
        sizes |= names
    return sizes


def of_constants(value: object, *parts: object) -> object:
    """A value that is made of parts, and a constant of Triton's where they all are."""
    if not isinstance(value, Index | Number | Mask):
        return value
    return replace(value, constant=constants(*parts))


def as_tensor(value: object) -> object:
    """A value that gets a name, of which Triton makes a tensor; of a tuple of each part."""
    if isinstance(value, tuple):
        return tuple(map(as_tensor, value))
    if getattr(value, "constant", None) is None:
        return value
    return replace(value, constant=None)


def fit(first: tuple, second: tuple) -> tuple:
    """The axes of two tiles that are broadcast against each other."""
    longest = max(len(first), len(second))
    first, second = (("1",) * (longest - len(a)) + tuple(a) for a in (first, second))
    for a, b in zip(first, second, strict=True):
        if a != b and "1" not in (a, b):
            raise NotRead(
                f"shapes {shape(first)} and {shape(second)} do not fit "
                "for every size of the blocks"
            )
    axes = tuple(b if a == "1" else a for a, b in zip(first, second, strict=True))
    long = [a for a in axes if a != "1"]
    if len(set(long)) < len(long):
        raise NotRead(f"a tile of shape {shape(axes)}, which has one axis twice")
    return axes


def shape(axes) -> str:
    """Axes in words."""
    names = {"R": "rows", "C": "columns", "1": "1"}
    return f"({', '.join(names[a] for a in axes)})"


def merged(*values: Number) -> frozenset:
    """The places of numbers that meet in one operation; NotRead for two places along one axis."""
    places = frozenset().union(*[value.places for value in values])
    axes = [p.axis for p in places]
    if len(set(axes)) < len(axes):
        raise NotRead("values of two different tiles meet in one lane")
    return places


def unfollowed_lane(part: Expr) -> Expr:
    """nan for what is in a lane, which a run may know."""
    if part is not nan:
        UNFOLLOWED.set(True)
    return nan


def known(part: Expr) -> Expr:
    """The part, or nan where it has no value; -oo is one, which a masked lane holds in a maximum."""
    if part == -oo:
        return part
    if not part.has(nan, zoo, oo, -oo):
        return part
    if not part.has(nan):
        UNFOLLOWED.set(True)
    return nan


def incomplete(*values: Number) -> NotRead:
    """The refusal of a sum that lacks terms where it is used."""
    axes = {p.place.axis for value in values for p in value.pending}
    if "R" in axes or any(value.share for value in values):
        return NotRead(
            "a sum over rows, too, is used in a value of one row; axis=1 sums each row"
        )
    return NotRead("a sum is used before it is complete")


def apply(function: Callable[..., Expr], *values: Number) -> Number:
    """A function of numbers, lane by lane, whose dtype is not known."""
    if not all(value.complete for value in values):
        raise incomplete(*values)
    axes: tuple = ()
    for value in values:
        axes = fit(axes, value.axes)
    parts = []
    for arguments in zip(*[value.parts for value in values], strict=True):
        parts.append(nan if nan in arguments else known(sympify(function(*arguments))))
    return Number(tuple(parts), axes, merged(*values))


# {a type's name: what it is, in words}
KINDS = {
    **dict.fromkeys(("Number", "Scalar", "float"), "a number"),
    **dict.fromkeys(("Index", "int"), "an integer"),
    **dict.fromkeys(("Mask", "Condition", "Undecided"), "a mask"),
    **dict.fromkeys(("Qualified", "Function", "Named"), "a function"),
    "Array": "an array",
    "Dtype": "a dtype",
    "NoneType": "None",
}


def described(value: object) -> str:
    """What kind of value a text has made, in words."""
    match value:
        case str() | bool():
            return repr(value)
        case Number(axes=axes) if axes:
            return "a tile of numbers"
        case Pointer(name):
            return f"the pointer {name}"
    name = type(value).__name__
    return KINDS.get(name, f"a {name.lower()}")


def unfollowed(reason: Exception) -> str:
    """Why a text is not read in whose reading something goes wrong."""
    if isinstance(reason, RecursionError):
        return "too deep to be followed"
    if "determine truth value" in str(reason):
        return "a branch on values, or on sizes, that is not decided"
    return f"not followed: {type(reason).__name__}: {reason}"
