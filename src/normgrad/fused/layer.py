"""What a reader's definitions say: kinds, inputs and lines, or why they make no fused layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from keyword import iskeyword

from sympy import (
    Basic,
    Expr,
    Indexed,
    Max,
    Pow,
    Sum,
    Symbol,
    evaluate,
    exp,
    log,
    tanh,
)
from sympy.core.function import Application

from ..symbolic.calculus import free_letters
from ..symbolic.codegen import label
from ..symbolic.definitions import Defs
from ..symbolic.elementary import sigmoid
from ..symbolic.measured import Largest
from ..symbolic.notation import Local, Partial, name_of, rename_bound, tensor
from ..symbolic.symbols import M, N, i, j, over_all

# A matrix, a number of each row, a vector over the columns that all rows share, and a number.
TILE, ROW, COLUMN, NUMBER = "tile", "row", "column", "number"
SHAPES = {TILE: (M, N), ROW: (M,), COLUMN: (N,), NUMBER: ()}
KINDS = {shape: kind for kind, shape in SHAPES.items()}
LETTERS = {TILE: (i, j), ROW: (i,), COLUMN: (j,), NUMBER: ()}
FUNCTIONS = (exp, log, sigmoid, tanh)
RESERVED = set(
    "programs stride M N i j VECTOR ACC ROWS BLOCK STAGES rows cols tile inside filled tl triton cast tanh float "
    "load_tile load_columns store_tile store_partial numpy torch".split()
)


class NotFused(ValueError):
    """Definitions, or closed forms, that no kernel of a program per tile of rows computes; the text says which."""


@dataclass
class Layer:
    """A layer of rows as definitions in the letters i and j.

    Args:  name: what its kernels are called by; output: the name of its result; tensors: {name: tensor}
           lines: {name: expression} of the forward, in order
           matrices, vectors: the inputs, which get gradients; constants: numbers that get none
    """

    name: str
    output: str
    tensors: dict[str, Basic] = field(default_factory=dict)
    lines: dict[str, Expr] = field(default_factory=dict)
    matrices: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> list[str]:
        """What gets a gradient, in the order of a call."""
        return [*self.matrices, *self.vectors]

    @property
    def cotangent(self) -> str:
        """The name of the output's cotangent."""
        return f"d{self.output}"

    @property
    def maxima(self) -> dict[str, Expr]:
        """{name: what each row's number is the largest of, over j}."""
        return {
            name: e.args[0] for name, e in self.lines.items() if isinstance(e, Largest)
        }

    def kind(self, name: str) -> str:
        """TILE, ROW, COLUMN or NUMBER."""
        return KINDS[getattr(self.tensors[name], "shape", ())]

    def at(self, name: str, letters: dict | None = None) -> Expr:
        """The name with its letters, or others in their place."""
        indices = LETTERS[self.kind(name)]
        if not indices:
            return self.tensors[name]
        return self.tensors[name][indices].xreplace(letters or {})

    def add(self, e: Expr) -> str:
        """Take up the name of an entry or a number; NotFused where it cannot be one of a kernel's."""
        name, symbol = label(e), name_of(e)
        shape = tuple(getattr(symbol, "shape", ()))
        if shape not in KINDS:
            raise NotFused(f"{name}: has the shape {shape}, needs (M, N), (M,), (N,) or none, with dim('M') rows and "
                           "dim('N') columns")  # fmt: skip
        ends = name.endswith(("_ptr", "_step", "_stride"))
        if name in RESERVED or ends or iskeyword(name) or not name.isidentifier():
            raise NotFused(f"{name}: is a word of the kernels; take another name")
        if self.tensors.setdefault(name, symbol) != symbol:
            raise NotFused(f"{name}: names two things, one of them a gradient")
        return name

    def formulas(self, lines: dict[str, Expr]) -> Defs:
        """Lines as definitions."""
        defs = Defs()
        for name, e in lines.items():
            defs[self.at(name)] = e
        return defs

    def definitions(self, lines: dict[str, Expr]) -> Defs:
        """The lines and the loss: the output times its cotangent, summed.

        A row's largest number is no definition here: it is an input like any other, so that what is proved holds
        whatever it is.
        """
        lines = {name: e for name, e in lines.items() if name not in self.maxima}
        defs = self.formulas(lines)
        product = self.at(self.output) * self.at(self.cotangent)
        defs[self.loss] = over_all(lambda r, s: product.xreplace({i: r, j: s}))
        return defs

    @property
    def loss(self) -> Symbol:
        """The scalar whose gradients are the layer's."""
        return tensor("loss")

    def gradient(self, name: str) -> Partial:
        """The derivative of the loss with respect to an input."""
        return Partial(self.loss, self.at(name))


