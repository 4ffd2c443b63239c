"""What a student's code says before it runs: the names that it uses, the globals that it reads, whether it raises."""

from __future__ import annotations

import ast
import builtins
import dis
import types

import numpy as np

# Types of torch's that a call can change.
MUTABLE = ("Tensor", "Parameter")
# Names of functions that assert begin like this: NumPy's assert_allclose, unittest's assertTrue, pytest's fail.
ASSERTING = ("assert", "fail")
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
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")


def _same_module(value, function) -> bool:
    return (
        isinstance(value, types.FunctionType)
        and value.__globals__ is function.__globals__
    )


def look(target) -> dict:
    """What there is to see in a function or a class, and in what it reads in its module, directly or not.

    Returns:  {"names": that its code mentions, and those of the library's functions that it has under other names;
              "globals": that hold arrays, containers or nothing, or that it assigns; "raises": whether it can say no;
              "parameters": of a function, by name; "shortcuts": what is there in place of a derivation;
              "calls": the student's own functions}
    """
    names, changing, raises, texts, calls = set(), set(), False, set(), set()
    for function in reached(target):
        calls.add(function.__name__)
        # What the student defined under a name is no library's function of that name.
        found = read(function)
        own = {name for name, value in found.items() if _same_module(value, function)}
        for code in codes(function.__code__):
            steps = list(dis.get_instructions(code))
            of_others = {
                each.argval
                for each in steps
                if each.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")
            }
            names.update(
                name
                for name in (*code.co_names, *code.co_freevars)
                if name not in own - of_others
            )
            changing.update(
                each.argval for each in steps if each.opname == "STORE_GLOBAL"
            )
            raises |= any(each.opname == "RAISE_VARARGS" for each in steps)
            constants = [
                part
                for c in code.co_consts
                for part in (c if isinstance(c, tuple) else [c])
            ]
            texts.update(c for c in constants if isinstance(c, str))
            if any(isinstance(constant, complex) for constant in constants):
                texts.add("complex")
        for name, value in found.items():
            container = (
                isinstance(value, (np.ndarray, list, dict, set))
                or type(value).__name__ in MUTABLE
            )
            if value is None or container:
                changing.add(name)
            elif callable(value) and name not in own:
                names.add(str(getattr(value, "__name__", "")))
            names.update(home for home in (_home(value),) if home in LIBRARIES)
    raises |= any(name.startswith(ASSERTING) for name in names)
    code = getattr(target, "__code__", None)
    parameters = list(code.co_varnames[: code.co_argcount]) if code else []
    roots = {name.partition(".")[0] for name in names}
    shortcuts = (names | texts) & FORMATS | names & DIFFERENCES
    return {
        "shortcuts": sorted(shortcuts | roots & {*LIBRARIES}),
        "calls": sorted(calls),
        "names": sorted(names),
        "globals": sorted(changing),
        "raises": raises,
        "parameters": parameters,
    }


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
    found, left = {}, functions(target)
    while left:
        function = left.pop()
        if id(function) not in found:
            found[id(function)] = function
            named = [
                each for value in read(function).values() for each in functions(value)
            ]
            left += [each for each in named if _same_module(each, function)]
    return list(found.values())


def functions(value):
    """The functions of a value: itself, what a decorator wrapped, or the methods of a class and of its bases."""
    members = [value, getattr(value, "fn", None), getattr(value, "__wrapped__", None)]
    if isinstance(value, type):
        classes = [
            base
            for base in value.__mro__[:-1]
            if base.__module__.partition(".")[0] != "torch"
        ]
        members = [member for base in classes for member in vars(base).values()]
    found = [getattr(member, "__func__", member) for member in members]
    return [function for function in found if isinstance(function, types.FunctionType)]


def read(function) -> dict:
    """{name: value} of the globals that a function names; the value is None where the name is not defined."""
    steps = [
        each for code in codes(function.__code__) for each in dis.get_instructions(code)
    ]
    names = {each.argval for each in steps if each.opname in GLOBAL}
    return {
        name: function.__globals__.get(name)
        for name in names
        if not hasattr(builtins, name)
    }


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
