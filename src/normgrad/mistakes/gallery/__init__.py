"""What the gallery of real bugs needs: an exhibit of a wrong operator, and the checks that the contract lacks."""

from .checks import (
    check_cotangent,
    check_heads,
    check_layouts,
    check_offsets,
    check_second,
    check_stays_inside,
)
from .comparison import Comparison, aligned, rows, sum_loss, unit_weight
from .exhibit import REJECTED, Written, exhibit

__all__ = [
    "REJECTED",
    "Comparison",
    "Written",
    "aligned",
    "check_cotangent",
    "check_heads",
    "check_layouts",
    "check_offsets",
    "check_second",
    "check_stays_inside",
    "exhibit",
    "rows",
    "sum_loss",
    "unit_weight",
]
