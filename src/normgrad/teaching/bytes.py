"""Bytes that an operator moves through device memory: the floor, and what other ways of computing it move.

The floor counts each input once and each output once, whatever the kernels are. This package's Triton kernels move it,
and in a backward the partial sums of dw and db. Statistics are float32 (float64 for float64) and stored once a row; a
parameter and its gradient are rows of length N.
"""

from __future__ import annotations

from dataclasses import dataclass

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
# The statistics that a forward stores, and the parameters it takes.
STATISTICS = {
    "layer_norm": ("mean", "rstd"),
    "rms_norm": ("rstd",),
    "l2_norm": ("rstd",),
}
PARAMETERS = {"layer_norm": ("weight", "bias"), "rms_norm": ("weight",), "l2_norm": ()}
OPERATORS = (*STATISTICS, "add_layer_norm", "add_rms_norm")
DIRECTIONS = ("forward", "backward", "both")
GRADIENTS = {"weight": "dw", "bias": "db"}
# Bytes a second by the vendors' datasheets: NVIDIA's H200 (141 GB), H100 SXM (80 GB), A100 SXM (80 GB) and T4.
BANDWIDTHS = {"H200": 4.8e12, "H100 SXM": 3.35e12, "A100 80GB": 2.04e12, "T4": 0.32e12}


@dataclass(frozen=True)
class Traffic:
    """Bytes read and bytes written, by the name of the array.

    Args:  reads, writes: {name: bytes}
    """

    reads: dict[str, int]
    writes: dict[str, int]

    @property
    def total(self) -> int:
        """All bytes, read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())

    def __add__(self, other: Traffic) -> Traffic:
        """One after the other, nothing kept in between: an array that both read is read twice."""
        return Traffic(
            _added(self.reads, other.reads), _added(self.writes, other.writes)
        )


def _added(first, second):
    return {n: first.get(n, 0) + second.get(n, 0) for n in first | second}


def _check(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{name}: got {value!r}, needs one of {', '.join(allowed)}")


def _sizes(operator, rows, columns, dtype, residual_dtype=None, heads=1):
    """{array: bytes}; dx of the residual's dtype is called dresidual. Args, Raises: as moved"""
    _check("operator", operator, OPERATORS)
    least = {"rows": (rows, 0), "columns": (columns, 0), "heads": (heads, 1)}
    for name, (value, lowest) in least.items():
        if value < lowest:
            raise ValueError(f"{name}: got {value}, needs at least {lowest}")
    residual_dtype = residual_dtype or dtype
    _check("dtype", dtype, BYTES)
    _check("residual_dtype", residual_dtype, BYTES)
    elements, element = rows * columns, BYTES[dtype]
    # of a statistic and of a partial sum
    wide = 8 if "float64" in (dtype, residual_dtype) else 4
    stream = elements * BYTES[residual_dtype]
    sizes = dict.fromkeys(("x", "dx", "y", "dy"), elements * element)
    sizes |= dict.fromkeys(("residual", "residual_out", "dresidual_out"), stream)
    if residual_dtype != dtype:
        sizes["dresidual"] = stream
    vector = heads * columns * element
    sizes |= dict.fromkeys(("weight", "bias", "dw", "db"), vector)
    sizes |= dict.fromkeys(("mean", "rstd"), rows * wide)
    # one row of partial sums for each program
    sizes["partials"] = len(PARAMETERS[_norm(operator)]) * heads * columns * wide
    return sizes


def _norm(operator):
    return operator.removeprefix("add_")


def _picked(sizes, names):
    return {name: sizes[name] for name in names if name in sizes}


def moved(operator: str, direction: str, *, partial_rows: int = 0, **shape) -> Traffic:
    """The floor: each input read once, each output written once.

    Args:     operator: one of OPERATORS; direction: "forward", "backward" or "both", which is one after the other;
              partial_rows: float32 rows of dw and db that a backward writes and reads again, 0 for the floor itself;
              rows, columns: M and N; dtype: of all arrays but those of the residual; residual_dtype: of residual,
              residual_out and their gradients, where None or left out means dtype; heads: how many rows weight and
              bias have, one for each head (default 1)
    Returns:  Traffic
    Raises:   ValueError naming the argument, what it got and what it needs
    """
    sizes = _sizes(operator, **shape)
    _check("direction", direction, DIRECTIONS)
    if direction == "both":
        ways = ("forward", "backward")
        forward, backward = (
            moved(operator, way, partial_rows=partial_rows, **shape) for way in ways
        )
        return forward + backward
    parameters, residual = PARAMETERS[_norm(operator)], operator.startswith("add_")
    if direction == "forward":
        reads, writes = ["x", *parameters], ["y", *STATISTICS[_norm(operator)]]
        if residual:
            reads.append("residual")
            writes.append("residual_out")
    else:
        # of the parameters only the weight
        normalized = "residual_out" if residual else "x"
        reads = ["dy", normalized, *STATISTICS[_norm(operator)], *parameters[:1]]
        writes = ["dx", *(GRADIENTS[name] for name in parameters)]
        if residual:
            reads.append("dresidual_out")
            writes.append("dresidual")
    traffic = Traffic(_picked(sizes, reads), _picked(sizes, writes))
    if direction == "backward" and partial_rows and parameters:
        partials = {"partials": partial_rows * sizes["partials"]}
        traffic += Traffic(partials, partials)
    return traffic
