"""Text from outside, as a value: it is read from its syntax tree by a whitelist, and nothing of it is run.

All that a caller types passes here: a binding after --bind, the arguments of a norm, a stride, and an expression of
the definitions such as "1/rstd". What is not on the list is refused, with what is allowed.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from sympy import Expr, I, IndexedBase, Rational, nan, oo, zoo
from sympy.tensor.indexed import IndexException

from ..prove.typed import OPERATORS
from ..symbolic.symbols import i, j
from .nodes import nodes_of
from .syntax import assigned
from .tables.elementary import functions
from .values import power


class TextOfFile(str):
    """A module's text with the file that it is from, beside which its package lies."""

    file: Path


def with_helpers(text: str, helpers: Mapping[str, str]) -> str:
    """A module's text in which expressions stand for what they are said to be, at every place where they are read.

    For a package's own decorator, or a value that a machine decides. It stops a name that a function has for another
    value.

    Args:    helpers: {an expression of the text: what it is}, as {"dispatch": "lambda f: f", "machine.CORES": "8"}
    Raises:  ValueError or TypeError for what is no expression, and for one that the text does not read
    """
    values, tree = {}, module_of(text)
    for key, value in helpers.items():
        value = ast.unparse(tree_of(f"helpers: {key}", value))
        values[ast.unparse(tree_of("helpers", key))] = f"({value})"
    bound, places = set(), []
    for node in nodes_of(tree):
        if isinstance(node, ast.FunctionDef):
            bound |= assigned(node.body)
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call) and is_read:
            if node.lineno == node.end_lineno and ast.unparse(node) in values:
                places.append(node)
    for name in values:
        is_there = name in map(ast.unparse, places)
        if not is_there or re.match(r"\w*", name)[0] in bound:
            needs = "needs what begins with a name that the text reads, and no function binds"
            raise ValueError(f"helpers: got {name}, {needs}")
    lines = [line.encode() for line in text.split("\n")]
    for node in sorted(places, key=lambda n: -n.col_offset):
        line, value = lines[node.lineno - 1], values[ast.unparse(node)].encode()
        line = line[: node.col_offset] + value + line[node.end_col_offset :]
        lines[node.lineno - 1] = line
    new = TextOfFile(b"\n".join(lines).decode())
    new.file = getattr(text, "file", None)
    return new


class NotPython(SyntaxError, ValueError):
    """A text that is no module of Python; lineno: of its first line that is none, where that is known."""

    def __str__(self):
        return self.msg


LONGEST = 1000  # the characters of a text
DEEPEST = 200  # nodes of its syntax tree that stand in one another
SHOWN = 60  # of them in a message


OPERATIONS = OPERATORS | {ast.Pow: power}
FUNCTIONS = {name: row.f for name, row in functions("texts").items()}
# how an entry may be written besides x[i, j]: {its letters: the index of an array}
AS_COLUMN = {(i,): ":, None", (j,): "None, :"}


def check_type(argument: str, value: Any, *types: type) -> None:
    """TypeError where an argument is of none of these types."""
    if not isinstance(value, types):
        needs = " or ".join(kind.__name__ for kind in types)
        raise TypeError(f"{argument}: got {value!r}, needs {needs}")


types_of = cache(get_type_hints)


def check_fields(instance: Any) -> None:
    """TypeError where a field of a dataclass is not of the type that it is declared with."""
    for name, kind in types_of(type(instance)).items():
        kinds = get_args(kind) if isinstance(kind, UnionType) else ()
        check_type(
            name, getattr(instance, name), *(kinds or [get_origin(kind) or kind])
        )


def check_seconds(seconds: Any) -> None:
    """TypeError for what is no number, ValueError for one that is not above 0."""
    if isinstance(seconds, bool):
        raise TypeError(f"seconds: got {seconds}, needs int or float")
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
        tree = ast.parse(text.strip(), mode="eval").body
        if _depth(tree) > DEEPEST:  # whatever Python's own limit is
            raise RecursionError
        return tree
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        message = f"{argument}: got {shortened(text)!r}, needs one expression"
    raise ValueError(message)


def _depth(tree):
    """How many nodes stand in one another."""
    count, level = 0, [tree]
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        count += 1
    return count


# {name: the import that everybody writes for it}
USUAL_IMPORTS = {
    "math": "import math",
    "np": "import numpy as np",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "triton": "import triton",
    "tl": "import triton.language as tl",
}


