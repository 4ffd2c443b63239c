"""The functions of math, and Python's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from sympy import Max, Min, expand, fraction, log, together

from ...symbolic.symbols import M
from ..arrays import (
    FLOOR,
    PROGRAM,
    PROGRAMS,
    Array,
    Misfit,
    NotRead,
    Scalar,
    Wrong,
    arithmetic,
    indexed,
    is_integer,
    is_number,
    number,
    plain,
    state,
    total,
)
from ..over_rows import Listed, Once, Rows
from ..sizes import bits_of, ceiling
from .elementary import functions
from .numpy import item, itself, noted, rows_of
from .numpy import of_row as of_entries
from .signatures import Fields, Quiet, each, table

# the most turns of a loop over values
LONGEST = 1000
# the methods of a logger that write a line
LEVELS = ("debug", "info", "warning", "warning_once", "error", "exception", "critical")
# the block of rows of one program
SHARE = (FLOOR(M * PROGRAM, PROGRAMS), FLOOR(M * PROGRAM + M, PROGRAMS))


def of_number(f, x):
    """A function of math, of a number or of an array without axes."""
    value = item(x) if isinstance(x, Array) else x
    if not is_number(value):
        raise NotRead(f"a function of math of {type(value).__name__}")
    as_written = f is itself and is_number(x) and not getattr(x, "rounded", False)
    return Scalar(f(plain(value)), "float", not as_written)


def of_row(row, x):
    """An elementary function of a number."""
    return of_number(partial(noted, row), x)


def as_int(x):
    """int(x) and math.floor(x), of an integer, or of math.log2 of a size, which is at least 0."""
    if is_integer(x):
        return number(plain(x), "int")
    size = _of_log2(x)
    if size is None or not size.is_positive:
        raise NotRead("int of what is not an integer")
    return number(bits_of(size) - 1, "int")


def _of_log2(x):
    """The size whose math.log2 a number is, which has digits enough below 2^31; None of another number."""
    if not (state().way and is_number(x)):
        return None
    exponential = expand(plain(x) * log(2))
    return exponential.args[0] if isinstance(exponential, log) else None


def length_of(x):
    """len(x)."""
    if isinstance(x, Array):
        if not x.ndim:
            raise Misfit("len of an array without axes")
        return number(x.shape[0], "int")
    if isinstance(x, tuple | list | str | dict):
        return len(x)
    raise NotRead(f"len of {type(x).__name__}")


def summed_up(iterable, start):
    """sum of a list with an entry for each row, or of plain values."""
    values = iterable
    if isinstance(iterable, Listed):
        values = [total(rows_of(iterable), [0])]
        if is_number(iterable.entry):
            values = [number(values[0].e, "float")]
    if not isinstance(values, tuple | list):
        raise NotRead(f"a sum of {type(iterable).__name__}")
    for value in values:
        start = arithmetic("Add", start, value)
    return start


# loops


def iterated(value: Any) -> Rows | Sequence:
    """What a loop runs over: all rows, or values."""
    if isinstance(value, Array):
        if not value.ndim or value.shape[0] == 1:
            raise NotRead("a loop over an axis of one entry")
        return Rows(value.shape[0], lambda turn: indexed(value, turn))
    if isinstance(value, Once):
        return value.taken(state().loops)
    if isinstance(value, Rows | tuple | list) and not getattr(value, "shared", False):
        return value
    raise NotRead(f"a loop over {type(value).__name__}")


def counted(args):
    """A range of all rows or columns, or of plain numbers."""
    if not all(map(is_integer, args)):
        raise NotRead("a range of other than integers")
    if all(isinstance(end, int) for end in args):
        numbers = range(*args)
        if len(numbers) > LONGEST:
            raise NotRead(f"a loop of {len(numbers)} turns")
        return list(numbers)
    ends = tuple(map(plain, args))
    if ends == SHARE:
        return Rows(M, shared=True)
    size = ends[-1]
    if ends in ((size,), (0, size)) and size.is_Symbol:
        return Rows(size)
    raise NotRead("a loop over some rows or columns only")


def _rows(value):
    items = iterated(value)
    if not isinstance(items, Rows):
        raise NotRead("an enumerate or a zip of other than rows")
    return items


def enumerated(iterable):
    """The rows with their numbers."""
    rows = _rows(iterable)
    pairs = Rows(rows.size, lambda turn: (turn, rows.item(turn)))
    return Once(pairs, state().loops)


def zipped(values, strict):
    """The rows of several arrays side by side."""
    parts = list(map(_rows, values))
    if len({part.size for part in parts}) != 1:
        raise NotRead("a zip of other lengths than all rows")
    rows = Rows(parts[0].size, lambda turn: tuple(part.item(turn) for part in parts))
    return Once(rows, state().loops)


def extreme(f, values):
    """min or max of integers."""
    if len(values) == 1:
        (values,) = values
    if is_number(values):
        raise Wrong("a TypeError: min or max of one number")
    is_listed = isinstance(values, tuple | list) and values
    if not (is_listed and all(map(is_integer, values))):
        raise NotRead("min or max of other than integers")
    return number(f(*map(plain, values)), "int")


def rounded_up(x):
    """math.ceil of a quotient of integers, or of math.log2 of a size."""
    if is_integer(x):
        return x
    size = _of_log2(x)
    if size is not None:
        return number(bits_of(size - 1), "int")
    above, below = fraction(together(plain(x)))
    if not (state().way and above.is_integer and below.is_integer):
        raise NotRead("math.ceil of other than a quotient of integers")
    return number(ceiling(above, below), "int")


def product_of(values, start):
    """math.prod."""
    return reduce(partial(arithmetic, "Mult"), values, start)


def truths(decide, values):
    """any or all of truth values."""
    if not all(type(value) is bool for value in values):
        raise NotRead("any or all of other than truth values")
    return decide(values)


MATH = table("math", each("(x, /)", of_row, functions("python")))
# of functions that launch kernels
HOST = table(
    "math",
    {
        "ceil(x, /)": rounded_up,
        "floor(x, /)": as_int,
        "prod(values: list, /, *, start=1)": product_of,
    },
)
# what a launcher tells whom it may concern
LOGGER = Fields({name: Quiet() for name in LEVELS})
LOGGING = table("math", {"getLogger(name=None)": lambda name: LOGGER})
BUILTINS = table(
    "math",
    {
        "float(x, /)": partial(of_number, itself),
        "int(x, /)": as_int,
        **each("(x: floats, /)", of_entries, functions("builtins")),
        **each("(*values)", extreme, {"min": Min, "max": Max}),
        "len(x, /)": length_of,
        "sum(iterable, start=0, /)": summed_up,
        "range(*ends)": counted,
        "enumerate(iterable)": enumerated,
        "zip(*values, strict: bool = False)": zipped,
        **each("(values: list, /)", truths, {"any": any, "all": all}),
        "list(values: list, /)": list,
        "tuple(values: list, /)": tuple,
    },
)
