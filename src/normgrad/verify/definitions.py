"""What a norm's program is to store: the operator for M rows of N columns and its gradients, each a short formula.

    p = x + residual
    s**2 = reduce((p - center * mean(p))**2)
    rstd = 1 / sqrt(s**2 + eps)  |  1 / (s + eps)  |  1 / max(s, eps)
    y = ((p - center * mean) * rstd * (weight_offset + weight) + bias) * f(gate)

Beside it stand softmax, y = exp(x) / sum(exp(x)) of each row, its logarithm, and the cross entropy of a target column.

A test proves once that each formula named as a gradient is the derivative of the loss.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import SimpleNamespace

from sympy import (
    Abs,
    Expr,
    Heaviside,
    Indexed,
    IndexedBase,
    Max,
    Min,
    Ne,
    S,
    Symbol,
    Tuple,
    evaluate,
    exp,
    log,
    sympify,
)

from ..prove.claim import in_kernel_terms
from ..spec import PLACEMENTS, REDUCTIONS
from ..symbolic.conditions import side_conditions
from ..symbolic.definitions import Defs
from ..symbolic.elementary import sigmoid
from ..symbolic.notation import tensor, total
from ..symbolic.proof import lettered
from ..symbolic.symbols import M, N, eps, i, j
from .text import check_fields, check_type

# A constant added to the weight of which nothing is known but that it is not 0.
OFFSET = Symbol("weight_offset", real=True, nonzero=True)

MATRICES = (
    "x residual residual_out x_hat y dy dresidual_out wdy dx dresidual gate dgate "
    "onehot"
)
VECTORS = "weight bias dw db"
TENSORS = {name: tensor(name, M, N) for name in MATRICES.split()}
TENSORS |= {name: tensor(name, N) for name in VECTORS.split()}
ROW_TENSORS = "mean rstd c1 c2 loss dloss lse target"
TENSORS |= {name: tensor(name, M) for name in ROW_TENSORS.split()}
# 1 in the column that target has for a row, 0 in the others
ONEHOT = TENSORS["onehot"]
LOSS = tensor("L")
INPUTS = {"x", "residual", "weight", "bias", "gate", "dy", "dresidual_out"}
INPUTS |= {"dloss", "onehot", "target"}
LETTERS = {M: i, N: j}
# what an expression of the definitions may hold besides their tensors
NUMBERS = {"eps": eps, "M": M, "N": N, "OFFSET": OFFSET}
# {gate: (f, its derivative)}
GATES = {
    "none": (lambda t: S.One, lambda t: S.Zero),
    "scale": (lambda t: 1 + t, lambda t: S.One),
    "sigmoid": (sigmoid, lambda t: sigmoid(t) * (1 - sigmoid(t))),
    "swish": (
        lambda t: t * sigmoid(t),
        lambda t: sigmoid(t) * (1 + t * (1 - sigmoid(t))),
    ),
}
CHOICES = {"reduce": REDUCTIONS, "placement": tuple(PLACEMENTS), "gate": tuple(GATES)}
OPTIONAL = ("residual", "weight", "bias", "dresidual_out")


GRADIENT = {
    "x": "dx",
    "residual": "dresidual",
    "weight": "dw",
    "bias": "db",
    "gate": "dgate",
}
# what programs call tensors of the field, too
_TENSORS_ALSO = {
    "hidden_states": "x",
    "input": "x",
    "X": "x",
    "W": "weight",
    "w": "weight",
    "gamma": "weight",
    "b": "bias",
    "beta": "bias",
    "mu": "mean",
    "epsilon": "eps",
}
_COTANGENTS_ALSO = ("dout", "d_out", "dY", "d_y", "grad_y", "grad_out", "grad_output")
# d_gamma, gamma_grad
_GRADIENTS_ALSO = {
    form.format(name): GRADIENT[tensor]
    for name, tensor in ({name: name for name in GRADIENT} | _TENSORS_ALSO).items()
    if tensor in GRADIENT
    for form in ("d{}", "d_{}", "grad_{}", "{}_grad")
}
ALSO = _TENSORS_ALSO | dict.fromkeys(_COTANGENTS_ALSO, "dy") | _GRADIENTS_ALSO


@dataclass(frozen=True)
class Norm:
    """Definitions of one norm.

    Args:  defs: the lines; outputs: {name: its head, such as dx[i, j]}
           largest: {m[i]: e} where m[i] is the largest of e over the columns j, and may be any number in defs
           needs: relations such as s[i] != 0, where what is bound as an expression has a value
           arguments: of norm, where it made them
    """

    defs: Defs
    outputs: Mapping[str, Indexed]
    largest: Mapping[Indexed, Expr] = field(default_factory=dict)
    needs: tuple[Expr, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self):
        check_fields(self)
        if not self.outputs:
            raise ValueError("outputs: got none, needs at least one")

    @classmethod
    def of(cls, **outputs: IndexedBase) -> Norm:
        """The definitions of outputs by name, each made by `define` of normgrad.prove: Norm.of(dx=dx, dw=dw).

        The tensors that a binding names, as T("rstd"), are taken for real ones, whatever their formulas say of signs.
        """
        lines, heads, _ = in_kernel_terms(outputs.values())
        defs = Defs()
        for head, formula in lines:
            defs[_as_bound(head)] = _as_bound(formula)
        return cls(defs, dict(zip(outputs, map(_as_bound, heads), strict=True)))

    def at_eps(self, value: Expr) -> Norm:
        """The same definitions with a number in place of eps."""
        number = {eps: value}
        defs = Defs()
        for head, formula in self.defs:
            defs[head] = formula.xreplace(number)
        largest = {head: e.xreplace(number) for head, e in self.largest.items()}
        needs = tuple(relation.xreplace(number) for relation in self.needs)
        return replace(self, defs=defs, largest=largest, needs=needs)

    @property
    def tensors(self) -> dict[str, Expr]:
        """{name: its entry at row i and column j} of every tensor in the definitions."""
        bases = Tuple(*self.defs).atoms(IndexedBase)
        tensors = {}
        for base in sorted(bases, key=str):
            if base.shape and set(base.shape) <= LETTERS.keys():
                tensors[str(base)] = _entry(base)
        return tensors

    def undefined(self, e: Expr, maxima: Iterable[Indexed] = ()) -> str:
        """The name of a tensor in an expression that is no input, and none of the definitions or maxima; "" for none.

        A program that reads such a tensor may be right or wrong: what the tensor holds decides. Without this a right
        backward that saves rms is refuted by numbers that rms cannot have.
        """
        known = self.tensors.keys() | INPUTS | {str(head.base) for head in maxima}
        names = {str(base) for base in e.atoms(IndexedBase)} - known
        return min(names, default="")

    def where_defined(self, argument: str, e: Expr) -> tuple[Expr, ...]:
        """Where an expression of the definitions has a value.

        Args:    argument: that is bound to it, for the errors
        Raises:  ValueError where it has none in more than single points
        """
        conditions = side_conditions([e], self.defs)
        jumps = (Abs, Heaviside, Max, Min)  # these may be 0 in more than single points
        if any(not isinstance(c, Ne) or c.has(*jumps) for c in conditions):
            words = ", ".join(map(str, lettered(*conditions)))
            raise ValueError(
                f"{argument}: got {lettered(e)[0]}, needs a value everywhere; it has one where {words}"
            )
        return conditions


def no_tensor(name: str) -> str:
    """Why nothing is said of a program that reads a tensor of a name that nothing defines."""
    function, kernel = f'{name}="1/rstd[:, None]"', f'{name}=T("1/rstd", "i")'
    return f"{name} is no tensor of the definitions; say what it is, as {function}, or of a kernel as {kernel}"


def _as_bound(e):
    bases = {
        base: tensor(str(base.label), *base.shape) for base in e.atoms(IndexedBase)
    }
    return e.xreplace(bases)


def entry(name: str) -> Indexed:
    """A tensor's entry at row i and column j, as x[i, j], weight[j] or rstd[i]."""
    return _entry(TENSORS[name])