def left_out(tree: ast.Module) -> list[str]:
    """The usual imports of what a text names and does not bind, where it imports nothing.

    For a function that is pasted without the head of its file. It stops a text whose import of torch is forgotten
    beside others, which ends in a NameError, and a parameter or a function that is called F.
    """
    bound, loaded = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                return []
            case ast.Name(id=name, ctx=ast.Load()):
                loaded.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.AST(name=str(name)):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                bound.update(names)
    return [USUAL_IMPORTS[name] for name in USUAL_IMPORTS if name in loaded - bound]


def imports_of(tree: ast.Module) -> list[str]:
    """What a claim assumes of the imports of a text that has none."""
    added = [node for node in tree.body if hasattr(node, "is_added")]
    words = " and ".join(map(ast.unparse, added))
    return [f"above the text, which imports nothing: {words}"] if added else []


@lru_cache(maxsize=64)
def module_of(text: str) -> ast.Module:
    """The syntax tree of a program's text, one for all who ask: nobody writes into it.

    A text that imports nothing has the usual imports of what it names.

    Raises:  NotPython for text that is not Python, or too deeply nested to be read
    """
    line = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            # nothing of it is run: what is no module, such as a return outside a function, is found here alone
            compile(text, "program", "exec", dont_inherit=True)
        added = ast.parse("; ".join(left_out(tree))).body
        for node in added:
            node.is_added = True
        tree.body[:0] = added
        return tree
    except (SyntaxError, ValueError) as reason:
        message = f"program: got a text that is not Python: {reason}"
        line = getattr(reason, "lineno", None)
    except (MemoryError, RecursionError):
        message = "program: got a text that is nested too deeply to be read"
    error = NotPython(message)
    error.lineno = line
    raise error


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
             names: {name: its value}, of which an IndexedBase has entries; calls: {name: what may be called}
             words: whether quoted texts, flags, None, tuples and named arguments are values, too
    Raises:  ValueError that names what is not allowed, and what is
    """
    tree = tree_of(argument, text)
    try:
        value = _Reader(names, calls, words).value(tree)
        if isinstance(value, Expr) and value.has(I, nan, oo, zoo):
            raise ValueError("it is no finite real number")
        return value
    except RecursionError:
        reason = "it is nested too deeply"
    except (IndexException, TypeError, ValueError) as error:
        reason = error
    raise ValueError(f"{argument}: got {shortened(text)!r}: {reason}")


@dataclass(frozen=True)
class _Reader:
    """Reads a syntax tree. Args: as of value_of"""

    names: Mapping
    calls: Mapping
    words: bool

    def value(self, node):
        """The value of a node; whatever is not listed here is refused."""
        match node:
            case ast.Constant(value=number) if type(number) in (int, float):
                if number == math.inf:
                    raise ValueError("a number that is too large")
                return Rational(repr(number))
            case ast.Constant(value=bool() | str() | None) if self.words:
                return node.value
            case ast.Tuple() if self.words:
                return tuple(map(self.value, node.elts))
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Subscript(value=ast.Name(id=name), slice=key) if isinstance(
                self.names.get(name), IndexedBase
            ):
                return self.names[name][self.value(key)]
            case ast.Subscript(value=ast.Name(id=name)) if name in self.names:
                return _entry(self.names[name], ast.unparse(node.slice).strip("()"))
            case ast.UnaryOp(op) if type(op) in OPERATIONS:
                return OPERATIONS[type(op)](self.operand(node.operand))
            case ast.BinOp(left, op, right) if type(op) in OPERATIONS:
                return OPERATIONS[type(op)](self.operand(left), self.operand(right))
            case ast.Call(ast.Name(name), args, options) if name in self.calls:
                read = self.value if self.words else self.operand
                if not options or self.words and all(word.arg for word in options):
                    named = {word.arg: read(word.value) for word in options}
                    if len(named) < len(options):
                        raise ValueError(f"an argument of {name} is there twice")
                    return self.calls[name](*map(read, args), **named)
        raise self.refused(node)

    def refused(self, node):
        """What is not allowed, and what is."""
        names = ", ".join([*self.names, *[f"{name}(...)" for name in self.calls]])
        allowed = f"allowed are numbers, + - * / ** and {names}"
        return ValueError(f"{shortened(ast.unparse(node))} is not allowed; {allowed}")

    def operand(self, node):
        """A value that can be calculated with, of what is a number a rational one: exp(exp(9)) is not worked out."""
        value = self.value(node)
        is_number = isinstance(value, Expr) and value.is_number
        if not isinstance(value, Expr) or is_number and not value.is_Rational:
            raise self.refused(node)
        return value


def _entry(tensor, cut):
    """An entry of a tensor at its own indices, or as a column of an array."""
    letters = getattr(tensor, "indices", ())
    if letters and cut in (", ".join(map(str, letters)), AS_COLUMN.get(letters)):
        return tensor
    raise ValueError(f"{cut} is no index of {tensor}")
