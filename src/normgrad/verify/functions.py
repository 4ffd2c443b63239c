"""A NumPy or torch function as equations, for every M and N."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import sympy
from sympy import Expr, Indexed, Symbol, evaluate

from ..symbolic.patience import SECONDS, limited
from ..symbolic.proof import lettered
from ..symbolic.symbols import eps
from .arrays import (
    AXES,
    Array,
    NotRead,
    Scalar,
    State,
    array,
    state,
    tracing,
)
from .interpreter import (
    BACKWARD,
    Function,
    FunctionClass,
    Reader,
    flat,
)
from .library import FLOATS


@dataclass
class Trace:
    """What a program was read as.

    Args:  outputs: what it returns, one after the other, with None where it is a gradient of no tensor
           names: of the outputs, where the program has names for them, else None; keyed: whether it returns a dict
           gradients: of an autograd Function, for every argument of its forward
           written: the arguments that it writes over; constants: {name in its module: its value} that are eps
           noted: the State of the trace
           passed: of an autograd Function, the parameters of its backward without ctx, None for another kind of them
    """

    outputs: list
    names: list[str] | None
    keyed: bool
    gradients: list
    written: list[str]
    constants: dict[str, Expr]
    noted: State
    passed: list[str] | None


@dataclass(frozen=True)
class Input:
    """What an argument is.

    Args:  head: its tensor or scalar, as x[i, j]; shape: in 1, M and N
    """

    head: Expr
    shape: tuple[Expr, ...] = ()

    def value(self) -> Array | Scalar:
        """The argument of a trace."""
        if not isinstance(self.head, Indexed):
            return Scalar(self.head, "float")
        axes = zip(self.shape, reversed(AXES[: len(self.shape)]), strict=True)
        letters = tuple(letter for size, letter in axes if size != 1)
        own = self.head.base[letters]
        return array(self.shape, own, state().library, state().dtype)


def target_of(reader: Reader, program: Any, name: str = "") -> Function | FunctionClass:
    """The function, or the autograd Function, that a text or an object is.

    Args:  name: of the function in a text; without one its last
    """
    if isinstance(program, str):
        names = reader.module(program).names
        kinds = Function | FunctionClass
        functions = [key for key, value in names.items() if isinstance(value, kinds)]
        name = name or next(reversed(functions), "")
        if name not in functions:
            raise ValueError(
                f"name: got {name!r}, needs a function of the text: {functions}"
            )
        return names[name]
    if isinstance(program, type):
        admitted = reader.admit(program)
        if isinstance(admitted, FunctionClass):
            return admitted
    if not isinstance(program, FunctionType):
        raise TypeError(
            f"program: got {type(program).__name__}, needs a function, a subclass of "
            "torch.autograd.Function, or the text of a module"
        )
    return reader.function_of(program)


def library_of(program: Any) -> str:
    """ "torch" for an autograd Function and for what names torch, else "numpy"."""
    if isinstance(program, str):
        nodes = ast.walk(ast.parse(program))
        imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
        words = re.findall(r"\w+", " ".join(map(ast.unparse, imports)))
        return "torch" if "torch" in words else "numpy"
    if not isinstance(program, FunctionType):
        return "torch"
    functions = [program]
    for function in functions:
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType) and value.__name__.startswith("torch"):
                return "torch"
            if isinstance(value, FunctionType) and value not in functions:
                functions.append(value)
    return "numpy"


@contextmanager
def followed() -> Iterator[None]:
    """Whatever goes wrong in reading is a NotRead."""
    try:
        with limited(SECONDS):
            yield
    except NotRead:
        raise
    except Exception as reason:
        words = f"not followed: {type(reason).__name__}: {reason}"
        raise NotRead(words) from reason


def trace(
    program: Any,
    inputs: dict[str, Any],
    cotangents: Sequence[Input] = (),
    library: str = "numpy",
    name: str = "",
) -> Trace:
    """A program's outputs for every M and N.

    Args:     program: a function, a subclass of torch.autograd.Function, or a module's text; name: of its function
              inputs: {parameter: Input, or a plain value}; cotangents: of an autograd Function's outputs
    Raises:   NotRead, with the line, for what is not followed; Wrong, one of it, for what is wrong in itself
    """
    traces = []
    for dtype in dict.fromkeys(FLOATS[library].values()):
        with tracing(library, dtype), evaluate(True), followed():
            traces.append(_traced(program, inputs, cotangents, name))
    texts = list(map(_as_text, traces))
    if any(text != texts[0] for text in texts):
        raise NotRead("another formula for another dtype")
    return traces[0]


def _as_text(traced):
    """What a program returns and writes over, as what can be compared."""
    values = [*traced.outputs, *traced.gradients]
    for position, value in enumerate(values):
        if isinstance(value, Array):
            values[position] = value.shape, lettered(value.unnoted())
    return values, traced.written


def _traced(program, inputs, cotangents, name):
    reader = Reader(symbols=not any(_is_eps(value) for value in inputs.values()))
    target = target_of(reader, program, name)
    values = {
        key: value.value() if isinstance(value, Input) else reader.admit(value)
        for key, value in inputs.items()
    }
    gradients, parameters = [], None
    cotangents = [cotangent.value() for cotangent in cotangents]
    if isinstance(target, FunctionClass):
        outputs, context = reader.forward(target, list(values.values()))
        reader.phase = BACKWARD
        backward = target.methods.get("backward")
        if backward and not backward.node.args.vararg and not backward.defaults:
            parameters = backward.parameters[1:]
        if cotangents:
            gradients = list(flat(reader.call(backward, [context, *cotangents])))
    else:
        outputs = reader.call(target, [], values)
    arguments = values | {str(k): value for k, value in enumerate(cotangents)}
    written = [
        key
        for key, value in arguments.items()
        if isinstance(value, Array) and value.memory.changed
    ]
    keyed = isinstance(outputs, dict)
    names = list(outputs) if keyed else names_returned(target)
    results, constants = list(flat(outputs)), reader.used
    return Trace(
        results, names, keyed, gradients, written, constants, state(), parameters
    )


def _is_eps(value):
    return isinstance(value, Input) and value.head == eps


def parameters_of(program: Any, name: str = "") -> tuple[list[str], list[str], bool]:
    """The parameters of a program, those without a default, and whether it is an autograd Function."""
    with tracing(library_of(program), "float64"):
        target = target_of(Reader(), program, name)
    is_class = isinstance(target, FunctionClass)
    function, first = target, 0
    if is_class:
        function = target.methods["forward"]
        first = int("setup_context" not in target.methods)
    arguments = function.node.args
    if arguments.vararg or arguments.kwarg:
        raise NotRead("a function with * in its parameters")
    names = function.parameters[first:]
    if not is_class:
        names += [argument.arg for argument in arguments.kwonlyargs]
    return names, [key for key in names if key not in function.defaults], is_class


def names_returned(target: Function | FunctionClass) -> list[str] | None:
    """The names in the last return statement of a function, where it returns names."""
    if isinstance(target, FunctionClass):
        return None
    last = target.node.body
    if isinstance(last, list):
        last = last[-1]
    if isinstance(last, ast.Return):
        last = last.value
    parts = getattr(last, "elts", [last])
    if all(isinstance(part, ast.Name) for part in parts):
        return [part.id for part in parts]
    return None


def entry(a: Array, letters: Sequence[Symbol]) -> Expr:
    """The entry of a result at indices, one for each axis of more than one entry."""
    kept = [axis for axis, size in enumerate(a.shape) if size != 1]
    e = a.unnoted().xreplace(dict(zip(map(a.letter, kept), letters, strict=True)))
    if any(part.name == "turn" for part in e.atoms(sympy.Dummy)):
        raise NotRead("what the last turn of a loop leaves")
    return e
