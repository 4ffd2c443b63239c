"""What a name in a kernel stands for: an argument by its binding, else what its module, Triton or Python has."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import S, expand, sympify

from .binding import (
    CHUNK,
    COLUMNS,
    FLOAT,
    PROGRAM_COUNT,
    ROWS,
    TAKEN,
    WHOLE,
    Lock,
    Same,
    T,
    letter,
)
from .source import Source
from .tables.dtypes import FLOATS, PYTHON, SIZES
from .tiles import Tiles
from .values import Dtype, Index, NotRead, Number, Pointer, Qualified, plain, uncompiled


@dataclass(frozen=True)
class Function:
    """A function of a module's text, which is read where it is called."""

    source: Source
    node: ast.FunctionDef


# what a decorator sets an argument to, where the text does not say it
UNSEEN = object()


@dataclass(frozen=True)
class Unbound:
    """An argument of the kernel that the binding does not name.

    Args:  why: it cannot be any integer; dtype, constant: as an Index's
    """

    why: str = ""
    dtype: frozenset = SIZES
    constant: frozenset | None = None


@dataclass(frozen=True)
class Given:
    """A flag or a number that the binding, a decorator or a default gives an argument.

    Args:  words: for the claim, where it is read; guessed: whether it is a default, which a launcher may change
    """

    value: object
    words: str
    guessed: bool = False


def at_run_time(value, dtype=SIZES):
    """What an argument without tl.constexpr holds: no number of the text, as Triton gives it a dtype."""
    match value:
        case Given(value=inner):
            return replace(value, value=at_run_time(inner, dtype))
        case Index() | Unbound():
            return replace(value, dtype=dtype)
        case Number():
            return replace(value, dtype=frozenset({"float32"}))
    return value


def with_constant(value, name, is_fixed, is_typed):
    """What an argument holds, of which Triton makes a constant where it is 1, or None.

    For `n.to(tl.float32)`. It stops the same of an argument with tl.constexpr, and accuses none whose annotation is a
    dtype, which is a tensor at 1.

    Args:  is_fixed: whether it has tl.constexpr; is_typed: whether its dtype is said, or jit does not specialize it
    """
    match value:
        case Given(value=inner):
            inner = with_constant(inner, name, is_fixed, is_typed)
            return replace(value, value=inner)
        case Index() | Number() | Unbound() if is_fixed:
            return replace(value, constant=frozenset())
        case Index(e=e):
            pass
        case Unbound():
            e = letter(name)
        case _:
            return value
    if is_typed or expand(e - 1).is_zero is False:
        return replace(value, constant=None)
    return replace(value, constant=frozenset({e} - {S.One}))


class Names:
    """The names of one launch.

    Args:  tiles: the values that they stand for; source: the kernel's module
           evaluate: of an expression of a module's text, (node, module)
    """

    def __init__(
        self,
        tiles: Tiles,
        source: Source,
        evaluate: Callable[[ast.expr, Source], Any],
    ):
        self.tiles, self.launch = tiles, tiles.launch
        self.source, self.evaluate = source, evaluate

    def argument(self, name: str, default: ast.expr | None = None, given=()):
        """The value of a kernel's argument; one that is not bound is an integer of at least 1.

        Args:  given: {argument: what a decorator sets it to}
        """
        if name in given and name not in self.launch.arguments:
            if given[name] is UNSEEN:
                return Unbound(f"{name} is set by a decorator to what is not read")
            value = self.evaluate(ast.Constant(given[name]), self.source)
            return Given(value, f"{name}={given[name]!r}")
        if name not in self.launch.arguments:
            if default is None:
                return Unbound()
            words = f"{name}={ast.unparse(default)}"
            return Given(self.evaluate(default, self.source), words, guessed=True)
        bound = self.launch.arguments[name]
        if isinstance(bound, Same):
            name = bound.name
        if isinstance(bound, T | Same | Lock):
            return Pointer(name, Index(S.Zero))
        if bound is FLOAT:
            return Dtype(FLOATS)
        if bound is PROGRAM_COUNT:
            return Index(self.tiles.launch.programs(0))
        if any(bound is word for word in (WHOLE, COLUMNS, ROWS, CHUNK)):
            return Index(letter(name))
        words = f"{name}={bound!r}"
        if bound is None or isinstance(bound, bool | str):
            return Given(bound, words)
        if isinstance(bound, float):
            return Given(self.evaluate(ast.Constant(bound), self.source), words)
        e = sympify(bound)
        value = Index(e) if e.is_integer else plain(e, dtype=frozenset(PYTHON))
        return Given(value, words) if e.is_number else value

    def _taken(self, value):
        """What an argument holds; a flag or a number that is read stands in the claim."""
        if not isinstance(value, Given):
            return value
        self.tiles.told[value.words] = None
        if value.guessed:
            self.tiles.guessed[value.words] = None
        return value.value

    def value(self, name: str, local: Mapping, source: Source):
        """What a name stands for: first in the function, then in its module, then in Python."""
        if name not in local:
            return self.named(name, source)
        if not isinstance(local[name], Unbound):
            return self._taken(local[name])
        if local[name].why:
            raise NotRead(f"{local[name].why}: bind it")
        if name in TAKEN:
            why = "is not bound, and nothing is guessed from its name: bind it"
            raise NotRead(f"{name} {why}")
        self.tiles.unbound.add(name)
        unbound = local[name]
        return Index(letter(name), (), unbound.dtype, unbound.constant)

    def named(self, name: str, source: Source):
        """What a name of a module stands for."""
        bound = self.launch.arguments
        if source.function(name) is not None:
            return Function(source, source.function(name))
        if name in source.constants:
            value = source.constant(name)
            if name in bound and not isinstance(bound[name], T):
                self.tiles.constants.add(name)
                return self._global(name, value, self._taken(self.argument(name)))
            if value is None:
                raise NotRead(f"{name}: its value is not read")
            return self._global(name, value, self.evaluate(value, source))
        if name in source.imports:
            return self._imported(name, source)
        if hasattr(builtins, name):
            return Qualified(f"builtins.{name}")
        if self.launch.called and not source.may_bind(name):
            raise uncompiled(f"a NameError: {name} has no value")
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
            self.tiles.assumed[f"{name}, imported as {path}, is {library}"] = None
            return Qualified(library)
        if file is not None:
            return file.submodule(original) or self.named(original, file)
        return Qualified(path)
