"""Displays: what a sum's letter may be, in one expression, in all lines of an equation, and in a trace."""

from __future__ import annotations

import re

from sympy import Symbol

from normgrad.symbolic import (
    Defs,
    Equation,
    as_written,
    dim,
    index,
    latex,
    tensor,
    total,
)

SUM = re.compile(r"\\sum_\{(\w+(?:_\{\w+\})?)=1\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")
M, N, P, i, j, k = dim("M"), dim("N"), dim("P"), *index("i", "j", "k")
x, y, w = tensor("x", M, N), tensor("y", M, N), tensor("w", N)


def ranges(text: str) -> dict[str, set[str]]:
    """What each bound letter of a display runs up to."""
    lasts_of = {}
    for letter, last in SUM.findall(text):
        lasts_of.setdefault(letter, set()).add(last)
    return lasts_of


def test_rows_and_columns_have_letters_of_their_own():
    with as_written():
        both = total(M, lambda a: total(N, lambda b: x[a, b]))
        equation = Equation(
            "e",
            "c.",
            (
                (both, total(N, lambda b: w[b])),
                (total(P, lambda g: 1 + g), Symbol("c")),
            ),
            Defs(),
        )
    assert ranges(equation.latex()) == {"i": {"M"}, "r": {"N"}, "g": {"P"}}


def test_a_row_letter_that_is_free_or_a_quantity_is_not_taken():
    with as_written():
        e = x[i, j] * total(M, lambda a: x[a, j])
        assert latex(e) == r"x_{ij} \sum_{p=1}^{M} x_{pj}"
        assert latex(tensor("p") * e) == r"p x_{ij} \sum_{m=1}^{M} x_{mj}"
        assert (
            latex(tensor("p") * tensor("m") * e)
            == r"p m x_{ij} \sum_{i_{1}=1}^{M} x_{i_{1},j}"
        )
