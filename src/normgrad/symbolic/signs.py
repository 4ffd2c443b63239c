"""Signs that can be read off an expression: what is seen to be at least 0, and what to be greater."""

from __future__ import annotations

from sympy import Add, Expr, KroneckerDelta, Mul, Pow, Sum


def is_nonnegative(e: Expr) -> bool:
    """True where e is seen to be at least 0: squares, roots, and sums and products of such."""
    if isinstance(e, KroneckerDelta):
        return True
    if isinstance(e, Sum):
        return is_nonnegative(e.function)
    if isinstance(e, Pow):
        root = e.exp.is_Rational and e.exp.q % 2 == 0
        return bool(root or e.exp.is_even) or is_nonnegative(e.base)
    if isinstance(e, Add | Mul):
        return all(map(is_nonnegative, e.args))
    return bool(e.is_nonnegative)


def is_positive(e: Expr) -> bool:
    """True where e is seen to be greater than 0 wherever it is defined."""
    if isinstance(e, Sum):
        return is_positive(e.function)
    if isinstance(e, Add):
        return all(map(is_nonnegative, e.args)) and any(map(is_positive, e.args))
    if isinstance(e, Mul):
        return all(map(is_positive, e.args))
    if isinstance(e, Pow):
        return is_positive(e.base) or bool(e.exp.is_negative) and is_nonnegative(e.base)
    return bool(e.is_positive)
