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


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{name}: got {value!r}, needs one of {', '.join(allowed)}")
    return value


@dataclass(frozen=True)
class _Sizes:
    """The size of every array of an operator, by its name, in bytes."""

    operator: str
    rows: int
    columns: int
    dtype: str
    residual_dtype: str
    out_dtype: str
    weight_dtype: str
    affine: bool
    heads: int = 1

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
        """Whether rows are not centred, and dy and what is normalized have one dtype of 16 bits."""
        p = self.residual_dtype if self.has_residual else self.dtype
        return self.norm != "layer_norm" and self.out_dtype == p and BYTES[p] == 2

    @property
    def parameters(self):
        return PARAMETERS[self.norm] if self.affine else ()

    def of(self, *names):
        """{name: bytes}; dx of the residual's dtype is called dresidual."""
        kinds = {
            "x": self.dtype,
            "dx": self.dtype,
            "y": self.out_dtype,
            "dy": self.out_dtype,
        }
        kinds |= dict.fromkeys(
            ("residual", "residual_out", "dresidual_out", "dresidual"),
            self.residual_dtype,
        )
        vectors = dict.fromkeys(
            ("weight", "bias", "dw", "db"),
            self.heads * self.columns * BYTES[self.weight_dtype],
        )
        vectors |= dict.fromkeys(("mean", "rstd", "c1", "c2"), self.rows * self.wide)
        matrices = {
            name: self.rows * self.columns * BYTES[dtype]
            for name, dtype in kinds.items()
        }
        return {name: (matrices | vectors)[name] for name in names}

    def forward(self):
        """Each input read once, each output written once."""
        read, written = (
            (("x", "residual"), ("y", "residual_out"))
            if self.has_residual
            else (("x",), ("y",))
        )
        made = self.of(*written, *STATISTICS[self.norm])
        return Traffic(self.of(*read, *self.parameters), made, self.rows * self.columns)

    def backward(self, partial_rows=0):
        """dx and dresidual are one array, unless their dtypes differ; of the parameters only the weight is read."""
        read = (
            "dy",
            self.normalized,
            *(("dresidual_out",) if self.has_residual else ()),
        )
        reads = self.of(*read, *STATISTICS[self.norm], *self.parameters[:1])
        inputs = (
            ("dx", "dresidual")
            if self.has_residual and self.residual_dtype != self.dtype
            else ("dx",)
        )
        writes = self.of(*inputs, *(GRADIENTS[name] for name in self.parameters))
        partials = (
            len(self.parameters) * partial_rows * self.heads * self.columns * self.wide
        )
        if partials:
            reads["partials"] = writes["partials"] = partials
        return Traffic(reads, writes, self.rows * self.columns)

    def again(self):
        """What another kernel of a backward reads once more: dy, p and the statistics."""
        return Traffic(
            self.of("dy", self.normalized, *STATISTICS[self.norm]),
            {},
            self.rows * self.columns,
        )


def arrays(
    operator,
    rows,
    columns,
    dtype,
    residual_dtype=None,
    out_dtype=None,
    weight_dtype=None,
    affine=True,
    heads=1,
):
    """The sizes of all arrays of an operator, by their names.

    Args, Raises:  as moved
    """
    _one_of("operator", operator, OPERATORS)
    for name, value, least in (
        ("rows", rows, 0),
        ("columns", columns, 0),
        ("heads", heads, 1),
    ):
        if value < least:
            raise ValueError(f"{name}: got {value}, needs at least {least}")
    dtypes = {
        "dtype": dtype,
        "residual_dtype": residual_dtype,
        "out_dtype": out_dtype,
        "weight_dtype": weight_dtype,
    }
    chosen = [
        _one_of(name, dtype if value is None else value, BYTES)
        for name, value in dtypes.items()
    ]
    return _Sizes(operator, rows, columns, *chosen, affine, heads)


def moved(operator: str, direction: str, *, partial_rows: int = 0, **shape) -> Traffic:
    """The floor: each input read once, each output written once.

    Args:     operator: one of OPERATORS; direction: "forward", "backward" or "both", which is one after the other;
              partial_rows: float32 rows of dw and db that a backward writes and reads again, 0 for the floor itself;
              rows, columns: M and N; dtype: of x and dx; residual_dtype: of residual, residual_out and their
              gradients; out_dtype: of y and dy; weight_dtype: of weight, bias, dw and db, where None or left out
              means dtype; affine: whether there are a weight and, in LayerNorm, a bias (default True); heads: how many
              rows weight and bias have, one for each head (default 1)
    Returns:  Traffic
    Raises:   ValueError naming the argument, what it got and what it needs
    """
    sizes = arrays(operator, **shape)
    _one_of("direction", direction, DIRECTIONS)
    if direction == "forward":
        return sizes.forward()
    backward = sizes.backward(partial_rows)
    return backward if direction == "backward" else sizes.forward() + backward


