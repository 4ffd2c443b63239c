"""The book's symbols: one letter per quantity, for a single row and for M rows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from sympy import Expr, Symbol

from .notation import dim, index, tensor, total_over

M, N = dim("M"), dim("N")
i, p = index("i", "p")
j, k = index("j", "k")
eps = Symbol("eps", positive=True)

_VECTORS = ("x", "q", "x_hat", "y", "dy", "wdy", "dq", "dx")
_SCALARS = ("mean", "v", "c1", "c2", "dD", "dv", "dmean")
_POSITIVE = ("D", "rstd")


def over_all(f: Callable[[Symbol, Symbol], Expr]) -> Expr:
    """The sum of f(r, s) over all entries of a batch."""
    return total_over((M, N), f)


def alphabet(*rows: Symbol) -> SimpleNamespace:
    """The tensors of a layer: one entry per row (and column) for alphabet(M), without a row index for alphabet()."""
    letters = {name: tensor(name, *rows, N) for name in _VECTORS}
    letters |= {name: tensor(name, *rows) for name in _SCALARS}
    letters |= {name: tensor(name, *rows, positive=True) for name in _POSITIVE}
    letters |= {name: tensor(name, N) for name in ("w", "b", "dw", "db")}
    return SimpleNamespace(**letters, L=tensor("L"))
