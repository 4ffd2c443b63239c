"""A display without a label is quoted, repeats the ledger, or is arithmetic."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the book's packages are not installed")
BOOK = Path(__file__).parents[1] / "book"
sys.path.insert(0, str(BOOK / "_ext"))

from normgrad_book.unchecked import checked, unchecked  # noqa: E402

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

$$
\begin{aligned}
q_{j} &= x_{j} - \mathrm{mean} & v &= 1 \\
m &= x w + m
\end{aligned}
$$
```{code-cell} ipython3
text = "$$ x = y + z $$"
```
> A quotation, $$ x = y + z $$ and a claim within a line, $x = 2 y$.
"""


def test_what_nothing_checks_is_listed():
    assert unchecked(PAGE) == [(3, "a_{k} = b_{k} + c"), (17, "m = x w + m")]


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_has_none(path):
    assert unchecked(path.read_text(encoding="utf8")) == []


@pytest.mark.parametrize(
    "formula",
    [
        # repeats: the whole, without its rows, without indices, an end of a chain
        r"\mathrm{dx}_{ij} = \mathrm{rstd}_i \, (\mathrm{wdy}_{ij} - c_{2,i} - \hat{x}_{ij} \, c_{1,i})",
        r"\mathrm{dx}_j = \mathrm{rstd} \, (\mathrm{wdy}_j - c_2 - \hat{x}_j \, c_1)",
        r"\mathrm{dx} = \mathrm{rstd} \, (\mathrm{wdy} - c_2 - \hat{x} \, c_1)",
        r"\kappa = \frac{D(s) \, D'(s)}{s}",
        # arithmetic
        r"q = (-1, -1, 1, 1)",
        r"v = \frac{1}{4} \cdot 8 = 2",
        r"2^{10} = 1024",
        # a name
        r"s = \sqrt{v}",
        r"\hat{x}_k = \frac{q_k}{s}",
    ],
)
def test_what_is_checked(formula):
    assert checked(formula)


@pytest.mark.parametrize(
    "formula",
    [
        r"y = 2 x",
        r"s \le 3",
        r"\mathrm{dx} = \mathrm{rstd} \, (\mathrm{wdy} + c_2 - \hat{x} \, c_1)",
        r"\mathrm{dx}_{ij} = \mathrm{rstd}_j \, (\mathrm{wdy}_{ij} - c_{2,i} - \hat{x}_{ij} \, c_{1,i})",
        r"\mathrm{dx}_{ij} = \mathrm{rstd}_i \, (\mathrm{wdy}_{ji} - c_{2,i} - \hat{x}_{ij} \, c_{1,i})",
        r"J = \mathrm{rstd} \, (C - \frac{\hat{x} \hat{x}}{N})",  # two free columns: which is which?
        r"\mathrm{dw} = \sum_i \mathrm{dy}_i \, \hat{x}_i",
        r"\mathrm{db}_j = \sum_{i=1}^{N} \mathrm{dy}_{ij}",
        r"\sum_{r=1}^{M} q_r = 0",
        r"v = \frac{1}{4} \cdot 8 = 3",
        r"r = (1, 2) = (2, 1)",
        r"N - 2 = 0",
        r"s = \sqrt{v} + 1",
    ],
)
def test_what_is_not(formula):
    assert not checked(formula)
