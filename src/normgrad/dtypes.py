"""The dtypes of the operator by name, the one in which its statistics and sums are held, and rounding."""

from __future__ import annotations

import numpy as np

NAMES = ("float64", "float32", "float16", "bfloat16")
# The narrowest dtype of statistics and sums; a wider one of the inputs stays, as NumPy's result_type says.
LEAST = "float32"
# Bits of the significand, the hidden one counted; the unit roundoff is 2**-bits.
SIGNIFICAND = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def check_dtype(dtype) -> str:
    """The name itself; ValueError for anything that is not one of NAMES."""
    if not isinstance(dtype, str) or dtype not in NAMES:
        raise ValueError(
            f"dtype: got {dtype!r}, needs one of {', '.join(map(repr, NAMES))}"
        )
    return dtype


def accumulator(dtype: str) -> str:
    """The dtype of statistics and sums; bfloat16, which NumPy lacks, is narrower than LEAST."""
    return (
        LEAST if check_dtype(dtype) == "bfloat16" else np.result_type(dtype, LEAST).name
    )


def promoted(first: str, second: str) -> str:
    """The dtype in which torch holds the sum of two: the same one, or the narrowest that holds both."""
    if check_dtype(first) == check_dtype(second):
        return first
    return np.result_type(accumulator(first), accumulator(second)).name


def unit_roundoff(dtype: str) -> float:
    """u, half the distance from 1 to the next number of the dtype.

    Raises:  ValueError for a dtype that is not one of the four names
    """
    return 2.0 ** -SIGNIFICAND[check_dtype(dtype)]


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest numbers of the dtype, ties to even, held in float64.

    bfloat16, which NumPy lacks, is float32 with the low 16 bits rounded away.
    """
    if check_dtype(dtype) != "bfloat16":
        return array.astype(dtype).astype(np.float64)
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(np.float64).reshape(array.shape)
