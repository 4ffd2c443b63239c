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
from .nodes import nodes_of
from .tables.dtypes import FLOATS
from .values import Index, Mask, NotRead, Number, Pointer, Qualified


@dataclass
class Block:
    """A lock, and what is done under it.

    Args:  lock, count: their addresses; sums: [(an address, its mask or None, the name of what is added)]
           names: that hold something else afterwards; functions: that are called
           is_fenced: whether a barrier stands before the lock is given back; length: how many statements it is
    """

    lock: ast.expr
    count: ast.expr
    sums: list[tuple]
    names: list[str]
    functions: list[ast.expr]
    is_fenced: bool
    length: int


def _called(node, name, *values):
    """(the function, its first argument, its mask) of name(address, *values, mask=mask); None of all else."""
    if isinstance(node, ast.Expr):
        node = node.value
    match node:
        case ast.Call(called, [address, *others], keywords):
            masks = [word.value for word in keywords if word.arg == "mask"]
        case _:
            return None
    is_named = ast.unparse(called).rpartition(".")[2] == name
    if not is_named or list(map(ast.unparse, others)) != list(values):
        return None
    if len(masks) < len(keywords) or len(masks) > (name in ("load", "store")):
        return None
    return called, address, masks[0] if masks else None


def _text(call):
    """An access as text, without its function."""
    return [None if part is None else ast.unparse(part) for part in call[1:]]


def lock_of(body: Sequence[ast.stmt]) -> Block | None:
    """The lock with which statements begin; None where one of them is other than in the pattern above."""
    match body:
        case [
            ast.While(
                ast.Compare(cas, [operator], [ast.Constant(held)]), [ast.Pass()], []
            ),
            ast.Assign([ast.Name(counted)], load),
            ast.If(
                ast.Compare(ast.Name(asked), [ast.Eq()], [ast.Constant(0)]),
                [mark],
                adds,
            ),
            *rest,
        ] if asked == counted:
            pass
        case _:
            return None
    is_equal = isinstance(operator, ast.Eq) and held == 1
    if not (is_equal or isinstance(operator, ast.NotEq) and held == 0):
        return None
    calls = [
        _called(cas, "atomic_cas", "0", "1"),
        _called(load, "load"),
        _called(mark, "atomic_xchg", "1"),
    ]
    if None in calls or _text(calls[1]) != _text(calls[2]) or calls[1][2] is not None:
        return None
    sums, names = [], [counted]
    for add, store in zip(adds, rest, strict=False):
        match add:
            case ast.AugAssign(ast.Name(name), ast.Add(), value):
                pair = _called(value, "load"), _called(store, "store", name)
            case _:
                return None
        if None in pair or _text(pair[0]) != _text(pair[1]):
            return None
        calls += pair
        names.append(name)
        sums.append((*pair[0][1:], name))
    if len(sums) < len(adds) or len(set(names)) < len(names):
        return None
    rest = rest[len(adds) :]
    is_fenced = bool(rest) and ast.unparse(rest[0]).endswith(".debug_barrier()")
    if is_fenced:
        calls.append((rest[0].value.func, None, None))
        rest = rest[1:]
    release = _called(rest[0], "atomic_xchg", "0") if rest else None
    if release is None or _text(release) != _text(calls[0]):
        return None
    addresses = [part for call in calls for part in call[1:] if part is not None]
    used = {
        n.id for part in addresses for n in nodes_of(part) if isinstance(n, ast.Name)
    }
    plain = all(
        isinstance(
            n, ast.Name | ast.BinOp | ast.operator | ast.expr_context | ast.Constant
        )
        for part in addresses
        for n in nodes_of(part)
    )
    if used & set(names) or not plain:
        return None
    functions = [call[0] for call in [*calls, release]]
    length = len(body) - len(rest) + 1
    return Block(calls[0][1], calls[1][1], sums, names, functions, is_fenced, length)


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
        paths = {called: evaluate(called, local) for called in block.functions}
        for called, value in paths.items():
            name = ast.unparse(called).rpartition(".")[2]
            if value != Qualified(f"triton.language.{name}"):
                raise NotRead(f"{ast.unparse(called)} is not Triton's")
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
            words = "stores that are done before a lock is given back without a barrier"
            self.tiles.told[f"{words} (line {body[0].lineno})"] = None
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
