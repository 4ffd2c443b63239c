"""Clearing denominators: from a normal form to a polynomial that is 0 exactly when the normal form is."""

from __future__ import annotations

from sympy import Add, Dummy, Expr, Function, Indexed, KroneckerDelta, Mul, Pow, Sum, cancel

from .patience import look
from .sums import Reciprocal, Root, contract, multiply_out, nf


def clear(e: Expr) -> tuple[Expr, list[tuple[Expr, int]]]:
    """A normal form times non-zero factors, as a polynomial in which no root is squared.

    Args:     e: a normal form
    Returns:  (polynomial, [(factor, power), ...]): e times the factors' powers; e is 0 if the polynomial is 0
    """
    factors = []
    while True:
        look()
        generators = _generators(e)
        reciprocals = [g for g in generators if isinstance(g, Reciprocal)]
        if reciprocals:
            # the longest one first: it may contain the others
            g = max(reciprocals, key=lambda g: (len(str(g)), str(g)))
            highest = max(_degree(term, g) for term in Add.make_args(e))
            e = _each_term(e, lambda term, k, g=g, top=highest: term / g**k * g.args[0] ** (top - k), g)
            factors.append((g.args[0], highest))
            continue
        for g in generators:
            lowest = min(_degree(term, g) for term in Add.make_args(e))
            if lowest < 0:
                e = multiply_out(e * g ** (-lowest))
                factors.append((g, -lowest))
        squared = [g for g in generators if max(_degree(term, g) for term in Add.make_args(e)) >= 2]
        if not squared:
            return e, factors
        for g in squared:
            e = _each_term(e, lambda term, k, g=g: term / g**k * g.args[0] ** (k // 2) * g ** (k % 2), g)


def _each_term(e, rewrite, g):
    return contract(Add(*[rewrite(term, _degree(term, g)) for term in Add.make_args(e)]))


def _degree(term, g):
    return term.as_powers_dict().get(g, 0)


def _generators(e):
    """The roots and reciprocals that e is a polynomial in, in a fixed order; not those inside sums and functions."""
    found, waiting = set(), [e]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Root | Reciprocal):
            found.add(part)
        elif isinstance(part, Add | Mul | Pow):
            waiting.extend(part.args[:1] if isinstance(part, Pow) else part.args)
    return sorted(found, key=str)


def reduce_fraction(e: Expr) -> Expr:
    """A normal form with roots and reciprocals in lowest terms, where that leaves none of them; else unchanged.

    It makes sqrt(mean(x_hat**2)) of a normalized row recognisable, which carries the row's own root inside.
    """
    numerator, factors = clear(e)
    denominator, left = clear(contract(Mul(*[factor**exponent for factor, exponent in factors])))
    if left:
        return e
    opaque = {part: Dummy(positive=True) for part in sorted(_atoms(numerator) | _atoms(denominator), key=str)}
    names = {dummy: part for part, dummy in opaque.items()}
    reduced = cancel(numerator.xreplace(opaque) / denominator.xreplace(opaque)).xreplace(names)
    return e if reduced.has(Root, Reciprocal) else nf(reduced)


def _atoms(e):
    if e.is_Symbol or isinstance(e, Function | Sum | Indexed | KroneckerDelta):
        return {e}
    return set().union(*map(_atoms, e.args))
