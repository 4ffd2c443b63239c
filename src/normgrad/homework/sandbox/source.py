"""What a student's code says before it runs: the names that it uses, the globals that it reads."""

from __future__ import annotations

import ast
import builtins
import dis
import types

import numpy as np

# Types of torch's that a call can change.
MUTABLE = ("Tensor", "Parameter")
# What finds a derivative where the task asks to derive it: other number formats, libraries that differentiate or have
# more digits, the package's own differences.
FORMATS = frozenset(
    "complex complex64 complex128 complex256 csingle cdouble clongdouble longdouble float128 longfloat imag "
    "c16 c32 f16".split()
)
LIBRARIES = ("sympy", "mpmath", "decimal", "fractions", "normgrad")
DIFFERENCES = frozenset(
    "approx_fprime approx_derivative finite_difference complex_step".split()
)
ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")


def _same_module(value, function) -> bool:
    return (
        isinstance(value, types.FunctionType)
        and value.__globals__ is function.__globals__
    )


def look(target) -> dict:
    """What there is to see in a function or a class, and in what it reads in its module, directly or not.

    Returns:  {"names": that its code mentions, and those of the library's functions that it has under other names;
              "globals": that hold arrays, containers or nothing, or that it assigns; "parameters": of a function, by
              name; "shortcuts": what is there in place of a derivation; "calls": the student's own functions
              "numbers": the student's own classes that can be added and multiplied}
    """
    names, changing, texts, calls, numbers = set(), set(), set(), set(), set()
    for function in reached(target):
        calls.add(function.__name__)
        values = read(function)
        # What the student defined under a name is no library's function of that name.
        own = {name for name, v in values.items() if _same_module(v, function)}
        for code in codes(function.__code__):
            attributes = set()
            for step in dis.get_instructions(code):
                if step.opname in ATTRIBUTE:
                    attributes.add(step.argval)
                elif step.opname == "STORE_GLOBAL":
                    changing.add(step.argval)
            mentioned = {*code.co_names, *code.co_freevars}
            names |= mentioned - (own - attributes)
            for constant in code.co_consts:
                parts = constant if isinstance(constant, tuple) else [constant]
                texts.update(part for part in parts if isinstance(part, str))
                if isinstance(constant, complex):
                    texts.add("complex")
        for name, value in values.items():
            if value is None or _changes(value):
                changing.add(name)
            elif callable(value) and name not in own:
                names.add(str(getattr(value, "__name__", "")))
            if isinstance(value, type) and value.__module__ == function.__module__:
                if {"__add__", "__mul__"} <= {*vars(value)}:
                    numbers.add(name)
            if _home(value) in LIBRARIES:
                names.add(_home(value))
    code = getattr(target, "__code__", None)
    roots = {name.partition(".")[0] for name in names}
    shortcuts = (names | texts) & FORMATS | names & DIFFERENCES | roots & {*LIBRARIES}
    return {
        "shortcuts": sorted(shortcuts),
        "calls": sorted(calls),
        "numbers": sorted(numbers),
        "names": sorted(names),
        "globals": sorted(changing),
        "parameters": list(code.co_varnames[: code.co_argcount]) if code else [],
    }


def _changes(value) -> bool:
    """Whether a call can change a value: an array, a container, a tensor."""
    container = isinstance(value, (np.ndarray, list, dict, set))
    return container or type(value).__name__ in MUTABLE


def _home(value) -> str:
    """The library that a module, a function or a class is from."""
    module = isinstance(value, types.ModuleType)
    home = value.__name__ if module else getattr(value, "__module__", "")
    return str(home).partition(".")[0]


def codes(code):
    """A code object and those of the functions inside of it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def reached(target) -> list:
    """The Python functions of an object and those of the same module that they read, directly or not."""
    reached, waiting = [], functions(target)
    while waiting:
        function = waiting.pop()
        if function not in reached:
            reached.append(function)
            for value in read(function).values():
                waiting += [f for f in functions(value) if _same_module(f, function)]
    return reached


def functions(value):
    """The functions of a value: itself, what a decorator wrapped, or the methods of a class and of its bases."""
    members = [value, getattr(value, "fn", None), getattr(value, "__wrapped__", None)]
    if isinstance(value, type):
        members = []
        for base in value.__mro__[:-1]:
            if base.__module__.partition(".")[0] != "torch":
                members += vars(base).values()
    plain = [getattr(member, "__func__", member) for member in members]
    return [member for member in plain if isinstance(member, types.FunctionType)]


def read(function) -> dict:
    """{name: value} of the globals that a function names; the value is None where the name is not defined."""
    names = set()
    for code in codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in GLOBAL and not hasattr(builtins, step.argval):
                names.add(step.argval)
    return {name: function.__globals__.get(name) for name in names}


def imported(text: str) -> list[str]:
    """The modules that a text imports, and those that names imported from others may be.

    Raises:  SyntaxError
    """
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [node.module]
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names