def entry(name: str, kind: str, positive: bool = False) -> Expr:
    """A tensor's entry in the letters of its kind, x[i, j]."""
    return tensor(name, *SHAPES[kind], positive=positive)[LETTERS[kind]]


def entries_in(e: Expr) -> set[Expr]:
    """The entries and the scalars that an expression is made of."""
    entries = e.atoms(Indexed)
    scalars = e.free_symbols - {entry.base.label for entry in entries}
    return entries | {s for s in scalars if s.is_Symbol and not s.is_integer}


def names_in(*expressions: Expr) -> set[str]:
    """The names in expressions, letters and dimensions excepted."""
    return {label(entry) for e in expressions for entry in entries_in(e)}


def needed(lines: dict[str, Expr], names: Iterable[str]) -> dict[str, Expr]:
    """Those of the lines that the names rest on, in order."""
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
    kind = KINDS.get(getattr(name_of(head), "shape", ()), NUMBER)
    letters = dict(zip(indices, LETTERS[kind], strict=False))
    with evaluate(True):
        pulled = _pulled_out(rename_bound(e).xreplace(letters))
    if isinstance(pulled, Largest):
        body, letter, size = pulled.args
        return Largest(body.xreplace({letter: j}), j, size)
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
        letter, _, size = e.limits[0]
        outside, inside = _pulled_out(e.function).as_independent(letter, as_Add=False)
        return outside * (Sum(inside, e.limits[0]) if inside != 1 else size)
    return e.func(*map(_pulled_out, e.args))


def read_layer(defs: Defs, output: Expr, name: str = "layer") -> Layer:
    """The layer that definitions describe.

    Args:    defs: definitions of rows, x[i, j] being row i and column j; output: a name such as y[i, j]
             name: what the kernels are called by
    Raises:  NotFused, in words; ValueError for a name that Python does not have
    """
    if not (isinstance(name, str) and name.isidentifier() and not iskeyword(name)):
        raise ValueError(f"name: got {name!r}, needs a name as Python has them")
    layer = Layer(name, label(output))
    if getattr(name_of(output), "shape", ()) != SHAPES[TILE]:
        raise NotFused(
            f"{output}: is not a matrix, and the result of a fused layer is one; needs y[i, j]"
        )
    for head, e in defs.reached(output):
        line = layer.add(head)
        layer.lines[line] = canonical(head, e)
        _check_line(layer, line, layer.lines[line])
    _find_inputs(layer)
    layer.add(entry(layer.cotangent, TILE))
    return layer


def check_functions(name: str, e: Expr) -> None:
    """Nothing, or NotFused where an expression has a function, or a power, that a kernel has no form for."""
    for part in e.atoms(Application, Partial, Local):
        if not isinstance(part, (*FUNCTIONS, Max)) or len(part.args) > 2:
            raise NotFused(f"{name}: has {part}, for which a kernel has no form; known are roots, exp, log, sigmoid, "
                           "tanh and Max of two")  # fmt: skip
    for part in e.atoms(Pow):
        if not part.exp.is_Rational or part.exp.q not in (1, 2, 4, 8, 16):
            raise NotFused(
                f"{name}: has {part}; roots are square roots, and roots of those"
            )


def _check_line(layer, name, e):
    for part in e.atoms(Sum):
        if len(part.limits) != 1:
            raise NotFused(f"{name}: has a sum within a sum; give the inner one a name")
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
    check_functions(name, e)
    if isinstance(e, Largest):
        if layer.kind(name) != ROW or e.args[0].has(Sum, Largest):
            raise NotFused(f"{name}: a maximum is taken of each row, of one matrix")
    elif e.has(Largest):
        raise NotFused(
            f"{name}: a maximum over the columns needs a line of its own, m[i] = Largest(x[i, r], r, N)"
        )


def _find_inputs(layer):
    defined = set(layer.lines)
    for e in list(layer.lines.values()):
        for entry in entries_in(e):
            layer.add(entry)
    inputs = {kind: [] for kind in SHAPES}
    for name in sorted(set(layer.tensors) - defined):
        inputs[layer.kind(name)].append(name)
    layer.matrices, layer.vectors = inputs[TILE], inputs[COLUMN]
    layer.constants = inputs[NUMBER]
    if inputs[ROW]:
        raise NotFused(f"{inputs[ROW][0]}: is an input with a number for each row; needs a matrix (M, N), such as "
                       "k[:, None].expand(M, N)")  # fmt: skip
