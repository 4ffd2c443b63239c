"""The names of a program: those that statements bind, and what a name stands for in a call, in a module, in Python."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from .arrays import Array, NotRead, Scalar, Wrong, state
from .host import is_only_read
from .importing import NAMES
from .over_rows import Listed, Once
from .python_objects import STATIC, TENSOR, Context, Function, Named, Unread
from .source import Source
from .tables.python import BUILTINS
from .tables.signatures import Quiet

# when a name is bound: while the module is read, in the __init__ of a layer, in the call, in the backward of an
# autograd Function
MODULE, SETUP, FORWARD, BACKWARD = range(4)
IMPORTED = "the text is imported without an error: what it imports, and what its other lines name, is there"
PLAIN_TYPES = {"int", "float", "str", "bool", "tuple", "list"}


def local_names(body: Sequence[ast.AST], in_place: bool = True) -> set[str]:
    """The names that statements bind, those of functions and of classes within them left out.

    For every statement that binds a name. It stops `def f(a=(K := 2)): ...` beside K = 1, and all other places of :=.

    Args:  in_place: whether += counts
    """
    names, waiting = set(), list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
                parts = ast.iter_child_nodes(node)
                waiting += [part for part in parts if part not in node.body]
                continue
            case ast.Lambda():
                waiting.append(node.args)
                continue
            case ast.comprehension():
                waiting += [node.iter, *node.ifs]
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                names.add(name)
            case ast.alias():
                names.add((node.asname or node.name).partition(".")[0])
            case ast.AugAssign() if not in_place:
                continue
        waiting += ast.iter_child_nodes(node)
    return names


class Bindings(dict):
    """Names with their values, the one that was bound last at the end, as the function that a text is read for."""

    def __setitem__(self, name, value):
        self.pop(name, None)
        super().__setitem__(name, value)


class Scope:
    """The names of a call.

    Args:  parent: where other names are found; local: the names that are its own, bound or not
           reader: who reads; what is bound before the call, or before backward, must not change in it
    """

    def __init__(self, parent, local, reader):
        self.parent, self.local, self.names = parent, set(local), Bindings()
        self.reader, self.phase = reader, reader.phase
        # the names that were given a value, whether they have one still
        self.bound = set()
        # the function that is called
        self.function: Function | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        self.names[name] = value
        self.bound.add(name)

    def forget(self, names: Iterable[str]) -> None:
        """Take the values of names away, where they may be another turn's.

        For a loop that binds them anew. It stops an accusation that such a name, as a parameter, has no value yet.
        """
        for name in self.names.keys() & names:
            del self.names[name]
            self.bound.add(name)

    def binds(self, name: str) -> bool:
        """Whether a statement of the text binds a name that this scope sees."""
        if name in self.local or self.parent is None:
            return name in self.local
        return self.parent.binds(name)

    def has(self, name: str) -> bool:
        """Whether a name has a value."""
        return name in self.names or name not in self.local and self.parent.has(name)

    def load(self, name: str) -> Any:
        """The value of a name."""
        if name not in self.local:
            return self.parent.load(name)
        if name not in self.names:
            in_function = isinstance(self.parent, Scope)
            if in_function and name not in self.bound and self.reader.depth:
                raise Wrong(f"a NameError: {name} has no value yet")
            raise NotRead(f"{name} has no value here, or one from another turn")
        value = self.names[name]
        if self.phase < self.reader.phase:
            check_constant(name, value, arrays=self.phase != MODULE)
        return value


class Globals(Scope):
    """The names of a module's text, and below them Python's own; source: the text, where it has kernels."""

    source: Source | None = None

    def has(self, name: str) -> bool:
        """Whether a name has a value, or is a builtin, or annotations are not evaluated."""
        future = isinstance(self.names.get("annotations"), Named)
        return future or name in self.names or hasattr(builtins, name)

    def load(self, name: str) -> Any:
        """The value of a name of the module, or of a builtin."""
        value = self.names.get(name)
        if isinstance(value, Unread):
            raise NotRead(f"{name} of line {value.line}: {value.why}")
        if isinstance(value, dict) and self.source and is_only_read(name, self.source):
            return dict(value)
        if name in self.names or name in self.local:
            return self.reader.constant(name, super().load(name))
        return builtin(name)


def note_imported() -> None:
    """Note that Python imports the text without an error, though it names what is not looked at.

    For an import, an annotation or a function beside the one that is read. It leaves nobody in the belief that
    `from torch.nn import functionnal as F` was looked up.
    """
    if IMPORTED not in state().words and not state().way:
        state().words.append(IMPORTED)


def check_constant(name: str, value: Any, arrays: bool = False) -> None:
    """Refuse what may change from one call to the next; arrays: whether they may stay, to be read."""
    if isinstance(value, tuple):
        for part in value:
            check_constant(name, part, arrays)
    if isinstance(value, Array) and arrays:
        value.memory.fixed = "what forward keeps for backward"
    elif isinstance(value, list | dict | Array | Listed | Once | Context):
        raise NotRead(f"{name}, which is kept from one call to the next")


def builtin(name: str) -> Any:
    """A builtin by its name."""
    if name == "staticmethod":
        return STATIC
    if name in BUILTINS:
        return BUILTINS[name]
    if name == "isinstance":
        return partial(is_instance)
    if name == "print":
        return Quiet()
    if name in PLAIN_TYPES:
        return Named(name)
    if state().way and name not in NAMES:
        raise Wrong(f"a NameError: {name} has no value")
    raise NotRead(f"the name {name}")


def is_instance(value: Any, *kinds: Any) -> bool:
    """isinstance of a tensor."""
    if len(kinds) != 1:
        raise Wrong(f"a TypeError: isinstance of {1 + len(kinds)} arguments")
    (kind,) = kinds
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = [getattr(k, "name", "") for k in kinds]
    if not isinstance(value, Array | bool | int | str | Scalar | tuple | list | None):
        raise NotRead("isinstance of what is no tensor and no number")
    own = type(value).__name__
    if isinstance(value, Scalar):
        own = value.kind
        if own == "float" and value.e.free_symbols:
            state().narrowed[f"{value.e} a float"] = None
    if set(names) <= PLAIN_TYPES:
        return own in names or own == "bool" and "int" in names
    known = [
        k is TENSOR or name.endswith("DTensor")
        for k, name in zip(kinds, names, strict=True)
    ]
    if not all(known):
        raise NotRead("isinstance of another type than torch.Tensor")
    if isinstance(value, Array) and TENSOR in kinds:
        return True
    state().words.append("no argument is a DTensor")
    return False