def _entry(base):
    return base[tuple(LETTERS[size] for size in base.shape)]


ENTRIES = {name: entry(name) for name in TENSORS}


def is_target(e: Expr | None) -> bool:
    """Whether an entry is the column of a target, an integer; None where nothing was written."""
    return getattr(e, "base", None) == TENSORS["target"]


at = SimpleNamespace(**ENTRIES)


def columns(e: Expr) -> Expr:
    """The sum of e over its columns."""
    return total(N, lambda c: e.xreplace({j: c}))


def rows(e: Expr) -> Expr:
    """The sum of e over its rows."""
    return total(M, lambda r: e.xreplace({i: r}))


def place(piece: str) -> tuple[Expr, Expr]:
    """(D, kappa) of s[i] for a piece of spec.PLACED; as a floor for all s, in the functions that programs call."""
    # a homework's submission may import this module, and not the operator
    from ..symbolic.derivations import family

    s = family.s[i]
    if piece == "clamp":
        return Max(s, eps), Heaviside(s - eps)
    branch = family.branches()[piece]
    return branch.denominator, branch.factor


@lru_cache(maxsize=64)
def _operator(
    piece: str,
    absent: tuple[str, ...],
    center: bool,
    mean: bool,
    scale: Expr,
    offset: Expr,
    gate: str,
) -> Defs:
    """The lines of operator, made once; its callers get copies, to which they may add lines."""
    from ..symbolic.derivations import family

    book, (factor, slope) = family.operator(*place(piece)), GATES[gate]
    a, n = S(int(center)), N if mean else S.One
    names = {family.p: TENSORS["residual_out"], family.r: TENSORS["x_hat"]}
    names |= {family.w: TENSORS["weight"], family.b: TENSORS["bias"]}
    names |= {family.a: a, family.n: n, family.c: scale, family.w0: offset}
    # these have no name here
    steps = {family.q, family.s, family.D}
    given = Defs()
    for name in OPTIONAL:
        if name in absent:
            given[ENTRIES[name]] = S(int(name == "weight"))
    if "weight" in absent:
        names[family.w0] = S.Zero

    def line(base):
        formula = book.unfold(book.line(base)[1], steps)
        return given.unfold(formula.xreplace(names))

    defs = Defs()
    defs[at.residual_out] = line(family.p)
    defs[at.mean] = line(family.average)
    defs[at.rstd] = line(family.rstd)
    defs[at.x_hat] = line(family.r)
    affine = line(family.y)
    defs[at.y] = affine * factor(at.gate)
    defs[LOSS] = line(LOSS)
    # the cotangent of what the gate multiplies
    cotangent = tensor("cotangent", M, N)
    names[family.dy] = cotangent
    given[cotangent[i, j]] = at.dy * factor(at.gate)
    defs[at.wdy] = line(family.wdy)
    defs[at.c1] = line(family.kappa) / n * columns(at.x_hat * at.wdy)
    defs[at.c2] = a / N * columns(at.wdy)
    product = at.rstd * (at.wdy - at.c2 - at.x_hat * at.c1)
    defs[at.dx] = product + given.unfold(at.dresidual_out)
    defs[at.dresidual] = at.dx
    defs[at.dw] = line(family.dw)
    defs[at.db] = line(family.db)
    defs[at.dgate] = at.dy * affine * slope(at.gate)
    return defs


