"""Bytes that an operator moves through device memory: the floor, and what other ways of computing it move.

The floor counts each input once and each output once, whatever the kernels are; `by_package` counts what this package's
Triton kernels move. Statistics are float32 (float64 for float64) and stored once a row; a parameter and its gradient
are rows of length N.
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
# Forward: the mean's sum and the subtraction, where rows are centred; a square and its sum; times rstd, times weight,
# plus bias. Backward: x_hat, wdy, c1's product and sum, c2's sum; minus x_hat c1, minus c2, times rstd; dw's product
# and sum, db's sum. A residual is one addition more in each.
OPERATIONS = {
    "forward": {"layer_norm": 7, "rms_norm": 4, "l2_norm": 3},
    "backward": {"layer_norm": 13, "rms_norm": 9, "l2_norm": 6},
}
# Bytes a second by the vendors' datasheets: NVIDIA's H200 (141 GB), H100 SXM (80 GB), A100 SXM (80 GB) and T4.
BANDWIDTHS = {"H200": 4.8e12, "H100 SXM": 3.35e12, "A100 80GB": 2.04e12, "T4": 0.32e12}


@dataclass(frozen=True)
class Traffic:
    """Bytes read and bytes written, by the name of the array.

    Args:  reads, writes: {name: bytes}; elements: M N, what per_element divides by
    """

    reads: dict[str, int]
    writes: dict[str, int]
    elements: int

    @property
    def total(self) -> int:
        """All bytes, read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def per_element(self) -> float:
        """All bytes over M N; 0 where there are no elements."""
        return self.total / self.elements if self.elements else 0.0

    def __add__(self, other: Traffic) -> Traffic:
        """One after the other, nothing kept in between: an array that both read is read twice."""
        reads, writes = (
            {name: mine.get(name, 0) + theirs.get(name, 0) for name in mine | theirs}
            for mine, theirs in ((self.reads, other.reads), (self.writes, other.writes))
        )
        return Traffic(reads, writes, max(self.elements, other.elements))


