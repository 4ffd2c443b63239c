"""Values of a kernel's expressions: what a name is, and integer, number, mask and pointer arithmetic."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul, sub

from sympy import Expr, Indexed, Integer, S, expand, nan, sympify

from ..symbolic.signs import is_positive
from ..symbolic.symbols import N
from .binding import (
    CHUNK,
    COLUMNS,
    FLOAT,
    PIDS,
    PROGRAM_COUNT,
    ROWS,
    TAKEN,
    WHOLE,
    Launch,
    T,
    letter,
)
from .memory import Memory
from .places import Places, least
from .source import Source
from .sums import Sums
from .syntax import Walker
from .values import (
    COLUMN,
    CORNER,
    LANES,
    ROW,
    Condition,
    Dtype,
    Index,
    Limit,
    Mask,
    NotRead,
    Number,
    Pointer,
    Qualified,
    Undecided,
    apply,
    fit,
    merged,
    plain,
)

INTEGERS = {"Add": add, "Sub": sub, "Mult": mul}
ORDER = ("Lt", "LtE", "Gt", "GtE")
BUILTINS = ("range", "min", "max", "float", "abs", "len")
DTYPES = {
    "float": ("float16", "bfloat16", "float32", "float64"),
    "integer": ("int32", "int64"),
    "boolean": ("int1",),
}


@dataclass(frozen=True)
class Function:
    """A function of a module's text, which is read where it is called."""

    source: Source
    node: ast.FunctionDef


class Unbound:
    """An argument of the kernel that the binding does not name."""


