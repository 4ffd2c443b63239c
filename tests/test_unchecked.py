"""No equality on a page stands unchecked and unmarked, and what is marked as checked is."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the book's packages are not installed")
BOOK = Path(__file__).parents[1] / "book"
sys.path.insert(0, str(BOOK / "_ext"))

from latex_reader import Quantities, chains, read  # noqa: E402
from sympy import diff, sqrt  # noqa: E402

from normgrad.symbolic import equations, index, prove, tensor  # noqa: E402
from normgrad_book.arithmetic import NAME, numbers_of, worked  # noqa: E402
from normgrad_book.plain_markdown import PlainMarkdown  # noqa: E402
from normgrad_book.unchecked import CHECKED, repeats, unchecked  # noqa: E402

PAGE = r"""# A page

$$ a_{k} = b_{k} + c $$

$$
a = b + c
$$ (labelled)

By {cite:p}`someone`:
$$ a = 2 b + c $$

% quoted
$$ a = 3 b + c $$

$$ \sum_{r=1}^{N} x_{r} $$

With $N = 4$ and $c = 1 / N$, $x = q \, s + 1$ and $\sum_{r=1}^{N} x_r$, `$x = y + z$`.
```{code-cell} ipython3
---
mystnb:
  figure: {caption: "In \"it\" $\\hat{x} = 2 \\, y + z$, $N = 4$.", name: fig-one}
---
text = "$x = y + z$"
```
> A quotation, $x = y + z$. {quoted}`x = y + z`
"""


def test_what_nothing_checks_is_listed():
    assert unchecked(PAGE) == [
        (3, "display", "a_{k} = b_{k} + c"),
        (17, "inline", r"x = q \, s + 1"),
        (21, "inline", r"\hat{x} = 2 \, y + z"),
    ]


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_has_none(path):
    assert unchecked(path.read_text(encoding="utf8")) == []


# -- kinds


@pytest.mark.parametrize(
    "text",
    [
        # short
        r"$c_1 = -\frac{1}{4}$ $\mathrm{db}_k = \mathrm{dy}_k$ $\kappa = 1 / N$ $D(0) = \sqrt{\varepsilon}$",
        # settings
        r"$x = (0, 0, 2, 2)$ $n = N = 4$ $i = 1, \dots, M$ $k = 1, j = 2$ $k = K - 1$",
        r"$\varepsilon = 10^{-5}$ $N \ge 1$",
        # definitions
        r"Let $S = \sum_r x_r$ and $y_k = 2 x_k + S$.",
        r"Subtract it again: let $\varphi(h) = h^3 + 2 h$.",
        # repeats: the whole, without its rows, without indices, ends of a chain, other letters, slashes
        r"$\mathrm{dx}_{ij} = \mathrm{rstd}_i \, (\mathrm{wdy}_{ij} - c_{2,i} - \hat{x}_{ij} \, c_{1,i})$",
        r"$\mathrm{dx}_k = \mathrm{rstd} \, (\mathrm{wdy}_k - c_2 - \hat{x}_k \, c_1)$",
        r"$\mathrm{dx} = \mathrm{rstd} \, (\mathrm{wdy} - c_2 - \hat{x} \, c_1)$",
        r"$\partial y_k / \partial x_j = \mathrm{rstd} \, w_k \, (\delta_{kj} - \hat{x}_k \, \hat{x}_j / N)$",
        r"$\partial x_k / \partial x_j = \delta_{kj}$ $\sum_j q_j = 0$ $\kappa = D(s) \, D'(s) / s$",
        # arithmetic
        r"$\frac{1}{4} (1, -1) + (1, 0) = (\frac{5}{4}, -\tfrac14)$ $P_0 = 512 \cdot (2 + 1) \approx 1500$",
        r"$2^{-24} \approx 6 \cdot 10^{-8}$ $M = 2^{31} / 2^{12} = 524\,288$",
    ],
)
def test_what_is_clearly_fine(text):
    assert unchecked(text) == []


@pytest.mark.parametrize(
    "formula",
    [
        r"$2 m = 3$",  # no name
        r"$y = 2 x$",
        r"$\sum_r y_r = 0$",
        r"$\mathrm{dx} \le (1, 0)$",  # no input
        r"Let $\mathrm{dx} = 2 w + 1$.",  # a gradient has its value
        r"Let $\partial L / \partial x_k = 2 w + 1$.",
        r"Let $x = x + 1 + y$.",
        r"Let $x$ be a row, so $S = x_1 + x_2$.",
        r"Let $x$ be a row. $S = x_1 + x_2$",
        r"The outlet $S = x_1 + x_2$",
        r"$\mathrm{dx} = \mathrm{rstd} \, (\mathrm{wdy} + c_2 - \hat{x} \, c_1)$",
        r"$\mathrm{dx}_{ij} = \mathrm{rstd}_j \, (\mathrm{wdy}_{ij} - c_{2,i} - \hat{x}_{ij} \, c_{1,i})$",
        r"$\mathrm{dx}_{ij} = \mathrm{rstd}_i \, (\mathrm{wdy}_{ji} - c_{2,i} - \hat{x}_{ij} \, c_{1,i})$",
        r"$J = \mathrm{rstd} \, (C - \frac{\hat{x} \hat{x}}{N})$",  # two free columns: which is which?
        r"$\frac{\partial \mathrm{mean}}{\partial x_k} = \frac{\delta}{N}$",  # of which rows?
        r"$\mathrm{dw} = \sum_i \mathrm{dy}_i \, \hat{x}_i$",
        r"$\mathrm{db}_j = \sum_{i=1}^{N} \mathrm{dy}_{ij}$",
        r"$\sum_{r=1}^{M} q_r = 0$",
        r"$v = \frac{1}{N} \sum_r q_j^2$",
        r"$\mathrm{mean} = \mathrm{wdy} + c_2$",
        r"$\frac{1}{4} (1, -1) + (1, 0) = (\frac{5}{4}, \frac{1}{4})$",
        r"$(1, 0) = (1, 0, 0)$",
        r"$(1, 2) (3, 4) = (3, 8)$",  # a row, or 11?
        r"$v = 3 \cdot 2$",
        r"$2^{-11} \cdot 16 / 0.5 = 0.016$",
        r"$\sqrt{12} \approx 3.6$",
        r"$N - 2 = 0$",
    ],
)
def test_what_is_not(formula):
    (found,) = unchecked(formula)
    assert found[1] == "inline"


def test_a_sum_over_rows_is_none_over_columns_and_dots_are_no_digits():
    assert repeats(r"\mathrm{db}_j = \sum_i \mathrm{dy}_{ij}") and not repeats(
        r"\mathrm{db}_j = \sum_r \mathrm{dy}_{rj}"
    )
    assert not repeats(r"\frac{24 P N}{3 \cdot 2 M N} = \frac{4 P}{3 M}")
    assert repeats(r"\frac{2 \cdot 4 P N}{3 \cdot 2 M N} = \frac{4 P}{3 M}")


def test_several_numbers_behind_a_name_stand_in_one_cell():
    output = {"data": {"text/plain": "array([ 0.5, -0.5, 0.333])"}}
    cell = {"cell_type": "code", "source": "x2 = 6.0, 8.0", "outputs": [output, {"text": "r [1. 2.]"}]}
    known = numbers_of({"cells": [cell, {"cell_type": "markdown", "source": "7, 9"}]})
    for right in (r"(\frac{1}{2}, -0.5, \frac{1}{3})", "(6, 8)", "(1, 2)"):
        assert worked(rf"\mathrm{{dx}} = {right}", known)
    for wrong in (r"(\frac{1}{2}, 0.5)", "(0.52, -0.5)", "(0.5, 0.333)", "(8, 6)", "(7, 9)", "(6, 8, 1)", "(2, 6)"):
        assert not worked(rf"\mathrm{{dx}} = {wrong}", known)
    assert not worked("r = (1, 2) = (1, 3)", known) and not worked("r = s", known)


# -- marks

MARKS = """{checked}`a = b + c <%s>`
```{code-cell} ipython3
%s
```
"""


@pytest.mark.parametrize(
    "by, cell, right",
    [
        ("ln-dx", "", True),
        ("test_unchecked.py::test_a_page_has_none", "", True),
        ("cell", "prove(a, b + c)", True),
        ("cell", "np.testing.assert_allclose(a, b + c)", True),
        ("cell", "print(a)", False),
        ("ln-none", "prove(a, b + c)", False),
        ("test_unchecked.py::test_none", "prove(a, b + c)", False),
    ],
)
def test_a_mark_names_what_is_there(by, cell, right):
    assert unchecked(MARKS % (by, cell)) == ([] if right else [(1, "mark", "a = b + c")])


def test_a_mark_without_a_name_and_one_behind_the_last_cell_are_refused():
    assert unchecked("{checked}`a = b + c`") == [(1, "mark", "a = b + c")]
    assert unchecked(f"{MARKS % ('ln-dx', 'prove(a)')}\n{{checked}}`a = 2 <cell>`") == [(6, "mark", "a = 2")]


@pytest.mark.parametrize("myst", [r"{checked}`a_{k} = \frac{b}{c} <ln-dx>`", r"{quoted}`a_{k} = \frac{b}{c}`"])
def test_a_mark_is_a_formula_in_the_notebook(myst):
    assert PlainMarkdown.inline(PlainMarkdown.__new__(PlainMarkdown), myst) == r"$a_{k} = \frac{b}{c}$"


def marked():
    """(page, formula, what checks it) of every mark of the book."""
    for path in sorted(BOOK.glob("*.md")):
        for one in CHECKED.finditer(path.read_text(encoding="utf8")):
            yield path.stem, one["formula"], one["by"]


def sides(formula, names):
    """The sides of a formula as objects. Args: names: the quantities; letters that it does not have are indices"""
    text = re.sub(rf"\\partial ?(?:\\, )?({NAME}) / \\partial ({NAME})", r"\\frac{\\partial \1}{\\partial \2}", formula)
    text = re.sub(r"\\sum_([ipm])(?!\w)", r"\\sum_{\1=1}^{M}", text)
    text = re.sub(r"\\sum_([a-z])(?!\w)", r"\\sum_{\1=1}^{N}", text)
    text = re.sub(r"([_^])(\w)", r"\1{\2}", text)
    power = r"(?:_\{\w+\})?(?:\^\{\w+\})?"
    text = re.sub(
        rf"((?:{NAME}{power}|\\,|\s)+?) / (\w{power}|\\sqrt\{{(?:[^{{}}]|\{{\w\}})*\}})", r"\\frac{\1}{\2}", text
    )
    (chain,) = chains(text)
    bound = re.findall(r"\\sum_\{(\w)=1\}", text)
    for letter in "ijklmp":
        if letter in bound:
            names.scalars.pop(letter, None)
        elif letter not in names.tensors:
            names.scalars.setdefault(letter, index(letter))
    return [read(side, names) for side in chain]


BY_EQUATION = [one for one in marked() if one[2] in equations()]


@pytest.mark.parametrize("page, formula, label", BY_EQUATION)
def test_a_formula_that_names_an_equation_is_proved_from_its_definitions(page, formula, label):
    one = equations()[label]
    names = Quantities.of([*(e for chain in one.chains for e in chain), *(e for pair in one.defs for e in pair)])
    found = sides(formula, names)
    assert len(found) > 1
    for left, right in pairwise(found):
        prove(left, right, one.defs)


def test_only_registered_equations_are_named():
    """Those about computed numbers have no definitions to prove anything from."""
    assert BY_EQUATION and {by for _, _, by in marked() if by != "cell" and "::" not in by} <= set(equations())


def test_kappa_of_one_more_denominator():
    s, eps = tensor("s", positive=True), tensor("eps", positive=True)
    divisor = sqrt(s**2 + eps) + eps
    slope = diff(divisor, s)
    names = {"s": s, "eps": eps, "D": divisor, "D'": slope, "kappa": divisor * slope / s}
    formulas = [formula for page, formula, by in marked() if by.endswith("test_kappa_of_one_more_denominator")]
    assert len(formulas) == 2
    for formula in formulas:
        for left, right in pairwise(sides(formula, Quantities(dict(names)))):
            prove(left, right)