def operator(
    piece: str,
    absent: Container[str],
    center: bool,
    mean: bool,
    scale: Expr = S.One,
    offset: Expr = S.Zero,
    gate: str = "none",
) -> Defs:
    """The book's operator with the names of programs, and its backward by the two sums of a row, c1 and c2.

    Args:  piece: of spec.PLACED; absent: names of OPTIONAL; mean: whether squares are averaged
           scale, offset: c and w0 of the book; gate: of GATES
    """
    names = tuple(name for name in OPTIONAL if name in absent)
    with evaluate(True):
        return _operator(piece, names, center, mean, scale, offset, gate).copy()


def norm(
    *,
    center: bool = False,
    reduce: str = "mean",
    placement: str = "inside",
    residual: bool = False,
    weight: bool = True,
    weight_offset: Expr | int = 0,
    bias: bool = False,
    gate: str = "none",
    dresidual_out: bool = False,
) -> Norm:
    """A norm of M rows of N columns and its gradients, as definitions.

    Args:     center: whether the row's mean is subtracted; reduce: "mean" or "sum" of the squares
              placement: of eps, "inside", "outside" or "clamp" (which has no gradients here)
              residual: whether one is added first; weight, bias: whether there is one
              weight_offset: what is added to the weight; gate: "none", "scale" (1 + g), "sigmoid" or "swish"
              dresidual_out: whether x + residual has a gradient of its own
    Returns:  Norm with the outputs y, residual_out, mean, rstd, dx, dresidual, dw, db, dgate
    Raises:   ValueError for a word that is none of these, TypeError for what is no flag or no number
    """
    arguments = locals()
    for argument in ("center", "residual", "weight", "bias", "dresidual_out"):
        check_type(argument, arguments[argument], bool)
    if not isinstance(weight_offset, int | Expr) or isinstance(weight_offset, bool):
        got = f"weight_offset: got {weight_offset!r}"
        raise TypeError(f"{got}, needs a whole number, OFFSET or an expression")
    for argument, words in CHOICES.items():
        if arguments[argument] not in words:
            got = f"{argument}: got {arguments[argument]!r}"
            raise ValueError(f"{got}, needs one of {words}")
    absent = [name for name in OPTIONAL if not arguments[name]]
    offset = sympify(weight_offset)
    defs = operator(
        placement, absent, center, reduce == "mean", offset=offset, gate=gate
    )
    names = "y residual_out mean rstd"
    if placement != "clamp":
        names += " dx dresidual dw db dgate"
    outputs = {name: entry(name) for name in names.split()}
    return Norm(defs, outputs, arguments=arguments)


