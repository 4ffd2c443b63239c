"""A call of a student's test: it is handed a backward, and either raises AssertionError or does not.

The backward is a question to the grader: its numbers come from there, and nothing that could tell what is wrong with it
is in the student's process. That process loads this file by its path, so it imports nothing of normgrad.
"""

from __future__ import annotations

import numpy as np

KEPT_MESSAGE = 300
# Far more than a test needs; the grader takes no more than that.
MOST_NUMBERS = 100_000
NAMES = ("dy", "x", "weight", "mean", "rstd")


def _numbers(inputs) -> list:
    """The inputs as arrays.

    Raises:  TypeError or ValueError that names what is wrong with them
    """
    arrays = [np.asarray(value) for value in inputs]
    if sum(array.size for array in arrays) > MOST_NUMBERS:
        raise ValueError(f"backward takes at most {MOST_NUMBERS} numbers a call")
    for name, array in zip(NAMES, arrays, strict=True):
        if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
            raise TypeError(f"{name}: got dtype {array.dtype}, needs float64")
    return arrays


def examine(target, arguments, options):
    """Whether a test rejects a backward, and in which words."""
    ask = options["ask"]

    def backward(dy, x, weight, mean, rstd):
        arrays = _numbers((dy, x, weight, mean, rstd))
        facts, found = ask({"dtypes": [str(array.dtype) for array in arrays]}, arrays)
        if "wrong" in facts:
            raise ValueError(facts["wrong"])
        return tuple(np.array(array, dtype) for array, dtype in zip(found, facts["dtypes"], strict=True))

    facts = {"rejected": False, "words": ""}
    try:
        answer = target(backward)
        facts["answer"] = type(answer).__name__
    except AssertionError as error:
        facts |= {"rejected": True, "words": str(error)[:KEPT_MESSAGE]}
    return [], facts


OPERATIONS = {"examine": examine}
