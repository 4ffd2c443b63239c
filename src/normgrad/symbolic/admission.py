"""What a claim may be made of: real, exact expressions. Everything else is refused here, in words.

SymPy rounds decimals while an expression is typed: 1.0*x + 1e-20*x is 1.0*x before anything can look at it. A claim
with a rounded number is a claim about another number, so decimals are refused.
"""

from __future__ import annotations

from sympy import (
    Derivative,
    DiracDelta,
    Dummy,
    Expr,
    Float,
    Indexed,
    IndexedBase,
    Integral,
    Limit,
    Piecewise,
    Product,
    Rational,
    S,
    Subs,
    sympify,
)
from sympy.core.sympify import SympifyError

UNBOUNDED = {S.Infinity, S.NegativeInfinity, S.ComplexInfinity, S.NaN}


def check_expression(name: str, e) -> Expr:
    """e as an exact real expression.

    Args:    name: the argument's name, for the errors; e: a SymPy expression, or an exact number
    Returns: the expression
    Raises:  TypeError for text and whatever is no expression; ValueError for decimals, for infinite and for imaginary
             numbers
    """
    if isinstance(e, str):
        raise TypeError(
            f"{name}: got the text {e!r}, needs a SymPy expression; letters come from tensor and index"
        )
    try:
        found = sympify(e)
    except (SympifyError, AttributeError, TypeError):
        found = None
    if not isinstance(found, Expr):
        raise TypeError(f"{name}: got {type(e).__name__}, needs a SymPy expression")
    if found.is_commutative is False:
        raise TypeError(
            f"{name}: {found} holds a factor whose order matters (a matrix?); write its entries, as A[i, j]"
        )
    entries = {entry: Dummy(real=True) for entry in found.atoms(Indexed)}
    if whole := found.xreplace(entries).atoms(IndexedBase):
        raise TypeError(
            f"{name}: {whole.pop()} is a whole tensor; a claim is about its entries, as x[i]"
        )
    for decimal in sorted(found.atoms(Float), key=str):
        typed = Rational(str(decimal))
        instead = str(typed) if typed.is_Integer else f"Rational({typed.p}, {typed.q})"
        raise ValueError(
            f"{name}: {float(decimal)} is a decimal, and SymPy rounds decimals before a proof sees them "
            f"(1.0*x + 1e-20*x is 1.0*x); write {instead}"
        )
    for number in UNBOUNDED:
        if found.has(number):
            raise ValueError(
                f"{name}: {found} holds {number}, which is no number (a division by zero?)"
            )
    for kind in (Derivative, Subs, Integral, Limit, Product, DiracDelta):
        if found.has(kind):
            raise NotImplementedError(
                f"{name}: {found} holds a {kind.__name__}, which has no form here; a derivative is written "
                f"Partial(f, v), and a sum total(N, f)"
            )
    if found.has(S.ImaginaryUnit):
        raise ValueError(
            f"{name}: {found} holds the imaginary unit, and a claim is about real numbers"
        )
    return found


def check_branches(e: Expr) -> Expr:
    """e, unless it holds a Piecewise: SymPy moves one out of a sum around it, out of the scope of other letters.

    Raises:  NotImplementedError then
    """
    if e.has(Piecewise):
        raise NotImplementedError(
            "a Piecewise has no normal form; write Max, Min, Abs or sign, or prove each branch by itself; "
            "of a sum with a delta SymPy's doit makes one, and contract makes none"
        )
    return e