def _check(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{name}: got {value!r}, needs one of {', '.join(allowed)}")


@dataclass(frozen=True)
class _Sizes:
    """An operator and its rows, columns, dtypes and heads: the size of each of its arrays."""

    operator: str
    rows: int
    columns: int
    dtype: str
    residual_dtype: str
    heads: int

    @property
    def norm(self):
        return self.operator.removeprefix("add_")

    @property
    def wide(self):
        """Bytes of a statistic and of a partial sum."""
        return 8 if "float64" in (self.dtype, self.residual_dtype) else 4

    @property
    def has_residual(self):
        return self.operator.startswith("add_")

    @property
    def normalized(self):
        return "residual_out" if self.has_residual else "x"

    @property
    def light(self):
        """Whether rows are not centred, and dy and what is normalized have the same dtype of 16 bits."""
        same = not self.has_residual or self.residual_dtype == self.dtype
        return self.norm != "layer_norm" and same and BYTES[self.dtype] == 2

    def of(self, *names):
        """{name: bytes}; dx of the residual's dtype is called dresidual."""
        elements, element = self.rows * self.columns, BYTES[self.dtype]
        stream = elements * BYTES[self.residual_dtype]
        sizes = dict.fromkeys(("x", "dx", "y", "dy"), elements * element)
        sizes |= dict.fromkeys(("residual", "residual_out"), stream)
        sizes |= dict.fromkeys(("dresidual", "dresidual_out"), stream)
        vector = self.heads * self.columns * element
        sizes |= dict.fromkeys(("weight", "bias", "dw", "db"), vector)
        sizes |= dict.fromkeys(("mean", "rstd", "c1", "c2"), self.rows * self.wide)
        return {name: sizes[name] for name in names}

    def forward(self):
        """Each input read once, each output written once."""
        reads, writes = ["x", *PARAMETERS[self.norm]], ["y", *STATISTICS[self.norm]]
        if self.has_residual:
            reads.append("residual")
            writes.append("residual_out")
        elements = self.rows * self.columns
        return Traffic(self.of(*reads), self.of(*writes), elements)

    def backward(self, partial_rows):
        """dx and dresidual are one array, unless their dtypes differ; of the parameters only the weight is read."""
        parameters = PARAMETERS[self.norm]
        reads = ["dy", self.normalized, *STATISTICS[self.norm], *parameters[:1]]
        writes = ["dx", *(GRADIENTS[name] for name in parameters)]
        if self.has_residual:
            reads.append("dresidual_out")
            if self.residual_dtype != self.dtype:
                writes.append("dresidual")
        reads, writes = self.of(*reads), self.of(*writes)
        rows = len(parameters) * partial_rows * self.heads
        if rows:
            reads["partials"] = writes["partials"] = rows * self.columns * self.wide
        return Traffic(reads, writes, self.rows * self.columns)


def _sizes(operator, rows, columns, dtype, residual_dtype=None, heads=1):
    """The sizes of all arrays. Args, Raises:  as moved"""
    _check("operator", operator, OPERATORS)
    least = {"rows": (rows, 0), "columns": (columns, 0), "heads": (heads, 1)}
    for name, (value, lowest) in least.items():
        if value < lowest:
            raise ValueError(f"{name}: got {value}, needs at least {lowest}")
    residual_dtype = residual_dtype or dtype
    _check("dtype", dtype, BYTES)
    _check("residual_dtype", residual_dtype, BYTES)
    return _Sizes(operator, rows, columns, dtype, residual_dtype, heads)


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
    if direction == "forward":
        return sizes.forward()
    backward = sizes.backward(partial_rows)
    return backward if direction == "backward" else sizes.forward() + backward


def operations(operator: str, direction: str) -> int:
    """Floating-point operations an element, what is done once a row left out: the roofline's other number.

    Args:  operator: one of OPERATORS; direction: "forward" or "backward"
    """
    _check("operator", operator, OPERATORS)
    _check("direction", direction, tuple(OPERATIONS))
    counts = OPERATIONS[direction]
    return counts[operator.removeprefix("add_")] + operator.startswith("add_")


def by_package(
    operator: str,
    direction: str,
    *,
    multiprocessors: int,
    **shape,
) -> Traffic:
    """What this package's Triton kernels move: the floor, and in a backward the partial sums of dw and db.

    Where a program reads a row twice, the second reading is from the cache, and is not counted.
    Rows too long for one program take one kernel more, which reads dy, the input, the statistics and the weight for c1
    and c2 of each row; the next kernel reads these, and all of that again. What one kernel reads again is taken to be
    in the cache by then, and counted once: a long row in the later sweeps of its forward, and vectors. At 65536 columns
    the rows under way are larger than the cache of an H100, and the count is a lower bound.

    Args:     direction: "forward" or "backward"; multiprocessors: of the GPU; operator and the rest as moved
    Raises:   ValueError naming the argument, what it got and what it needs
    """
    # not at the top, since it imports triton
    from ..triton_kernels import configuration

    if multiprocessors < 1:
        raise ValueError(f"multiprocessors: got {multiprocessors}, needs at least 1")
    _check("direction", direction, tuple(OPERATIONS))
    floor, sizes = moved(operator, direction, **shape), _sizes(operator, **shape)
    if direction == "forward" or not floor.elements:
        return floor
    tile = configuration.backward_tile(sizes.columns, sizes.wide, sizes.light)
    device = configuration.Device(multiprocessors, shared_memory=0)
    programs = configuration.programs(
        sizes.rows // sizes.heads, sizes.columns, tile, device, False, sizes.heads
    )
    launched = moved(operator, direction, partial_rows=programs, **shape)
    if not tile.sweeps:
        return launched
    # The kernel of c1 and c2, and the reading of both by the next one.
    sums = sizes.of("c1", "c2")
    rows = sizes.of("dy", sizes.normalized, *STATISTICS[sizes.norm])
    weight = sizes.of(*PARAMETERS[sizes.norm][:1])
    return launched + Traffic(rows, {}, 0) + Traffic(weight | sums, sums, 0)
