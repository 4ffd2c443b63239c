"""The shorthand that source 003 takes from its earlier article, expanded.

The article writes no sums. `expand_shorthand` writes them, by the article's rules, so that a line of shorthand and its
explicit form can be held against each other. Letters are the book's: rows i, p; columns j, k, l.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from operator import add, mul

from sympy import Add, Expr, Indexed, KroneckerDelta, Mul, Pow, S, Symbol, sqrt

from ..calculus import index_ranges
from ..notation import Local, Partial, as_written, delta, index, tensor, total
from ..symbols import M, N, alphabet, eps, i, j, k, p

row = alphabet()
col = index("l")
B, C, E, z = tensor("B", M, N), tensor("C", N, N), tensor("E", M, N), tensor("z", M, N)
a, g, h, f = tensor("a", M), tensor("g", M), tensor("h"), tensor("f", N)
one_row, one_column = tensor(r"\mathbf{1}", N), tensor(r"\mathbf{1}", M)
ONES = (one_row, one_column)


def expand_shorthand(e: Expr, *left: Symbol) -> Expr:
    """A right-hand side in the article's shorthand, with its sums written out.

    In each term a letter that occurs twice or more and is not on the left is summed (P3); one that is on the left is
    not (P4). Ones count as occurrences and then drop out (P6). A power or a bracket counts once, and a bracket has the
    letters that all its terms have (P9).

    Args:    e: built within `as_written`, so that x x stays two factors; left: the letters of the left-hand side
    Returns: the same with explicit sums and without ones
    Raises:  ValueError when a term lacks a letter of the left, or has one elsewhere that occurs once (P2)
    """
    ranges = index_ranges(e)
    return reduce(
        add, [_expand_term(term, set(left), ranges) for term in _parts(e, Add)]
    )


def _parts(e, kind):
    """The terms of a sum or the factors of a product, nested ones opened."""
    return (
        [part for one in e.args for part in _parts(one, kind)]
        if isinstance(e, kind)
        else [e]
    )


def _expand_term(term, left, ranges):
    counts = _count(term, left)
    lone = {letter for letter, times in counts.items() if times == 1} - left
    lacking = left - set(counts) if counts else set()
    if lone or lacking:
        reason = (
            "occurs once and is not on the left"
            if lone
            else "is on the left and missing here"
        )
        raise ValueError(
            f"{', '.join(sorted(map(str, lone or lacking)))} {reason}: {term}"
        )
    factors = [
        one
        for one in _parts(term, Mul)
        if not (isinstance(one, Indexed) and one.base in ONES)
    ]
    result = reduce(
        mul,
        [_expand_factor(one, left | set(counts), ranges) for one in factors] or [S.One],
    )
    for letter in sorted(set(counts) - left, key=str, reverse=True):
        result = total(
            ranges[letter],
            lambda r, body=result, letter=letter: body.xreplace({letter: r}),
        )
    return result


def _expand_factor(factor, carried, ranges):
    if isinstance(factor, Pow):
        return Pow(_expand_factor(factor.base, carried, ranges), factor.exp)
    if isinstance(factor, Add | Mul):
        own = carried & set(_occurrences(factor, carried))
        return reduce(
            add, [_expand_term(term, own, ranges) for term in _parts(factor, Add)]
        )
    return factor


def _count(term, left):
    return sum((_occurrences(factor, left) for factor in _parts(term, Mul)), Counter())


def _occurrences(factor, left):
    """How often each letter occurs in a factor, as it is printed; a bracket has the letters that all its terms have."""
    if isinstance(factor, Pow):
        return Counter(dict.fromkeys(_occurrences(factor.base, left), 1))
    if isinstance(factor, Add):
        terms = [
            counts
            for counts in (_count(term, left) for term in _parts(factor, Add))
            if counts
        ]
        free = {
            letter
            for counts in terms
            for letter, times in counts.items()
            if times == 1 or letter in left
        }
        return Counter(
            {letter: 1 for letter in free if all(letter in counts for counts in terms)}
        )
    if isinstance(factor, Mul):
        return _count(factor, left)
    if isinstance(factor, Partial | Local):
        return _occurrences(factor.args[0], left) + _occurrences(factor.args[1], left)
    if isinstance(factor, Indexed):
        return Counter(factor.indices)
    return Counter(factor.args[:2]) if isinstance(factor, KroneckerDelta) else Counter()


def shorthand() -> Iterator[tuple[str, Expr, Expr, str, int]]:
    """Lines of shorthand: (rule, left-hand side, right-hand side, label of the equation with the sums, its line)."""
    x, w, q, y, v = row.x, row.w, row.q, row.y, row.v
    with as_written():
        for place, left in enumerate((z[i, j], g[i], h)):
            yield "P2-P4", left, a[i] * B[i, j] * w[j], "rule-left-side", place
        yield "P5", tensor("c", N, N)[j, k], C[j, col] * delta(col, k), "rule-delta", 0
        yield "P5", tensor("d", N)[k], delta(k, j) * x[j] * w[j], "rule-delta", 1
        yield "P6", h, one_row[j] * one_row[j], "rule-ones", 0
        yield "P6", g[i], one_row[j] * (B[i, j] - one_row[j] * a[i]), "rule-ones", 1
        yield "P7", g[i], B[i, j] * one_row[j] * E[i, k] * x[k], "rule-rename", 0
        yield "P8", tensor("e"), one_row[j] * x[j] * h, "rule-substitution", 0
        yield "P9", g[i], B[i, j] * (E[i, j] + one_column[i] * x[j]), "rule-factor", 0
        yield "P10", z[i, j], B[i, k] * w[k] * x[j], "rule-contraction", 0
        yield "P11", z[i, k], B[i, j] * Local(w[j], w[k]), "rule-fresh", 0
        by_parts = Partial(x[k], x[j]) * q[k] + x[k] * Partial(q[k], x[j])
        yield "P13", tensor("d", N)[j], by_parts, "rule-product", 0
        yield (
            "P14",
            tensor("d", N)[j],
            Local(h, f[k]) * Local(f[k], q[col]) * Local(q[col], x[j]),
            "rule-chain",
            0,
        )
        through_q, through_v = (
            Local(y[k], q[col]) * Local(q[col], x[j]),
            Local(y[k], v) * Local(v, x[j]),
        )
        yield "P15", tensor("c", N, N)[k, j], through_q + through_v, "rule-consumers", 0


def source_lines() -> Iterator[tuple[Expr, Expr]]:
    """The five definitions of source 003 in its shorthand, in the names of the LayerNorm chapter."""
    n = alphabet(M)
    with as_written():
        yield n.mean[i], 1 / N * one_row[j] * n.x[i, j]
        yield n.q[i, j], n.x[i, j] - one_row[j] * n.mean[i]
        yield n.v[i], 1 / N * one_row[j] * n.q[i, j] ** 2
        yield n.D[i], sqrt(n.v[i] + eps)
        yield n.y[i, j], n.q[i, j] / n.D[i] * n.w[j] + one_column[i] * n.b[j]


def source_result(*missing: Expr) -> Expr:
    """The last line of source 003, the input's gradient, in shorthand; `missing`: factors to put into its bracket."""
    n = alphabet(M)
    with as_written():
        first = reduce(mul, missing, one_row[k] / n.D[p])
        bracket = first + n.q[p, j] * n.q[p, k] / n.D[p] ** 3
        return n.dy[p, k] * n.w[k] / n.D[p] - n.dy[p, j] * n.w[j] / N * bracket
