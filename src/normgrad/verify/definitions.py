"""What a norm's program is to store: the operator for M rows of N columns and its gradients, each a short formula.

    p = x + residual
    s**2 = reduce((p - center * mean(p))**2)
    rstd = 1 / sqrt(s**2 + eps)  |  1 / (s + eps)  |  1 / max(s, eps)
    y = ((p - center * mean) * rstd * (weight_offset + weight) + bias) * f(gate)

A test proves once that each formula named as a gradient is the derivative of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Indexed, IndexedBase, Max, S, Symbol, sqrt, sympify

from ..prove.claim import in_kernel_terms
from ..symbolic.definitions import Defs
from ..symbolic.elementary import sigmoid
from ..symbolic.notation import mean, tensor, total
from ..symbolic.symbols import M, N, eps, i, j, over_all

# A constant added to the weight of which nothing is known but that it is not 0.
OFFSET = Symbol("weight_offset", real=True, nonzero=True)

MATRICES = (
    "x residual residual_out x_hat y dy dresidual_out wdy dx dresidual gate dgate"
)
VECTORS = "weight bias dw db"
TENSORS = {name: tensor(name, M, N) for name in MATRICES.split()}
TENSORS |= {name: tensor(name, N) for name in VECTORS.split()}
TENSORS |= {name: tensor(name, M) for name in ("mean", "rstd", "c1", "c2")}
LOSS = tensor("L")
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
PLACEMENTS = ("inside", "outside", "clamp")


@dataclass(frozen=True)
class Norm:
    """Definitions of one norm.

    Args:  defs: the lines; outputs: {name: its head, such as dx[i, j]}
           largest: {m[i]: e} where m[i] is the largest of e over the columns j, and may be any number in defs
    """

    defs: Defs
    outputs: dict[str, Indexed]
    largest: dict[Indexed, Expr] = field(default_factory=dict)

    @classmethod
    def of(cls, **outputs: IndexedBase) -> Norm:
        """The definitions of outputs by name, each made by `define` of normgrad.prove: Norm.of(dx=dx, dw=dw).

        The tensors that a binding names, as T("rstd"), are taken for real ones, whatever their formulas say of signs.
        """
        found, heads, *_ = in_kernel_terms(outputs.values())
        heads = dict(zip(outputs, heads, strict=True))
        defs = Defs()
        for head, formula in found:
            defs[_as_bound(head)] = _as_bound(formula)
        return cls(defs, {name: _as_bound(head) for name, head in heads.items()})


def _as_bound(e):
    bases = {
        base: tensor(str(base.label), *base.shape) for base in e.atoms(IndexedBase)
    }
    return e.xreplace(bases)


def entry(name: str) -> Indexed:
    """A tensor's entry at row i and column j, as x[i, j], weight[j] or rstd[i]."""
    base = TENSORS[name]
    return base[tuple({M: i, N: j}[size] for size in base.shape)]


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
    Raises:   ValueError for a word that is none of these
    """
    for argument, value, words in (
        ("reduce", reduce, ("mean", "sum")),
        ("placement", placement, PLACEMENTS),
        ("gate", gate, tuple(GATES)),
    ):
        if value not in words:
            raise ValueError(f"{argument}: got {value!r}, needs one of {words}")
    t = TENSORS
    p, average, rstd, x_hat, g = (
        t[name] for name in ("residual_out", "mean", "rstd", "x_hat", "gate")
    )
    a, n = S(int(center)), N if reduce == "mean" else S.One
    factor, slope = GATES[gate]
    offset = sympify(weight_offset)

    def scale(column):
        return offset + t["weight"][column] if weight else S.One

    shift = t["bias"][j] if bias else S.Zero
    defs = Defs()
    defs[p[i, j]] = t["x"][i, j] + (t["residual"][i, j] if residual else 0)
    defs[average[i]] = mean(N, lambda c: p[i, c])
    square = 1 / n * total(N, lambda c: (p[i, c] - a * average[i]) ** 2)
    denominator = {
        "inside": sqrt(square + eps),
        "outside": sqrt(square) + eps,
        "clamp": Max(sqrt(square), eps),
    }[placement]
    defs[rstd[i]] = 1 / denominator
    defs[x_hat[i, j]] = (p[i, j] - a * average[i]) * rstd[i]
    affine = x_hat[i, j] * scale(j) + shift
    defs[t["y"][i, j]] = affine * factor(g[i, j])
    if placement != "clamp":
        kappa = S.One
        if placement == "outside":
            kappa = 1 / (rstd[i] * sqrt(square))
        _backward(defs, a, n, kappa, scale, factor, dresidual_out)
        defs[t["dgate"][i, j]] = t["dy"][i, j] * affine * slope(g[i, j])
    names = "y residual_out mean rstd dx dresidual dw db dgate".split()
    heads = {name: entry(name) for name in names}
    return Norm(defs, {name: head for name, head in heads.items() if head in defs})


def _backward(defs, a, n, kappa, scale, factor, dresidual_out):
    """The loss whose cotangents are dy and dresidual_out, and the gradients."""
    t = TENSORS
    x_hat, wdy, dy, g = (t[name] for name in ("x_hat", "wdy", "dy", "gate"))
    c1, c2, rstd = t["c1"], t["c2"], t["rstd"]
    own = t["dresidual_out"] if dresidual_out else None

    def loss_at(row, column):
        extra = own[row, column] * t["residual_out"][row, column] if own else 0
        return dy[row, column] * t["y"][row, column] + extra

    defs[LOSS] = over_all(loss_at)
    defs[wdy[i, j]] = dy[i, j] * factor(g[i, j]) * scale(j)
    defs[c1[i]] = kappa / n * total(N, lambda c: x_hat[i, c] * wdy[i, c])
    defs[c2[i]] = a / N * total(N, lambda c: wdy[i, c])
    dx = rstd[i] * (wdy[i, j] - c2[i] - x_hat[i, j] * c1[i])
    defs[t["dx"][i, j]] = dx + (own[i, j] if own else 0)
    defs[t["dresidual"][i, j]] = t["dx"][i, j]
    defs[t["dw"][j]] = total(M, lambda r: dy[r, j] * factor(g[r, j]) * x_hat[r, j])
    defs[t["db"][j]] = total(M, lambda r: dy[r, j] * factor(g[r, j]))
