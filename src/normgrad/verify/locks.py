"""The lock of Triton's tutorial, by its syntax, and what is added under it.

One program after the other adds to a row of partial sums:

while tl.atomic_cas(Lock, 0, 1) == 1:
    pass
count = tl.load(Count)
if count == 0:
    tl.atomic_xchg(Count, 1)
else:
    partial += tl.load(P, mask=mask)
tl.store(P, partial, mask=mask)
tl.debug_barrier()
tl.atomic_xchg(Lock, 0)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .binding import PIDS, Lock
from .memory import group_of
from .nodes import parts_of
from .tables.dtypes import FLOATS
from .values import Index, Mask, NotRead, Number, Pointer, Qualified


@dataclass
class Block:
    """A lock, and what is done under it.

    Args:  library: whose functions are called; lock, count: their addresses
           sums: [(an address, its mask or None, the name of what is added)]
           is_fenced: whether a barrier stands before the lock is given back
           names: that hold something else afterwards; length: how many statements it is
    """

    library: ast.expr
    lock: ast.expr
    count: ast.expr
    sums: list[tuple]
    names: list[str]
    is_fenced: bool
    length: int


def lock_of(body: Sequence[ast.stmt]) -> Block | None:
    """The lock with which statements begin; None where one of them is other than in the pattern above."""
    match body:
        case [
            ast.While(ast.Compare(ast.Call(ast.Attribute(library), [lock, *_]))),
            ast.Assign([ast.Name(counted)], ast.Call(_, [count])),
            ast.If(orelse=adds),
            *_,
        ]:
            tl, held, counts = map(ast.unparse, (library, lock, count))
        case _:
            return None
    sums, names, adding, storing = [], [counted], [], []
    for add in adds:
        match add:
            case ast.AugAssign(ast.Name(name), _, ast.Call(_, [address], words)):
                masks = [word.value for word in words if word.arg == "mask"]
            case _:
                return None
        if len(masks) < len(words) or name in names:
            return None
        names.append(name)
        sums.append((address, masks[0] if masks else None, name))
        own, *masked = map(ast.unparse, (address, *words))
        adding.append(f"    {name} += {tl}.load({', '.join([own, *masked])})")
        storing.append(f"{tl}.store({', '.join([own, name, *masked])})")
    mark = f"if {counted} == 0:\n    {tl}.atomic_xchg({counts}, 1)\nelse:"
    lines = [f"{counted} = {tl}.load({counts})", "\n".join([mark, *adding]), *storing]
    wait = f"while {tl}.atomic_cas({held}, 0, 1)"
    first, *written = map(ast.unparse, body)
    barrier = [f"{tl}.debug_barrier()"]
    is_fenced = written[len(lines) : len(lines) + 1] == barrier
    lines += [*barrier * is_fenced, f"{tl}.atomic_xchg({held}, 0)"]
    waits = f"{wait} == 1:\n    pass", f"{wait} != 0:\n    pass"
    if first not in waits or written[: len(lines)] != lines:
        return None
    addresses = [lock, count, *[part for access in sums for part in access[:2] if part]]
    plain = ast.Name | ast.BinOp | ast.operator | ast.expr_context | ast.Constant
    for part in parts_of(addresses):
        if not isinstance(part, plain) or getattr(part, "id", "") in names:
            return None
    length = len(lines) + 1
    return Block(library, lock, count, sums, names, is_fenced, length)


class CriticalSection:
    """Reads a lock, and the additions under it.

    Args:  reader: the Kernel, which reads their addresses
    """

    def __init__(self, reader):
        self.reader, self.tiles, self.launch = reader, reader.tiles, reader.launch

    def read(self, body, local):
        """How many statements are a lock, under which a program adds to a row of partial sums.

        For dw in two kernels. It stops a lock that is given back too early, or is not that of the row.
        """
        block = lock_of(body)
        evaluate, memory = self.reader.evaluate, self.tiles.memory
        inside = self.reader.inner or self.tiles.places.active or memory.guards
        # where several programs have one row, the first one that finds a count of 0 has not stored for all of them
        if block is None or inside or len(self.launch.grid) > 1:
            raise NotRead("the statement while, other than a lock around an addition")
        if evaluate(block.library, local) != Qualified("triton.language"):
            raise NotRead(f"{ast.unparse(block.library)} is not Triton's")
        lock, count = (evaluate(e, local) for e in (block.lock, block.count))
        bound = self.launch.arguments.get(getattr(lock, "name", ""))
        if not isinstance(bound, Lock) or count != self.tiles.operate(
            "Add", lock, Index(bound.size)
        ):
            raise NotRead("a count that does not belong to its lock")
        if lock.offset.e != group_of(PIDS[0], bound.size):
            raise NotRead("a lock that is not the program's number modulo the locks")
        for address, mask, name in block.sums:
            value, pointer = local[name], evaluate(address, local)
            self._check_lock(pointer, value, bound.size)
            mask = Mask(frozenset()) if mask is None else evaluate(mask, local)
            memory.add_under_lock(pointer, value, mask)
            self.tiles.rests_on[pointer.name] = len(self.tiles.sums.domain)
        if not block.is_fenced:
            self.tiles.told[
                "stores that are done before a lock is given back without a barrier "
                f"(line {body[0].lineno})"
            ] = None
        for name in block.names:
            local.pop(name, None)
        return block.length

    def _check_lock(self, pointer, value, size):
        """Refuses a sum that the two ways of a branch make of another dtype, and a row under another lock."""
        if not isinstance(pointer, Pointer) or not isinstance(value, Number):
            raise NotRead("what is added under a lock is no tile of numbers")
        rows, has_own_dtype = self.launch.groups.get(pointer.name, (None, False))
        if rows != size:
            raise NotRead(f"{pointer.name} has other rows than there are locks")
        is_own = value.dtype == FLOATS and has_own_dtype
        if not (is_own or value.dtype == {"float32"}):
            raise NotRead("a sum under a lock that may be of another dtype")
