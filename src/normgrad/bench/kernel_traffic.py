"""Bytes that kernels move beside the floor: this package's own, by the tables that launch them, and separate ones."""

from __future__ import annotations

from . import traffic
from .traffic import Traffic


def normgrad(operator: str, direction: str, *, multiprocessors: int, portable_sums: bool = False, **shape) -> Traffic:
    """What this package's Triton kernels move: the floor, and in a backward the partial sums of dw and db.

    Where a program reads a row twice, the second reading is from the cache, and is not counted.
    Rows too long for one program take one kernel more, which reads dy, the input, the statistics and the weight for c1
    and c2 of each row; the next kernel reads these, and all of that again. What one kernel reads again is taken to be
    in the cache by then, and counted once: a long row in the later sweeps of its forward, and vectors. At 65536 columns
    the rows under way are larger than the cache of an H100, and the count is a lower bound.

    Args:     multiprocessors: of the GPU; portable_sums: as normgrad.normalize; operator, direction and the rest as
              traffic.moved
    Raises:   ValueError naming the argument, what it got and what it needs
    """
    # not at the top, since it imports triton
    from ..triton_kernels import configuration

    if multiprocessors < 1:
        raise ValueError(f"multiprocessors: got {multiprocessors}, needs at least 1")
    if direction == "both":
        options = {"multiprocessors": multiprocessors, "portable_sums": portable_sums, **shape}
        return normgrad(operator, "forward", **options) + normgrad(operator, "backward", **options)
    floor = traffic.moved(operator, direction, **shape)
    if direction == "forward" or not floor.elements:
        return floor
    sizes = traffic.arrays(operator, **shape)
    tile = configuration.backward_tile(sizes.columns, sizes.wide, sizes.light)
    device = configuration.Device(multiprocessors, shared_memory=0)
    of_head = sizes.rows // sizes.heads
    programs = configuration.programs(of_head, sizes.columns, tile, device, portable_sums, sizes.heads)
    found = traffic.moved(operator, direction, partial_rows=programs, **shape)
    return found + _row_sums(sizes) if tile.sweeps else found


def _row_sums(sizes) -> Traffic:
    """What the kernel of c1 and c2 moves, and the reading of both by the next one."""
    sums = sizes.of("c1", "c2")
    return sizes.again() + Traffic(sizes.of(*sizes.parameters[:1]) | sums, sums, 0)


def separate(operator: str, direction: str, **shape) -> Traffic:
    """The sum as a kernel of its own, and dw and db summed by a kernel that reads everything again: torch's way.

    Args:  as traffic.moved
    """
    if direction == "both":
        return separate(operator, "forward", **shape) + separate(operator, "backward", **shape)
    norm = operator.removeprefix("add_")
    count = traffic.unfused if norm != operator else traffic.moved
    found = count(operator, direction, **shape)
    return found if direction == "forward" else found + traffic.arrays(operator, **shape).again()
