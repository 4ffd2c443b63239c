"""Values of a kernel's expressions: what a name is, and integer, number, mask and pointer arithmetic."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul, sub

from sympy import Expr, Indexed, Integer, S, expand, nan, sympify

from ..symbolic.signs import is_positive
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
from .places import Places
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
    Flag,
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
    incomplete,
    merged,
    plain,
    uncompiled,
)

INTEGERS = {"Add": add, "Sub": sub, "Mult": mul}
# calls whose value Triton knows where it knows their arguments
FIXED = ("constexpr", "cdiv", "min", "max", "len", "isinstance", "next_power_of_2")
RUNTIME = (
    "which Triton compiles both ways, as it is known only while the kernel runs; "
    "make it of arguments with tl.constexpr"
)
BUILTINS = ("range", "min", "max", "float", "abs", "len")
# {a dtype of triton.language: its kind}
DTYPES = dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float")
DTYPES |= {"int32": "integer", "int64": "integer", "int1": "boolean"}


@dataclass(frozen=True)
class Function:
    """A function of a module's text, which is read where it is called."""

    source: Source
    node: ast.FunctionDef


UNSEEN = (
    object()
)  # what a decorator sets an argument to, where the text does not say it


@dataclass(frozen=True)
class Unbound:
    """An argument of the kernel that the binding does not name; why: it cannot be any integer."""

    why: str = ""


@dataclass(frozen=True)
class Given:
    """A flag or a number that the binding, a decorator or a default gives an argument.

    Args:  words: for the claim, where it is read; guessed: whether it is a default, which a launcher may change
    """

    value: object
    words: str
    guessed: bool = False


