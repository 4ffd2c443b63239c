"""What the GPU benchmark measures: which shapes, how many input sets of each, and whether they fit in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from . import traffic

OPERATORS = ("layer_norm", "rms_norm", "add_layer_norm", "add_rms_norm")
DTYPES = ("bfloat16", "float16", "float32")
COLUMNS = (256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 32768, 65536)
MEBI = 2**20
# Sizes of the activation, in Mi elements.
ELEMENTS = (16, 64, 256)
# The shapes that the promises of normgrad.bench.judge are about, and the size of the activation that they have.
ALWAYS = ((16384, 4096), (8192, 8192))
USUAL = 64
# What a quick run measures; and for how long.
QUICK = {"columns": (4096, 8192), "elements": (USUAL,)}
QUICK_MINUTES = 2
ROUNDS = 20
# Between two uses of one buffer, this many times the L2 cache has passed through it.
CACHES = 3
# Part of the free memory that a shape may need by the estimate below.
MEMORY_SHARE = 0.8
# float32 matrices that the comparison with the reference holds for a while.
TEMPORARIES = 8


@dataclass(frozen=True)
class Shape:
    """An operator on M rows of length N; its three directions are measured in one visit."""

    operator: str
    dtype: str
    rows: int
    columns: int

    def moved(self, direction: str) -> traffic.Traffic:
        """The floor of a direction."""
        return traffic.moved(self.operator, direction, rows=self.rows, columns=self.columns, dtype=self.dtype)

    def key(self, direction: str) -> tuple:
        """What identifies a point of a results file."""
        return self.operator, direction, self.dtype, self.rows, self.columns


def shapes(operators, dtypes=DTYPES, columns=COLUMNS, elements=ELEMENTS) -> list[Shape]:
    """All shapes, each once, those that matter most first, so that a run that is cut short has them.

    The shapes of ALWAYS, where their N is among the columns, in the first dtype; every N at the usual size in that
    dtype; both in the other dtypes; then the other sizes, dtype by dtype.

    Args:  operators, dtypes: their names; columns: each N; elements: M N in Mi, M is M N / N rounded down, at least 1
    """
    first = [shape for shape in ALWAYS if shape[1] in columns]
    sizes = {size: [(max(1, size * MEBI // n), n) for n in columns] for size in elements}
    usual = sizes.pop(USUAL, [])
    others = [shape for size in sizes.values() for shape in size]
    main, rest = dtypes[:1], dtypes[1:]
    ordered = ((main, first), (main, usual), (rest, first), (rest, usual), (main, others), (rest, others))
    found = {}
    for chosen, part in ordered:
        for dtype in chosen:
            for rows, n in part:
                for operator in operators:
                    found.setdefault(Shape(operator, dtype, rows, n))
    return list(found)


def scaled(planned: list[Shape], l2_bytes: int, free_bytes: int, contenders: int) -> list[Shape]:
    """The same shapes with their rows halved until they fit, or until one row is left.

    Args:  as fitting
    """
    found = {}
    for shape in planned:
        while shape.rows > 1 and memory(shape, l2_bytes, contenders) > MEMORY_SHARE * free_bytes:
            shape = replace(shape, rows=shape.rows // 2)
        found.setdefault(shape)
    return list(found)


def sets(moved_bytes: int, l2_bytes: int) -> int:
    """How many input sets are rotated: at least 2, so many that CACHES times the L2 lies between two uses of one.

    Args:  moved_bytes: what one call moves; l2_bytes: the size of the cache
    """
    return max(2, 1 + math.ceil(CACHES * l2_bytes / max(1, moved_bytes)))


def memory(shape: Shape, l2_bytes: int, contenders: int) -> int:
    """Bytes that measuring a shape may need, all implementations of a direction being prepared at once.

    For every set: the inputs, each contender's outputs, the results of the graphs, which share their memory, and the
    two buffers of the copy; and, once, temporaries.

    Args:  shape; l2_bytes: the size of the cache; contenders: how many implementations
    """
    elements = shape.rows * shape.columns
    outputs = 2 if shape.operator.startswith("add_") else 1
    inputs, results = 2 * outputs, 2 * outputs
    matrices = (inputs + contenders * outputs + results) * elements * traffic.BYTES[shape.dtype]
    totals = [shape.moved(direction).total for direction in traffic.DIRECTIONS]
    return max(sets(total, l2_bytes) * (matrices + total) for total in totals) + TEMPORARIES * 4 * elements


def fitting(planned: list[Shape], l2_bytes: int, free_bytes: int, contenders: int):
    """(shapes that fit, those that do not).

    Args:  planned: as shapes returns them; l2_bytes, free_bytes: of the device; contenders: how many implementations
    """
    fit = [shape for shape in planned if memory(shape, l2_bytes, contenders) <= MEMORY_SHARE * free_bytes]
    return fit, [shape for shape in planned if shape not in fit]
