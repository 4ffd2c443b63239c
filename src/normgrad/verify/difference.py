"""The difference of a wrong program from its definition, in x_hat, rstd and the other names of the field."""

from __future__ import annotations

from sympy import Add, Expr, Indexed, Mul, S, Sum, evaluate, expand

from ..symbolic.normal_form import Reciprocal, Root, as_powers, nf
from ..symbolic.symbols import i, j
from .definitions import TENSORS, Norm

X, P, X_HAT, RSTD, MEAN = (
    TENSORS[name] for name in ("x", "residual_out", "x_hat", "rstd", "mean")
)


def field_terms(
    e: Expr, definitions: Norm, root: Expr | None = None
) -> tuple[Expr, ...]:
    """The terms of an expression, with x written as x_hat / rstd + mean and a row's root as rstd.

    Args:    root: what is called rstd[i], of row i; without one the definitions' own
    Raises:  ValueError where the definitions are none of a norm, NotImplementedError where there is no normal form
    """
    defs = definitions.defs
    if not all(head in defs for head in (P[i, j], X_HAT[i, j], RSTD[i])):
        raise ValueError("definitions: needs x_hat, rstd and residual_out")
    kept = {P, X_HAT, RSTD, MEAN}
    opened = {getattr(head, "base", head) for head, _ in defs} - kept
    with evaluate(True):
        residual = defs.body(P[i, j]) - X[i, j]
        shift = expand(P[i, j] - defs.body(X_HAT[i, j]) / RSTD[i])
        root = defs.unfold(RSTD[i]) if root is None else root
        e = nf(defs.unfold(e, opened))
        e = _with_entries(_with_rstd(e, nf(root)), X, P[i, j] - residual)
        e = _with_entries(e, P, X_HAT[i, j] / RSTD[i] + shift)
        e = expand(as_powers(nf(e)))
        if shift != 0:
            e = e.xreplace({part: S.Zero for part in e.atoms(Sum) if _is_whole(part)})
        return Add.make_args(nf(e)) if e.has(Reciprocal) else Add.make_args(e)


def _with_rstd(e, rstd):
    """The expression with the root of a row's own mean square as rstd.

    Args:  rstd: the normal form of rstd[i]
    """
    roots = rstd.atoms(Root)
    if len(roots) != 1:
        return e
    (root,) = roots
    factor = rstd * root
    if factor.has(Indexed):
        return e
    rows = {part.indices[0] for part in e.atoms(Indexed) if len(part.indices) == 2}
    names = {}
    for row in rows | {i}:
        own = root.xreplace({i: row})
        names[own] = factor / RSTD[row]
        names[Reciprocal(own.args[0])] = (RSTD[row] / factor) ** 2
    return e.xreplace(names)


def _with_entries(e, base, body):
    """The expression with every entry of a matrix replaced, base[i, j] by the body."""
    entries = [part for part in e.atoms(Indexed) if part.base == base]
    return e.xreplace(
        {
            part: body.xreplace(dict(zip((i, j), part.indices, strict=True)))
            for part in entries
        }
    )


def _is_whole(e):
    """Whether a sum is one of x_hat over its row, which is 0, whatever stands before it."""
    for letter, *_ in e.limits:
        own = [part for part in Mul.make_args(e.function) if part.has(letter)]
        if len(own) != 1 or own[0].func is not Indexed:
            continue
        if own[0].base == X_HAT and own[0].indices[1] == letter != own[0].indices[0]:
            return True
    return False