def call_of(arguments: Mapping[str, object]) -> str:
    """The call of norm that has these arguments, its defaults left out."""
    defaults = norm.__kwdefaults__
    texts = [f"{k}={v!r}" for k, v in arguments.items() if v != defaults[k]]
    return f"norm({', '.join(texts)})"


def softmax() -> Norm:
    """The softmax of each row, y, and its gradient dx."""
    y = exp(at.x) / columns(exp(at.x))
    return _of_rows(y, at.y * (at.dy - columns(at.dy * at.y)))


def log_softmax() -> Norm:
    """The logarithm of the softmax of each row, y, and its gradient dx."""
    y = at.x - log(columns(exp(at.x)))
    return _of_rows(y, at.dy - exp(at.y) * columns(at.dy))


def _of_rows(y, dx):
    """Norm of y and dx by their formulas."""
    defs = Defs()
    defs[at.y] = y
    defs[LOSS] = rows(columns(at.dy * at.y))
    defs[at.dx] = dx
    return Norm(defs, {"y": at.y, "dx": at.dx})


def cross_entropy() -> Norm:
    """The cross entropy of each row, loss, with the column target[i]; lse, and the gradient dx by dloss.

    loss[i] = lse[i] - x[i, target[i]], of which the entry is the sum over r of onehot[i, r] * x[i, r].
    """
    defs = Defs()
    defs[at.lse] = log(columns(exp(at.x)))
    defs[at.loss] = at.lse - columns(at.onehot * at.x)
    defs[LOSS] = rows(at.dloss * at.loss)
    defs[at.dx] = at.dloss * (exp(at.x - at.lse) - at.onehot)
    return Norm(defs, {"loss": at.loss, "lse": at.lse, "dx": at.dx})