def unfused(operator: str, direction: str, **shape) -> Traffic:
    """An operator with a residual as two kernels: the sum first, then the norm of it; backward, the norm, then a sum.

    Args:  as moved, of an operator whose name begins with add_
    """
    _one_of(
        "operator",
        operator,
        tuple(name for name in OPERATORS if name.startswith("add_")),
    )
    _one_of("direction", direction, DIRECTIONS)
    if direction == "both":
        return unfused(operator, "forward", **shape) + unfused(
            operator, "backward", **shape
        )
    sizes = arrays(operator, **shape)
    between = sizes.of("residual_out")["residual_out"]
    if direction == "forward":
        return sizes.forward() + Traffic({"sum": between}, {}, 0)
    return sizes.backward() + Traffic({"norm's dx": between}, {"norm's dx": between}, 0)


def two_kernels(operator: str, **shape) -> Traffic:
    """A backward whose dw and db are summed by a second kernel, which reads dy, the input and the statistics again.

    Args:  as moved, of a norm without a residual
    """
    _one_of("operator", operator, tuple(STATISTICS))
    sizes = arrays(operator, **shape)
    return sizes.backward() + sizes.again()


def matrix(operator: str, **shape) -> Traffic:
    """A backward that writes each row's share of dw into an M x N float32 matrix and sums its columns afterwards.

    The sum over rows of dy, which is db, reads dy a second time.

    Args:  as moved
    """
    sizes = arrays(operator, **shape)
    elements, backward = sizes.rows * sizes.columns, sizes.backward()
    again = sizes.of("dy") if "bias" in sizes.parameters else {}
    return backward + Traffic(
        {"dw matrix": 4 * elements, **again}, {"dw matrix": 4 * elements}, elements
    )


def copy(total: int) -> Traffic:
    """A device copy that moves about `total` bytes: half of them read, half of them written."""
    return Traffic({"source": total // 2}, {"target": total // 2}, 0)


def operations(operator: str, direction: str) -> int:
    """Floating-point operations an element, what is done once a row left out: the roofline's other number.

    Args:  as moved
    """
    _one_of("operator", operator, OPERATORS)
    _one_of("direction", direction, DIRECTIONS)
    if direction == "both":
        return operations(operator, "forward") + operations(operator, "backward")
    norm, added = operator.removeprefix("add_"), int(operator.startswith("add_"))
    centred, parameters = int(norm == "layer_norm"), len(PARAMETERS[norm])
    if direction == "forward":
        # the mean's sum and the subtraction; square and its sum; times rstd; times weight, plus bias; the residual
        return 2 * centred + 3 + parameters + added
    weighted = int("weight" in PARAMETERS[norm])
    # x_hat (the subtraction where centred); wdy; c1's product and sum, c2's sum; minus x_hat c1, minus c2; times rstd;
    # dw's product and sum; db's sum; plus dresidual_out
    return (
        centred
        + 1
        + weighted
        + 2
        + centred
        + 2
        + centred
        + 1
        + 2 * weighted
        + (parameters - weighted)
        + added
    )


def by_package(
    operator: str,
    direction: str,
    *,
    multiprocessors: int,
    portable_sums: bool = False,
    **shape,
) -> Traffic:
    """What this package's Triton kernels move: the floor, and in a backward the partial sums of dw and db.

    Where a program reads a row twice, the second reading is from the cache, and is not counted.
    Rows too long for one program take one kernel more, which reads dy, the input, the statistics and the weight for c1
    and c2 of each row; the next kernel reads these, and all of that again. What one kernel reads again is taken to be
    in the cache by then, and counted once: a long row in the later sweeps of its forward, and vectors. At 65536 columns
    the rows under way are larger than the cache of an H100, and the count is a lower bound.

    Args:     multiprocessors: of the GPU; portable_sums: as normgrad.normalize; operator, direction and the rest as
              moved
    Raises:   ValueError naming the argument, what it got and what it needs
    """
    # not at the top, since it imports triton
    from ..triton_kernels import configuration

    if multiprocessors < 1:
        raise ValueError(f"multiprocessors: got {multiprocessors}, needs at least 1")
    if direction == "both":
        options = {
            "multiprocessors": multiprocessors,
            "portable_sums": portable_sums,
            **shape,
        }
        return by_package(operator, "forward", **options) + by_package(
            operator, "backward", **options
        )
    floor = moved(operator, direction, **shape)
    if direction == "forward" or not floor.elements:
        return floor
    sizes = arrays(operator, **shape)
    tile = configuration.backward_tile(sizes.columns, sizes.wide, sizes.light)
    device = configuration.Device(multiprocessors, shared_memory=0)
    of_head = sizes.rows // sizes.heads
    programs = configuration.programs(
        of_head, sizes.columns, tile, device, portable_sums, sizes.heads
    )
    launched = moved(operator, direction, partial_rows=programs, **shape)
    return launched + _row_sums(sizes) if tile.sweeps else launched


def _row_sums(sizes) -> Traffic:
    """What the kernel of c1 and c2 moves, and the reading of both by the next one."""
    sums = sizes.of("c1", "c2")
    return sizes.again() + Traffic(sizes.of(*sizes.parameters[:1]) | sums, sums, 0)