class Expressions(Walker):
    """Evaluates expressions on symbols; source: the module of the function that is being read."""

    def __init__(self, source: Source, launch: Launch, fill=nan):
        self.assumed: dict[str, None] = {}
        self.source, self.launch = source, launch
        self.places = Places(launch, self.assumed)
        self.sums = Sums(self.places)
        self.memory = Memory(launch, self.places, self.assumed, sympify(fill))
        self.unbound: set[str] = set()
        self.integers = False  # whether there is a tile of integers
        self.rests_on: dict[str, int] = {}
        self.constants: set[str] = set()
        self.largest: dict[Indexed, Expr] = {}

    def argument(self, name: str, default: ast.expr | None = None):
        """The value of a kernel's argument; one that is not bound is an integer of at least 1."""
        if name not in self.launch.arguments:
            return Unbound() if default is None else self.evaluate(default, {})
        bound = self.launch.arguments[name]
        if isinstance(bound, T):
            return Pointer(name, Index(S.Zero))
        if isinstance(bound, str) and bound is FLOAT:
            return Dtype("float")
        if isinstance(bound, str) and bound is PROGRAM_COUNT:
            return Index(self.launch.programs(0))
        if any(bound is word for word in (WHOLE, COLUMNS, ROWS, CHUNK)):
            return Index(letter(name))
        if bound is None or isinstance(bound, bool | str):
            return bound
        e = sympify(bound)
        return Index(e) if e.is_integer else plain(e)

    # names

    def value_Constant(self, node, local):
        """A number, text, flag or None as it is written."""
        if node.value is None or isinstance(node.value, bool | str):
            return node.value
        if isinstance(node.value, int):
            return Index(Integer(node.value))
        if isinstance(node.value, float):
            return plain(sympify(repr(node.value), rational=True))
        raise NotRead(f"{node.value!r}: this kind of constant is not read")

    def value_Name(self, node, local):
        """What a name stands for: first in the function, then in its module, then in Python."""
        name = node.id
        if name not in local:
            return self.named(name, self.source)
        if not isinstance(local[name], Unbound):
            return local[name]
        if name in TAKEN:
            why = "is not bound, and nothing is guessed from its name: bind it"
            raise NotRead(f"{name} {why}")
        self.unbound.add(name)
        return Index(letter(name))

    def named(self, name: str, source: Source):
        """What a name of a module stands for."""
        bound = self.launch.arguments
        if source.function(name) is not None:
            return Function(source, source.function(name))
        if name in source.constants:
            value = source.constant(name)
            if name in bound and not isinstance(bound[name], T):
                self.constants.add(name)
                self.assumed[f"{name} is {bound[name]}"] = None
                return self.argument(name)
            if value is None:
                raise NotRead(f"{name}: its value is not read")
            before, self.source = self.source, source
            try:
                return self.evaluate(value, {})
            finally:
                self.source = before
        if name in source.imports:
            return self._imported(name, source)
        if name in BUILTINS:
            return Qualified(f"builtins.{name}")
        why = "not defined or imported in this text, or an `if` or a loop changes it"
        raise NotRead(f"{name} has no value here: {why}")

    def _imported(self, name, source):
        path, file = source.imported(name)
        original = path.rpartition(".")[2]
        if path in ("triton", "triton.language", "math"):
            return Qualified(path)
        if original in ("tl", "language", "triton"):
            library = "triton" if original == "triton" else "triton.language"
            self.assumed[f"{name}, imported as {path}, is {library}"] = None
            return Qualified(library)
        if file is not None:
            return self.named(original, file)
        return Qualified(path)

    def attribute(self, value, name):
        """An attribute: of a library, or of a value."""
        if isinstance(value, Qualified):
            if value.path == "triton.language":
                for kind, names in DTYPES.items():
                    if name in names:
                        return Dtype(kind)
            return Qualified(f"{value.path}.{name}")
        if name in ("to", "cast"):
            return Qualified("triton.language.cast", (value,))
        if name == "value" and isinstance(value, Index | Number):
            return value
        if isinstance(value, Pointer) and name in ("dtype", "type"):
            return Dtype("pointer")
        if isinstance(value, Dtype) and value.kind == "pointer":
            if name == "element_ty":
                return Dtype("float")
        if isinstance(value, Number | Index | Mask) and name == "dtype":
            kinds = {
                Number: "" if self.integers else "float",
                Index: "integer",
                Mask: "boolean",
            }
            return Dtype(kinds[type(value)])
        if isinstance(value, Number | Index) and name == "shape":
            sizes = {"R": self.places.row_block, "C": self.places.column_block or N}
            return tuple(Index(sizes.get(axis, S.One)) for axis in value.axes)
        raise NotRead(f"the attribute {name} is not read")

    value_List = Walker.value_Tuple

    # conditions

    def decided(self, test) -> bool | None:
        """Whether a condition holds for every program, where that is known; None for one that depends on dtypes."""
        if isinstance(test, Undecided):
            return None
        if isinstance(test, Mask) and not test.axes:
            holds = [self.places.below(*pair) for pair in test.below]
            if False in holds:
                return False
            if None not in holds:
                return True
        if isinstance(test, Number | Index) and not test.axes:
            e = test.inside if isinstance(test, Number) else test.e
            if e.is_zero is not None:
                return not e.is_zero
        if isinstance(test, Pointer):
            return True
        if test is None or isinstance(test, bool):
            return bool(test)
        raise NotRead("a branch on what is known only while the kernel runs")

    def value_IfExp(self, node, local):
        """A choice of two values, which a dtype may decide where they are equal."""
        decided = self.decided(self.evaluate(node.test, local))
        if decided is None:
            values = [self.evaluate(part, local) for part in (node.body, node.orelse)]
            if values[0] == values[1]:
                return values[0]
            if all(isinstance(v, Number) and v.inside.is_Rational for v in values):
                if min(value.inside for value in values) >= 2**60:
                    return Limit()
            raise NotRead("a value that depends on a dtype")
        return self.evaluate(node.body if decided else node.orelse, local)

    def value_BoolOp(self, node, local):
        """`and` and `or`, which stop at the first value that decides."""
        both, masks = isinstance(node.op, ast.And), []
        undecided = False
        for part in node.values:
            value = self.evaluate(part, local)
            if isinstance(value, Undecided):
                undecided = True
                continue
            if both and isinstance(value, Mask):
                masks.append(value)
                continue
            if self.decided(value) != both:
                return not both
        if undecided and masks:
            raise NotRead("a condition on a dtype and on what the kernel computes")
        if undecided:
            return Undecided()
        return reduce(self._both, masks, both)

    def value_Compare(self, node, local):
        """A comparison: of integers it is a mask, unless it is the same for all programs."""
        if len(node.ops) != 1:
            raise NotRead("a chain of comparisons")
        operation = type(node.ops[0]).__name__
        left = self.evaluate(node.left, local)
        right = self.evaluate(node.comparators[0], local)
        if isinstance(left, Dtype) or isinstance(right, Dtype):
            return Undecided()
        if operation in ("Is", "IsNot"):
            if left is not None and right is not None:
                raise NotRead("`is` between two values")
            return (left is right) == (operation == "Is")
        if operation in ("Eq", "NotEq"):
            equal = self._equal(left, right)
            if isinstance(equal, bool):
                return equal == (operation == "Eq")
            if operation == "NotEq":
                raise NotRead("a comparison of numbers by !=")
            return equal
        if operation not in ORDER:
            raise NotRead("a comparison of this kind")
        if operation in ("Gt", "GtE"):
            left, right = right, left
        if any(isinstance(value, Number | Limit) for value in (left, right)):
            return self._condition(right, left)
        if not (isinstance(left, Index) and isinstance(right, Index)):
            raise NotRead("a comparison of what are no integers")
        end = right.e + 1 if operation in ("LtE", "GtE") else right.e  # a < b + 1
        axes, (a, b) = fit(left.axes, right.axes), self.places.bound(left.e, end)
        holds = self.places.below(a, b)
        if holds is not None and not axes:
            return holds
        return Mask(frozenset({(a, b)}), axes)

    def _condition(self, left, right):
        """left > right, of numbers, which holds where its sign is known."""
        if isinstance(left, Limit):
            self.assumed["no number is larger than its dtype holds"] = None
            return Condition((True,) * 4, self.number(right).axes)
        left, right = self.number(left), self.number(right)
        difference = apply(lambda a, b: a - b, left, right)
        holds = tuple(p is not nan and is_positive(p) for p in difference.parts)
        return Condition(holds, difference.axes, left, right)

    def _equal(self, left, right) -> bool | Condition:
        numbers = [v for v in (left, right) if isinstance(v, Index | Number)]
        if len(numbers) == 2:
            a, b = (v.e if isinstance(v, Index) else v.inside for v in numbers)
            zero = expand(a - b).is_zero
            if zero is not None and not left.axes and not right.axes:
                return zero
            if isinstance(left, Number) and right in (Index(S.Zero), plain(0)):
                return Condition(axes=left.axes, zero=left)
            raise NotRead("whether two numbers are equal depends on their values")
        simple = (bool, str, type(None))
        if not (isinstance(left, simple) and isinstance(right, simple)):
            raise NotRead("a comparison of different kinds")
        return left == right

    # arithmetic

    def number(self, value) -> Number:
        """A value as a floating-point number: an integer that is the same for all programs becomes one."""
        if isinstance(value, Number):
            return value
        if isinstance(value, Mask):
            return self.where(value, plain(1), plain(0))
        if isinstance(value, Index):
            counted = self.sums.running.counted(value.e)
            moving = {*self.places.loops, *PIDS, *LANES.values()}
            if {*value.axes} - {"1"} or moving & counted.inside.free_symbols:
                raise NotRead("an index is used as a floating-point number")
            return replace(counted, integer=True)
        raise NotRead("what is no number is used as one")

    def value_UnaryOp(self, node, local):
        """`not` and a sign."""
        value = self.evaluate(node.operand, local)
        if isinstance(node.op, ast.Not):
            decided = self.decided(value)
            return Undecided() if decided is None else not decided
        if isinstance(node.op, ast.USub):
            return self.operate("Sub", Index(S.Zero), value)
        raise NotRead(f"{ast.unparse(node)}: this operation is not read")

    def operate(self, operator: str, a, b):
        """a operator b, by the kinds of the two."""
        if operator == "BitAnd":
            return self._both(a, b)
        if isinstance(b, Pointer) and operator == "Add":
            a, b = b, a
        if isinstance(a, Pointer):
            moves = operator in ("Add", "Sub") and isinstance(b, Index)
            if not moves or a.edges:
                raise NotRead("arithmetic of pointers other than adding an integer")
            return replace(a, offset=self.operate(operator, a.offset, b))
        if isinstance(a, Index) and isinstance(b, Index):
            return self._integers(operator, a, b)
        if operator == "Pow":
            return self._power(a, b)
        if operator == "Mult" and isinstance(b, Mask):
            a, b = b, a
        if operator == "Mult" and isinstance(a, Mask):
            if not isinstance(b, Number):
                raise NotRead("a mask is multiplied by what is no number")
            return self.where(a, b, plain(0))
        if not any(isinstance(value, Number) for value in (a, b)):
            raise NotRead("an operation of what are no numbers")
        if isinstance(a, Mask) or isinstance(b, Mask):
            raise NotRead("a mask is used as a number")
        return self.sums.operate(operator, self.number(a), self.number(b))

    def _both(self, a, b):
        if a is True or b is True:
            return b if a is True else a
        if isinstance(a, Condition) and isinstance(b, Condition):
            holds = zip(a.holds, b.holds, strict=True)
            both = tuple(x and y for x, y in holds)
            return Condition(both, fit(a.axes, b.axes))
        if not (isinstance(a, Mask) and isinstance(b, Mask)):
            raise NotRead("`&` of what are no masks")
        return Mask(a.below | b.below, fit(a.axes, b.axes))

    def _power(self, a, b):
        constant = isinstance(a, Number) and a.inside.is_Rational and not a.axes
        if constant and isinstance(b, Index) and b.e.is_Integer and abs(b.e) < 1025:
            return plain(a.inside**b.e)
        if not isinstance(b, Index) or b.e not in range(9):
            raise NotRead("a power other than a whole number of times")
        result = plain(1)
        for _ in range(int(b.e)):
            result = self.sums.operate("Mult", result, self.number(a))
        return result

    def _integers(self, operator, a, b):
        axes = fit(a.axes, b.axes)
        if operator == "Div":
            return self.sums.operate(operator, self.number(a), self.number(b))
        if operator in INTEGERS:
            return Index(expand(INTEGERS[operator](a.e, b.e)), axes)
        if operator in ("FloorDiv", "Mod"):
            quotient = self.places.floor(a.e, b.e)
            rest = expand(a.e - b.e * quotient)
            return Index(quotient if operator == "FloorDiv" else rest, axes)
        if operator == "Pow" and b.e in range(65):
            return Index(expand(a.e**b.e), axes)
        raise NotRead(f"the operation {operator} of integers")

    def smaller(self, a, b):
        """The smaller of two integers."""
        if not isinstance(a, Index) or not isinstance(b, Index) or a.axes or b.axes:
            raise NotRead("a minimum of what are no integers")
        return Index(least(a.e, b.e))

    # tiles

    def value_Subscript(self, node, local):
        """A tile with axes of length 1 put in, or an entry of a tuple."""
        value = self.evaluate(node.value, local)
        if isinstance(value, tuple):
            position = self.evaluate(node.slice, local)
            if not isinstance(position, Index) or not position.e.is_Integer:
                raise NotRead("an entry of a tuple that is not known")
            return value[int(position.e)]
        if isinstance(value, Pointer) and not value.edges:
            return replace(value, offset=self._widened(value.offset, node.slice))
        if isinstance(value, Index | Number | Mask):
            return self._widened(value, node.slice)
        raise NotRead(f"{ast.unparse(node)}: this subscript is not read")

    @staticmethod
    def _widened(value, cuts):
        axes, left = [], list(value.axes)
        for cut in getattr(cuts, "elts", [cuts]):
            if isinstance(cut, ast.Constant) and cut.value is None:
                axes.append("1")
            elif isinstance(cut, ast.Slice) and not (
                cut.lower or cut.upper or cut.step
            ):
                if not value.axes:  # Triton leaves a scalar as it is
                    continue
                if not left:
                    raise NotRead("a subscript of more axes than the tile has")
                axes.append(left.pop(0))
            else:
                raise NotRead("a part of a tile")
        return replace(value, axes=(*axes, *left))

    def where(self, mask: Mask, a: Number, b: Number) -> Number:
        """a where a mask holds, else b."""
        if not (a.complete and b.complete):
            raise NotRead("a choice between sums that are not complete")
        places = merged(a, b)
        leaves_out: set[str] = set()
        for e, bound in mask.below:
            if self.places.below(e, bound):
                continue
            place = self.places.of(e) or self._place_of(e)
            if bound != place.end:
                raise NotRead(f"a choice by {e} < {bound}, which is not the end")
            if any(p.axis == place.axis and p != place for p in places):
                raise NotRead("a choice by the mask of another tile")
            places |= {place}
            leaves_out.add(place.axis)
        parts = list(a.parts)
        if "C" in leaves_out:
            parts[COLUMN], parts[CORNER] = b.parts[COLUMN], b.parts[CORNER]
        if "R" in leaves_out:
            parts[ROW], parts[CORNER] = b.parts[ROW], b.parts[CORNER]
        axes = fit(fit(a.axes, b.axes), mask.axes)
        integer = a.integer and b.integer
        return Number(tuple(parts), axes, places, integer=integer)

    def _place_of(self, e):
        """The place of an index that nothing was loaded from yet."""
        return self.places.at("C" if e.has(LANES["C"]) else "R", e)
