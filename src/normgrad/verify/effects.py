"""The effects of a launch: what its kernel stores, written into the tensors, and what that rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr, Sum, expand, nan

from ..symbolic.notation import tensor
from ..symbolic.symbols import M, N, j
from .arrays import HALVES, Array, by_rows, note_stride, state, use_rounded
from .binding import COLUMN_TILES, PROGRAMS, ROW_TILES, Zeros, letter
from .operands import Operands, is_lock, letters_of, of_rows
from .places import CEILING, FLOOR, LEAST
from .sizes import depends
from .tiles import Tiles
from .values import BEFORE, NotRead, Wrong

ZERO_BEFORE = f" {BEFORE}"
# what a kernel rests on besides its arguments
SAID = re.compile(
    " other than 1| without a barrier|what line .* (promises|asserts)|^targets "
)


def keep(operands: Operands, tiles: Tiles, held: Mapping[str, Expr]) -> None:
    """Write what a kernel stores into the tensors, and keep what that rests on.

    Args:  operands: what the launch was bound as; tiles: on which the kernel was read
           held: {argument: what it holds, in i and j}
    """
    for words in tiles.assumed:
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
    use_rounded(*map(by_rows, map(operands.tensors.get, tiles.memory.loads)))
    results = {}
    for key, stored in held.items():
        results[key] = _result(operands, key, stored)
    for key, e in results.items():
        memory = operands.tensors[key].memory
        _check_group(operands, memory)
        whole = Array(memory, memory.shape, range(len(memory.shape)))
        whole.write(e.xreplace(letters_of(memory)))
        bound = operands.launch.arguments[key]
        memory.partial = "p" in bound.letters
        memory.is_short = key in operands.groups and not isinstance(bound, Zeros)
    for value in operands.tensors.values():
        # what it holds is not known from now on
        value.memory.is_lost |= is_lock(value)
    for condition in tiles.sums.conditions():
        relation = condition.relation.xreplace(operands.back)
        state().needed.append(replace(condition, relation=relation))
    if tiles.memory.fill is not nan:
        state().filled |= tiles.memory.filled
    state().narrowed.update(dict.fromkeys(filter(SAID.search, tiles.told)))
    state().numbers += tiles.defects
    state().maxima.update(tiles.sums.maxima.heads)
    own = operands.back | dict(zip(PROGRAMS, operands.counts, strict=False))
    if operands.parts:
        own[M] = operands.rows
    for bound, line in tiles.widths.conditions().items():
        bound = None if bound is None else expand(bound.xreplace(own))
        state().widths.append((bound, line))


def _check_group(operands, memory):
    """Refuses a kernel that writes what may be another of its arguments.

    For dx in the place of dy.contiguous(). It stops a kernel that is handed dy besides.
    """
    for key, value in operands.tensors.items():
        if value.memory is not memory and value.memory in memory.group:
            raise NotRead(f"{key} may be what the kernel writes")


def _added_up(operands, key, e):
    """What is stored, with the sum over the rows of partial sums as what all programs have added to them."""
    if not operands.parts:
        return e
    for name, value in operands.tensors.items():
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


def _result(operands, key, stored):
    """What is stored with the launch's own numbers put in for blocks and counts."""
    e = _added_up(operands, key, stored.xreplace(operands.back))
    chosen = [s for s in e.free_symbols if s in map(letter, operands.kinds)]
    is_rounded = e.has(LEAST, ROW_TILES, COLUMN_TILES)
    if chosen and e.has(FLOOR, CEILING):
        is_rounded |= not depends(e, chosen)
    if is_rounded:
        raise NotRead(f"{key}: what is stored depends on the rounding of a quotient")
    if chosen:
        raise Wrong(
            f"{key}: what is stored depends on {chosen[0]}, which autotune chooses"
        )
    return e
