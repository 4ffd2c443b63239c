"""The one operator behind every layer of the book, for symbolic rows, columns, centring, reduction and scale.

Two parameters make one theorem of all presets: `a` is 1 for a centred row and 0 otherwise, and `n` is N where the
squares are averaged and 1 where they are summed. Only the place of eps needs a proof of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sympy import Expr, Piecewise, Symbol, sqrt, sympify

from ...spec import PLACEMENTS, Piece, Placement
from ..chains import definition, proved
from ..definitions import Defs
from ..notation import Partial, as_written, mean, tensor, total
from ..symbols import M, N, eps, i, j, over_all

a, c, w0, n = (
    tensor("a"),
    tensor("c"),
    tensor("w0"),
    Symbol("n", integer=True, positive=True),
)
x, residual, p, q, r, y = (
    tensor(name, M, N) for name in ("x", "residual", "p", "q", "r", "y")
)
dy, dp, dq, wdy, dresidual_out = (
    tensor(name, M, N) for name in ("dy", "dp", "dq", "wdy", "dresidual_out")
)
w, b, dw, db = (tensor(name, N) for name in ("w", "b", "dw", "db"))
average, kappa = tensor("mean", M), tensor("kappa", M)
s, D, rstd = tensor("s", M), tensor("D", M), tensor("rstd", M)
loss = tensor("L")


@dataclass(frozen=True)
class Branch:
    """One piece of a denominator D(s) with its formulas.

    Args:  piece: of spec.Placement; denominator: D; factor: kappa = D D'(s) / s
    """

    piece: Piece
    denominator: Expr
    factor: Expr


def formulas(place: Placement, where: Callable[..., Any]) -> tuple[Expr, Expr]:
    """(D, kappa) of a place of eps; where: what becomes of where(edge, a, b)."""
    m = SimpleNamespace(sqrt=sqrt, where=where)
    factor = 1 if place.kappa is None else place.kappa(s[i], eps, m)
    return sympify(place.denominator(s[i], eps, m)), sympify(factor)


def branches() -> dict[str, Branch]:
    """{name: every piece of every place of eps}."""
    pieces = {}
    for place in PLACEMENTS.values():
        sides = {
            True: formulas(place, lambda edge, a, b: a),
            False: formulas(place, lambda edge, a, b: b),
        }
        pieces |= {
            piece.name: Branch(piece, *sides[piece.edge]) for piece in place.pieces
        }
    return pieces


def operator(denominator: Expr, factor: Expr) -> Defs:
    """The operator and its backward pass as definitions, for one denominator D and its factor kappa."""
    defs = Defs()
    defs[p[i, j]] = x[i, j] + residual[i, j]
    defs[average[i]] = mean(N, lambda t: p[i, t])
    defs[q[i, j]] = p[i, j] - a * average[i]
    defs[s[i]] = sqrt(1 / n * total(N, lambda t: q[i, t] ** 2))
    defs[D[i]] = denominator
    defs[rstd[i]] = 1 / D[i]
    defs[r[i, j]] = q[i, j] * rstd[i]
    defs[y[i, j]] = c * r[i, j] * (w0 + w[j]) + b[j]
    defs[loss] = over_all(
        lambda row, t: dy[row, t] * y[row, t] + dresidual_out[row, t] * p[row, t]
    )
    defs[kappa[i]] = factor
    defs[wdy[i, j]] = c * dy[i, j] * (w0 + w[j])
    defs[dq[i, j]] = rstd[i] * (
        wdy[i, j] - kappa[i] / n * r[i, j] * total(N, lambda t: r[i, t] * wdy[i, t])
    )
    defs[dp[i, j]] = (
        dq[i, j] - a / N * total(N, lambda t: dq[i, t]) + dresidual_out[i, j]
    )
    defs[dw[j]] = c * total(M, lambda t: dy[t, j] * r[t, j])
    defs[db[j]] = total(M, lambda t: dy[t, j])
    return defs


def computed(placement: str) -> Defs:
    """The operator as one program: the pieces of a denominator joined, kappa 0 where it has no value of its own."""
    with as_written():
        return operator(
            *formulas(
                PLACEMENTS[placement],
                lambda edge, a, b: Piecewise((a, edge), (b, True)),
            )
        )


def equations():
    """The equations labelled norm-...: the operator, and its dx for every place of eps."""
    for branch in branches().values():
        piece, defs = branch.piece, operator(branch.denominator, branch.factor)
        if not piece.words:
            continue
        if piece.name == "inside":
            yield definition(
                "norm-forward",
                "The operator: residual, centring, norm, denominator, scale.",
                defs,
                p[i, j],
                average[i],
                q[i, j],
                s[i],
                rstd[i],
                r[i, j],
                y[i, j],
            )
            yield definition(
                "norm-loss",
                "A loss with the cotangents dy and dresidual_out, held constant.",
                defs,
                loss,
            )
            yield definition(
                "norm-backward",
                "The backward pass of the operator.",
                defs,
                wdy[i, j],
                dq[i, j],
                dp[i, j],
                dw[j],
                db[j],
            )
            yield proved(
                "norm-dresidual",
                "Input and residual have one gradient: they enter as a sum.",
                defs,
                Partial(loss, residual[i, j]),
                Partial(loss, x[i, j]),
            )
        yield definition(
            f"norm-denominator-{piece.name}",
            f"The denominator and its factor with eps {piece.words}.",
            defs,
            D[i],
            kappa[i],
        )
        yield proved(
            f"norm-dx-{piece.name}",
            f"The operator's dx with eps {piece.words}.",
            defs,
            Partial(loss, x[i, j]),
            dp[i, j],
            holds_where=piece.where,
        )
