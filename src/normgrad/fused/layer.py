"""What a reader's definitions say: kinds, inputs, outputs and lines, or why they make no fused layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword

from sympy import (
    Basic,
    Expr,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    Piecewise,
    Sum,
    Symbol,
    evaluate,
)

from ..symbolic.calculus import free_letters
from ..symbolic.definitions import Defs
from ..symbolic.measured import Largest
from ..symbolic.notation import Local, Partial, name_of, rename_bound, tensor, total
from ..symbolic.symbols import M, N, i, j
from .call import COLUMN, NUMBER, ROW, TILE

SHAPES = {TILE: (M, N), ROW: (M,), COLUMN: (N,), NUMBER: ()}
KINDS = {shape: kind for kind, shape in SHAPES.items()}
PLACES = {TILE: (i, j), ROW: (i,), COLUMN: (j,), NUMBER: ()}
RESERVED = set(
    "programs stride M N i j VECTOR ACC ROWS BLOCK STAGES rows cols tile inside filled tl triton cast tanh float "
    "load_tile load_columns store_tile store_partial numpy torch".split()
)


class NotFused(ValueError):
    """Definitions, or closed forms, that no kernel of a program per tile of rows computes; the text says which."""


@dataclass
class Layer:
    """A layer of rows as definitions in the letters i and j.

    Args:  name: what its kernels are called by; tensors: {name: tensor}
           lines: {name: expression} of the forward, in order; maxima: {name: what each row's number is the largest of}
           inputs: those that get a gradient, in the order of a call; constants: numbers that get none
           outputs: names; seeds: {output: the name of the cotangent that is given for it}
    """

    name: str
    tensors: dict[str, Basic] = field(default_factory=dict)
    lines: dict[str, Expr] = field(default_factory=dict)
    maxima: dict[str, Expr] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    seeds: dict[str, str] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """TILE, ROW, COLUMN or NUMBER."""
        return KINDS[getattr(self.tensors[name], "shape", ())]

    def at(self, name: str, letters: dict | None = None) -> Expr:
        """The name with its letters, or others in their place."""
        indices = tuple(
            (letters or {}).get(letter, letter) for letter in PLACES[self.kind(name)]
        )
        return self.tensors[name][indices] if indices else self.tensors[name]

    def add(self, e: Expr) -> str:
        """Take up the name of an entry or a number; NotFused where it cannot be one of a kernel's."""
        name, symbol = text_of(e), name_of(e)
        shape = tuple(getattr(symbol, "shape", ()))
        if shape not in KINDS:
            raise NotFused(f"{name}: has the shape {shape}, needs (M, N), (M,), (N,) or none, with dim('M') rows and "
                           "dim('N') columns")  # fmt: skip
        ends = name.endswith(("_ptr", "_step", "_stride"))
        if name in RESERVED or ends or iskeyword(name) or not name.isidentifier():
            raise NotFused(f"{name}: is a word of the kernels; take another name")
        if self.tensors.setdefault(name, symbol) != symbol:
            raise NotFused(
                f"{name}: names two things, {self.tensors[name]} and {symbol}, of other shapes or signs"
            )
        return name

    def users(self, name: str) -> list[str]:
        """The lines that use a name."""
        return [line for line, e in self.lines.items() if name in names_in(e)]

    def definitions(self) -> Defs:
        """The forward and the loss whose gradients are wanted: the outputs times their cotangents, summed.

        A row's largest number is no definition here: it is an input like any other, so that what is proved holds
        whatever it is.
        """
        defs = Defs()
        for name, e in self.lines.items():
            defs[self.at(name)] = e
        terms = []
        for output, seed in self.seeds.items():
            product = self.at(output) * self.at(seed)
            for letter, size in ((j, N), (i, M)):
                if letter in PLACES[self.kind(output)]:
                    product = total(
                        size,
                        lambda r, p=product, letter=letter: p.xreplace({letter: r}),
                    )
            terms.append(product)
        defs[self.loss] = sum(terms)
        return defs

    @property
    def loss(self) -> Symbol:
        """The scalar whose gradients are wanted."""
        return tensor("loss")


def text_of(e: Expr) -> str:
    """A name as text: x for x[i, j]."""
    return str(getattr(name_of(e), "label", e))


def parts_in(e: Expr) -> set[Expr]:
    """The entries and the scalars that an expression is made of."""
    labels = {part.base.label for part in e.atoms(Indexed)}
    scalars = {
        symbol
        for symbol in e.free_symbols
        if symbol.is_Symbol and not symbol.is_integer and symbol not in labels
    }
    return e.atoms(Indexed) | {
        symbol for symbol in scalars if not isinstance(symbol, IndexedBase)
    }


def names_in(e: Expr) -> set[str]:
    """The names in an expression, letters and dimensions excepted."""
    return set(map(text_of, parts_in(e)))


def needed(lines: dict[str, Expr], names: Iterable[str]) -> dict[str, Expr]:
    """Those of the lines that the wanted names rest on, in order."""
    names, kept = set(names), {}
    for name in reversed(lines):
        if name in names:
            kept[name] = lines[name]
            names |= names_in(lines[name])
    return dict(reversed(kept.items()))


def canonical(head: Expr, e: Expr) -> Expr:
    """A definition's expression in the letters i and j, with bound letters of its own; sums hold no idle factors.

    Raises:  NotFused for a sum over the columns of what depends on another column too
    """
    indices = getattr(head, "indices", ())
    letters = {
        letter: PLACES[KINDS[head.base.shape]][axis]
        for axis, letter in enumerate(indices)
    }
    with evaluate(True):
        pulled = _pulled_out(rename_bound(e).xreplace(letters))
    for part in pulled.atoms(Sum):
        if N in [limit[2] for limit in part.limits] and j in free_letters(part):
            raise NotFused(f"{head}: sums over the columns what depends on another column, N numbers for each entry; "
                           "write a sum of products as one sum for each")  # fmt: skip
    return pulled


def _pulled_out(e):
    """The expression with the factors of each sum that do not depend on its letter before the sum."""
    if not e.args or isinstance(e, Indexed):
        return e
    if isinstance(e, Sum) and len(e.limits) == 1:
        (letter, _, size), factors = e.limits[0], Mul.make_args(_pulled_out(e.function))
        inside = [factor for factor in factors if factor.has_free(letter)]
        outside = Mul(*[factor for factor in factors if factor not in inside])
        return outside * (Sum(Mul(*inside), e.limits[0]) if inside else size)
    return e.func(*map(_pulled_out, e.args))


def read_layer(
    defs: Defs,
    outputs: Sequence[Expr],
    scalars: Sequence[Symbol] = (),
    name: str = "layer",
) -> Layer:
    """The layer that definitions describe.

    Args:    defs: definitions of rows, x[i, j] being row i and column j; outputs: names such as y[i, j]
             scalars: the numbers that get a gradient; name: what the kernels are called by
    Raises:  NotFused, in words; ValueError and TypeError for what is no list of names
    """
    if not isinstance(defs, Defs):
        raise TypeError(
            f"defs: got {type(defs).__name__}, needs a normgrad.symbolic.Defs"
        )
    if not (isinstance(name, str) and name.isidentifier() and not iskeyword(name)):
        raise ValueError(f"name: got {name!r}, needs a name as Python has them")
    if not isinstance(outputs, list | tuple) or not outputs:
        raise TypeError(
            f"outputs: got {outputs!r}, needs a list of defined names, as [y[i, j]]"
        )
    if not isinstance(scalars, list | tuple):
        raise TypeError(f"scalars: got {scalars!r}, needs a list of symbols, as [beta]")
    layer = Layer(name, outputs=[text_of(defs.line(output)[0]) for output in outputs])
    for repeated in layer.outputs:
        if layer.outputs.count(repeated) > 1:
            raise ValueError(f"outputs: got {repeated} twice, needs each name once")
    lines = {layer.add(head): canonical(head, e) for head, e in defs.reached(*outputs)}
    layer.maxima = {
        head: e.args[0].xreplace({e.args[1]: j})
        for head, e in lines.items()
        if isinstance(e, Largest)
    }
    layer.lines = {head: e for head, e in lines.items() if head not in layer.maxima}
    _check_lines(layer)
    _find_inputs(layer, scalars)
    for output in layer.outputs:
        seed = f"d{output}_out" if layer.users(output) else f"d{output}"
        if seed in layer.tensors:
            raise NotFused(
                f"{seed}: is the cotangent of {output}, and the definitions have that name already"
            )
        layer.seeds[output] = seed
        layer.add(tensor(seed, *SHAPES[layer.kind(output)])[PLACES[layer.kind(output)]])
    return layer


def _check_lines(layer):
    for name, e in {**layer.lines, **layer.maxima}.items():
        for part in e.atoms(Sum):
            if len(part.limits) != 1:
                raise NotFused(
                    f"{name}: has a sum within a sum; give the inner one a name"
                )
            if part.limits[0][2] == M:
                raise NotFused(f"{name}: sums over the rows, down the columns, as BatchNorm does; a program of a fused "
                               "layer sees its own rows alone")  # fmt: skip
            if i not in free_letters(part):
                raise NotFused(f"{name}: sums a vector over the columns, which is the same for all rows; compute it "
                               "once, outside of the layer")  # fmt: skip
        if layer.kind(name) in (COLUMN, NUMBER):
            raise NotFused(
                f"{name}: is the same for all rows; compute it once, outside of the layer"
            )
        for kind, words in ((Partial, "a derivative"), (Local, "a derivative"), (KroneckerDelta, "a delta"),
                            (Piecewise, "a Piecewise; write Max")):  # fmt: skip
            if e.has(kind):
                raise NotFused(f"{name}: has {words}, for which a kernel has no form")
    for name, e in layer.maxima.items():
        if layer.kind(name) != ROW or e.has(Sum, Largest):
            raise NotFused(f"{name}: a maximum is taken of each row, of one matrix")
    for name in layer.outputs:
        if name in layer.maxima:
            raise NotFused(
                f"{name}: is a maximum, which is no output: it has no derivative here"
            )
    if any(e.has(Largest) for e in layer.lines.values()):
        raise NotFused(
            "a maximum over the columns needs a line of its own, m[i] = largest(N, ...)"
        )


def _find_inputs(layer, scalars):
    parts = {}
    for e in (*layer.maxima.values(), *layer.lines.values()):
        for term in e.as_ordered_terms():
            for part in sorted(
                parts_in(term),
                key=lambda name: (len(getattr(name, "indices", ())) != 2, str(name)),
            ):
                layer.add(part)
                parts.setdefault(text_of(part), part)
    defined = {*layer.lines, *layer.maxima}
    inputs = [name for name in parts if name not in defined]
    trained = [text_of(name) for name in scalars]
    for name in trained:
        if name not in inputs or layer.kind(name) != NUMBER:
            raise NotFused(f"scalars: {name} is no number that the outputs depend on")
    # matrices first, then numbers of the rows, vectors over the columns, and numbers
    inputs.sort(key=lambda name: list(SHAPES).index(layer.kind(name)))
    layer.constants = [
        name for name in inputs if layer.kind(name) == NUMBER and name not in trained
    ]
    layer.inputs = [name for name in inputs if name not in layer.constants]
    if not any(layer.kind(name) == TILE for name in layer.inputs):
        raise NotFused("no input is a matrix (M, N), so there are no rows")


def loss_gradient(layer: Layer, name: str) -> Partial:
    """The derivative of the loss with respect to an input."""
    return Partial(layer.loss, layer.at(name))
