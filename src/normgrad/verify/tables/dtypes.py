"""Triton's dtypes, and which of them an operation makes of two.

What a value's dtype may be is a set of names: all of floating point where it is a tensor's own. A number of the text
has none as yet: it is a Python "int" or "float" until it meets a dtype, or gets a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

HALVES = frozenset({"float16", "bfloat16"})
FLOAT8 = frozenset("float8e5 float8e5b16 float8e4nv float8e4b8 float8e4b15".split())
LONG = frozenset({"float32", "float64"})
NARROW = FLOAT8 | HALVES
FLOATS = NARROW | LONG
BITS = dict.fromkeys(FLOAT8, 8) | dict.fromkeys(HALVES, 16)
BITS |= {"float32": 32, "float64": 64, "int1": 1}
for bits in (8, 16, 32, 64):
    BITS |= {f"int{bits}": bits, f"uint{bits}": bits}
# {what Python calls a number of the text: the dtype that it gets}
PYTHON = {"bool": "int1", "int": "int32", "float": "float32"}
INTEGERS = frozenset(BITS.keys() | PYTHON) - FLOATS - {"float"}
ANY = INTEGERS | FLOATS | {"float"}
BOOLEANS = frozenset({"int1"})
LONG_INTEGERS = frozenset({"int64", "uint64"})
UNSIGNED = frozenset({"uint32"})
# of a program's number, a number of programs and a lane
COUNTED = frozenset({"int32"})
# of an argument, as Triton makes a number of the text of one that is 1
SIZES = frozenset({"int", "int32", "int64", "uint64"})
# of a number that is counted, whose products may wrap
SHORT = SIZES - LONG_INTEGERS
# of a number of the text that float32 or int32 does not hold
WIDE = frozenset({"float64", "int64", "uint32", "uint64"})
# {a dtype: that of the largest of a tile}, {a dtype: that of the larger of two}
LARGEST = dict.fromkeys(NARROW, "float32")
LARGER = {"bfloat16": "float32"}
# {an integer's dtype: that of a quotient by /}
DIVIDED = dict.fromkeys(INTEGERS, "float32") | {"int": "float"}


def _rank(name):
    """0 of what is true or false, 1 of an integer, 2 of a floating-point number."""
    if PYTHON.get(name, name) in FLOATS:
        return 2
    return int(name not in ("bool", "int1"))


def _is_signed(name):
    return name.startswith("int") and name != "int1"


@cache
def promoted(a: str, b: str, quotient: bool = False) -> str | None:
    """The dtype of an operation of two dtypes, None where Triton refuses it; quotient: whether it is / or %."""
    if (a in PYTHON) != (b in PYTHON):
        number, dtype = (a, b) if a in PYTHON else (b, a)
        if _rank(number) <= _rank(dtype):
            return "float32" if quotient and dtype in HALVES else dtype
    elif a in PYTHON:
        return max(a, b, "int", key=_rank)
    a, b = PYTHON.get(a, a), PYTHON.get(b, b)
    both = {a, b}
    for name in ("float64", "float32"):
        if name in both:
            return name
    if both & HALVES:
        if quotient or "float16" not in both and a != b:
            return "float32"
        return min(both & HALVES, key=len)  # float16 before bfloat16
    if both <= FLOATS:
        return a if a == b else "float16"
    if both & FLOATS or quotient and _is_signed(a) != _is_signed(b):
        return None
    return max(a, b, key=lambda name: (BITS[name], not _is_signed(name)))


@cache
def results(a: frozenset, b: frozenset, operator: str = "Add") -> frozenset:
    """What the dtype of an operation may be, by what the dtypes of two values may be."""
    quotient = operator in ("Div", "FloorDiv", "Mod")
    names = {promoted(one, other, quotient) for one in a for other in b} - {None}
    return replaced(names, DIVIDED if operator == "Div" else {})


def replaced(names: frozenset, table: Mapping[str, str] = PYTHON) -> frozenset:
    """The names, with what a table has in their place."""
    return frozenset(table.get(name, name) for name in names)


def may_wrap(names: frozenset) -> bool:
    """Whether a number is an integer that may be one of 32 bits."""
    return names <= INTEGERS and bool(names & SHORT)


def spelled(names: frozenset) -> str:
    """The names in words."""
    if names <= PYTHON.keys():
        return "a tl.constexpr"
    if len(names) > 1 and names <= INTEGERS:
        return "an integer"
    if names >= FLOATS:
        return "floating point"
    return " or ".join(sorted(replaced(names)))


def narrower(before: frozenset, after: frozenset) -> list[bool | None]:
    """Of each two dtypes, whether a cast from one to the other is to fewer bits; None where they are one."""
    pairs = [(a, b) for a in before for b in after]
    return [
        None if a == b else {a, b} <= FLOATS and BITS[b] < BITS[a] for a, b in pairs
    ]
