"""The values of a kernel, and what an operation makes of them: integers, numbers, masks and pointers, on symbols."""

from __future__ import annotations

from dataclasses import replace
from operator import add, and_, mul, sub

from sympy import Expr, Integer, Rational, S, Sum, expand, nan, sympify

from ..symbolic.signs import is_positive
from ..symbolic.symbols import M, N
from .binding import PIDS, Launch
from .definitions import ONEHOT
from .digits import ROUNDED, cancelling, overflowing, vanishing
from .memory import Memory
from .places import Places
from .sums import Sums
from .tables.dtypes import (
    BOOLEANS,
    FLOATS,
    LONG_INTEGERS,
    NARROW,
    PYTHON,
    UNSIGNED,
    WIDE,
    may_wrap,
    replaced,
    results,
    spelled,
)
from .values import (
    COLUMN,
    CORNER,
    LANES,
    ROW,
    UNFOLLOWED,
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
    Unknown,
    apply,
    check_bits,
    constants,
    described,
    fit,
    incomplete,
    merged,
    of_constants,
    plain,
    power,
    uncompiled,
)
from .widths import Widths, is_long

ARITHMETIC = {"Add": add, "Sub": sub, "Mult": mul}
DTYPES = "float16 bfloat16 float32 float64 int32 int64 int1".split()
# between which numbers of the text are float32 or int32 to Triton
TINY, LARGE = Rational(2) ** -126, 2**31
POWERS = "N a power of 2"
# functions of Triton that a tile has as methods, as of 3.7.1; the elementary ones of them compile, and its interpreter
# raises an AttributeError
MEMBERS = set(
    "abs broadcast_to cos erf exp exp2 expand_dims log log2 max min permute reduce reshape rsqrt sigmoid sin sqrt "
    "sqrt_rn sum trans view".split()
)


