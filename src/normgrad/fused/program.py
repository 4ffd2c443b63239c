"""What the two kernels read, compute, save and store: few matrices are read again, numbers of rows are saved."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from sympy import Add, Expr, Indexed, Mul, Sum, evaluate

from ..symbolic.measured import Largest
from ..symbolic.normal_form import as_powers, nf
from ..symbolic.symbols import M, N, i, j
from .layer import COLUMN, NUMBER, ROW, TILE, Layer, NotFused, names_in, needed, text_of


@dataclass(frozen=True)
class Program:
    """Both kernels as lines, and what goes in and out of them.

    Args:  layer: its names and their kinds
           forward, backward: {name: expression in i and j}, in order; a gradient by a vector or a number is the
           expression that is summed over the rows
           lines: the backward's own as they were derived; gradients: {input: its gradient's name}
           saved: numbers of the rows that the forward leaves for the backward; reads: matrices that the backward reads,
           besides the cotangents
    """

    layer: Layer
    forward: dict[str, Expr]
    backward: dict[str, Expr]
    lines: dict[str, Expr]
    gradients: dict[str, str]
    saved: list[str]
    reads: list[str]

    @property
    def stored(self) -> list[str]:
        """What the forward stores: the outputs, then what it saves."""
        return [
            *self.layer.outputs,
            *[name for name in self.saved if name not in self.layer.outputs],
        ]

    @property
    def written(self) -> list[str]:
        """What the backward stores: each gradient once, and no cotangent that is handed on as it is."""
        names = dict.fromkeys(self.gradients.values())
        return [name for name in names if name in self.backward]

    @property
    def loaded(self) -> list[str]:
        """What the backward loads: cotangents, matrices, vectors and numbers, numbers of the rows."""
        kind, used = (
            self.layer.kind,
            set().union(*map(names_in, self.backward.values())),
        )
        seeds = [name for name in self.layer.seeds.values() if name in used]
        others = [
            name
            for name in self.layer.inputs
            if kind(name) in (COLUMN, NUMBER) and name in used
        ]
        rows = [
            name for name in self.layer.inputs if kind(name) == ROW and name in used
        ]
        return [*seeds, *self.reads, *others, *rows, *self.saved]

    def constants(self, lines: dict[str, Expr]) -> list[str]:
        """The numbers without a gradient that lines use."""
        used = set().union(*map(names_in, lines.values()))
        return [name for name in self.layer.constants if name in used]


def make_program(
    layer: Layer, forward: dict, backward: dict, gradients: dict[str, str]
) -> Program:
    """The two kernels of a layer whose gradients are known as lines.

    Args:  forward, backward: {name: expression}, each function of a matrix in a line of its own
    """
    every = {**forward, **backward}
    mine = {
        name: e
        for name, e in needed(every, gradients.values()).items()
        if name not in forward
    }
    gradients, mine = _handed_on(layer, mine, gradients)
    wanted = (
        set().union(*map(names_in, mine.values()))
        - set(mine)
        - set(layer.seeds.values())
    )
    reads, saved, again = _sources(layer, forward, sorted(wanted))
    derived = dict(mine)
    for name, one in gradients.items():
        if one in mine and layer.kind(name) in (COLUMN, NUMBER):
            mine[one] = _summand(one, mine[one])
    for name, e in mine.items():
        if name not in gradients.values() and any(
            limit[2] == M for one in e.atoms(Sum) for limit in one.limits
        ):
            raise NotFused(
                f"{name}: sums over the rows, and only a parameter's gradient can: it is added up last"
            )
    with evaluate(True):
        maxima = {name: Largest(e, j, N) for name, e in layer.maxima.items()}
    first = needed(_in_order({**maxima, **forward}), {*layer.outputs, *saved})
    again = {name: e for name, e in forward.items() if name in again}
    saved = [name for name in first if name in saved]
    return Program(layer, first, {**again, **mine}, derived, gradients, saved, reads)


def _in_order(lines):
    """The lines, each after those that it rests on."""
    found = {}

    def add(name):
        if name in lines and name not in found:
            for one in sorted(names_in(lines[name])):
                add(one)
            found[name] = lines[name]

    for name in lines:
        add(name)
    return found


def _handed_on(layer, lines, gradients):
    """Gradients that are a cotangent or another gradient as it stands need no matrix of their own."""
    known = {*lines, *layer.seeds.values()}
    same = {name: text_of(e) for name, e in lines.items()
            if name in gradients.values() and isinstance(e, Indexed) and e.indices == (i, j)
            and text_of(e) in known}  # fmt: skip
    used = set().union(*map(names_in, lines.values()))
    return ({x: same.get(one, one) for x, one in gradients.items()},
            {name: e for name, e in lines.items() if name not in same or name in used})  # fmt: skip


def _sources(layer, forward, wanted):
    """(matrices to read, numbers of the rows to save, lines to compute again): as few matrices as there can be."""
    # an output that the forward itself goes on with is rounded when it is stored, so its stored number comes first
    shared = [name for name in layer.outputs if layer.users(name)]
    matrices = [
        name
        for name in dict.fromkeys((*shared, *layer.inputs, *layer.outputs))
        if layer.kind(name) == TILE
    ]
    for size in range(len(matrices) + 1):
        for reads in combinations(matrices, size):
            saved, again = set(), set()
            if all(
                _reached(layer, forward, name, reads, saved, again) for name in wanted
            ):
                return list(reads), saved, again
    raise AssertionError("all inputs together reach everything")


def _reached(layer, forward, name, reads, saved, again):
    """Whether a name can be had from the matrices, what is saved and what every program loads; notes how."""
    if name in reads:
        return True
    if layer.kind(name) == ROW and name not in layer.inputs:
        saved.add(name)
        return True
    if name not in forward:
        return layer.kind(name) != TILE
    again.add(name)
    return all(
        _reached(layer, forward, one, reads, saved, again)
        for one in sorted(names_in(forward[name]))
    )


def _summand(name, e):
    """What a tile adds to a parameter's gradient, in i and j, where the gradient is a sum over the rows."""
    with evaluate(True):
        found = _of_products(e)
        found = _of_products(as_powers(nf(e))) if found is None else found
    if found is None:
        raise NotFused(
            f"{name}: is no sum over the rows, which the gradient of what all rows share has to be"
        )
    return found


def _of_products(e):
    """A sum of products, each with one sum over the rows in it, as the sum of what stands in those; None for others."""
    terms = []
    for term in Add.make_args(e):
        factors = Mul.make_args(term)
        rows = [
            one
            for one in factors
            if isinstance(one, Sum) and M in [limit[2] for limit in one.limits]
        ]
        if len(rows) != 1 or any(one.has(Sum) for one in factors if one is not rows[0]):
            return None
        letters = {limit[0]: i if limit[2] == M else j for limit in rows[0].limits}
        rest = Mul(*[one for one in factors if one is not rows[0]])
        terms.append(rest * rows[0].function.xreplace(letters))
    return Add(*terms)
