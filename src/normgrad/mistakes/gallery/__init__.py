"""What the gallery of real bugs needs: an exhibit of a wrong operator, and comparisons with the oracle."""

from .comparison import (
    Comparison,
    aligned,
    compare,
    compare_rows,
    rows,
    unit_weight,
)
from .exhibit import REJECTED, Written, exhibit

__all__ = [
    "REJECTED",
    "Comparison",
    "Written",
    "aligned",
    "compare",
    "compare_rows",
    "exhibit",
    "rows",
    "unit_weight",
]
