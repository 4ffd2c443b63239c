"""How a fused layer is called: names and kinds alone, and the arguments that fit them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from ..spec import check_finite
from ..versions import conflict_here

# A matrix, a number of each row, a vector over the columns that all rows share, and a number.
TILE, ROW, COLUMN, NUMBER = "tile", "row", "column", "number"


@dataclass(frozen=True)
class Call:
    """How a layer is called and launched; names only, so that it can be handed to another process.

    Args:  kinds: {name: kind}; inputs, constants, outputs, stored, loaded, written, gradients, seeds: as of Layer and
           Program; forward_constants, backward_constants: what each kernel takes of the constants
    """

    name: str
    kinds: dict[str, str]
    inputs: tuple[str, ...]
    constants: tuple[str, ...]
    outputs: tuple[str, ...]
    stored: tuple[str, ...]
    loaded: tuple[str, ...]
    written: tuple[str, ...]
    gradients: dict[str, str]
    seeds: dict[str, str]
    forward_constants: tuple[str, ...]
    backward_constants: tuple[str, ...]

    @property
    def kept(self) -> list[str]:
        """What the backward finds again, in the order in which it is saved."""
        return [name for name in self.loaded if name not in self.seeds.values()]


@dataclass(frozen=True)
class Forms:
    """A layer's programs: two kernels, None where Triton is missing, and the same in torch.

    Args:  forward: {stored name} of the inputs; backward: the gradients of the cotangents and of `sources`, in torch
           operations that can be differentiated; sources: which inputs and outputs those are
    """

    call: Call
    kernels: tuple | None
    forward: Callable
    backward: Callable
    sources: tuple[str, ...]


def taking(
    function: Callable, names: tuple[str, ...] | None = None
) -> Callable[..., Any]:
    """A compiled function that takes from its arguments what it needs; with names it returns a dictionary."""
    parameters = set(signature(function).parameters)

    def call(**arguments):
        results = function(
            **{name: value for name, value in arguments.items() if name in parameters}
        )
        return results if names is None else dict(zip(names, results, strict=True))

    call.source, call.names = getattr(function, "source", None), names
    return call


def interprets() -> bool:
    """Whether Triton's interpreter runs kernels here: it was chosen, and it gets along with NumPy."""
    from ..triton_kernels.interpreter import INTERPRETED

    return INTERPRETED and not conflict_here()


def check_arguments(call: Call, arguments: dict) -> tuple[list, dict]:
    """(the inputs in order, the constants by name); TypeError or ValueError by name where they do not fit."""
    from ..torch_ops.arguments import check_tensors

    for name in arguments:
        if name not in (*call.inputs, *call.constants):
            raise TypeError(
                f"{name}: is no input of {call.name}, which takes {_signature(call)}"
            )
    if missing := [
        name for name in (*call.inputs, *call.constants) if arguments.get(name) is None
    ]:
        raise TypeError(
            f"{missing[0]}: is missing; {call.name} takes {_signature(call)}"
        )
    for name in call.constants:
        if isinstance(arguments[name], bool) or not isinstance(
            arguments[name], int | float
        ):
            raise TypeError(f"{name}: got {_words(arguments[name])}, needs a number; what needs a gradient is named in "
                            "scalars, when the layer is made")  # fmt: skip
        check_finite(name, arguments[name])
    inputs = {name: arguments[name] for name in call.inputs}
    first = next(name for name in call.inputs if call.kinds[name] == TILE)
    followers = {name: t for name, t in inputs.items() if name != first}
    check_tensors(inputs[first], name=first, **followers)
    shape = tuple(inputs[first].shape)
    if len(shape) < 1 or shape[-1] < 1:
        raise ValueError(
            f"{first}: got the shape {shape}, needs (..., N) with at least one column"
        )
    shapes = {TILE: shape, ROW: shape[:-1], COLUMN: shape[-1:], NUMBER: ()}
    for name, t in inputs.items():
        if tuple(t.shape) != shapes[call.kinds[name]]:
            raise ValueError(
                f"{name}: got the shape {tuple(t.shape)}, needs {shapes[call.kinds[name]]} beside {first}"
            )
    return list(inputs.values()), {
        name: float(arguments[name]) for name in call.constants
    }


def _signature(call):
    return ", ".join((*call.inputs, *call.constants))


def _words(value):
    return (
        f"a tensor of {value.dtype}"
        if hasattr(value, "dtype")
        else type(value).__name__
    )
