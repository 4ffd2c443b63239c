"""Where digits are lost: a variance as a difference of nearly equal numbers, an exponential that overflows."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Add, Expr, Indexed, Mul, S, Sum, expand


def cancelling(lines: Iterable[int]) -> str:
    """What the claim says of the lines with such a variance."""
    where = ", ".join(f"line {line}" for line in dict.fromkeys(lines))
    return f"with a variance as a difference of nearly equal numbers ({where})"


OVERFLOWS = (
    "with exp of what no maximum is subtracted from, which overflows float32 above 88"
)


def overflowing(lines: Iterable[int]) -> str:
    """What the claim says of the lines with such an exponential."""
    return f"{OVERFLOWS} ({', '.join(f'line {line}' for line in lines)})"


def overflows(e: Expr) -> bool:
    """Whether exp(e) grows with an entry of x from which the largest of its row is not subtracted.

    For `exp(x) / sum(exp(x))` and `exp(x - mean(x))`, which are nan where an entry of x is far above the others. It
    leaves out exp(-x) of a sigmoid, and x beside a logarithm or a root of its row.
    """
    growth = S.Zero
    for term in Add.make_args(expand(e)):
        factor, entry = term.as_coeff_Mul()
        if isinstance(entry, Indexed) and str(entry.base) in ("x", "largest_x"):
            growth += factor
        elif {str(part.base) for part in entry.atoms(Indexed)} != {"x"}:
            if entry.has(Indexed):
                return False
        elif not entry.has(Sum):
            growth += factor
        elif not _is_mean(entry):
            return False
    return bool(growth > 0)


def _is_mean(term):
    """Whether a term is a sum of a row's entries, times a number."""
    sums = [factor for factor in Mul.make_args(term) if factor.has(Indexed)]
    return len(sums) == 1 and isinstance(sums[0], Sum) and sums[0].function.is_Indexed


def is_variance(operator: str, a: Expr, b: Expr) -> bool:
    """Whether a sum or difference is a variance in one pass: a mean of squares less the square of the mean.

    For `square / n - mean * mean`, whose digits cancel where a row is far from 0. It leaves out the squares of what a
    mean, or a number near it, was taken off.
    """
    if operator not in ("Add", "Sub") or not (a.has(Sum) and b.has(Sum)):
        return False
    if operator == "Add":
        return _cancels(a, -b) or _cancels(b, -a)
    return _cancels(a, b) or _cancels(b, a)


def _cancels(squares, square):
    """Whether two numbers are c * N * sum(x**2) and c * sum(x)**2, beside what has no sum."""
    square_sum, c = _multiple(squares.as_dummy(), 1)
    row_sum, d = _multiple(square.as_dummy(), 2)
    if square_sum is None or row_sum is None:
        return False
    (r, *ends), (s, *row_ends) = square_sum.limits[0], row_sum.limits[0]
    x = row_sum.function.xreplace({s: r})
    entries = x.atoms(Indexed)
    if not entries or x.has(Sum) or not all(entry.has(r) for entry in entries):
        return False
    difference = c * square_sum.function - ends[1] * d * x**2
    return ends == row_ends and expand(difference) == 0


def _multiple(e, power):
    """(a sum, the number before its power) of an expression with one term that has a sum; else (None, 0)."""
    terms = [term for term in Add.make_args(e) if term.has(Sum)]
    sums = terms[0].atoms(Sum)
    if len(terms) == 1 and len(sums) == 1:
        (sum_,) = sums
        factor = terms[0] / sum_**power
        if len(sum_.limits) == 1 and not factor.has(Sum):
            return sum_, factor
    return None, S.Zero
