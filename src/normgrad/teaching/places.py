"""Addresses in words: which number of which argument an address is, and tables of them that print well."""

from __future__ import annotations

from itertools import groupby

import numpy as np


class Argument:
    """A tensor that a kernel was given, under the name of the argument. Args: name; tensor, on the CPU"""

    def __init__(self, name, tensor):
        if tensor.device.type != "cpu":
            raise ValueError(
                f"watch: argument {name} is on {tensor.device}, needs a tensor on the CPU"
            )
        self.name, self.size = name, tensor.element_size()
        self.shape, self.strides = tuple(tensor.shape), tensor.stride()
        self.start, self.count = tensor.data_ptr(), tensor.numel()
        storage = tensor.untyped_storage()
        self.memory = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        self.contiguous = tensor.is_contiguous()
        steps = np.array(self.strides, np.int64)
        offsets = np.tensordot(steps, np.indices(self.shape), 1)
        offsets, self.order = np.unique(offsets, return_index=True)
        # The addresses of its numbers, sorted; 0 stands before them.
        self.addresses = np.append(0, self.start + self.size * offsets)
        self.end = int(self.addresses[-1]) + self.size if self.count else self.start

    @property
    def bytes(self) -> int:
        """Bytes of its numbers."""
        return self.count * self.size

    def holds(self, addresses: np.ndarray) -> np.ndarray:
        """Which of the addresses are those of its numbers."""
        before = np.searchsorted(self.addresses, addresses, "right") - 1
        return addresses - self.addresses[before] < self.size

    def reachable(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """Which of the addresses lie in its memory, where an access does no harm to the process."""
        return (addresses >= self.memory[0]) & (addresses + size <= self.memory[1])

    def distance(self, address: int) -> int:
        """How many bytes the address is away; 0 inside."""
        return max(self.start - address, address - self.end + 1, 0)

    def index(self, address: int) -> tuple[int, ...]:
        """The index of the number at an address."""
        before = np.searchsorted(self.addresses, address, "right") - 1
        number = self.order[before - 1]
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
    """Boxes with neighbours along an axis made one; a box is a range (first, end) for each axis."""
    joined = []
    for box in boxes:
        last = joined[-1] if joined else None
        if last and last[:axis] + last[axis + 1 :] == box[:axis] + box[axis + 1 :]:
            first, end = last[axis]
            if end == box[axis][0]:
                last[axis] = (first, box[axis][1])
                continue
        joined.append(box)
    return joined


def merged(rows):
    """(facts, place) of each run of neighbours with the same facts; a place reads as Python does: dx[2, 0:8].

    Args:  rows: (facts, index), facts with the argument's name as the second or the only one
    """
    for facts, group in groupby(rows, key=lambda row: row[0]):
        boxes = [[(i, i + 1) for i in index] for _, index in group]
        for axis in reversed(range(len(boxes[0]))):
            boxes = _joined(boxes, axis)
        name = facts[:2][-1]
        for box in boxes:
            words = [
                str(first) if end == first + 1 else f"{first}:{end}"
                for first, end in box
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
