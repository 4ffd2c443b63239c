"""Displays: what a sum's letter may be, in one expression, in all lines of an equation, and in a trace."""

from __future__ import annotations

import re

import pytest
from sympy import Symbol

from normgrad.symbolic import (
    Defs,
    Equation,
    as_written,
    dim,
    equations,
    index,
    latex,
    tensor,
    total,
)
from normgrad.symbolic.notation import rename_bound
from normgrad.symbolic.render import used_names

SUM = re.compile(r"\\sum_\{(\w+(?:_\{\w+\})?)=1\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")
M, N, P, i, j, k = dim("M"), dim("N"), dim("P"), *index("i", "j", "k")
x, y, w = tensor("x", M, N), tensor("y", M, N), tensor("w", N)


def ranges(text: str) -> dict[str, set[str]]:
    """What each bound letter of a display runs up to."""
    lasts_of = {}
    for letter, last in SUM.findall(text):
        lasts_of.setdefault(letter, set()).add(last)
    return lasts_of


def shared(text: str) -> list[str]:
    """The letters that run over two dimensions, in one line or in two."""
    return [letter for letter, lasts in ranges(text).items() if len(lasts) > 1]


@pytest.mark.parametrize(
    "equation", equations().values(), ids=lambda equation: equation.label
)
def test_no_letter_runs_over_two_dimensions(equation):
    text = equation.latex()
    assert not shared(text), text
    shown = [rename_bound(e) for chain in equation.chains for e in chain]
    names = set().union(*map(used_names, shown))
    names &= {str(part) for e in shown for part in e.free_symbols}
    assert not ranges(text).keys() & names, (
        f"bound letters that are free or name a quantity: {text}"
    )
    assert {letter for letter, lasts in ranges(text).items() if lasts == {"M"}} <= set(
        "ipm"
    ), text


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
