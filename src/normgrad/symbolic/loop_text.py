"""The text of a kernel in loops, read: what it stores, as index expressions for every number of rows and columns.

The reader runs the text of a function that Numba compiles, and of every function that it calls, on expressions. Arrays
are known by name, and an index has to be the row and the column of the loops around it. A loop over all columns turns
`total += e` into a sum. A loop over rows is one over a program's block, and all programs together have each row once.

Where each head has a weight of its own, what is read is what the kernel does to the rows of one head: i goes over
those, M counts them, and the arrays are that head's.

What is trusted: that load, store, row, own, line_for, held, send and arrived of the package, np.sqrt and arithmetic do
what their names say, that integers do not overflow, and what TRUSTED says.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from sympy import Expr, S, Symbol, sqrt, sympify

from .notation import tensor, total
from .signs import is_positive
from .symbols import M, N, i, j
from .text_reader import FLOOR, OPERATIONS, PROGRAM, PROGRAMS, Reading, TextReader

BLOCK = (FLOOR(M * PROGRAM, PROGRAMS), FLOOR(M * (PROGRAM + 1), PROGRAMS))
WHOLE, COLUMNS = (S.Zero, M), (S.Zero, N)
# Arrays of one axis that goes over the columns; one that goes over the rows is known by its index.
VECTORS = ("weight", "bias", "total")
TRUSTED = (
    "every program runs once, on partial sums that are 0 before",
    "arguments do not overlap in memory",
    "arrays are of floating-point numbers, or of words that stand for them; rounding is left out",
)
# Functions of the package that are not read.
PACKAGE = dict.fromkeys(
    ("load", "store", "row", "own", "line_for", "held", "send", "arrived"),
    "normgrad.numba_kernels.kernels",
)


@dataclass(frozen=True)
class Array:
    """An argument, or what an index leaves of it.

    Args:  name; at: the letters of its indices so far
    """

    name: str
    at: tuple = ()


@dataclass(frozen=True)
class Full:
    """An array that holds one number everywhere.

    Args:  value: the number
    """

    value: Expr


@dataclass(frozen=True)
class Line:
    """Where rows of an array are made before they are sent to it.

    Args:  name: the array's
    """

    name: str


class Most:
    """The largest number that is taken for one: where the range of a dtype ends."""


def read(
    kernel,
    constants: dict[str, Any],
    above: bool = True,
    zero: bool = False,
    names: dict[str, str] | None = None,
) -> Reading:
    """What a kernel stores for every M and N.

    Args:     kernel: a function, compiled by Numba or not; constants: {argument: value}, for a number an expression, a
              flag or Most(), for an array None where it has no columns, or Full; other arguments than program, programs
              and N are arrays
              above: whether a row's size exceeds eps, where a kernel asks for it; zero: whether it is 0
              names: {argument: the name of the tensor that it is}
    Raises:   Unread, with the line
    """
    return _Reader(constants, above, zero, names or {}).read(kernel)


class _Reader(TextReader):
    language, trusted, package = "loop", TRUSTED, PACKAGE

    def __init__(self, constants, above, zero, names):
        super().__init__(constants, above, zero, names)
        self.sums, self.axes, self.unsent, self.loaded = {}, {}, set(), set()
        self.on_the_way = set()

    def argument(self, name):
        given = self.constants.get(name)
        if isinstance(given, bool | Expr | Most):
            return given
        return {"program": PROGRAM, "programs": PROGRAMS, "N": N}.get(name, Array(name))

    # statements

    def assign(self, target, value, local):
        if isinstance(target, ast.Subscript):
            self.store(self.value(target, local), value)
        else:
            super().assign(target, value, local)

    def change(self, line, local):
        if isinstance(line.target, ast.Name):
            super().change(line, local)
            return
        place, value = (
            self.value(line.target, local),
            self.number(self.value(line.value, local)),
        )
        self.check_value(f"what {place.name} gets", value)
        own = place.at == (PROGRAM, j) or (
            place.at == (j,) and "program" not in self.arguments
        )
        if (
            not isinstance(line.op, ast.Add)
            or not own
            or self.loops != ["rows", "columns"]
        ):
            self.refuse(
                f"{place.name} is no sum over the rows, in a place of this program's own"
            )
        if place.name in self.loaded:
            self.refuse(f"{place.name} is read before its last row is added")
        self.sums[place.name] = self.sums.get(place.name, S.Zero) + value

    def store(self, place, value):
        wanted = {(i, j): ["rows", "columns"], (i,): ["rows"]}.get(place.at)
        if self.loops != wanted:
            self.refuse(
                f"{place.name} is written at {place.at}, which is not its own row and column"
            )
        value = self.number(value)
        self.check_value(f"what {place.name} gets", value)
        if self.reading.stored.setdefault(place.name, value) != value:
            self.refuse(f"{place.name} is written twice")
        if place.name in self.loaded:
            self.reading.overwritten.add(place.name)

    def loop(self, line, local):
        bounds = [self.number(self.value(each, local)) for each in line.iter.args]
        bounds = tuple([S.Zero] * (len(bounds) == 1) + bounds)
        if bounds == (0, 0):
            return
        alone = "program" not in self.arguments
        kinds = {WHOLE if alone else BLOCK: ("rows", i, M), COLUMNS: ("columns", j, N)}
        if bounds not in kinds:
            self.refuse("a loop that may leave out rows or columns, or take one twice")
        kind, letter, size = kinds[bounds]
        if self.loops not in ([], ["rows"]) or (kind == "columns") != bool(self.loops):
            self.refuse("columns are gone over within a row, and rows first")
        head, before = self.line, dict(local)
        names = (each for each in ast.walk(line) if isinstance(each, ast.Name))
        changed = {each.id for each in names if isinstance(each.ctx, ast.Store)}
        for name in changed & set(before):
            local[name] = Symbol(f"{name}_before")
        local[line.target.id] = letter
        self.loops.append(kind)
        self.block(line.body, local)
        self.loops.pop()
        self.line = head
        for name in changed:
            value = local.pop(name, None)
            if name in before:
                local[name] = self.added_up(name, before[name], value, letter, size)
        if kind == "rows":
            for name in self.unsent:
                self.refuse(f"a row of {name} is made in a line, and not sent")
            for name, value in self.sums.items():
                self.reading.stored[name] = total(
                    M, lambda r, value=value: value.xreplace({i: r})
                )

    def added_up(self, name, start, value, letter, size):
        """A number to which a loop adds, after all turns."""
        symbol = Symbol(f"{name}_before")
        added = self.number(value) - symbol
        if added.has(symbol):
            self.refuse(f"{name} is not added up")
        return self.number(start) + total(size, lambda r: added.xreplace({letter: r}))

    # expressions

    def number(self, value):
        """The expression that an entry holds by now."""
        if isinstance(value, bool):
            return S(int(value))
        if not isinstance(value, Array):
            return sympify(value)
        if (
            value.at not in ((i, j), (i,), (j,))
            or self.axes.setdefault(value.name, value.at) != value.at
        ):
            self.refuse(
                f"{value.name} is read at {value.at}, which is not its own row and column"
            )
        if value.name in self.constants:
            full = self.constants[value.name]
            return (
                full.value
                if isinstance(full, Full)
                else self.refuse(f"{value.name} has no columns")
            )
        if value.name in self.sums:
            self.refuse(f"{value.name} is read before its last row is added")
        if value.name in self.reading.stored:
            return self.reading.stored[value.name]
        self.loaded.add(value.name)
        name = self.names.get(value.name, value.name)
        return tensor(name, *(M if letter == i else N for letter in value.at))[value.at]

    def value_constant(self, e, local):
        return (
            e.value
            if isinstance(e.value, bool)
            else sympify(str(e.value), rational=True)
        )

    def value_attribute(self, e, local):
        value = self.value(e.value, local)
        if isinstance(value, Array) and not value.at and e.attr == "shape":
            return M, N
        return self.refuse(f"{ast.unparse(e)}, which this reader does not know")

    def value_subscript(self, e, local):
        array, cut = self.value(e.value, local), self.value(e.slice, local)
        if not isinstance(array, Array):
            self.refuse(f"{ast.unparse(e.value)} is no array")
        return Array(array.name, array.at + (cut if isinstance(cut, tuple) else (cut,)))

    def value_unaryop(self, e, local):
        value = self.value(e.operand, local)
        if isinstance(e.op, ast.Not):
            return not value if isinstance(value, bool) else self.refuse(ast.unparse(e))
        return -self.number(value)

    def value_ifexp(self, e, local):
        return self.value(e.body if self.decided(e.test, local) else e.orelse, local)

    def value_compare(self, e, local):
        sides = [self.value(part, local) for part in (e.left, *e.comparators)]
        if any(isinstance(side, Most) for side in sides):
            if (
                sides[0] != 0
                or [type(op) for op in e.ops] != [ast.Lt, ast.LtE]
                or not isinstance(sides[2], Most)
            ):
                self.refuse("a range that this reader does not know")
            if not is_positive(self.number(sides[1])):
                self.refuse(
                    f"a range of {ast.unparse(e.comparators[0])}, which need not be positive"
                )
            self.reading.assume_range()
            return True
        if len(sides) != 2:
            self.refuse("a comparison that this reader does not know")
        left, right = map(self.number, sides)
        self.check_value("what is compared", left, right)
        difference, op = left - right, e.ops[0]
        if isinstance(op, ast.Eq | ast.NotEq) and (
            difference.is_zero or difference.is_nonzero
        ):
            return bool(difference.is_zero) == isinstance(op, ast.Eq)
        if not isinstance(op, ast.Gt):
            self.refuse("a comparison that this reader does not know")
        if difference.is_positive or difference.is_nonpositive:
            return bool(difference.is_positive)
        return self.asked_of_a_norm(ast.Gt, left, right)

    def value_call(self, e, local):
        name, given = ast.unparse(e.func), [self.value(part, local) for part in e.args]
        if e.keywords:
            self.refuse("arguments by name")
        if name.endswith(".dtype.type") and isinstance(
            self.value(e.func.value.value, local), Array
        ):
            return self.number(*given)
        numpys = {
            "np.float32": self.number,
            "np.float64": self.number,
            "np.sqrt": self.root,
        }
        if name in numpys and getattr(self.scope.get("np"), "__name__", "") == "numpy":
            return numpys[name](*given)
        if name == "len" and name not in self.scope:
            return self.length(*given)
        if name in PACKAGE and self.is_own(name, name):
            return self.called[name](self, *given)
        if name not in self.scope:
            self.refuse(f"{name}, which this reader does not know")
        return self.inlined(self.scope[name], given)

    def arrived(self):
        self.on_the_way.clear()

    def finish(self):
        for name in sorted(self.on_the_way):
            self.refuse(f"a row of {name} is sent, and need not have arrived")

    def root(self, value):
        return sqrt(self.number(value))

    def load(self, array, at):
        return self.number(Array(array.name, (*array.at, at)))

    def row(self, array, at):
        return Array(array.name, (*array.at, at))

    def own(self, array, at):
        if at != i:
            self.refuse(f"{array.name} is taken for the row {at}, which is not its own")
        return array

    def write(self, array, at, value):
        self.store(Array(array.name, (*array.at, at)), value)

    def line_for(self, array):
        return (
            Line(array.name)
            if not array.at
            else self.refuse(f"a line for {array.name} at {array.at}")
        )

    def held(self, line, array, at):
        if line != self.line_for(array):
            self.refuse(
                f"a row of {array.name} is made in a line of {getattr(line, 'name', line)}"
            )
        self.unsent.add(array.name)
        return self.row(array, at)

    def send(self, line, array, at):
        if line != self.line_for(array) or at != i or self.loops != ["rows"]:
            self.refuse(
                f"a row of {array.name} is sent from elsewhere, or to another row"
            )
        if array.name not in self.unsent or array.name not in self.reading.stored:
            self.refuse(f"a row of {array.name} is sent before it is made")
        self.unsent.remove(array.name)
        self.on_the_way.add(array.name)

    def length(self, array):
        if array.at or array.name in VECTORS:
            return S.Zero if self.constants.get(array.name, 0) is None else N
        return M

    def operate(self, op, a, b):
        a, b = self.number(a), self.number(b)
        if isinstance(op, ast.Div) and b == 0:
            self.refuse("a division by zero")
        self.check_whole(op, a, b)
        return OPERATIONS[type(op)](a, b)

    called = {"load": load, "store": write, "row": row, "own": own, "line_for": line_for, "held": held, "send": send,
              "arrived": arrived}  # fmt: skip