class Expressions(Walker):
    """Evaluates expressions on symbols; source: the module of the function that is being read."""

    def __init__(self, source: Source, launch: Launch, fill=nan):
        self.assumed: dict[str, None] = {}
        self.source, self.launch = source, launch
        self.places = Places(launch, self.assumed)
        self.sums = Sums(self.places)
        self.memory = Memory(launch, self.places, self.assumed, sympify(fill))
        self.unbound = self.memory.unbound
        # what the claim is for, as "HAS_BIAS=True"; what of it the binding does not say
        self.told: dict[str, None] = {}
        self.guessed: dict[str, None] = {}
        self.constexprs: set[str] = set()
        # the names in the function that is read which Triton knows while it compiles
        self.fixed: set[str] = set()
        # the axes of the grid whose program's number is asked for
        self.asked: set[int] = set()
        self.integers = False  # whether there is a tile of integers
        self.rests_on: dict[str, int] = {}
        self.constants: set[str] = set()
        self.largest: dict[Indexed, Expr] = {}

    def argument(self, name: str, default: ast.expr | None = None, given=()):
        """The value of a kernel's argument; one that is not bound is an integer of at least 1.

        Args:  given: {argument: what a decorator sets it to}
        """
        if name in given and name not in self.launch.arguments:
            if given[name] is UNSEEN:
                return Unbound(f"{name} is set by a decorator to what is not read")
            value = self.value_Constant(ast.Constant(given[name]), {})
            return Given(value, f"{name}={given[name]!r}")
        if name not in self.launch.arguments:
            if default is None:
                return Unbound()
            words = f"{name}={ast.unparse(default)}"
            return Given(self.evaluate(default, {}), words, guessed=True)
        bound = self.launch.arguments[name]
        if isinstance(bound, T):
            return Pointer(name, Index(S.Zero))
        if bound is FLOAT:
            return Dtype("float")
        if bound is PROGRAM_COUNT:
            return Index(self.launch.programs(0))
        if any(bound is word for word in (WHOLE, COLUMNS, ROWS, CHUNK)):
            return Index(letter(name))
        words = f"{name}={bound!r}"
        if bound is None or isinstance(bound, bool | str):
            return Given(bound, words)
        if isinstance(bound, float):
            return Given(self.value_Constant(ast.Constant(bound), {}), words)
        e = sympify(bound)
        value = Index(e) if e.is_integer else plain(e)
        return Given(value, words) if e.is_number else value

    def _taken(self, value):
        """What an argument holds; a flag or a number that is read stands in the claim."""
        if not isinstance(value, Given):
            return value
        self.told[value.words] = None
        if value.guessed:
            self.guessed[value.words] = None
        return value.value

    def _lean(self, e: Expr) -> None:
        """Keeps that an argument which is not bound was taken for at least 1, as a condition in the text asks."""
        for name in sorted(self._unbound_in(e)):
            self.told[f"{name} of at least 1"] = None
            self.guessed[f"{name} of at least 1"] = None

    def _unbound_in(self, e: Expr) -> set[str]:
        return {str(symbol) for symbol in e.free_symbols} & self.unbound

    def flag(self, value) -> str:
        """The argument that a value is, where that is not bound."""
        e = value.e if isinstance(value, Index) and not value.axes else S.Zero
        return str(e) if e.is_Symbol and str(e) in self.unbound else ""

    def _needs(self, why: str, *numbers: Expr) -> NotRead:
        """A refusal that names the arguments which would resolve it."""
        names = set().union(*map(self._unbound_in, numbers))
        if names:
            why += f"; bind {', '.join(sorted(names))}"
        return NotRead(why)

    # names

    def value_Constant(self, node, local):
        """A number, text, flag or None as it is written."""
        match node.value:
            case None | bool() | str():
                return node.value
            case int(value):
                return Index(Integer(value))
            case float(value) if math.isinf(value):
                raise NotRead("a number that float64 does not hold")
            case float(value):
                return plain(sympify(repr(value), rational=True))
        raise NotRead(f"{node.value!r}: this kind of constant is not read")

    def value_Name(self, node, local):
        """What a name stands for: first in the function, then in its module, then in Python."""
        name = node.id
        if name not in local:
            return self.named(name, self.source)
        if not isinstance(local[name], Unbound):
            return self._taken(local[name])
        if local[name].why:
            raise NotRead(f"{local[name].why}: bind it")
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
                return self._global(name, value, self._taken(self.argument(name)))
            if value is None:
                raise NotRead(f"{name}: its value is not read")
            before, self.source = self.source, source
            try:
                return self._global(name, value, self.evaluate(value, {}))
            finally:
                self.source = before
        if name in source.imports:
            return self._imported(name, source)
        if name in BUILTINS:
            return Qualified(f"builtins.{name}")
        why = "not defined or imported in this text, or an `if` or a loop changes it"
        raise NotRead(f"{name} has no value here: {why}")

    @staticmethod
    def _global(name, node, value):
        """A value of a module, which a kernel may use where it is made by tl.constexpr."""
        made = ast.unparse(getattr(node, "func", node)).rpartition(".")[2]
        if isinstance(node, ast.Name) or made == "constexpr":
            return value
        why = f"{name} is a global of the module that is not made by tl.constexpr(...)"
        if isinstance(node, ast.Constant | ast.UnaryOp):
            raise uncompiled(why)
        if isinstance(value, Index | Number | bool | str | tuple | None):
            raise NotRead(why)
        return value

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
        match value, name:
            case Qualified(path="triton.language"), _ if name in DTYPES:
                return Dtype(DTYPES[name])
            case Qualified(path=path), _:
                return Qualified(f"{path}.{name}")
            case _, "to" | "cast":
                return Qualified("triton.language.cast", (value,))
            case Index() | Number(), "value":
                return value
            case Pointer(), "dtype" | "type":
                return Dtype("pointer")
            case (Dtype(kind="pointer"), "element_ty"):
                return Dtype("float")
            case Number(), "dtype":
                return Dtype("" if self.integers else "float")
            case Index(), "dtype":
                return Dtype("integer")
            case Mask(), "dtype":
                return Dtype("boolean")
            case Number() | Index(), "shape":
                return tuple(Index(self.places.lanes[axis]) for axis in value.axes)
        raise NotRead(f"the attribute {name} is not read")

    value_List = Walker.value_Tuple

    # conditions

    def varies(self, test) -> bool:
        """Whether a condition is a bound of one integer that holds for some programs and may not for others."""
        if not isinstance(test, Mask) or test.axes:
            return False
        holds = [self.places.below(*pair) for pair in test.below]
        return None in holds and False not in holds

    def is_fixed(self, node: ast.expr, local) -> bool:
        """Whether Triton knows a value while it compiles: of tl.constexpr, a dtype, or whether something is None."""
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return True
            case ast.Attribute(attr="dtype" | "shape"):
                return True
            case ast.Name(id=name) if name in local:
                value = local[name]
                return name in self.fixed or getattr(value, "value", value) is None
            case ast.Call(called) if ast.unparse(called).split(".")[-1] not in FIXED:
                return False
            case ast.BoolOp(values=[*first, _]):
                short = isinstance(node.op, ast.Or)
                for part in first:
                    if not self.is_fixed(part, local):
                        return False
                    if self.decided(self.evaluate(part, local)) == short:
                        return True
        parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        return all(self.is_fixed(part, local) for part in parts)

    def decided(self, test) -> bool | None:
        """Whether a condition holds for every program, where that is known; None for one that depends on dtypes."""
        if self.flag(test):
            raise Flag(self.flag(test))
        match test:
            case Undecided():
                return None
            case Mask(axes=()) if not self.varies(test):
                return all(self.places.below(*pair) for pair in test.below)
            case Number(axes=()) | Index(axes=()):
                zero = self.exact(test).is_zero
                if zero is not None:
                    self._lean(self.exact(test))
                    return not zero
            case Pointer():
                return True
            case None | bool():
                return bool(test)
        numbers = [e for pair in getattr(test, "below", ()) for e in pair]
        numbers += [test.e] if isinstance(test, Index) else []
        raise self._needs(
            "a branch on what is known only while the kernel runs", *numbers
        )

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
        if not self.is_fixed(node.test, local):
            raise NotRead(f"a choice by {ast.unparse(node.test)}, {RUNTIME}")
        return self.evaluate(node.body if decided else node.orelse, local)

    def value_BoolOp(self, node, local):
        """`and` and `or`, which stop at the first value that decides."""
        both, masks = isinstance(node.op, ast.And), []
        undecided = False
        for part in node.values:
            value = self.evaluate(part, local)
            match value:
                case Undecided():
                    undecided = True
                case Mask() if both:
                    masks.append(value)
                case _ if self.decided(value) != both:
                    return not both
        if undecided and masks:
            raise NotRead("a condition on a dtype and on what the kernel computes")
        if undecided:
            return Undecided()
        return reduce(self._both, masks, both)

    def value_Compare(self, node, local):
        """A comparison: of integers it is a mask, unless it is the same for all programs."""
        if len(node.ops) != 1:
            raise uncompiled("a chain of comparisons")
        operation = type(node.ops[0]).__name__
        left = self.evaluate(node.left, local)
        right = self.evaluate(node.comparators[0], local)
        flag = self.flag(left) or self.flag(right)
        match operation, left, right:
            case (_, Dtype(), _) | (_, _, Dtype()):
                return Undecided()
            case ("Is" | "IsNot" | "Eq" | "NotEq", bool(), _) | (
                "Is" | "IsNot" | "Eq" | "NotEq",
                _,
                bool(),
            ) if flag:
                raise Flag(flag)
            case (_, str(), _) | (_, _, str()) if flag:
                raise NotRead(f"{flag} is not bound, and the kernel asks what it is")
            case ("Is" | "IsNot", None, _) | ("Is" | "IsNot", _, None):
                if flag:
                    self._lean((right if left is None else left).e)
                return (left is right) == (operation == "Is")
            case "Eq" | "NotEq", _, _:
                equal = self._equal(left, right)
                if isinstance(equal, bool):
                    return equal == (operation == "Eq")
                if operation == "NotEq":
                    raise NotRead("a comparison of numbers by !=")
                return equal
            case "Gt" | "GtE", _, _:
                left, right = right, left
            case ("Is" | "IsNot", bool(), bool()):
                return (left is right) == (operation == "Is")
            case ("In" | "NotIn" | "Is" | "IsNot", _, _):
                raise NotRead("a comparison of this kind")
        match left, right:
            case (Number() | Limit(), _) | (_, Number() | Limit()):
                return self._condition(right, left)
            case Index(e=a), Index(e=b):
                if operation in ("LtE", "GtE"):
                    b += 1
            case _:
                raise NotRead("a comparison of what are no integers")
        axes, (a, b) = fit(left.axes, right.axes), self.places.bound(a, b)
        holds = self.places.below(a, b)
        if holds is not None and not axes:
            self._lean(expand(b - a))
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
        match left, right:
            case (Index() | Number(), Index() | Number()):
                zero = expand(self.exact(left) - self.exact(right)).is_zero
                if zero is not None and not left.axes and not right.axes:
                    self._lean(expand(self.exact(left) - self.exact(right)))
                    return zero
                if isinstance(left, Number) and right in (Index(S.Zero), plain(0)):
                    return Condition(axes=left.axes, zero=left)
                why = "whether two numbers are equal depends on their values"
                raise self._needs(why, self.exact(left), self.exact(right))
            case (None | bool() | str(), None | bool() | str()):
                return left == right
        raise NotRead("a comparison of different kinds")

    # arithmetic

    @staticmethod
    def exact(value: Index | Number) -> Expr:
        """An integer, or a number that is no sum which lacks terms."""
        if isinstance(value, Index):
            return value.e
        if not value.complete:
            raise incomplete(value)
        return value.inside

    def number(self, value) -> Number:
        """A value as a floating-point number: an integer that is the same for all programs becomes one."""
        match value:
            case Number():
                return value
            case Mask():
                return self.where(value, plain(1), plain(0))
            case Index(e=e):
                counted = self.sums.running.counted(e)
                moving = {*self.places.loops, *PIDS, *LANES.values()}
                if {*value.axes} - {"1"} or moving & counted.inside.free_symbols:
                    raise NotRead("an index is used as a floating-point number")
                self._lean(e)
                return replace(counted, integer=True)
        raise NotRead("what is no number is used as one")

    def value_UnaryOp(self, node, local):
        """`not` and a sign."""
        value = self.evaluate(node.operand, local)
        match node.op:
            case ast.Not():
                decided = self.decided(value)
                return Undecided() if decided is None else not decided
            case ast.USub():
                return self.operate("Sub", Index(S.Zero), value)
        raise NotRead(f"{ast.unparse(node)}: this operation is not read")

    def operate(self, operator: str, a, b):
        """a operator b, by the kinds of the two."""
        match operator, a, b:
            case "BitAnd", _, _:
                return self._both(a, b)
            case "Add" | "Sub", Pointer(edges=()), Index():
                return replace(a, offset=self.operate(operator, a.offset, b))
            case "Add", Index(), Pointer(edges=()):
                return self.operate(operator, b, a)
            case (_, Pointer(), _) | (_, _, Pointer()):
                raise NotRead("arithmetic of pointers other than adding an integer")
            case _, Index(), Index():
                return self._integers(operator, a, b)
            case "Pow", _, _:
                return self._power(a, b)
        if not any(isinstance(value, Number) for value in (a, b)):
            raise NotRead("an operation of what are no numbers")
        if operator != "Mult" and Mask in (type(a), type(b)):
            raise NotRead("a mask is used as a number")
        return self.sums.operate(operator, self.number(a), self.number(b))

    def _both(self, a, b):
        match a, b:
            case True, _:
                return b
            case _, True:
                return a
            case Condition(), Condition():
                holds = zip(a.holds, b.holds, strict=True)
                both = tuple(x and y for x, y in holds)
                return Condition(both, fit(a.axes, b.axes))
            case Mask(), Mask():
                return Mask(a.below | b.below, fit(a.axes, b.axes))
        raise NotRead("`&` of what are no masks")

    def _power(self, a, b):
        constant = isinstance(a, Number) and a.inside.is_Rational and not a.axes
        if constant and isinstance(b, Index) and b.e.is_Integer and abs(b.e) < 1025:
            return plain(a.inside**b.e)
        for value in (a, b):
            if isinstance(value, Number) and (value.axes or value.places):
                raise uncompiled("Triton has no ** of tensors; write x * x")
        raise NotRead("a power of what is no number in the text")

    def _integers(self, operator, a, b):
        axes = fit(a.axes, b.axes)
        match operator:
            case "Div":
                return self.sums.operate(operator, self.number(a), self.number(b))
            case _ if operator in INTEGERS:
                return Index(expand(INTEGERS[operator](a.e, b.e)), axes)
            case "FloorDiv":
                return Index(self.places.floor(a.e, b.e), axes)
            case "Mod":
                return Index(expand(a.e - b.e * self.places.floor(a.e, b.e)), axes)
            case "Pow" if {*PIDS, *LANES.values()} & (
                a.e.free_symbols | b.e.free_symbols
            ):
                raise uncompiled("Triton has no ** of tensors; write x * x")
            case "Pow" if b.e in range(65) and a.e.is_Integer:
                return Index(expand(a.e**b.e), axes)
        raise NotRead(f"the operation {operator} of integers")

    def whole_number(self, value) -> int:
        """An integer that the text holds."""
        if not isinstance(value, Index) or not value.e.is_Integer:
            why = "what needs to be a number in the text is none"
            raise self._needs(why, getattr(value, "e", S.Zero))
        return int(value.e)

    # tiles

    def value_Subscript(self, node, local):
        """A tile with axes of length 1 put in, or an entry of a tuple."""
        value = self.evaluate(node.value, local)
        match value:
            case tuple():
                return value[self.whole_number(self.evaluate(node.slice, local))]
            case Pointer(edges=()):
                return replace(value, offset=self._widened(value.offset, node.slice))
            case Index() | Number() | Mask():
                return self._widened(value, node.slice)
        raise NotRead(f"{ast.unparse(node)}: this subscript is not read")

    @staticmethod
    def _widened(value, cuts):
        axes, left = [], list(value.axes)
        for cut in getattr(cuts, "elts", [cuts]):
            match cut:
                case ast.Constant(value=None):
                    axes.append("1")
                # Triton leaves a scalar, which has no axis, as it is
                case ast.Slice(lower=None, upper=None, step=None) if (
                    left or not value.axes
                ):
                    axes += left[:1]
                    del left[:1]
                case _:
                    raise NotRead("a part of a tile, or more axes than it has")
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
            place = self.places.of(e)
            if place is None:  # nothing was loaded from it yet
                axis = "C" if e.has(LANES["C"]) else "R"
                place = self.places.at(axis, e)
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
