"""The effects of a launch: what its kernel stores, written into the tensors, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Expr, Sum, expand

from ..symbolic.notation import tensor
from ..symbolic.symbols import M, N, j
from .arrays import HALVES, Array, by_rows, note_stride, state, use_rounded
from .binding import COLUMN_TILES, PROGRAMS, ROW_TILES, Zeros, letter
from .operands import Operands, is_lock, letters_of, of_rows
from .places import CEILING, FLOOR, LEAST
from .sizes import depends
from .values import BEFORE, NotRead, Wrong

ZERO_BEFORE = f" {BEFORE}"


@dataclass(frozen=True)
class Reading:
    """What a kernel leaves.

    Args:  stored: {argument: what it holds, in i and j}; conditions: of its operations
           filled: the lines where a masked lane counts as 0; assumed, narrowed: in words
           widths: {what has to be below 2^31: the line}; numbers: what else the claim says of dtypes
           maxima: {the largest of a row: its Maximum}; loaded: the arguments that it reads
    """

    stored: Mapping[str, Expr]
    conditions: Sequence
    filled: frozenset[int]
    assumed: Sequence[str]
    narrowed: Sequence[str]
    widths: Mapping[Expr | None, int]
    numbers: Sequence[str]
    maxima: Mapping
    loaded: Sequence[str]


class Effects:
    """Writes what a reading of a kernel leaves.

    Args:  operands: what the launch was bound as
    """

    def __init__(self, operands: Operands):
        self.operands = operands

    def keep(self, reading: Reading) -> None:
        """Write what the kernel stores into the tensors, and keep what that rests on."""
        operands = self.operands
        for words in reading.assumed:
            if words.endswith(ZERO_BEFORE):
                key = words.removesuffix(ZERO_BEFORE)
                if not isinstance(operands.launch.arguments[key], Zeros):
                    raise Wrong(
                        f"{key} is added to, and holds nothing before the kernel runs"
                    )
                dtype = operands.tensors[key].memory.dtype
                if dtype in HALVES:
                    # an atomic addition rounds at each program
                    state().narrow.append((f"sums in {dtype}", state().line))
            else:
                state().words.append(words)
        note_stride(*[operands.values[key] for key in operands.kinds])
        use_rounded(*map(by_rows, map(operands.tensors.get, reading.loaded)))
        results = {}
        for key, stored in reading.stored.items():
            results[key] = self._result(key, stored)
        for key, e in results.items():
            memory = operands.tensors[key].memory
            self._check_group(memory)
            whole = Array(memory, memory.shape, range(len(memory.shape)))
            whole.write(e.xreplace(letters_of(memory)))
            bound = operands.launch.arguments[key]
            memory.partial = "p" in bound.letters
            memory.is_short = key in operands.groups and not isinstance(bound, Zeros)
        for value in operands.tensors.values():
            # what it holds is not known from now on
            value.memory.is_lost |= is_lock(value)
        for condition in reading.conditions:
            relation = condition.relation.xreplace(operands.back)
            state().needed.append(replace(condition, relation=relation))
        state().filled |= reading.filled
        state().narrowed.update(dict.fromkeys(reading.narrowed))
        state().numbers += reading.numbers
        state().maxima.update(reading.maxima)
        own = operands.back | dict(zip(PROGRAMS, operands.counts, strict=False))
        if operands.parts:
            own[M] = operands.rows
        for bound, line in reading.widths.items():
            bound = None if bound is None else expand(bound.xreplace(own))
            state().widths.append((bound, line))

    def _check_group(self, memory):
        """Refuses a kernel that writes what may be another of its arguments.

        For dx in the place of dy.contiguous(). It stops a kernel that is handed dy besides.
        """
        for key, value in self.operands.tensors.items():
            if value.memory is not memory and value.memory in memory.group:
                raise NotRead(f"{key} may be what the kernel writes")

    def _added_up(self, key, e):
        """What is stored, with the sum over the rows of partial sums as what all programs have added to them."""
        if not self.operands.parts:
            return e
        for name, value in self.operands.tensors.items():
            if not value.memory.partial:
                continue
            entry = tensor(f"partial_{name}", M, N)
            for part in e.atoms(Sum):
                row = part.variables[0]
                if part.function == entry[row, j] and part.limits == ((row, 1, M),):
                    e = e.xreplace({part: of_rows(value.memory)})
            if name == key or e.has(entry):
                raise NotRead(f"{key}: partial sums are used otherwise than added up")
        return e

    def _result(self, key, stored):
        """What is stored with the launch's own numbers put in for blocks and counts."""
        e = self._added_up(key, stored.xreplace(self.operands.back))
        chosen = [s for s in e.free_symbols if s in map(letter, self.operands.kinds)]
        unread = LEAST, ROW_TILES, COLUMN_TILES
        if (
            e.has(*unread)
            or chosen
            and e.has(FLOOR, CEILING)
            and not depends(e, chosen)
        ):
            raise NotRead(
                f"{key}: what is stored depends on the rounding of a quotient"
            )
        if chosen:
            words = (
                f"{key}: what is stored depends on {chosen[0]}, which autotune chooses"
            )
            raise Wrong(words)
        return e
