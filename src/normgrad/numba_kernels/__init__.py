"""The operator compiled for the CPU by Numba: kernels for every spec, every N and every dtype, and their launchers.

Modules in the order of reading: kernels (the formulas, as loops), launch (forward and backward on tensors). With
NUMBA_DISABLE_JIT=1 in the environment the same kernels run as plain Python, in which one can print and set breakpoints.
"""

from .launch import backward, check_device, forward

__all__ = ["backward", "check_device", "forward"]
