"""Text from outside, as a value: it is read from its syntax tree by a whitelist, and nothing of it is run.

All that a caller types passes here: a binding after --bind, the arguments of a norm, a stride, and an expression of
the definitions such as "1/rstd". What is not on the list is refused, with what is allowed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from operator import add, mul, neg, pos, sub, truediv
from typing import Any

import sympy
from sympy import Expr, I, Indexed, Integer, Rational, nan, oo, zoo

from ..symbolic.elementary import sigmoid
from ..symbolic.symbols import i, j

LONGEST = 1000  # the characters of a text
SHOWN = 60  # of them in a message
LARGEST = 64  # an exponent that is a number, and the bits of a number with an exponent


def power(base: Expr, exponent: Expr) -> Expr:
    """base**exponent.

    Raises:  ValueError for numbers such as 9**9**9, whose digits would fill the memory
    """
    if exponent.is_number:
        small = exponent.is_Rational and max(abs(exponent.p), exponent.q) <= LARGEST
        if base.is_Rational and max(abs(base.p), base.q) >= 2**LARGEST:
            small = False
        if not small:
            raise ValueError(f"the exponent {exponent}: needs to be a small number")
    return base**exponent


OPERATIONS = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
    ast.Pow: power,
    ast.USub: neg,
    ast.UAdd: pos,
}
FUNCTIONS = {
    "sqrt": lambda a: sympy.sqrt(a),
    "rsqrt": lambda a: 1 / sympy.sqrt(a),
    "sigmoid": sigmoid,
    **{name: getattr(sympy, name) for name in "exp log sin cos tanh Abs".split()},
}
# how an entry may be written besides x[i, j]: {its letters: the index of an array}
AS_COLUMN = {(i,): ":, None", (j,): "None, :"}


def check_type(argument: str, value: Any, *types: type) -> None:
    """TypeError where an argument is of none of these types."""
    if not isinstance(value, types):
        needs = " or ".join(kind.__name__ for kind in types)
        raise TypeError(f"{argument}: got {value!r}, needs {needs}")


def check_seconds(seconds: Any) -> None:
    """TypeError for what is no number, ValueError for one that is not above 0."""
    check_type("seconds", seconds, int, float)
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds: got {seconds}, needs a number above 0")


def tree_of(argument: str, text: str) -> ast.expr:
    """The syntax tree of a text that is one expression.

    Args:    argument: its name, for the errors
    Raises:  TypeError for what is no text, ValueError for one that is too long or no expression
    """
    if not isinstance(text, str):
        raise TypeError(f"{argument}: got {type(text).__name__}, needs a text")
    if len(text) > LONGEST:
        message = f"{argument}: got a text of {len(text)} characters"
        raise ValueError(f"{message}, needs at most {LONGEST}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        message = f"{argument}: got {shortened(text)!r}, needs one expression"
    raise ValueError(message)


def module_of(text: str) -> ast.Module:
    """The syntax tree of a program's text.

    Raises:  ValueError for text that is not Python, or too deeply nested to be read
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as reason:
        message = f"program: got a text that is not Python: {reason}"
    except (MemoryError, RecursionError):
        message = "program: got a text that is nested too deeply to be read"
    raise ValueError(message)


def shortened(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def value_of(
    argument: str,
    text: str,
    names: Mapping[str, Any],
    calls: Mapping[str, Callable] = FUNCTIONS,
    words: bool = False,
) -> Any:
    """What a text stands for: a number, a name, a tensor's entry, or a call or an operation of such.

    Args:    argument: its name, for the errors
             names: {name: its value}; calls: {name: what may be called}
             words: whether quoted texts, flags, None, tuples and named arguments are values, too
    Raises:  ValueError that names what is not allowed, and what is
    """
    return _Reader(argument, text, names, calls, words).result()


class _Reader:
    """Reads one text. Args: as of value_of"""

    def __init__(self, argument, text, names, calls, words):
        self.argument, self.text, self.words = argument, text, words
        self.names, self.calls = names, calls

    def result(self):
        """The value."""
        try:
            value = self.value(tree_of(self.argument, self.text))
        except RecursionError:
            raise self.error("it is nested too deeply") from None
        if isinstance(value, Expr) and value.has(I, nan, oo, zoo):
            raise self.error("it is no finite real number")
        return value

    def error(self, reason):
        """What is wrong with the text."""
        return ValueError(f"{self.argument}: got {shortened(self.text)!r}: {reason}")

    def refused(self, node):
        """What is not allowed, and what is."""
        found = ast.get_source_segment(self.text.strip(), node) or self.text
        names = ", ".join([*self.names, *[f"{name}(...)" for name in self.calls]])
        allowed = f"allowed are numbers, + - * / ** and {names}"
        return self.error(f"{shortened(found)} is not allowed; {allowed}")

    def value(self, node):
        """The value of a node; whatever is not listed here is refused."""
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(
                node.value, bool
            ):
                return self.number(node.value)
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Subscript(value=ast.Name(id=name)) if name in self.names:
                return self.entry(node, self.names[name])
            case ast.UnaryOp() if type(node.op) in OPERATIONS:
                return OPERATIONS[type(node.op)](self.operand(node.operand))
            case ast.BinOp() if type(node.op) in OPERATIONS:
                return self.operation(node)
            case ast.Call(func=ast.Name(id=name)) if name in self.calls:
                return self.called(node, self.calls[name])
        if self.words:
            match node:
                case ast.Constant(value=bool() | str() | None):
                    return node.value
                case ast.Tuple():
                    return tuple(map(self.value, node.elts))
        raise self.refused(node)

    def number(self, number):
        """A number as it is written, exactly."""
        if isinstance(number, int):
            return Integer(number)
        if not math.isfinite(number):
            raise self.error("a number that is too large")
        return Rational(repr(number))

    def operand(self, node):
        """A value that can be calculated with, of what is a number a rational one: exp(exp(9)) is not worked out."""
        value = self.value(node)
        is_number = isinstance(value, Expr) and value.is_number
        if not isinstance(value, Expr) or is_number and not value.is_Rational:
            raise self.refused(node)
        return value

    def operation(self, node):
        """An operation of two values."""
        left, right = self.operand(node.left), self.operand(node.right)
        return self.given(OPERATIONS[type(node.op)], left, right)

    def entry(self, node, value):
        """An entry of a tensor at its own indices, or as a column of an array."""
        cut = ast.unparse(node.slice).strip("()")
        letters = getattr(value, "indices", ())
        allowed = [", ".join(map(str, letters)), AS_COLUMN.get(tuple(letters), "")]
        if not isinstance(value, Indexed) or cut not in allowed:
            raise self.error(f"{cut} is no index of {value}")
        return value

    def called(self, node, function):
        """What a function that may be called gives."""
        read = self.value if self.words else self.operand
        if (
            any(k.arg is None for k in node.keywords)
            or node.keywords
            and not self.words
        ):
            raise self.refused(node)
        args = list(map(read, node.args))
        options = {keyword.arg: read(keyword.value) for keyword in node.keywords}
        return self.given(function, *args, **options)

    def given(self, function, *args, **options):
        """What a function gives."""
        try:
            return function(*args, **options)
        except (TypeError, ValueError) as reason:
            message = str(reason)
        raise self.error(message)
