"""The branches of a kernel: those that Triton compiles or leaves out, and those that it compiles both ways.

What decides a test while Triton compiles, as a flag, takes one way. A test that is known only while the kernel runs
leaves both: no name may hold another kind of value after one than after the other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace

from .binding import letter
from .names import Given, Unbound
from .nodes import parts_of
from .syntax import assigned, is_stored, names_in
from .tables.dtypes import spelled
from .tiles import Tiles
from .values import (
    UNCOMPILED,
    Dtype,
    Flag,
    Index,
    Limit,
    Mask,
    NotRead,
    Number,
    Pointer,
    Wrong,
    as_tensor,
    constants,
    described,
    of_constants,
    uncompiled,
)

VALUES = Index | Number | Mask | Pointer
RUNTIME = (
    "which Triton compiles both ways, as it is known only while the kernel runs; "
    "make it of arguments with tl.constexpr"
)


class Branches:
    """Reads statements and choices of two values under a condition.

    Args:  reader: the Kernel, which reads what stands in them
    """

    def __init__(self, reader):
        self.reader, self.tiles = reader, reader.tiles

    def read(self, node, local):
        """A branch: decided by the binding, by a dtype that changes nothing, or a guard of the rows.

        One that is known only while the kernel runs is compiled both ways, so the other way has to be as this one is,
        and what it binds ends with it. Without it `if n < 1: x = undefined` and `if n > 0: z = x` are proved.
        """
        test = self.reader.evaluate(node.test, local)
        self._check_condition(test, node.test, local)
        if self.tiles.varies(test) and not node.orelse:
            return self._guarded(node, node.body, test, local)
        decided = self.tiles.truth(test)
        if decided is None:
            return self._by_dtype(node, local)
        if self.reader.is_fixed(node.test, local):
            if isinstance(node, Rest) and not decided:
                self.compile_rest(node.body, local)
            return self.reader.execute(node.body if decided else node.orelse, local)
        ways = [node.orelse, node.body]
        if self._unnamed(ways[0], local) != self._unnamed(ways[1], local):
            if not self._leaves(ways[not decided], local):
                return self._one_of_two(node, ways[not decided], ways[decided], local)
        return self._guarded(node, ways[decided], Mask(frozenset()), local)

    def chosen(self, test, truth, node, local):
        """One of two values, of one kind where Triton decides the test only while the kernel runs."""
        way, other = node.body, node.orelse
        if not truth:
            way, other = other, way
        if not self.reader.is_fixed(node.test, local):
            with forgotten(self.tiles):
                other = self.reader.evaluate(other, local)
            value = self.reader.evaluate(way, local)
            if not is_kept(value, other):
                raise NotRead(f"a choice by {ast.unparse(node.test)}, {RUNTIME}")
            # a choice that Triton makes while it compiles leaves a constant, where sizes of the test are 1
            known = names_in(node.test) & local.keys()
            parts = [self.reader.evaluate(ast.Name(name), local) for name in known]
            return of_constants(value, value, *parts) if known else as_tensor(value)
        self._check_condition(test, node.test, local)
        return self.reader.evaluate(way, local)

    def either(self, test, node, local):
        """A choice by a dtype, of two values that are equal."""
        ways = node.body, node.orelse
        values = [self._of_a_dtype(self.reader.evaluate, way, local) for way in ways]
        if is_either(*values):
            return of_either(*values)
        if all(isinstance(v, Number) and v.inside.is_Rational for v in values):
            least = min(value.inside for value in values)
            if least >= 2**60:
                return Limit(least)
        raise NotRead("a value that depends on a dtype")

    def _check_condition(self, test, node, local):
        """Refuses a float that is compiled in as a condition: Triton takes bool, int and None."""
        if not isinstance(test, Number):
            return
        if self.reader.is_fixed(node, local):
            raise uncompiled("a branch on a float that is compiled in")
        self.tiles.check_tensor(test, f"a branch on {ast.unparse(node)}, as a float,")

    def _leaves(self, body, local):
        """Whether a way of a branch leaves all names what they are, by assignments without calls."""
        after = dict(local)
        calls = any(isinstance(part, ast.Call) for part in parts_of(body))
        if all(isinstance(n, ast.Assign | ast.AugAssign) for n in body) and not calls:
            self.reader.execute(body, after)
            return all(is_kept(local.get(name), after[name]) for name in after)
        return False

    def _one_of_two(self, node, other, body, local):
        """Reads the way of a branch that every program takes; the other one is compiled, and forgotten.

        For `if target == -100: loss = 0.0`. It stops another way that does not compile, or gives a name another dtype.
        """
        words = f"a branch on {ast.unparse(node.test)}, {RUNTIME}"
        self._check_branch(node, local)
        after = dict(local)
        try:
            with forgotten(self.tiles):
                self.reader.inside(other, after)
        except NotRead as reason:
            if type(reason) is not NotRead:
                raise
            raise NotRead(words) from None
        self.reader.inside(body, local)
        for name in assigned(other) | assigned(body):
            value, another = local.get(name), after.get(name)
            if None in (value, another):
                local[name] = Unbound(words)
            elif not (is_kept(value, another) or is_kept(another, value)):
                raise NotRead(words)
            elif isinstance(value, Index | Number):
                local[name] = replace(value, dtype=value.dtype & another.dtype)

    def _unnamed(self, body, local):
        """Statements as text without the names of pointers, and of arguments that are read nowhere before."""
        match body:
            case [ast.If(test, inner, [])] if self.reader.is_fixed(test, local):
                body = inner  # it is compiled or it is not
        text = "\n".join(map(ast.unparse, body))
        for name in names_in(ast.Module(body, [])) & set(local) - self.tiles.unbound:
            if isinstance(local[name], Unbound | Pointer):
                text = re.sub(rf"\b{name}\b", "a pointer", text)
        return text

    def _by_dtype(self, node, local):
        """Both ways of a branch on a dtype, which may differ in dtypes alone."""
        ways, stores = [dict(local), dict(local)], self.tiles.memory.stores
        before = sum(map(len, stores.values()))
        for way, body in zip(ways, (node.body, node.orelse), strict=True):
            self._of_a_dtype(self.reader.inside, body, way)
        if sum(map(len, stores.values())) != before:
            raise NotRead("a store that depends on a dtype")
        local.clear()
        for name in ways[0].keys() & ways[1].keys():
            both = ways[0][name], ways[1][name]
            if is_either(*both):
                local[name] = of_either(*both)

    @staticmethod
    def _of_a_dtype(read, way, local):
        """What is read on one way of a branch on a dtype.

        For `if x.dtype == tl.float32:` above a function. Without it a kernel that is compiled for all other tensors is
        accused.
        """
        try:
            return read(way, local)
        except Wrong as wrong:
            if not str(wrong).startswith(UNCOMPILED):
                raise
            raise NotRead(
                f"on one way of a branch on a dtype: {wrong}", wrong.line
            ) from None

    def _check_branch(self, node, local):
        """Refuses a branch that gives a constant of Triton's another value, unless Triton decides it."""
        try:
            self.check_tensors([*node.body, *node.orelse], local, is_loop=False)
        except Wrong as reason:
            raise NotRead(
                f"{reason}, in a branch on {ast.unparse(node.test)}, {RUNTIME}"
            ) from None

    def _guarded(self, node, body, mask, local):
        """`if row < M:` for an index that the launch does not decide: its stores are masked by it."""
        if not isinstance(node, Rest):
            self._check_branch(node, local)
        before, after = dict(local), dict(local)
        self.tiles.memory.guards.append(mask.below)
        self.reader.inside(body, after)
        self.tiles.memory.guards.pop()
        for name, value in before.items():
            if name in after and after[name] is value:
                continue
            other = after.get(name)
            del local[name]
            if name in after and not isinstance(node, Rest):
                check_kept(name, value, other)
            if all(isinstance(v, Number) and v.complete for v in (other, value)):
                if is_kept(value, other):
                    merged = self.tiles.where(mask, other, value)
                    local[name] = replace(merged, dtype=value.dtype & other.dtype)

    def compile_rest(self, body, local, value=None):
        """Reads what follows a return in a branch that is decided while Triton compiles, and forgets what it does.

        For `if FLAG: return`. Triton compiles the rest, too, so without it a rest with a name that has no value is
        proved.

        Args:  value: what was returned
        """
        unread = self.tiles.memory.unread
        count = len(unread)
        with forgotten(self.tiles):
            try:
                another = self.reader.returned(body, dict(local))
                if unread[count:]:
                    raise unread.pop()
            except NotRead as reason:
                if not str(reason).startswith(UNCOMPILED) and type(reason) is not Flag:
                    raise NotRead(
                        f"{reason}; Triton compiles it, although it stands after a return; put it under else",
                        reason.line,
                    ) from None
                raise
        if another is not None and not is_kept(value, another):
            raise NotRead("a return of another kind of value than a return before it")

    def live(self, body, names, local):
        """A loop's statements without the branches that flags from outside it rule out."""
        live = []
        for node in body:
            decided = None
            if isinstance(node, ast.For | ast.While):
                node = copy(node)
                node.body = self.live(node.body, names, local)
            elif isinstance(node, ast.If) and not names_in(node.test) & names:
                with suppress(NotRead):  # the branch itself says so, if it is read
                    if self.reader.is_fixed(node.test, local):
                        test = self.reader.evaluate(node.test, local)
                        decided = self.tiles.truth(test)
            if decided is None:
                live.append(node)
            else:
                way = node.body if decided else node.orelse
                live += self.live(way, names, local)
        return live

    def check_tensors(self, body, local, counter="", is_loop=True):
        """Refuses what a loop or a branch at run time assigns, where it is no tensor before.

        For `rows += 1` in a loop, which compiles where the argument rows is other than 1. Without it y is proved for
        one row, and beside `K=1` with `K += 1` in a loop, which compiles nowhere.
        """
        body = self.live(body, assigned(body) | {counter}, local)
        lines = {node.id: node.lineno for node in parts_of(body) if is_stored(node)}
        for name in sorted((lines.keys() & local) - {counter}):
            value, text = local[name], f"a new value in a loop or a branch for {name}"
            if isinstance(value, Given):
                value = value.value
            if isinstance(value, bool) and name not in self.reader.fixed:
                # a name for True or False, of which Triton makes a tensor
                raise NotRead(text)
            no_tensor = is_loop and isinstance(value, Dtype | None)
            is_fixed = name in self.reader.fixed or constants(value) == frozenset()
            if no_tensor or is_fixed:
                # a default stands in the verdict
                self.reader.evaluate(ast.Name(name), local)
                kind = described(value) if no_tensor else "a constant of Triton's"
                raise uncompiled(f"{text}, which is {kind}, and no tensor", lines[name])
            if isinstance(value, Unbound):
                value = Index(letter(name), constant=value.constant)
            self.tiles.check_tensor(value, text, lines[name])