class Tiles:
    """The operations of one launch, and what they rest on.

    Args:  fill: what a masked load without `other` gives
    """

    def __init__(self, launch: Launch, fill: Expr = nan):
        self.launch = launch
        # what is assumed, in words
        self.assumed: dict[str, None] = {}
        self.places = Places(launch, self.assumed)
        self.sums = Sums(self.places)
        self.widths = Widths(self.places)
        self.memory = Memory(
            launch, self.places, self.assumed, self.widths, sympify(fill)
        )
        self.memory.moving = self.sums.maxima.moving
        self.unbound = self.memory.unbound
        # what the claim is for, as "HAS_BIAS=True"; what of it the binding does not say
        self.told = self.memory.told
        self.guessed: dict[str, None] = {}
        # sums of less than float32, as "float16 (line 9)"; statistics that a cast makes so
        self.narrow: dict[str, None] = {}
        self.statistics: dict[str, None] = {}
        # arguments with tl.constexpr; constants of the module that the binding gives a value
        self.constexprs: set[str] = set()
        self.constants: set[str] = set()
        UNFOLLOWED.set(False)
        # the axes of the grid whose program's number is asked for
        self.asked: set[int] = set()
        # the lengths of tiles
        self.lengths: set[Expr] = set()
        # {output: how many operations its value rests on}
        self.rests_on: dict[str, int] = {}

    @property
    def needs_power(self) -> bool:
        """Whether a tile has N lanes, which compiles where N is a power of 2 alone."""
        return POWERS in self.told

    @staticmethod
    def integer(value: int) -> Index:
        """An integer as it is written."""
        return Index(Integer(value), (), frozenset({"int"}), frozenset())

    @staticmethod
    def real(e: Expr) -> Number:
        """A floating-point number as it is written."""
        number = plain(e, dtype=frozenset({"float"}))
        return replace(number, constant=frozenset())

    @staticmethod
    def named(value: Index | Number):
        """The value with a dtype of its own, as a number of the text gets one with a name."""
        dtype = replaced(value.dtype)
        e = value.e if isinstance(value, Index) else value.inside
        if e.is_Rational and e and not TINY <= abs(e) < LARGE:
            dtype |= WIDE
        return replace(value, dtype=dtype, constant=None)

    # conditions of the claim

    def check_tensor(self, value, text: str, line: int | None = None) -> None:
        """Refuses what a text asks of a constant of Triton's that only tensors have; a size that is 1 makes a constant.

        For `(1.0 / n).to(tl.float32)`, which compiles where n is an argument other than 1. Without it y is proved for
        N = 1, and beside `(1.0).to(tl.float32)`, which compiles nowhere.
        """
        if not isinstance(value, Index | Number | Mask) or value.constant is None:
            return
        if not value.constant:
            raise uncompiled(
                f"{text} of a tl.constexpr, of a number in the text "
                "or of 1, of which Triton makes a constant"
            )
        sizes = " or ".join(sorted(map(str, value.constant)))
        self.told[
            f"{sizes} other than 1, at which line {line or self.memory.line} may not compile"
        ] = None

    def flag(self, value) -> str:
        """The argument that a value is, where that is not bound."""
        e = value.e if isinstance(value, Index) and not value.axes else S.Zero
        return str(e) if e.is_Symbol and str(e) in self.unbound else ""

    def needs(self, why: str, *numbers: Expr) -> NotRead:
        """A refusal that names the arguments which would resolve it."""
        names = self._unbound_in(*numbers)
        return NotRead(f"{why}; bind {', '.join(names)}" if names else why)

    def _unbound_in(self, *numbers: Expr) -> list[str]:
        symbols = set().union(*[e.free_symbols for e in numbers])
        return sorted(self.unbound & set(map(str, symbols)))

    def lean(self, e: Expr) -> None:
        """Keeps that an argument which is not bound was taken for at least 1, as a condition in the text asks."""
        for name in self._unbound_in(e):
            self.told[f"{name} of at least 1"] = None
            self.guessed[f"{name} of at least 1"] = None

    def sure(self, reason: NotRead) -> NotRead:
        """The reason, which accuses no kernel with lanes that a run knows and this reading does not.

        For -inf * scale, which is -inf where the scale is positive, for exp(log(0)), which is 0, and for a choice by
        values. Without it a softmax of x * scale is accused.
        """
        if not (UNFOLLOWED.get() and isinstance(reason, Unknown)):
            return reason
        words = "or is of an infinity, or of a choice by values"
        return NotRead(f"{reason}, {words}", reason.line)

    def keep_sum(self, dtype: frozenset, line: int) -> None:
        """Keeps that a sum is accumulated below float32, where that is so whatever the tensors' dtypes."""
        if dtype <= NARROW:
            self.narrow[f"{spelled(dtype)} (line {line})"] = None

    def keep_count(self, terms: Number, dtype: frozenset) -> None:
        """Keeps that a sum of integers wraps where it is large.

        For all but lanes that are counted. It stops `tl.sum(tl.where(mask, 1000000, 0))`, which wraps from N = 2148 on.
        """
        if may_wrap(dtype) and not set(terms.parts) <= {S.Zero, S.One}:
            self.widths.keep_unknown(self.memory.line)

    def keep_statistic(self, value: Number, names: frozenset) -> None:
        """Keeps that a number of a whole row is rounded below float32, whatever the tensors' dtypes.

        For `rstd.to(tl.float16)`. It leaves out what is rounded for each column, as y is.
        """
        of_a_row = value.place("C") is None and value.inside.has(Sum)
        if of_a_row and names <= NARROW and not value.dtype <= NARROW:
            line = self.memory.line
            self.statistics[f"{spelled(names)} (line {line})"] = None

    @property
    def defects(self) -> list[str]:
        """What the claim says of what is below float32, of variances in one pass, and of exponentials."""
        kinds = {"sums": self.narrow, "a row's statistic": self.statistics}
        kinds[ROUNDED] = [n for n in self.sums.rounded if n not in self.narrow]
        words = [f"with {kind} in {', '.join(n)}" for kind, n in kinds.items() if n]
        if self.sums.cancelling:
            words.append(cancelling(self.sums.cancelling))
        if self.sums.maxima.overflowing:
            words.append(overflowing(self.sums.maxima.overflowing))
        return [*words, *vanishing(self.sums.maxima.exponentials)]

    def attribute(self, value, name):
        """An attribute: of a library, or of a value."""
        match value, name:
            case Qualified(path="triton.language"), _ if name in DTYPES:
                return Dtype(frozenset({name}))
            case Qualified(path=path), _:
                return Qualified(f"{path}.{name}")
            case _, "to" | "cast":
                return Qualified("triton.language.cast", (value,))
            case Number(), _ if name in MEMBERS:
                return Qualified(f"triton.language.{name}", (value,))
            case Index() | Number(), "value":
                if value.constant is None:
                    raise uncompiled("value of a tensor, which a constexpr alone has")
                if value.constant:
                    raise NotRead("value of what is a constant where it is 1 alone")
                return value
            case Pointer(), "shape":
                return ()
            case Pointer(), "stride" | "size" | "numel":
                raise uncompiled(f"{name} of a pointer, which has no sizes")
            case Pointer(), "dtype" | "type":
                return Dtype(value.dtype)
            case Dtype(names=Pointer.dtype), "element_ty":
                return Dtype(FLOATS)
            case Number() | Index() | Mask(), "dtype":
                return Dtype(value.dtype)
            case Number() | Index(), "shape":
                return tuple(Index(self.places.lanes[axis]) for axis in value.axes)
        raise NotRead(f"the attribute {name} is not read")

    def varies(self, test) -> bool:
        """Whether a condition is a bound of integers that the launch does not decide, else it is True or False."""
        return isinstance(test, Mask) and not test.axes

    def truth(self, test) -> bool | None:
        """Whether a condition holds for every program, where that is known; None for one that depends on dtypes."""
        if self.flag(test):
            raise Flag(self.flag(test))
        match test:
            case Undecided():
                return None
            case Number(axes=()) | Index(axes=()):
                e = self.exact(test)
                if e.is_zero is not None:
                    self.lean(e)
                    return not e.is_zero
            case Pointer():
                return True
            case None | bool():
                return bool(test)
        numbers = [e for pair in getattr(test, "below", ()) for e in pair]
        why = "a branch on what is known only while the kernel runs"
        raise self.needs(why, getattr(test, "e", S.Zero), *numbers)

    def check_condition(self, value: object) -> None:
        """Refuses a number in the place of a condition, unless Triton knows it while it compiles.

        For `not`, `and` and `or`. It stops `if not N`, which does not compile, as `if N` does.
        """
        is_constant = self.flag(value) or constants(value) == frozenset()
        if isinstance(value, Index | Number) and not is_constant:
            raise NotRead(
                f"{described(value)} with not, and, or or; write a comparison"
            )

    def compare(self, operation: str, left, right):
        """A comparison: of integers it is a mask, unless it is the same for all programs."""
        return of_constants(self._compared(operation, left, right), left, right)

    def _compared(self, operation, left, right):
        flag, kinds = self.flag(left) or self.flag(right), {type(left), type(right)}
        check_literal(left, right)
        check_literal(right, left)
        match operation, left, right:
            case _ if Dtype in kinds:
                return Undecided()
            case "Is" | "IsNot" | "Eq" | "NotEq", _, _ if flag and bool in kinds:
                raise Flag(flag)
            case _ if flag and str in kinds:
                raise NotRead(f"{flag} is not bound, and the kernel asks what it is")
            case ("Is" | "IsNot", None, _) | ("Is" | "IsNot", _, None):
                if flag:
                    self.lean((right if left is None else left).e)
                return (left is right) == (operation == "Is")
            case "Eq" | "NotEq", Index(), Index() if self._is_target(left, right):
                return self._of_target(operation, left, right)
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
        if kinds & {Number, Limit}:
            return self._condition(right, left)
        if kinds != {Index}:
            raise NotRead("a comparison of what are no integers")
        self.use_both(left, right)
        end = right.e + 1 if operation in ("LtE", "GtE") else right.e
        axes, (a, b) = fit(left.axes, right.axes), self.places.bound(left.e, end)
        holds = self.places.below(a, b)
        if holds is not None and not axes:
            self.lean(expand(b - a))
            return holds
        return Mask(frozenset({(a, b)}), axes)

    def _is_target(self, *pair):
        """Whether one integer is the column of a row's target, and the other one has lanes of columns."""
        columns = [value.e for value in pair if "C" not in value.axes]
        return len(columns) == 1 and columns[0] in self.places.targets

    def _of_target(self, operation, left, right):
        """Whether a lane of columns is that of a row's target: no lane past the end is."""
        lanes, target = sorted((left, right), key=lambda v: "C" not in v.axes)
        self.use(lanes)
        columns = self.places.of(lanes.e) or self.places.at("C", lanes.e)
        row = self.places.targets[target.e][1]
        e = ONEHOT[row.symbol, columns.symbol]
        parts, places = (e, S.Zero, nan, nan), frozenset({row, columns})
        indicator = Number(parts, lanes.axes, places, dtype=BOOLEANS)
        if operation == "NotEq":
            indicator = apply(lambda h: 1 - h, indicator)
        return Condition(axes=lanes.axes, indicator=indicator)

    def _condition(self, left, right):
        """left > right, of numbers, which holds where its sign is known."""
        if isinstance(left, Limit):
            self.assumed[f"no number is larger than {left.least}"] = None
            return Condition((True,) * 4, self.number(right).axes, limited=True)
        left, right = self.number(left), self.number(right)
        difference = apply(lambda a, b: a - b, left, right)
        holds = tuple(p is not nan and is_positive(p) for p in difference.parts)
        return Condition(holds, difference.axes, left, right)

    def _equal(self, left, right) -> bool | Condition:
        match left, right:
            case (Index() | Number(), Index() | Number()):
                difference = expand(self.exact(left) - self.exact(right))
                if difference.is_zero is not None and not (left.axes or right.axes):
                    self.lean(difference)
                    return difference.is_zero
                if isinstance(left, Number) and right in (Index(S.Zero), plain(0)):
                    return Condition(axes=left.axes, zero=left)
                raise self.needs(
                    "whether two numbers are equal depends on their values",
                    self.exact(left),
                    self.exact(right),
                )
            case (None | bool() | str(), None | bool() | str()):
                return left == right
        raise NotRead("a comparison of different kinds")

    def exact(self, value: Index | Number) -> Expr:
        """An integer, or a number that is no sum which lacks terms."""
        if isinstance(value, Index):
            self.use(value)
            return value.e
        if not value.complete:
            raise incomplete(value)
        return value.inside

    def number(self, value) -> Number:
        """A value as a floating-point number: an integer that is the same for all programs becomes one."""
        match value:
            case Number():
                return value
            case Condition(indicator=Number() as indicator):
                return replace(indicator, dtype=BOOLEANS)
            case Index(e=e) if e.free_symbols & self.places.targets.keys():
                raise NotRead("a target is used as a floating-point number")
            case Mask():
                value = self.where(value, plain(1), plain(0))
                return replace(value, dtype=BOOLEANS)
            case Index(e=e, dtype=dtype):
                self.use(value)
                counted = self.sums.running.counted(e)
                moving = {*self.places.loops, *PIDS, *LANES.values()}
                if {*value.axes} - {"1"} or moving & counted.inside.free_symbols:
                    raise NotRead("an index is used as a floating-point number")
                self.lean(e)
                return replace(counted, dtype=dtype)
        raise NotRead(f"{described(value)} is used as a number")

    def operate(self, operator: str, a, b):
        """a operator b, by the kinds of the two."""
        return of_constants(self._operated(operator, a, b), a, b)

    def _operated(self, operator, a, b):
        for value, other in ((a, b), (b, a)):
            check_bits(getattr(value, "inside", getattr(value, "e", S.Zero)))
            check_literal(value, other)
        match operator, a, b:
            case "BitAnd", _, _:
                return self.both(a, b)
            case "Add" | "Sub", Pointer(edges=()), Index():
                return self._moved(operator, a, b)
            case "Add", Index(), Pointer(edges=()):
                return self.operate(operator, b, a)
            case (_, Pointer(), _) | (_, _, Pointer()):
                raise NotRead("arithmetic of pointers other than adding an integer")
            case _, Index(), Index():
                return self._integers(operator, a, b)
            case "Pow", _, _:
                return self._power(a, b)
        if not any(isinstance(value, Number) for value in (a, b)):
            raise NotRead(
                f"the operation {operator} of {described(a)} and {described(b)}"
            )
        if operator != "Mult" and Mask in (type(a), type(b)):
            raise NotRead("a mask is used as a number")
        a, b = self.number(a), self.number(b)
        if operator == "Mult" and may_wrap(results(a.dtype, b.dtype)):
            self.widths.keep_unknown(self.memory.line)
        return self.sums.operate(operator, a, b)

    def use(self, value: Index) -> None:
        """Keeps what an integer needs where it is used."""
        self._check_sign(value)
        self.widths.use(value, value.line or self.memory.line)

    def use_both(self, *values: Index) -> None:
        """Keeps what integers need that are made one dtype, as a comparison does."""
        for value in values:
            self.use(value)
        if any(value.dtype & UNSIGNED for value in values):
            for value in values:
                self._check_sign(replace(value, dtype=UNSIGNED))

    @staticmethod
    def _check_sign(value):
        """Refuses an integer without a sign that may be negative.

        For sizes and strides that a kernel takes as tl.uint32. It stops `cols - n`, which is no number below 0 there.
        """
        if value.dtype & UNSIGNED and not value.e.is_nonnegative:
            raise NotRead(
                f"{value.e} without a sign, as tl.uint32 has none, which may be negative"
            )

    def _moved(self, operator, pointer, by):
        """A pointer, whose address is of 64 bits whatever the integer that moves it."""
        offset = Index(
            expand(ARITHMETIC[operator](pointer.offset.e, by.e)),
            fit(pointer.axes, by.axes),
        )
        parts = pointer.parts
        self._check_sign(by)
        if not is_long(by):
            parts += ((by.e, by.line or self.memory.line),)
        return replace(pointer, offset=offset, parts=parts)

    def both(self, a, b):
        match a, b:
            case True, bool() | Mask() | Condition():
                return b
            case bool() | Mask() | Condition(), True:
                return a
            case Condition(), Condition():
                both = tuple(map(and_, a.holds, b.holds))
                limited = a.limited or b.limited
                return Condition(both, fit(a.axes, b.axes), limited=limited)
            case Mask(), Mask():
                return Mask(a.below | b.below, fit(a.axes, b.axes))
            case Condition(indicator=Number()), Mask():
                return self.both(b, a)
            case Mask(), Condition(indicator=Number() as indicator):
                indicator = self.where(a, indicator, plain(0, dtype=BOOLEANS))
                return Condition(axes=indicator.axes, indicator=indicator)
        raise NotRead("`&` of what are no masks")

    def _power(self, a, b):
        constant = isinstance(a, Number) and a.inside.is_Rational and not a.axes
        if constant and isinstance(b, Index) and b.e.is_Integer:
            if not a.dtype & PYTHON.keys():
                raise uncompiled("Triton has no ** of tensors; write x * x")
            return plain(power(a.inside, b.e), dtype=a.dtype)
        for value in (a, b):
            if isinstance(value, Number) and (value.axes or value.places):
                raise uncompiled("Triton has no ** of tensors; write x * x")
        exponent = getattr(b, "inside", S.Zero)
        is_python = a.dtype <= PYTHON.keys() and b.dtype <= PYTHON.keys()
        base = self.exact(a) if is_python else S.Zero
        if base.is_positive and exponent.is_Rational and exponent != 0:
            return self.real(power(base, exponent))
        raise NotRead("a power of what is no number in the text")

    def _integers(self, operator, a, b):
        axes, dtype = fit(a.axes, b.axes), results(a.dtype, b.dtype, operator)
        if not dtype:
            raise uncompiled(
                "a division of an integer with a sign by one without, or the other way"
            )
        if operator in ARITHMETIC:
            if is_long(a) != is_long(b):
                self.use(a)
                self.use(b)
            line = self.memory.line if operator == "Mult" else a.line or b.line
            e = expand(ARITHMETIC[operator](a.e, b.e))
            return Index(e, axes, dtype, line=line)
        self.use_both(a, b)
        match operator:
            case "Div":
                return self.sums.operate(operator, self.number(a), self.number(b))
            case "FloorDiv" | "Mod" if b.e.is_zero:
                raise NotRead("a division of integers by 0")
            case "FloorDiv":
                return Index(self.places.floor(a.e, b.e), axes, dtype)
            case "Mod":
                e = expand(a.e - b.e * self.places.floor(a.e, b.e))
                return Index(e, axes, dtype)
            case "Pow" if {*PIDS, *LANES.values()} & (
                a.e.free_symbols | b.e.free_symbols
            ):
                raise uncompiled("Triton has no ** of tensors; write x * x")
            case "Pow" if b.e.is_Integer and b.e >= 0 and a.e.is_Integer:
                return Index(power(a.e, b.e), axes, dtype)
        raise NotRead(f"the operation {operator} of integers")

    def whole_number(self, value) -> int:
        """An integer that the text holds."""
        if not isinstance(value, Index) or not value.e.is_Integer:
            raise self.needs(
                f"{described(value)}, where a number in the text is needed",
                getattr(value, "e", S.Zero),
            )
        return int(value.e)

    def item(self, value, key):
        """A tile with axes of length 1 put in, or an entry of a tuple."""
        match value:
            case tuple():
                number = self.whole_number(key)
                if not -len(value) <= number < len(value):
                    raise uncompiled(f"index {number} of {len(value)} values")
                return value[number]
            case Pointer(edges=()):
                return replace(value, offset=self._widened(value.offset, key))
            case Index() | Number() | Mask():
                return self._widened(value, key)
        raise NotRead(f"a subscript of {described(value)}")

    @staticmethod
    def _widened(value, key):
        axes, rest = [], list(value.axes)
        for part in key if isinstance(key, tuple) else (key,):
            # Triton leaves a scalar, which has no axis, as it is
            if part == slice(None) and (rest or not value.axes):
                axes += rest[:1]
                del rest[:1]
            elif part is None:
                axes.append("1")
            else:
                raise NotRead("a part of a tile, or more axes than it has")
        return replace(value, axes=(*axes, *rest))

    def where(self, mask: Mask, a: Number, b: Number) -> Number:
        """a where a mask holds, else b."""
        if not (a.complete and b.complete):
            raise NotRead("a choice between sums that are not complete")
        places, parts = merged(a, b), list(a.parts)
        for e, bound in mask.below:
            if self.places.below(e, bound):
                continue
            place = self.places.of(e)
            if place is None:  # nothing was loaded from it yet
                if e.free_symbols <= {M, N}:
                    raise NotRead(
                        f"a choice by {e} < {bound}, which is no mask of rows or columns"
                    )
                axis = "C" if e.has(LANES["C"]) else "R"
                place = self.places.at(axis, e)
            if bound != place.end:
                raise NotRead(f"a choice by {e} < {bound}, which is not the end")
            if any(p.axis == place.axis and p != place for p in places):
                raise NotRead("a choice by the mask of another tile")
            places |= {place}
            for part in (COLUMN if place.axis == "C" else ROW, CORNER):
                parts[part] = b.parts[part]
        axes = fit(fit(a.axes, b.axes), mask.axes)
        return Number(tuple(parts), axes, places, dtype=results(a.dtype, b.dtype))

    def opposite(self, value):
        """Whether a condition does not hold; of one on dtypes as little is known as of itself."""
        if getattr(value, "axes", ()):
            raise NotRead(
                f"not of {described(value)} with lanes; write the opposite comparison"
            )
        self.check_condition(value)
        truth = self.truth(value)
        return value if truth is None else not truth

    def negative(self, value):
        """The value with the other sign."""
        return self.operate("Sub", self.integer(0), value)


def check_literal(value: object, other: object) -> None:
    """Refuse a number that int32 does not hold beside an integer that may be of int32, and one that no integer holds.

    For `cols < 2**40`, where cols is an int64. It stops `N + 3000000000`, which does not compile.
    """
    if not isinstance(value, Index) or not value.e.is_Integer:
        return
    if isinstance(other, Index) and other.e.is_number:
        return
    if not -(2**63) <= value.e < 2**64:
        raise NotRead(f"{value.e}, which no integer of 64 bits is")
    if value.dtype <= LONG_INTEGERS or -(2**31) <= value.e < 2**31:
        return
    if may_wrap(getattr(other, "dtype", frozenset())):
        raise NotRead(f"{value.e} beside an integer of 32 bits")
