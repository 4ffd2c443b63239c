"""Addresses in words: which number of which argument an address is, and tables of them that print well."""

from __future__ import annotations

import numpy as np


class Argument:
    """A tensor that a kernel was given, under the name of the argument. Args: name; tensor, on the CPU"""

    def __init__(self, name, tensor):
        if tensor.device.type != "cpu":
            raise ValueError(
                f"watch: argument {name} is on {tensor.device}, needs a tensor on the CPU"
            )
        storage, self.size = tensor.untyped_storage(), tensor.element_size()
        self.name, self.shape, self.strides = name, tuple(tensor.shape), tensor.stride()
        self.start, self.count = tensor.data_ptr(), tensor.numel()
        self.memory = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        last = sum(
            (length - 1) * step
            for length, step in zip(self.shape, self.strides, strict=True)
        )
        self.end = self.start + (last + 1) * self.size if self.count else self.start
        self.contiguous = tensor.is_contiguous()
        # The sorted addresses of its numbers, only where there are gaps between them or they stand in another order.
        self.order = None if self.contiguous else self._order()

    def _order(self):
        offsets = np.zeros(self.shape, np.int64)
        for axis, step in enumerate(self.strides):
            shape = [
                -1 if dimension == axis else 1 for dimension in range(len(self.shape))
            ]
            offsets += (np.arange(self.shape[axis]) * step).reshape(shape)
        flat = self.start + self.size * offsets.ravel()
        order = np.argsort(flat, kind="stable")
        return flat[order], order

    @property
    def bytes(self) -> int:
        """Bytes of its numbers."""
        return self.count * self.size

    def holds(self, addresses: np.ndarray) -> np.ndarray:
        """Which of the addresses are those of its numbers."""
        if self.order is None:
            return (addresses >= self.start) & (addresses < self.end)
        return np.isin(addresses, self.order[0])

    def reachable(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """Which of the addresses lie in its memory, where an access does no harm to the process."""
        return (addresses >= self.memory[0]) & (addresses + size <= self.memory[1])

    def distance(self, address: int) -> int:
        """How many bytes the address is away; 0 inside."""
        return max(self.start - address, address - self.end + 1, 0)

    def index(self, address: int) -> tuple[int, ...]:
        """The index of the number at an address."""
        if self.order is None:
            number = (address - self.start) // self.size
        else:
            number = self.order[1][np.searchsorted(self.order[0], address)]
        return tuple(int(i) for i in np.unravel_index(number, self.shape))

    def extent(self) -> str:
        """The offsets from its first number that it has, in words."""
        if self.contiguous:
            return f"0 to {self.count - 1}" if self.count else "none"
        return f"shape {self.shape}, strides {tuple(self.strides)}"


def numbers(values) -> str:
    """Sorted numbers in words: 0 1 2, or 0 to 63."""
    values = sorted(set(values))
    if len(values) > 3 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]} to {values[-1]}"
    return " ".join(map(str, values)) or "none"


def _joined(boxes, axis):
    """Boxes with neighbours along an axis made one; a box is [facts, ranges], a range (first, end) for each axis."""
    joined = []
    for facts, ranges in boxes:
        rest_of_box = [
            range_ for dimension, range_ in enumerate(ranges) if dimension != axis
        ]
        follows = axis < len(ranges) and joined and joined[-1][0] == facts
        if follows and joined[-1][1][axis][1] == ranges[axis][0]:
            last = joined[-1][1]
            if [
                range_ for dimension, range_ in enumerate(last) if dimension != axis
            ] == rest_of_box:
                last[axis] = (last[axis][0], ranges[axis][1])
                continue
        joined.append([facts, list(ranges)])
    return joined


def merged(rows):
    """(facts, place) of each run of neighbours with the same facts; a place reads as Python does: dx[2, 0:8].

    Args:  rows: (facts, index), facts with the argument's name as the second or the only one
    """
    boxes = [[facts, [(i, i + 1) for i in index]] for facts, index in rows]
    for axis in reversed(range(max((len(ranges) for _, ranges in boxes), default=0))):
        boxes = _joined(boxes, axis)
    for facts, ranges in boxes:
        name = facts[1] if len(facts) > 1 else facts[0]
        words = [
            str(first) if end == first + 1 else f"{first}:{end}"
            for first, end in ranges
        ]
        yield facts, f"{name}[{', '.join(words)}]" if words else name


class Table(list):
    """Rows, tuples in a list; printed with a heading, and the first ones only where there are many."""

    SHOWN = 12

    def __init__(self, noun, titles, rows):
        super().__init__(rows)
        self.noun, self.titles = noun, titles

    def __repr__(self):
        if not self:
            return f"no {self.noun}"
        lines = [self.titles, *(tuple(map(str, row)) for row in self[: self.SHOWN])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
                 for line in lines]  # fmt: skip
        if len(self) > self.SHOWN:
            shown.append(f"... and {len(self) - self.SHOWN} more")
        return "\n".join(shown)

    __str__ = __repr__
