"""The loops of a kernel, which are over ranges: a body stands for any of its turns.

A body is read once, with the number of the turn as a letter, unless the text says how many turns there are. A pointer
or a counter that moves by one step a turn has a value in that letter; a number that a turn changes is what it was
before that turn, and `sums.py` says what all turns make of it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import reduce

from sympy import Symbol, expand

from .branches import check_kept, is_kept
from .names import Given
from .nodes import parts_of
from .sums import has_marker, marker_of
from .syntax import assigned, is_stored, names_in, stored
from .tables.dtypes import LONG_INTEGERS, results, spelled
from .values import Index, NotRead, Number, Pointer, uncompiled

SPEED = {
    "num_stages",
    "loop_unroll_factor",
    "disallow_acc_multi_buffer",
    "flatten",
    "warp_specialize",
}
RANGES = ("builtins.range", "triton.language.range", "triton.language.static_range")
LONGEST = 64


class Ranges:
    """Reads loops.

    Args:  reader: the Kernel, which reads their bodies
    """

    def __init__(self, reader):
        self.reader, self.tiles = reader, reader.tiles

    def read_for(self, node, local):
        """A loop over a range: its body is run once, for any turn."""
        match node:
            case ast.For(ast.Name(counter), ast.Call(called, args, keywords), body, []):
                called = self.reader.evaluate(called, local)
            case _:
                called = None
        if getattr(called, "path", "") not in RANGES:
            raise NotRead("a loop over what is no range")
        if any(keyword.arg not in SPEED for keyword in keywords):
            raise NotRead("a range with arguments that are not read")
        for keyword in keywords:
            if not self.reader.is_fixed(keyword.value, local):
                raise uncompiled(
                    f"a range whose {keyword.arg} is no number that Triton knows "
                    "while it compiles"
                )
        if not 1 <= len(args) <= 3:
            raise uncompiled(f"a range of {len(args)} arguments, which takes 1 to 3")
        start = [ast.Constant(0)] * (len(args) == 1)
        step = [ast.Constant(1)] * (len(args) < 3)
        bounds = self._bounds([*start, *args, *step], local)
        is_static = called.path.endswith("static_range")
        if is_static:
            if not all(self.reader.is_fixed(part, local) for part in args):
                raise uncompiled("a bound of static_range that is no tl.constexpr")
            self.reader.fixed.add(counter)
        before = dict(local)
        if not is_static:
            self.reader.branches.check_tensors(body, local, counter)
        self._loop(body, counter, bounds, local, is_static)
        if not is_static:
            self._compare(before, assigned(body), local)

    def read_while(self, node, local):
        """`while counter < end:` whose last line is `counter += step`, as a loop over a range."""
        match node:
            case ast.While(
                test=ast.Compare(left=ast.Name(counter), ops=[ast.Lt()]),
                body=[*body, ast.AugAssign(ast.Name(last), ast.Add(), step)],
                orelse=[],
            ) if counter == last and counter not in assigned(body):
                parts = [node.test.left, *node.test.comparators, step]
            case _:
                raise NotRead("a while loop that does not count")
        if set().union(*map(names_in, parts[1:])) & (assigned(body) | {counter}):
            raise NotRead("a while loop whose end or step changes")
        bounds = self._bounds(parts, local)
        self.reader.branches.check_tensors(node.body, local)
        del local[counter]
        before = dict(local)
        self._loop(body, counter, bounds, local)
        self._compare(before, assigned(body), local)

    def _loop(self, body, counter, bounds, local, is_static=False):
        """Runs a loop's body, once for any turn, or turn by turn where the text says how many.

        Args:  is_static: whether Triton compiles each turn by itself
        """
        low, high, step = [expand(bound.e) for bound in bounds]
        dtypes = [bound.dtype for bound in bounds]
        constant = frozenset() if is_static else None
        body = self.reader.branches.live(body, assigned(body) | {counter}, local)
        names = assigned(body)
        if counter in names:
            raise NotRead(f"{counter} is a loop's counter and is assigned in it")
        if not (step.is_positive or step.is_negative):
            raise NotRead("a loop whose step has no known sign")
        turns = self.tiles.places.turns(low, high, step)
        if turns.is_Integer:
            start = low, step
            return self._unrolled(body, counter, start, int(turns), local, constant)
        for name in names & set(local):
            if isinstance(local[name], Given):
                local[name] = self.reader.evaluate(ast.Name(name), local)
        turn = Symbol(
            f"turn_{len(self.tiles.places.loops)}", integer=True, nonnegative=True
        )
        self.tiles.places.loops[turn] = (low, high, step)
        before, after = dict(local), self._carried(body, names, turn, local)
        before.pop(counter, None)
        index = Index(expand(low + turn * step), dtype=reduce(results, dtypes))
        local[counter] = replace(index, constant=constant)
        line = self.reader.line
        self.tiles.places.active.append(turn)
        self.reader.inside(body, local)
        self.reader.line = line
        for name, value in after.items():
            if local.get(name) != value:
                raise NotRead(f"{name} does not move by the same step in each turn")
        self.tiles.places.active.pop()
        for name in sorted(before.keys() & names & local.keys()):
            if not is_static:
                check_kept(name, before[name], local[name])
        lines = {node.id: node.lineno for node in parts_of(body) if is_stored(node)}
        self._leave(before, {**lines, counter: line}, after, turn, turns, local)

    def _compare(self, before, names, local):
        """Takes away what a loop at run time first binds; refuses what it makes a tile of another shape.

        For a loop whose turns are counted in the text. Without it `for k in range(2): z = x` is proved, where Triton
        has no z after the loop.
        """
        for name in sorted(names & set(local)):
            check_kept(name, before.get(name), local[name])
            if not is_kept(before.get(name), local[name]):
                del local[name]

    def _bounds(self, parts, local):
        bounds = [self.reader.evaluate(part, local) for part in parts]
        if any(not isinstance(bound, Index) or bound.axes for bound in bounds):
            raise NotRead("a loop between what are no integers")
        self.tiles.use_both(*bounds)
        return bounds

    def _unrolled(self, body, counter, start, turns, local, constant):
        low, step = start
        if not 0 < turns <= LONGEST:
            raise NotRead(f"a loop of {turns} turns that are counted in the text")
        for turn in range(turns):
            local[counter] = Index(expand(low + turn * step), constant=constant)
            self.reader.execute(body, local)
        local.pop(counter, None)

    def _carried(self, body, names, turn, local):
        """Puts in what the names hold before any turn; {counter: what it must hold after it}."""
        after = {}
        for name in sorted(names & set(local)):
            value = local[name]
            step = self._step(body, name, names, local)
            if step is not None:
                local[name] = self._moved(value, turn, step)
                after[name] = self._moved(value, turn + 1, step)
                continue
            if isinstance(value, Index) and value.e.is_number and not value.axes:
                value = self.tiles.number(value)
            if isinstance(value, Number):
                marker = marker_of(name, turn)
                self.tiles.sums.running.axes[marker] = value.axes
                self.tiles.sums.maxima.begin(marker, value)
                parts = (marker,) * 4
                local[name] = replace(
                    value,
                    parts=parts,
                    places=frozenset(),
                    pending=(),
                    share=frozenset(),
                )
            else:
                del local[name]
        return after

    def _moved(self, value, turns, step):
        if isinstance(step, tuple):
            return self.reader.language.advance(
                value, [Index(turns * part.e, dtype=LONG_INTEGERS) for part in step]
            )
        dtype = LONG_INTEGERS
        if isinstance(value, Pointer):
            self.tiles.use(step)
        else:
            dtype = results(value.dtype, step.dtype)
        return self.tiles.operate("Add", value, Index(turns * step.e, dtype=dtype))

    def _step(self, body, name, names, local):
        """How far a line such as `pointer += step` moves a pointer or a counter in each turn."""
        counted = isinstance(local[name], Pointer | Index)
        if not counted or list(stored(body)).count(name) != 1:
            return None
        outside = {key: local[key] for key in local.keys() - names}
        for node in flat(body):
            added = added_to(name, node)
            if added is not None and not names_in(added) & names:
                step = self.reader.evaluate(added, outside)
                steady = isinstance(step, Index) and not step.axes
                return step if steady or isinstance(step, tuple) else None
        return None

    def _leave(self, before, lines, after, turn, turns, local):
        """What the names hold after all turns; those that hold the last turn's value have none."""
        carried = {}
        for name in sorted(lines.keys() & local):
            value, start = local.pop(name), before.get(name)
            if name in after:
                if isinstance(value, Index) and turns.is_nonnegative:
                    moved = value.e.xreplace({turn: turns - 1})
                    local[name] = replace(value, e=expand(moved))
                continue
            if isinstance(start, Index) and isinstance(value, Number):
                start = self.tiles.number(start)
            both = isinstance(start, Number) and isinstance(value, Number)
            is_largest = both and self.tiles.sums.maxima.is_one(value.inside)
            if not both or not (has_marker(value) or is_largest):
                continue
            if value.axes == start.axes and not is_kept(start, value):
                kinds = spelled(start.dtype), spelled(value.dtype)
                raise NotRead(f"{name} is {kinds[0]}, and {kinds[1]} after a turn")
            carried[name] = start, value, marker_of(name, turn)
        left = self.tiles.sums.running.left(carried, turn, turns)
        for name, value in left.items():
            start, end, _ = carried[name]
            dtype = start.dtype & end.dtype
            self.tiles.keep_sum(dtype, lines[name])
            local[name] = replace(value, dtype=dtype)


def added_to(name: str, node: ast.stmt) -> ast.expr | None:
    """The step of `name += step`, `name = name + step` and `name = tl.advance(name, step)`; None of all else."""
    match node:
        case ast.AugAssign(ast.Name(to), ast.Add(), step) if to == name:
            return step
        case ast.Assign([ast.Name(to)], ast.BinOp(ast.Name(start), ast.Add(), step)):
            if to == start == name:
                return step
        case ast.Assign([ast.Name(to)], ast.Call(called, [ast.Name(start), step], [])):
            if to == start == name and ast.unparse(called).endswith("advance"):
                return step
    return None


def flat(body: list[ast.stmt]):
    """Statements, and those inside their branches."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from flat(node.body)
            yield from flat(node.orelse)
