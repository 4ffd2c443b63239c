"""The functions of triton.language that are read; all others, and all unknown arguments, are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import mul

from sympy import (
    Eq,
    Heaviside,
    Max,
    Min,
    S,
    expand,
    nan,
    oo,
    symbols,
)

from ..symbolic.normal_form import nf
from ..symbolic.symbols import N
from .binding import ADDRESS
from .conditions import BRANCH, COMPARED, TAKEN
from .importing import LIBRARIES, VERSION
from .places import least
from .source import OTHERS
from .tables.dtypes import (
    ANY,
    BOOLEANS,
    COUNTED,
    FLOATS,
    INTEGERS,
    LARGER,
    LARGEST,
    LONG,
    LONG_INTEGERS,
    narrower,
    replaced,
    results,
    spelled,
)
from .tables.elementary import DIVISOR, functions
from .tiles import POWERS, Tiles
from .values import (
    COLUMN,
    CORNER,
    LANES,
    ROW,
    UNFOLLOWED,
    Condition,
    Flag,
    Index,
    Mask,
    NotRead,
    Number,
    Pointer,
    Qualified,
    apply,
    as_tensor,
    constants,
    described,
    fit,
    merged,
    of_constants,
    plain,
    uncompiled,
    unfollowed_lane,
)

FUNCTIONS = functions("language", "libdevice", "helpers")
LIBDEVICE = ("div_rn", "fma")
LANGUAGE = "triton.language"
# {a module: which other functions of it are read, None where it has all of them but `number`}
HOMES = {
    "triton.language": None,
    "triton.language.math": (*LIBDEVICE, "fdiv"),
    "triton.language.standard": "cdiv max sum zeros zeros_like".split(),
    "triton.language.extra.libdevice": LIBDEVICE,
    "triton.language.extra.cuda.libdevice": LIBDEVICE,
}
# what torch's compiler imports under a name of its own
INDUCTOR = "torch._inductor.runtime.triton_helpers.libdevice."
# {a function of another home: what it is called in triton.language}
AS_IN_TRITON = {
    "triton.cdiv": "cdiv",
    "builtins.float": "number",
    "builtins.min": "minimum",
}
# parameters that Triton has to know while it compiles
FIXED = {"start", "end", "shape", "axis", "keep_dims"}
# the words that loads, stores and atomic additions know
EVICTION = ("evict_last", "evict_first")
CACHE_LOAD = (".ca", ".cg", ".cv")
CACHE_STORE = (".wb", ".cg", ".cs", ".wt")
# functions of which more parameters are known to Triton than are read here, or by other names
SHORTENED = {
    *("assume", "cast", "device_assert", "max", "max_contiguous", "maximum", "minimum"),
    *("multiple_of", "number", "reshape", "static_assert", "trans", "view"),
}
# functions that make a constant of constants; {a function: of how many arguments, from the first, it makes no tensors}
CONSTANT = {"cdiv", "constexpr", "number"}
OF_TENSORS = {"broadcast_to": 1, "join": 2, "zeros_like": 1}
OF_TENSORS |= {"max_contiguous": 1, "multiple_of": 1}
ROUNDINGS = ("rtne", "rtz")
ORDERS = ("acquire", "release", "acq_rel", "relaxed")
FOREIGN = {*FUNCTIONS, "program_id", "num_programs", "cdiv"}
# what no package may be called whose functions are taken to be Triton's by their names
ELSEWHERE = (*OTHERS, "triton", "builtins")


def has_function(home: str, name: str) -> bool:
    """Whether a module of Triton has a function that is read."""
    if name in FUNCTIONS:
        return name in functions(home.rpartition(".")[2])
    names = HOMES[home]
    return name != "number" if names is None else name in names


def _larger(a, b, x, y):
    """x where a > b, and y where a < b."""
    difference = a - b
    if difference.is_extended_positive:
        return x
    if difference.is_extended_nonpositive:
        return y
    return Heaviside(difference) * x + (1 - Heaviside(difference)) * y


def _either(indicator, x, y):
    """x where the indicator is 1, and y where it is 0."""
    if indicator in (0, 1):
        return x if indicator == 1 else y
    return indicator * x + (1 - indicator) * y


@dataclass(frozen=True)
class Joined:
    """Two tiles side by side, along a last axis of length 2."""

    parts: tuple[Number, Number]


class Language:
    """The functions of triton.language, each with Triton's own parameters.

    Args:  tiles: the operations of the launch
           passed: for the arguments of the call that is read, without and with names, whether Triton knows them while
           it compiles
           inline: what a function of the text makes of numbers
    """

    def __init__(self, tiles: Tiles, inline: Callable[..., object]):
        self.tiles, self.inline = tiles, inline
        self.passed: tuple[list[bool], dict[str, bool]] = [], {}

    def call(self, path: str, args: list, named: dict):
        """What a function of a library returns."""
        path = path.replace(INDUCTOR, "triton.language.extra.libdevice.")
        home, _, name = path.rpartition(".")
        if path in AS_IN_TRITON and home == "triton" and not all(self.passed[0]):
            why = f"{path} of what only a kernel's run knows; write tl.{name}"
            raise uncompiled(why)
        if path == "builtins.abs":
            raise uncompiled("Triton has no abs of Python's; write tl.abs")
        if home == "math":
            raise NotRead(
                f"{path} is Python's, of numbers in the text; write tl.{name}"
            )
        name = AS_IN_TRITON.get(path, name)
        self._check_part(path)
        if home not in HOMES and path not in AS_IN_TRITON:
            if path.partition(".")[0] in ELSEWHERE or name not in FOREIGN:
                raise NotRead(f"{path}: this function is not read")
            self.tiles.assumed[f"{path} is what triton.language calls {name}"] = None
        if home in HOMES and not has_function(home, name):
            raise NotRead(f"{path}: this function is not read, or Triton has none")
        self.home = home.rpartition(".")[2]
        row = functions(self.home).get(name, FUNCTIONS.get(name))
        if row:
            if named or len(args) != 1:
                raise NotRead(f"{name}: its arguments are not read; it takes one")
            value = self._tensor(args[0])
            dtype = value.dtype
            if home in HOMES:
                dtype = self._taken(name, dtype, row.takes)
            elif not dtype & row.takes:
                why = "which Triton's does not take; cast it"
                raise NotRead(f"{path} of {spelled(dtype)}, {why}")
            if row.needs:
                self.tiles.sums.needs(value, row.needs)
            maxima = self.tiles.sums.maxima
            line = self.tiles.memory.line
            maxima.check_function(name, value, line)
            result = apply(row.f, value)
            maxima.exponentials.taken(
                result.inside, line, maxima.heads, maxima.raised()
            )
            rounded = self.tiles.sums.rounded_by(result, dtype, value)
            return replace(result, dtype=dtype, rounded=rounded)
        if name not in READ:
            raise NotRead(f"{path}: this function is not read")
        method = getattr(self, name)
        header = inspect.signature(method)
        try:
            bound = header.bind(*args, **named)
        except TypeError as reason:
            parameters = ", ".join(header.parameters)
            why = f"{name}: {reason}; it takes {parameters}"
            if home in HOMES and name not in SHORTENED:
                raise uncompiled(why) from None
            raise NotRead(why) from None
        for value in list(bound.arguments.values())[: OF_TENSORS.get(name, 0)]:
            self.tiles.check_tensor(value, name)
        try:
            value = method(*args, **named)
        except (AttributeError, IndexError, TypeError, ValueError) as reason:
            if isinstance(reason, NotRead):
                raise
            kinds = ", ".join(map(described, [*args, *named.values()]))
            raise NotRead(f"{name} of {kinds}, which do not fit it") from None
        self._check_fixed(name, bound, len(args))
        if path == "builtins.min" or name in CONSTANT:
            return of_constants(value, *args, *named.values())
        return as_tensor(value)

    def _check_part(self, path):
        """Refuses a function that Triton has not.

        For `tl.libdevice.rsqrt(x)`, which old versions have. It stops "does not compile" for a library that is taken to
        be triton.language by its name.
        """
        home, _, rest = path.partition(".language.")
        first, _, second = rest.partition(".")
        library, part = LANGUAGE, first
        if first == "math" and second:
            library, part = f"{LANGUAGE}.math", second
        is_named = home == "triton" and part and part not in LIBRARIES[library]
        if is_named and not any(
            e.endswith(f" is {LANGUAGE}") for e in self.tiles.assumed
        ):
            raise uncompiled(f"Triton {VERSION} has no {library}.{part}")

    def _tensor(self, value) -> Number:
        """A number as a function of Triton's takes it: one of the text has a dtype then."""
        return self.tiles.named(self.tiles.number(value))

    @staticmethod
    def _taken(name, dtype, takes) -> frozenset:
        """Which dtypes a function's argument may have; refuses it where the function takes none of them."""
        if not dtype & takes:
            needs = f"needs {spelled(takes)}; cast it"
            raise uncompiled(f"{name} of {spelled(dtype)}, {needs}")
        return dtype & takes

    def _check_fixed(self, name, bound, count):
        """Refuses what Triton has to know while it compiles, and does not.

        For tl.arange(0, B) of an argument with tl.constexpr. It stops `b = B` before tl.arange(0, b), where b is a
        number of the kernel's run.
        """
        positions, options = self.passed
        parameters, owners = list(bound.signature.parameters), count - len(positions)
        for position, is_fixed in enumerate(positions, start=owners):
            # the last parameter takes all that follow, as sizes one by one
            parameter = parameters[min(position, len(parameters) - 1)]
            options = {**options, parameter: options.get(parameter, True) and is_fixed}
        known = {"block_shape"} if name == "make_block_ptr" else FIXED
        for parameter in sorted(known & options.keys()):
            if not options[parameter]:
                value = bound.arguments[parameter]
                sizes = value if isinstance(value, tuple) else (value,)
                text = ", ".join(str(getattr(size, "e", size)) for size in sizes)
                why = f"{name}: {parameter} is no tl.constexpr and no number"
                raise uncompiled(f"{why}: {text}")

    def cast(self, value, dtype, fp_downcast_rounding=None, bitcast=False):
        """A cast: between floats it changes digits only; whatever makes an integer of a number is refused."""
        if bitcast is not False:
            raise NotRead("a bitcast")
        names = getattr(dtype, "names", ANY)
        if fp_downcast_rounding:
            self._check_rounding(fp_downcast_rounding, replaced(value.dtype), names)
        match value:
            case _ if names <= FLOATS:
                number = self.tiles.number(value)
                self.tiles.keep_statistic(number, names)
                rounded = number.rounded or self.tiles.sums.rounding(number, names)
                return replace(number, dtype=names, rounded=rounded)
            case Mask() if names == BOOLEANS:
                return value
            case Index() if names <= INTEGERS - BOOLEANS:
                if names <= LONG_INTEGERS:
                    self.tiles.use(value)
                return replace(value, dtype=names)
            case Mask() if names <= INTEGERS:
                return replace(self.tiles.number(value), dtype=names)
        raise NotRead("a cast to what is no dtype of the same kind")

    @staticmethod
    def _check_rounding(word, before, after):
        """Refuses a way of rounding in a cast that is not to a floating-point number of fewer bits.

        For `r.to(tl.float16, fp_downcast_rounding="rtz")`. It stops one from float16 to bfloat16.
        """
        casts = narrower(before, after)
        known = word in ROUNDINGS
        why = f"fp_downcast_rounding={word!r} in a cast of {spelled(before)} to "
        why += f"{spelled(after)}, needs fewer bits and {' or '.join(ROUNDINGS)}"
        if not any(fewer is None or fewer and known for fewer in casts):
            raise uncompiled(why)
        if not known or len(after) == 1 and not all(casts):
            raise NotRead(f"{why}; leave it out")

    def number(self, value):
        """float(value)."""
        words = {"nan": nan, "-inf": -oo, "inf": oo}
        if isinstance(value, str) and value.lower() in words:
            if value.lower() != "nan":
                UNFOLLOWED.set(True)
            return plain(words[value.lower()], dtype=frozenset({"float"}))
        number = self.tiles.number(value)
        if constants(value) is None:
            raise uncompiled("float(...) of what only a kernel's run knows; cast it")
        if not number.inside.is_Rational:
            raise NotRead("float(...) of what is no number in the text; cast it")
        return replace(number, dtype=frozenset({"float"}))

    def constexpr(self, value):
        """What a constexpr holds."""
        return value

    def multiple_of(self, value, values):
        """The integers or the address; the compiler takes the promise for granted, so the claim says so.

        For a kernel that gives hints. Without it a store goes past the end where a mask's hint, or N's, is false.
        """
        if not isinstance(value, Index | Pointer):
            raise NotRead("a hint on what are no integers; leave the hint out")
        sizes = values if isinstance(values, tuple) else (values,)
        axes = getattr(value, "offset", value).axes
        if len(sizes) != max(len(axes), 1):
            raise uncompiled(f"a hint of {len(sizes)} numbers for {len(axes)} axes")
        whole = all(isinstance(size, Index) for size in sizes)
        if not whole or not self._knows("values", 1):
            raise NotRead("a hint that is no whole number in the text or constexpr")
        self.tiles.told[
            f"what line {self.tiles.memory.line} promises to the compiler"
        ] = None
        return value

    def max_contiguous(self, value, values):
        """As multiple_of does, of what has axes."""
        if not getattr(value, "offset", value).axes:
            raise uncompiled("max_contiguous of what has no axes")
        return self.multiple_of(value, values)

    def device_assert(self, condition, message=None):
        """Nothing is stored where the condition does not hold, which the claim says."""
        holds = None
        with suppress(NotRead):
            holds = self.tiles.truth(condition)
        if holds is False:
            raise NotRead("a condition that is asserted, and never holds")
        if not holds:
            self.tiles.told[f"what line {self.tiles.memory.line} asserts"] = None

    assume = device_assert

    def device_print(self, prefix, *values, hex=False):
        """Nothing is stored by it."""
        if not isinstance(prefix, str):
            raise uncompiled("device_print of what begins with no text")

    def static_assert(self, condition, message=None):
        """Nothing is compiled where the condition does not hold, or is known only while the kernel runs."""
        if not self._knows("condition", 0):
            raise NotRead("a static_assert of what only a kernel's run knows")
        self.device_assert(condition)

    def _knows(self, name, position):
        """Whether Triton knows an argument of the call that is read while it compiles."""
        known, options = self.passed
        return options.get(name, all(known[position : position + 1]))

    def debug_barrier(self):
        """Nothing but that what is stored before it is seen by all threads."""
        self.tiles.memory.fence()

    def program_id(self, axis):
        """The program's number."""
        number = self.tiles.launch.number(self._grid_axis(axis))
        return Index(number, dtype=COUNTED)

    def _grid_axis(self, axis):
        number = self.tiles.whole_number(axis)
        if number not in range(3):
            raise uncompiled(f"axis {number} of the grid, which has axes 0, 1 and 2")
        self.tiles.asked.add(number)
        return number

    def num_programs(self, axis):
        """How many programs there are along an axis."""
        count = self.tiles.launch.programs(self._grid_axis(axis))
        return Index(count, dtype=COUNTED)

    def cdiv(self, x, div):
        """x / div rounded up."""
        if not isinstance(x, Index) or not isinstance(div, Index):
            raise NotRead("cdiv of what are no integers")
        if not x.e.is_nonnegative or not div.e.is_positive:
            raise NotRead("cdiv of what may be negative")
        less = self.tiles.operate("Sub", div, self.tiles.integer(1))
        whole = self.tiles.operate("Add", x, less)
        self.tiles.use(whole)
        return replace(whole, e=self.tiles.places.cdiv(x.e, div.e))

    def minimum(self, x, y):
        """The smaller of two integers or numbers."""
        if isinstance(x, Index) and isinstance(y, Index):
            if x.axes or y.axes:
                raise NotRead("a minimum of integers in lanes")
            self.tiles.use_both(x, y)
            return Index(least(x.e, y.e), dtype=results(x.dtype, y.dtype))
        return self._compared(Min, x, y)

    def maximum(self, x, y):
        """The larger of two numbers."""
        if isinstance(x, Index) and isinstance(y, Index):
            raise NotRead("a maximum of integers")
        return self._compared(Max, x, y)

    def clamp(self, x, min, max, propagate_nan=None):
        """The number between two bounds that is nearest."""
        return self._compared(Min, self._compared(Max, x, min), max)

    def _compared(self, function, x, y):
        """The smaller or larger of two numbers."""
        x, y = self._tensor(x), self._tensor(y)
        names = [replaced(value.dtype, LARGER) for value in (x, y)]
        value = None
        if function is Max:
            value = self.tiles.sums.maxima.larger(x, y)
        value = value or apply(function, x, y)
        rounded = x.rounded or y.rounded
        return replace(value, dtype=results(*names), rounded=rounded)

    def _axis(self, size) -> str:
        """The axis that a length of a tile belongs to."""
        e = getattr(size, "e", None)
        for axis, lanes in self.tiles.places.lanes.items():
            if e is not None and e == lanes:
                self.tiles.lengths.add(e)
                if e == N:
                    self.tiles.told[POWERS] = None
                return axis
        words = "which is bound as no block: WHOLE, COLUMNS or ROWS"
        number = described(size) if e is None else e
        raise NotRead(f"a tile of {number} lanes, {words}")

    def _axes(self, *shape) -> tuple:
        """The axes of a shape, that is given as one tuple or size by size."""
        if isinstance(shape[0], tuple):
            (shape,) = shape
        return tuple(map(self._axis, shape))

    def arange(self, start, end):
        """The lanes of a block."""
        axis = self._axis(end)
        if not isinstance(start, Index) or start.e != 0:
            raise NotRead("a range of lanes that does not start at 0")
        return Index(LANES.get(axis, S.Zero), (axis,), COUNTED)

    @staticmethod
    def _names(dtype, *kinds) -> frozenset:
        """What a dtype may be; refuses one that is not known to be of floating point, or of other kinds."""
        names = getattr(dtype, "names", ANY)
        if not any(names <= kind for kind in (FLOATS, *kinds)):
            raise NotRead("a tile whose dtype is not known to be of floating point")
        return names

    def zeros(self, shape, dtype):
        """A tile of zeros; one of integers counts."""
        self._check_shape(shape)
        names = self._names(dtype, INTEGERS - BOOLEANS)
        return plain(0, self._axes(shape), names)

    def full(self, shape, value, dtype):
        """A tile of one number."""
        self._check_shape(shape)
        names = self._names(dtype)
        number = self.tiles.number(value)
        if number.axes:
            raise NotRead("a tile filled with a tile")
        return replace(number, axes=self._axes(shape), dtype=names)

    @staticmethod
    def _check_shape(shape):
        """Refuses a size that is no tuple, as (B) is none."""
        if not isinstance(shape, tuple):
            raise uncompiled("a shape that is no tuple or list; write (B,)")

    def zeros_like(self, input):
        """A tile of zeros."""
        if not isinstance(input, Number):
            raise NotRead("zeros like what is no tile of numbers")
        return plain(0, input.axes, input.dtype)

    def where(self, condition, x, y):
        """x where the condition holds, else y.

        A limit of dtypes needs nan past it. Without it `tl.where(x < limit, y, 0.0)` is proved, whose rows are 0 for
        numbers past the limit that a dtype does hold.
        """
        if self.tiles.flag(condition):
            raise Flag(self.tiles.flag(condition))
        if isinstance(condition, bool):
            chosen = x if condition else y
            dtype = results(x.dtype, y.dtype)
            return replace(chosen, axes=fit(x.axes, y.axes), dtype=dtype)
        x, y = self.tiles.number(x), self.tiles.number(y)
        dtype, rounded = results(x.dtype, y.dtype), x.rounded or y.rounded
        if isinstance(condition, Mask):
            chosen = self.tiles.where(condition, x, y)
        else:
            chosen = self._chosen(condition, x, y)
        return replace(chosen, dtype=dtype, rounded=rounded)

    def _chosen(self, condition, x, y):
        """x where a condition on values holds, else y."""
        if not isinstance(condition, Condition):
            raise NotRead("a choice by what is no mask")
        if condition.indicator is not None:
            return apply(_either, condition.indicator, x, y)
        if (condition.a, condition.b) == (x, y):
            return self.tiles.sums.maxima.larger(x, y) or apply(Max, x, y)
        if (condition.a, condition.b) == (y, x):
            return apply(Min, x, y)
        if not (x.complete and y.complete):
            raise NotRead("a choice between sums that are not complete")
        if condition.limited and y.inside is not nan:
            raise NotRead("a choice by a limit of dtypes, with a number past it")
        chosen, sure = x, condition.holds
        if condition.zero is not None:
            is_of_rows = condition.zero.is_of_rows
            sure = (True, is_of_rows, False, False)
            if self.tiles.launch.zero:
                self.tiles.sums.needs(condition.zero, Eq, TAKEN)
            else:
                self.tiles.sums.needs(condition.zero, DIVISOR, BRANCH)
                chosen = y
        elif condition.a is not None and not sure[0]:
            return self._by_step(condition.a, condition.b, x, y)
        if not sure[0]:
            raise NotRead("a choice by values")
        axes = fit(fit(x.axes, y.axes), condition.axes)
        parts = zip(chosen.parts, sure, strict=True)
        parts = [part if holds else unfollowed_lane(part) for part, holds in parts]
        if condition.zero is not None and condition.zero.inside.is_Indexed:
            for k, number in enumerate(condition.zero.parts):
                if k and number == 0:  # a lane past the end, loaded as 0
                    parts[k] = x.parts[k]
        return Number(tuple(parts), axes, merged(x, y))

    def _by_step(self, a, b, x, y):
        """x where a > b, and y where a < b: the claim says where they differ."""
        difference = apply(lambda p, q: p - q, a, b)
        if difference.inside is nan or nf(difference.inside) == 0:
            raise NotRead("a choice by values that are equal, or not known")
        self.tiles.sums.needs(difference, DIVISOR, COMPARED)
        chosen = apply(_larger, a, b, x, y)
        parts = list(chosen.parts)
        for k in (COLUMN, ROW, CORNER):
            is_same = k == COLUMN and difference.is_of_rows
            if parts[k].has(Heaviside) and not is_same:
                parts[k] = unfollowed_lane(parts[k])
        return replace(chosen, parts=tuple(parts))

    def expand_dims(self, input, axis):
        """A tile with an axis of length 1."""
        at = self.tiles.whole_number(axis)
        if not 0 <= at <= len(input.axes):
            raise NotRead("an axis that the tile has not")
        return replace(input, axes=(*input.axes[:at], "1", *input.axes[at:]))

    def broadcast_to(self, input, *shape):
        """A tile broadcast to a shape."""
        axes = self._axes(*shape)
        if fit(input.axes, axes) != axes:
            raise NotRead("a broadcast to a smaller shape")
        return replace(input, axes=axes)

    def reshape(self, input, *shape):
        """The same tile, with axes of length 1 put in or left out."""
        axes = self._axes(*shape)
        if not input.axes:
            raise uncompiled("another shape for what is no tile")
        if [a for a in axes if a != "1"] != [a for a in input.axes if a != "1"]:
            raise NotRead("a tile of another shape")
        return replace(input, axes=axes)

    view = reshape

    def trans(self, input):
        """A tile of two axes transposed."""
        if len(input.axes) != 2:
            raise NotRead("a transposition of what has no two axes")
        return replace(input, axes=input.axes[::-1])

    def _positions(self, input, axis, name) -> list[int]:
        """The positions of the axes of a tile that a reduction is over."""
        if not isinstance(input, Number):
            raise NotRead(f"a {name} of what is no tile of numbers")
        positions = list(range(len(input.axes)))
        if axis is not None:
            position = self.tiles.whole_number(axis)
            if not -len(positions) <= position < len(positions):
                why = f"a {name} over axis {position}, which the tile has not"
                raise uncompiled(why)
            positions = [positions[position]]
        if not positions:
            raise uncompiled(f"a {name} over the lanes of what is no tile")
        return positions

    @staticmethod
    def _reduced(value, positions, keep_dims) -> Number:
        """A number whose axes at some positions are left out, or have one lane."""
        if not isinstance(keep_dims, bool):
            raise NotRead("keep_dims of what is no flag")
        axes = []
        for position, axis in enumerate(value.axes):
            if position not in positions:
                axes.append(axis)
            elif keep_dims:
                axes.append("1")
        return replace(value, axes=tuple(axes))

    def sum(self, input, axis=None, keep_dims=False, dtype=None):
        """The sum over an axis of a tile, or over all of them."""
        if isinstance(input, Joined):
            parts = [self.sum(part, axis, keep_dims, dtype) for part in input.parts]
            return Joined(tuple(parts))
        positions = self._positions(input, axis, "sum")
        value = input
        for position in positions if input.inside is not nan else ():
            value = self.tiles.sums.over(value, input.axes[position])
        value = self.tiles.sums.settled(self._reduced(value, positions, keep_dims))
        names = input.dtype
        if dtype is not None:
            names = self._names(dtype)
        if set(input.axes) - {"1"} - set(value.axes):
            self.tiles.keep_sum(names, self.tiles.memory.line)
            self.tiles.keep_count(input, names)
            self.tiles.sums.use_rounded(input)
            self.tiles.sums.keep_cancelling(input)
        return replace(value, dtype=names, rounded="")

    def max(
        self,
        input,
        axis=None,
        return_indices=False,
        return_indices_tie_break_left=True,
        keep_dims=False,
    ):
        """The largest of each row of a tile, which a proof takes for any number."""
        if return_indices is not False:
            raise NotRead("the indices of what is largest")
        positions = self._positions(input, axis, "maximum")
        over = {input.axes[position] for position in positions} - {"1"}
        value = input
        if over == {"C"}:
            value = self.tiles.sums.maxima.largest(input)
        elif over:
            raise NotRead("a maximum over something else than columns")
        dtype = replaced(input.dtype, LARGEST)
        return replace(self._reduced(value, positions, keep_dims), dtype=dtype)

    def reduce(self, input, axis, combine_fn, keep_dims=False):
        """The sum or the largest of the lanes, by what a function of the text makes of two numbers.

        For `def add(a, b): return a + b`. It stops `return a + 2 * b`, whose result depends on the order.
        """
        names = symbols("first second", real=True)
        first, second = [plain(name, dtype=input.dtype) for name in names]
        passed, self.passed = self.passed, ([False, False], {})
        combined = getattr(self.inline(combine_fn, first, second), "inside", None)
        self.passed = passed
        if combined == sum(names):
            return self.sum(input, axis, keep_dims)
        if combined == Max(*names):
            return self.max(input, axis, keep_dims=keep_dims)
        raise NotRead("a reduction by other than a sum or a maximum")

    def join(self, a, b):
        """Two tiles of one shape side by side."""
        a, b = self.tiles.number(a), self.tiles.number(b)
        if a.axes != b.axes:
            raise NotRead("a join of tiles of two shapes")
        return Joined((a, b))

    def split(self, a):
        """The two tiles that were joined."""
        if not isinstance(a, Joined):
            raise NotRead("a split of what was not joined")
        return a.parts

    def fma(self, x, y, z):
        """x * y + z."""
        x, y, z = map(self._tensor, (x, y, z))
        return self.tiles.operate("Add", self.tiles.operate("Mult", x, y), z)

    def fdiv(self, x, y, ieee_rounding=False):
        """x / y, of one dtype."""
        return self._quotient("fdiv", x, y, FLOATS)

    def div_rn(self, x, y):
        """x / y, rounded to nearest."""
        takes = LONG if self.home == "libdevice" else frozenset({"float32"})
        return self._quotient("div_rn", x, y, takes)

    def _quotient(self, name, x, y, takes):
        x, y = self._tensor(x), self._tensor(y)
        if x.dtype <= INTEGERS or y.dtype <= INTEGERS:
            raise NotRead("a division function of an integer; cast it, or write /")
        dtype = self._taken(f"{name} by {spelled(y.dtype)}", x.dtype, takes & y.dtype)
        return replace(self.tiles.sums.operate("Div", x, y), dtype=dtype)

    def load(
        self,
        pointer,
        mask=None,
        other=None,
        boundary_check=(),
        padding_option="",
        cache_modifier="",
        eviction_policy="",
        volatile=False,
    ):
        """What is in memory; a masked lane holds `other`."""
        no_mask = mask is None
        mask = self._mask(pointer, mask, boundary_check, padding_option)
        self._check_words(EVICTION, eviction_policy)
        self._check_words(CACHE_LOAD, cache_modifier)
        if other is not None and (no_mask or pointer.edges):
            raise uncompiled("a load with other= and without a mask")
        if pointer.edges:
            if padding_option not in ("", None, "zero"):
                raise NotRead("a block pointer with this padding")
            if padding_option == "zero":
                other = Index(S.Zero)
        if other is not None:
            other = self.tiles.number(other)
            if other.axes or other.places:
                raise NotRead("masked lanes that hold a tile")
            other = other.inside
        return self.tiles.memory.load(pointer, mask, other)

    def _mask(self, pointer, mask, boundary_check, padding="") -> Mask:
        """The mask of an access."""
        if not isinstance(pointer, Pointer):
            symbols = getattr(getattr(pointer, "e", None), "free_symbols", ())
            is_address = any(symbol.name.startswith(ADDRESS) for symbol in symbols)
            if is_address or self.tiles.launch.called and isinstance(pointer, Index):
                raise uncompiled("an address that is an integer, as data_ptr() is")
            strides = set()
            for bound in self.tiles.launch.arguments.values():
                strides |= {stride for _, stride in getattr(bound, "strides", ())}
            names = ", ".join(sorted(self.tiles.unbound - strides)) or "none"
            why = "bind pointers as T, Out or InOut; arguments that are not bound"
            raise NotRead(f"an address that is no pointer: {why}: {names}")
        if pointer.edges:
            if mask is not None:
                raise uncompiled("a block pointer with a mask")
            checks = boundary_check
            if checks is None or getattr(checks, "e", None) == 0:
                checks = ()  # 0 is none to Triton
            if not isinstance(checks, tuple):
                raise uncompiled("boundary_check that is no tuple")
            numbers = [self.tiles.whole_number(axis) for axis in checks]
            if len(set(numbers)) < len(numbers):
                raise uncompiled("boundary_check of an axis twice")
            if not set(numbers) <= set(range(len(pointer.edges))):
                raise NotRead("boundary_check of an axis that the block has not")
            checked = [pointer.edges[number] for number in numbers]
            return Mask(frozenset(checked), pointer.offset.axes)
        if boundary_check not in ((), None) or padding:
            raise uncompiled(
                "padding_option or boundary_check of what is no block pointer"
            )
        if mask is None or mask is True:
            return Mask(frozenset())
        if isinstance(mask, Index | Number):
            raise uncompiled("a mask of numbers, which is no comparison")
        if not isinstance(mask, Mask):
            raise NotRead("a mask that is no comparison of integers")
        if mask.axes and not pointer.offset.axes:
            raise uncompiled("a mask of lanes at an address that has none")
        if fit(mask.axes, pointer.offset.axes) != pointer.offset.axes:
            raise NotRead("a mask of more axes or lanes than its address")
        return mask

    def store(
        self,
        pointer,
        value,
        mask=None,
        boundary_check=(),
        cache_modifier="",
        eviction_policy="",
    ):
        """Writes to memory."""
        self._check_words(EVICTION, eviction_policy)
        self._check_words(CACHE_STORE, cache_modifier)
        self._keep(pointer, value, mask, boundary_check)

    @staticmethod
    def _check_words(words, word):
        """Refuses a word that Triton does not know."""
        if word and word not in words:
            needs = f"needs one of {', '.join(words)}"
            raise uncompiled(f"{described(word)}, {needs}")

    def _keep(self, pointer, value, mask, boundary_check=(), atomic=False):
        """Stores a value, which rests on the conditions of all operations so far."""
        mask, value = self._mask(pointer, mask, boundary_check), self._tensor(value)
        if pointer.edges:
            self._taken("a store by a block pointer", value.dtype, FLOATS)
        self.tiles.memory.store(pointer, value, mask, atomic)
        self.tiles.rests_on[pointer.name] = len(self.tiles.sums.domain)

    def atomic_add(self, pointer, val, mask=None, sem=None, scope=None):
        """Adds to memory; what it returns is not read."""
        if scope not in (None, "gpu", "sys"):
            raise NotRead(f"an atomic addition for the programs of a {scope} alone")
        self._check_words(ORDERS, sem)
        if getattr(pointer, "edges", ()):
            raise NotRead("an atomic addition by a block pointer")
        self._keep(pointer, val, mask, atomic=True)
        return Qualified("what an atomic addition returns")

    def make_block_ptr(self, base, shape, strides, offsets, block_shape, order):
        """A pointer to a block of a tensor."""
        if not isinstance(base, Pointer) or base.edges or base.offset.axes:
            raise NotRead("a block pointer from what is no pointer")
        if {self.tiles.whole_number(axis) for axis in order} != set(range(len(shape))):
            raise NotRead("a block pointer whose order names other axes")
        axes = self._axes(block_shape)
        for value in (*shape, *strides, *offsets):
            self.tiles.use(value)
        self._check_offsets(offsets)
        offset, edges = base.offset.e, []
        for axis, size, stride, start in zip(
            axes, shape, strides, offsets, strict=True
        ):
            e = start.e + LANES.get(axis, S.Zero)
            offset += e * stride.e
            edges.append((expand(e), expand(size.e)))
        steps = tuple(stride.e for stride in strides)
        offset = Index(expand(offset), axes)
        return Pointer(base.name, offset, tuple(edges), steps, base.parts)

    @staticmethod
    def _check_offsets(offsets):
        """Refuses offsets of a block pointer in 64 bits, which Triton does not compile.

        For `offsets=(row, 0)` of a program's number. It stops row.to(tl.int64), by which other addresses do not wrap.
        """
        for offset in offsets:
            if offset.dtype == {"int64"}:
                raise uncompiled("an offset of a block pointer in 64 bits")

    def advance(self, base, offsets):
        """A block pointer moved."""
        self._check_offsets(offsets)
        for step in offsets:
            self.tiles.use(step)
        steps = [step.e for step in offsets]
        pairs = zip(base.edges, steps, strict=True)
        edges = tuple((expand(e + step), size) for (e, size), step in pairs)
        moved = self.tiles.operate(
            "Add", base.offset, Index(sum(map(mul, steps, base.strides)))
        )
        return replace(base, offset=moved, edges=edges)


# the functions that are read by a method of their name
READ = {name for name in vars(Language) if not name.startswith("_")} - {"call"}
