"""Displays: what a sum's letter may be, in all lines of an equation."""

from __future__ import annotations

import re

from sympy import Symbol

from normgrad.symbolic import (
    Defs,
    Equation,
    as_written,
    dim,
    tensor,
    total,
)

SUM = re.compile(r"\\sum_\{(\w+(?:_\{\w+\})?)=1\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")
M, N, P = dim("M"), dim("N"), dim("P")
x, w = tensor("x", M, N), tensor("w", N)


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
