"""Bytes counted while a computation runs, operation by operation in torch; what kernels move, `watch` counts.

No time is measured, so that the counts are the same on every machine.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Operations that take a tensor for its shape alone, or overwrite all of it; copy_ reads its second argument.
UNREAD = ("zeros", "ones", "full", "empty", "new_", "zero_", "fill_", "copy_")
# They compute nothing.
MOVES = ("_to_copy", "clone")
# They give a tensor other memory, which moves nothing.
ALIASES = ("set_", "resize_")


@dataclass(frozen=True)
class Call:
    """One torch operation: its name, the bytes it reads and writes, and how many results it computes."""

    name: str
    reads: int
    writes: int
    operations: int


class Counted(TorchDispatchMode):
    """A context in which each torch operation is taken for one kernel.

    The kernel reads each tensor that it is given once and writes each result once. A view costs nothing, and of a
    broadcast tensor only the numbers that are stored count. Autograd's own operations are counted as well.
    """

    def __init__(self):
        super().__init__()
        self.calls: list[Call] = []

    def __enter__(self):
        # A mode of torch imports Triton; the package's import comes first: without a GPU it chooses the interpreter.
        with contextlib.suppress(ImportError):
            from ..triton_kernels import interpreter  # noqa: F401
        return super().__enter__()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        results = function(*arguments, **options)
        call = _call(function, arguments, options, results)
        if call is not None:
            self.calls.append(call)
        return results

    @property
    def reads(self) -> int:
        """Bytes read by all calls."""
        return sum(call.reads for call in self.calls)

    @property
    def writes(self) -> int:
        """Bytes written by all calls."""
        return sum(call.writes for call in self.calls)

    @property
    def total(self) -> int:
        """Bytes read and written by all calls."""
        return self.reads + self.writes

    @property
    def operations(self) -> int:
        """Results computed by all calls: one a number for arithmetic, none for copies."""
        return sum(call.operations for call in self.calls)


def stored_bytes(t: torch.Tensor) -> int:
    """The bytes of the numbers that a tensor stores: an axis that only repeats them has stride 0."""
    sizes = (
        size
        for size, stride in zip(t.shape, t.stride(), strict=True)
        if stride or size == 0
    )
    return math.prod(sizes) * t.element_size()


def _tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _arguments(function, arguments, options):
    """(tensors that are read, tensors that are written into) by an operation, from its schema."""
    read, written = [], []
    for number, argument in enumerate(function._schema.arguments):
        tensors = _tensors(
            arguments[number] if number < len(arguments) else options.get(argument.name)
        )
        changed = argument.alias_info is not None and argument.alias_info.is_write
        written += tensors if changed else []
        output = changed and argument.kwarg_only  # out=
        read += [] if output else tensors
    different = {
        (t.data_ptr(), t.shape, t.stride()): t for t in read
    }  # x * x reads x once
    return list(different.values()), written


def _call(function, arguments, options, results):
    """The Call of one operation, None where it moves nothing."""
    name = function.overloadpacket.__name__
    if name in ALIASES:
        return None
    read, written = _arguments(function, arguments, options)
    if name.startswith(UNREAD):
        read = [t for t in read if t is arguments[1]] if name == "copy_" else []
    if not written:
        memory = {
            t.untyped_storage().data_ptr() for t in _tensors((arguments, options))
        }
        written = [
            t for t in _tensors(results) if t.untyped_storage().data_ptr() not in memory
        ]
        if (
            not written or "empty" in name
        ):  # a view, or memory that nobody has written yet
            return None
    computed = (
        0
        if name.startswith((*UNREAD, *MOVES))
        else max(t.numel() for t in (*read, *written))
    )
    return Call(
        name, sum(map(stored_bytes, read)), sum(map(stored_bytes, written)), computed
    )
