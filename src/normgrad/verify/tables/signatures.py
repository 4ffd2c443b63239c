"""How the functions of a library are called: a header for each overload, and what no header has is refused.

A header is that of a stub, as "sum(a: floats, axis=None, *, keepdims: bool = False)". The word after a colon says what
an argument must be. What a function does is given the values in the header's order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from typing import Any

from ..arrays import Array, DType, NotRead, Scalar, Wrong, floats, note_stride, state
from ..syntax import defaults_of, signature_of

# other names of torch's parameters, in functions whose first one is `input` and which are not written in Python
ALIASES = {"axis": "dim", "keepdims": "keepdim"}
IN_PYTHON = "nn.functional."


class Device:
    """Where tensors are; all of a program's are on one device."""


class Guard:
    """A context that says on which GPU kernels run."""


class Integers:
    """A dtype of integers, which locks have."""


class Address:
    """Where a tensor's memory begins, as an integer, of which a kernel makes no pointer."""


class Quiet:
    """A function that changes no value, such as that which writes a line of a log."""


class Indices:
    """Where something is largest, of which nothing is read."""


class Largest(tuple):
    """The pair that torch.max gives: the values, and their indices."""


@dataclass(eq=False)
class TrainedParameter:
    """A parameter of a layer, as it is made; shape: of its tensor; tensor: that the caller says, once it is known."""

    shape: tuple
    tensor: Any = None


@dataclass(frozen=True)
class Fields:
    """An object of a library of which these attributes are known."""

    values: Mapping[str, Any]


def sizes(values: tuple) -> tuple:
    """Axes or sizes that are given as one tuple, or one by one."""
    if len(values) == 1 and isinstance(values[0], tuple | list):
        return tuple(values[0])
    return values


# {a word of a header: (the types that an argument may have, their name)}
TYPES: dict[Any, tuple] = {
    "number": (int | Scalar, "a number"),
    "bool": (bool, "a bool"),
    "list": (tuple | list, "a tuple or list"),
    "dtype": (DType, "a dtype"),
    "device": (Device | None, "the device of an argument"),
    "gpu": (Device | None, "the device of an argument"),
}


def converted(parameter: Parameter, value: Any) -> Any:
    """An argument as what the header asks for."""
    kind = parameter.annotation
    is_number_of_gpu = kind == "gpu" and type(value) is int and value == 0
    is_name = kind in ("device", "gpu") and isinstance(value, str)
    if state().way and (is_name or is_number_of_gpu):
        if not is_number_of_gpu and value.partition(":")[0] != "cuda":
            raise NotRead(f"{parameter.name}: got {value}, needs that of an argument")
        state().words.append(f"the arguments are on the device {value}")
        value = Device()
    types, needs = TYPES.get(kind, (object, ""))
    if not isinstance(value, types):
        got = f"{parameter.name}: got {type(value).__name__}"
        raise NotRead(f"{got}, needs {needs}")
    if kind == "floats" or kind == "numeric" and isinstance(value, Array):
        floats(value)
    if kind == "shape":
        value = (value,)
    return sizes(value) if kind in ("sizes", "shape") else value


@dataclass(frozen=True)
class Known:
    """A function of a library.

    Args:  library: its module; name: for errors; overloads: for each its parameters, and what it does with their values
           owner: () or (the array whose method it is,)
    """

    library: str
    name: str
    overloads: Sequence[tuple[Signature, Callable]]
    owner: tuple = ()

    def __call__(self, *args, **options):
        for value in (*args, *options.values()):
            if isinstance(value, Array) and self.library not in ("math", value.library):
                raise NotRead(f"{self.name} of an array of {value.library}")
            note_stride(*value if isinstance(value, tuple | list) else (value,))
        reasons = []
        for header, run in self.overloads:
            is_compiled = not self.name.startswith(IN_PYTHON)
            has_aliases = is_compiled and "input" in header.parameters
            aliases = ALIASES if has_aliases else {}
            named = {aliases.get(name, name): value for name, value in options.items()}
            if len(named) < len(options):
                raise NotRead("a parameter under both of its names")
            try:
                bound = header.bind(*self.owner, *args, **named)
            except TypeError as reason:
                reasons.append(str(reason))
                continue
            bound.apply_defaults()
            values = bound.arguments.values()
            return run(*map(converted, header.parameters.values(), values))
        # an argument that no overload has comes before one that is missing
        raise NotRead(f"{self.name}: {min(reasons)}")


def table(library: str, rows: Mapping[str, Callable]) -> dict[str, Any]:
    """{name: the function} of rows {header: what it does}, of which one may have several names.

    The first header that fits a call is its overload.
    """
    overloads: dict[str, list] = {}
    for row, run in rows.items():
        names, parameters = row.split("(", 1)
        node = ast.parse(f"def row({parameters}: ...").body[0].args
        values = {name: ast.literal_eval(e) for name, e in defaults_of(node).items()}
        for name in names.split():
            overloads.setdefault(name, []).append((signature_of(node, values), run))
    return {name: Known(library, name, pairs) for name, pairs in overloads.items()}


def each(header: str, run: Callable, values: Mapping[str, Any]) -> dict[str, Callable]:
    """Rows of functions that have one header, each with its value: {name: value}."""
    return {f"{name}{header}": partial(run, value) for name, value in values.items()}


def wrong(words: str) -> Callable:
    """What a call does that its library refuses."""

    def run(*values):
        raise Wrong(words)

    return run
