"""The dtypes of the operator by name, and the one in which its statistics and sums are held."""

from __future__ import annotations

import numpy as np

NAMES = ("float64", "float32", "float16", "bfloat16")
# The narrowest dtype of statistics and sums; a wider one of the inputs stays, as NumPy's result_type says.
LEAST = "float32"


def check_dtype(dtype) -> str:
    """The name itself; ValueError for anything that is not one of NAMES."""
    if not isinstance(dtype, str) or dtype not in NAMES:
        raise ValueError(f"dtype: got {dtype!r}, needs one of {', '.join(map(repr, NAMES))}")
    return dtype


def accumulator(dtype: str) -> str:
    """The dtype of statistics and sums; bfloat16, which NumPy lacks, is narrower than LEAST."""
    return LEAST if check_dtype(dtype) == "bfloat16" else np.result_type(dtype, LEAST).name


def promoted(first: str, second: str) -> str:
    """The dtype in which torch holds the sum of two: the same one, or the narrowest that holds both."""
    if check_dtype(first) == check_dtype(second):
        return first
    return np.result_type(accumulator(first), accumulator(second)).name
