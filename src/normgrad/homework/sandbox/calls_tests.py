"""A call of a student's test: it is handed a backward, and either raises AssertionError or does not.

Nothing of normgrad is imported here.
"""

from __future__ import annotations

import numpy as np

from .calls import operation

KEPT_MESSAGE = 300
# Far more than a test needs in one call; what all calls together hand over and get is kept up to the second number.
MOST_NUMBERS, KEPT_NUMBERS = 100_000, 200_000
NAMES = ("dy", "x", "weight", "mean", "rstd")


def function(source: str):
    """The `backward` that a text defines, in a namespace of its own."""
    names = {"__name__": "given"}
    exec(compile(source, "<backward>", "exec"), names)
    return names["backward"]


def fitting(inputs) -> list:
    """The inputs as arrays of numbers whose shapes fit together; integers count as float64.

    Raises:  TypeError or ValueError that names what is wrong with them
    """
    arrays = [np.array(value) for value in inputs]
    if sum(array.size for array in arrays) > MOST_NUMBERS:
        raise ValueError(f"backward takes at most {MOST_NUMBERS} numbers a call")
    for name, array in zip(NAMES, arrays, strict=True):
        if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
            raise TypeError(f"{name}: got dtype {array.dtype}, needs float64")
    shapes = dict(zip(NAMES, (array.shape for array in arrays), strict=True))
    if len(shapes["x"]) != 2 or not shapes["x"][1]:
        raise ValueError(f"x: got shape {shapes['x']}, needs (M, N) with a column at least")
    rows, columns = shapes["x"]
    for name, needs in (("dy", (rows, columns)), ("weight", (columns,)), ("mean", (rows,)), ("rstd", (rows,))):
        if shapes[name] != needs:
            raise ValueError(f"{name}: got shape {shapes[name]}, needs {needs} for x of shape {shapes['x']}")
    return [array if array.dtype.kind == "f" else array.astype(np.float64) for array in arrays]


@operation
def examine(target, arguments, options):
    """Whether a test rejects the backward of options["source"], in which words, and what went in and came out."""
    right, calls = function(options["source"]), []

    def backward(dy, x, weight, mean, rstd):
        given = fitting((dy, x, weight, mean, rstd))
        with np.errstate(all="ignore"):
            found = right(*(array.copy() for array in given))
        calls.append((*given, *(np.array(array) for array in found)))
        return found

    facts = {"rejected": False, "words": ""}
    try:
        answer = target(backward)
        facts["answer"] = type(answer).__name__
    except AssertionError as error:
        facts |= {"rejected": True, "words": str(error)[:KEPT_MESSAGE]}
    sizes = np.cumsum([sum(array.size for array in call) for call in calls])
    kept = [call for call, size in zip(calls, sizes, strict=True) if size <= KEPT_NUMBERS]
    return [array for call in kept for array in call], facts | {"calls": len(calls)}
