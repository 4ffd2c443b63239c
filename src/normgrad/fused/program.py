"""What the two kernels read, compute, save and store: inputs are read again, numbers of the rows are saved."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Sum, evaluate

from ..symbolic.symbols import M, N, i, j
from .layer import COLUMN, ROW, Layer, NotFused, names_in, needed


@dataclass(frozen=True)
class Program:
    """Both kernels as lines, and what goes in and out of them.

    Args:  layer: its names and their kinds
           forward, backward: {name: expression in i and j}, in order; in the backward's a gradient by a vector is what
           is summed over the rows
           derived: the backward from the inputs and the cotangent alone
           saved: numbers of the rows that the forward leaves for the backward; loaded: inputs and constants that the
           backward rests on
    """

    layer: Layer
    forward: dict[str, Expr]
    backward: dict[str, Expr]
    derived: dict[str, Expr]
    saved: list[str]
    loaded: list[str]

    @property
    def gradients(self) -> list[str]:
        """The names of the gradients, in the order of the inputs."""
        return [f"d{name}" for name in self.layer.inputs]


def make_program(layer: Layer, forward: dict, lines: dict) -> Program:
    """The two kernels of a layer.

    Args:  forward, lines: {name: expression} of both directions, each function of a matrix in a line of its own
    """
    gradients = [f"d{name}" for name in layer.inputs]
    rows = [name for name in forward if layer.kind(name) == ROW]
    again = {name: e for name, e in forward.items() if name not in rows}
    backward = needed({**again, **lines}, gradients)
    used = names_in(*backward.values())
    saved = [name for name in rows if name in used]
    derived = needed({**forward, **lines}, gradients)
    used = names_in(*derived.values())
    loaded = [name for name in (*layer.inputs, *layer.constants) if name in used]
    for name, e in backward.items():
        with evaluate(True):
            backward[name] = _of_a_row(layer, name, e)
    forward = needed(forward, [layer.output, *saved])
    return Program(layer, forward, backward, derived, saved, loaded)


def _of_a_row(layer, name, e):
    """A line, that of a vector's gradient without its sum over the rows: what each row adds to it."""
    sums = [part for part in e.atoms(Sum) if M in [limit[2] for limit in part.limits]]
    if not sums:
        return e
    if layer.kind(name) != COLUMN or name not in [f"d{n}" for n in layer.vectors]:
        raise NotFused(
            f"{name}: sums over the rows, and only a parameter's gradient can: it is added up last"
        )
    bodies = {}
    for part in sums:
        letters = {limit[0]: {M: i, N: j}[limit[2]] for limit in part.limits}
        bodies[part] = part.function.xreplace(letters)
    return e.xreplace(bodies)
