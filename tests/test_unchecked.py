"""The list of what a page claims in formulas that nothing checks."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the book's packages are not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "book/_ext"))

from normgrad_book.unchecked import unchecked  # noqa: E402

PAGE = r"""# A page

$$ a_{k} = b_{k} + c $$

$$
a = b
$$ (labelled)

By {cite:p}`someone`:
$$ a = 2 b $$

$$ \sum_{r=1}^{N} x_{r} $$

With $N = 4$ and $c = 1 / N$, $x = q \, s + 1$ and $\sum_{r=1}^{N} x_r$, `$x = y + z$`.
```{code-cell} ipython3
text = "$x = y + z$"
```
"""


def test_claims_without_an_entry_are_listed_and_definitions_and_quotations_are_not():
    assert unchecked(PAGE) == [(3, "display", "a_{k} = b_{k} + c"), (14, "inline", r"x = q \, s + 1")]