@contextmanager
def forgotten(tiles: Tiles) -> Iterator[None]:
    """A reading of which nothing stays but what the claim is for; memory is empty in it."""
    rooms = [tiles, tiles.memory, tiles.places, tiles.sums, tiles.sums.running]
    rooms.append(tiles.widths)
    states = []
    for room in rooms:
        held = {k: v for k, v in vars(room).items() if isinstance(v, dict | list | set)}
        kept = ("told", "unread")
        states += [(part, copy(part)) for k, part in held.items() if k not in kept]
    for accesses in (tiles.memory.loads, tiles.memory.stores, tiles.memory.faults):
        accesses.clear()
    try:
        yield
    finally:
        for part, state in states:
            part.clear()
            extend = part.extend if isinstance(part, list) else part.update
            extend(state)


NEGATED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}


class Rest(ast.If):
    """What follows `if condition: return`, as a branch: Triton compiles it outside of one."""


def guarded_rest(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with the rest after `if condition: return` under the opposite condition."""
    for position, node in enumerate(body):
        match node:
            case ast.If(
                ast.Compare(left, [operator], right), [ast.Return(None)], []
            ) if type(operator) in NEGATED:
                test = ast.Compare(left, [NEGATED[type(operator)]()], right)
            case ast.If(test, [ast.Return(None)], []):
                test = ast.UnaryOp(ast.Not(), test)
            case _:
                continue
        guard = Rest(test, guarded_rest(body[position + 1 :]), [])
        return [*body[:position], ast.copy_location(guard, node)]
    return body


def is_kept(before: object, after: object) -> bool:
    """Whether a branch or a loop that runs leaves the kind of a value, for dtypes with which Triton compiles it."""
    if type(before) is not type(after):
        return False
    if not isinstance(before, VALUES):
        return True
    both = before.dtype & after.dtype
    same = before.dtype <= after.dtype or both and len(after.dtype) > 1
    return before.axes == after.axes and bool(same)


def check_kept(name: str, before: object, after: object) -> None:
    """Refuse a value whose dtype or number of axes a branch or a loop that runs changes, whatever the tensors' dtypes.

    For an accumulator of float32. It stops one of float16 to which each turn adds float32, and a number that becomes a
    tile, even where it is not used afterwards.
    """
    types = {type(before), type(after)}
    if bool in types and types & {Index, Number}:
        raise NotRead(f"{name} is a number, and a condition beside it")
    if not isinstance(before, VALUES) or not isinstance(after, VALUES):
        return
    where = "after a branch or a turn of a loop"
    if not before.dtype & after.dtype:
        kinds = spelled(before.dtype), spelled(after.dtype)
        raise uncompiled(f"{name} is {kinds[0]}, and {kinds[1]} {where}")
    if len(before.axes) != len(after.axes):
        counts = len(before.axes), len(after.axes)
        raise uncompiled(f"{name} has {counts[0]} axes, and {counts[1]} {where}")


def is_either(one: object, other: object) -> bool:
    """Whether two values that a dtype chooses from differ in dtypes alone."""
    return one == other or isinstance(one, Dtype) and isinstance(other, Dtype)


def of_either(one: object, other: object) -> object:
    """One of two values that differ in dtypes alone."""
    if isinstance(one, Dtype):
        return Dtype(one.names | other.names)
    if isinstance(one, Index | Number):
        return replace(one, dtype=one.dtype | other.dtype)
    return one
