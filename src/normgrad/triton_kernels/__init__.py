"""The operator in Triton: kernels for every spec and every N, and their launchers.

Modules in the order of reading: arithmetic (the formulas, on tiles), rows (a program holds whole rows), sweeps (longer
rows), reduction (dw and db), configuration (tiles and programs), launch (forward and backward). The dtype of statistics
and sums is a constexpr, so the kernels that compute in float32 on a GPU run in float64 in Triton's interpreter, where
they pass gradcheck.
"""

from .interpreter import INTERPRETED, check_device
from .launch import backward, forward

__all__ = ["INTERPRETED", "backward", "check_device", "forward"]
