"""An object of Python's in this process as what it is in a program: a function from its source, with its own names."""

from __future__ import annotations

import builtins
import math
import sys
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from sympy import Expr, Rational

from ..symbolic.symbols import M, N
from .arrays import NotRead, Scalar, state
from .genuine import OPERATORS, check_builtin, check_tensor, is_from, member
from .launch import JitKernel
from .python_objects import KNOWN, Config, Function, Live, Method, Module
from .python_source import definition
from .scopes import builtin
from .source import plain, source_of
from .syntax import positional
from .tables.libraries import TABLES
from .tables.python import BUILTINS
from .tables.signatures import Known


class Outside:
    """The names that a function object finds around it: closure, module, builtins."""

    def __init__(self, reader, function: FunctionType):
        self.reader, self.function = reader, function

    def has(self, name: str) -> bool:
        """Whether a name has a value: a function object was made, and its annotations with it."""
        return True

    def load(self, name: str) -> Any:
        """The value of a name, as it is now."""
        free, names = _free(self.function), self.function.__globals__
        if name in free:
            value = free[name]
        elif name in names:
            value = names[name]
        elif name == "super" and self.reader.introspection.module:
            return replace(self.reader.introspection.module, above=free["__class__"])
        else:
            if name in BUILTINS:
                check_builtin(name)
            return builtin(name)
        return self.reader.constant(name, self.reader.introspection.admit(value))


class Introspection:
    """Objects of this process, as a reading takes them. Args:  reader: who reads"""

    def __init__(self, reader):
        self.reader = reader
        # whose forward is read
        self.module: Live | None = None

    def attribute(self, owner: Live, name: str) -> Any:
        """An attribute of a module, whose tensors nobody writes."""
        if name in owner.tensors:
            tensor = owner.tensors[name].value()
            tensor.memory.fixed = f"self.{name}"
            return tensor
        value = owner.look(name, owner.above)
        if isinstance(value, FunctionType):
            return Method(self.function_of(value), self.module)
        if isinstance(value, staticmethod):
            return self.function_of(value.__func__)
        return self.admit(value)

    def admit(self, value: Any) -> Any:
        """An object of Python's as what it is here."""
        if self.reader.compiled is not None:
            value = self.reader.compiled(value)
        if value is None or isinstance(value, Known) or type(value) in (bool, int, str):
            return value
        if isinstance(value, Live):
            self.module = value
            return value
        if isinstance(value, Config):
            return value
        if isinstance(value, Expr):
            return Scalar(value, "int" if value in (M, N) else "float")
        if type(value) is float and math.isfinite(value):
            return Scalar(Rational(repr(value)), "float")
        if type(value) is dict and not value:
            return {}
        if type(value) is tuple:
            return tuple(map(self.admit, value))
        if isinstance(value, ModuleType):
            path = value.__name__
            if path.partition(".")[0] in TABLES and value is sys.modules.get(path):
                return Module(path)
        for path in KNOWN:
            if member(path) is value:
                return self.reader.modules.of_path(path)
        for name, function in BUILTINS.items():
            if value is getattr(builtins, name):
                check_builtin(name)
                return function
        base = member("torch.autograd.Function")
        if base and isinstance(value, type) and issubclass(value, base):
            return self.reader.classes.class_of(value)
        if isinstance(value, FunctionType):
            return self.function_of(value)
        if state().way and is_kernel(value):
            source, name = source_of(value)
            return JitKernel(name, source, Outside(self.reader, plain(value)))
        raise NotRead(f"{type(value).__name__} from outside the function")

    def function_of(self, function: FunctionType) -> Function:
        """A function object, from its source."""
        if hasattr(function, "__wrapped__"):
            # anyone may write __wrapped__: what is called is in the closure
            is_once = function.__code__.co_name == "wrapper" and "fn" in _free(function)
            if not is_once or not is_from("torch", function):
                raise NotRead(f"the decorator of {function.__name__}")
            function = _free(function)["fn"]
        if not self.reader.values.live:
            self.reader.values.live = True
            for name in OPERATORS if state().library == "torch" else ():
                check_tensor(name)
        if function.__builtins__ is not vars(builtins):
            raise NotRead(f"{function.__name__}, which has other builtins")
        node = definition(function)
        values = function.__defaults__ or ()
        pairs = zip(positional(node.args)[::-1], values[::-1], strict=False)
        defaults = dict(pairs) | (function.__kwdefaults__ or {})
        defaults = {name: self.admit(value) for name, value in defaults.items()}
        return Function(node, Outside(self.reader, function), defaults)


def is_kernel(value: Any) -> bool:
    """Whether an object is a kernel of Triton's, as its decorators leave it."""
    return type(value).__module__.startswith("triton.") and hasattr(value, "fn")


def _free(function):
    """{free name of a function object: its value}."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return dict(zip(function.__code__.co_freevars, cells, strict=True))
