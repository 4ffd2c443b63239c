"""A launch in a function that is read: `kernel[grid](...)` is one reading of the kernel's text.

What the call hands in is the binding, and what the kernel stores is written into the tensors that it was given. A
pointer is its tensor's memory, whatever view is handed in: strides are numbers that the call passes beside it.

A block is any block of rows or columns, and a number of programs any number: what is proved so holds for the numbers
of this launch, too. What is refuted so may hold for them, so that only what is wrong for every block accuses.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from typing import Any

from sympy import Expr, Max, Ne, S, evaluate, expand, nan

from ..symbolic.symbols import M, N
from .arrays import (
    Array,
    Scalar,
    is_integer,
    is_number,
    note_stride,
    plain,
    state,
)
from .binding import (
    CHUNK,
    COLUMNS,
    ROWS,
    WHOLE,
    letter,
)
from .certain import lengths
from .decorators import COUNTS, Decorators, is_power
from .effects import keep
from .header import parameters
from .kernel import Kernel
from .nodes import nodes_of, parts_of
from .operands import Operands
from .sizes import ceiling, in_words, is_power_of_2
from .source import Source, is_constexpr, last_name
from .syntax import assigned, names_in
from .tiles import Tiles
from .values import LeftOut, NotRead, Wrong, uncompiled, unlaunched

# what Triton takes beside the kernel's own arguments
COMPILED = {
    *("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion"),
    *("launch_cooperative_grid", "launch_pdl"),
}
# what it takes besides, and what changes no argument of the kernel, but how or for what it is compiled
OTHERS = {
    *("debug", "sanitize_overflow", "arch", "ptx_version", "ptx_options"),
    *("extern_libs", "warp_size", "ir_override", "enable_reflect_ftz"),
    *("instrumentation_mode", "backend_name", "waves_per_eu", "kpack"),
    "matrix_instr_nonkdim",
}
MOST_LANES = 2**20
TILES = ("arange", "zeros", "full", "make_block_ptr")
# what gives a tile no other shape than its arguments have
OF_ONE_SHAPE = {
    *("program_id", "num_programs", "load", "store", "to", "max", "min", "sum"),
    *("maximum", "minimum", "where", "exp", "log", "sqrt", "rsqrt", "abs", "sigmoid"),
    *("cdiv", "range", "multiple_of", "max_contiguous", "float", "int"),
}


@dataclass(frozen=True, eq=False)
class JitKernel:
    """A kernel of the text, which is read where it is launched.

    Args:  scope: where its decorators find their names
    """

    name: str
    source: Source
    scope: Any

    @property
    def function(self) -> ast.FunctionDef | None:
        """Its syntax tree; None where the text has no function of that name outside of others."""
        return self.source.function(self.name)


@dataclass(frozen=True)
class Launched:
    """kernel[grid], which a call launches."""

    kernel: JitKernel
    grid: Any


class Caller:
    """Reads launches.

    Args:  call: of a function of the host, (function, arguments)
           evaluate: of a decorator's expression, (kernel, its setting, {argument: value})
    """

    def __init__(self, call: Callable, evaluate: Callable):
        self.call, self.evaluate = call, evaluate

    def launch(self, target: Launched, args: Sequence, options: Mapping) -> None:
        """Read the kernel with what it is handed, and write what it stores."""
        kernel = target.kernel
        if state().loops:
            raise NotRead("a launch in a loop over rows")
        function = kernel.function
        if function is None:
            raise NotRead(f"{kernel.name}, a kernel inside a function or a class")
        names, defaults = parameters(function)
        decorators = Decorators(kernel.source, kernel.name, {}, is_called=True)
        values = _bound(kernel.name, names, defaults, args, options, decorators)
        tuned = {setting.name for setting in decorators.settings if setting.tuned}
        for setting in decorators.settings:
            if setting.name in tuned and not setting.tuned:
                raise NotRead(f"{setting.name} is set by autotune and by heuristics")
            if setting.tuned:
                _check_tuned(setting)
                values[setting.name] = _of_tuned(setting, decorators)
            else:
                values[setting.name] = self.evaluate(kernel, setting, dict(values))
        for argument in function.args.args:
            if is_constexpr(argument) and isinstance(values.get(argument.arg), Array):
                words = f"{kernel.name} is given a tensor for {argument.arg}"
                raise NotRead(f"{words}, a number that Triton compiles in")
        missing = [key for key in names if key not in {*values, *defaults}]
        if missing and decorators.unseen:
            # what it sets, and that it compiles, is the package's own word
            for key in missing:
                values[key] = Scalar(letter(key), "int")
            words = f"{', '.join(missing)} powers of 2 from {decorators.unseen}"
            state().narrowed[words] = None
        elif missing:
            if decorators.tuners and missing[0] in COUNTS:
                raise NotRead(f"{missing[0]}, which autotune hands in")
            raise unlaunched(f"{kernel.name} needs a value for {missing[0]}")
        grid = self._grid(target, values)
        self._read(kernel, names, values, grid)

    def _grid(self, target, values) -> list[Expr]:
        """How many programs each axis has."""
        grid = target.grid
        if not isinstance(grid, tuple | list) and not is_number(grid):
            grid = self.call(grid, [dict(values)])
        if is_integer(grid):
            raise unlaunched(f"a grid that is {plain(grid)}; it needs a tuple")
        counts = list(grid) if isinstance(grid, tuple | list) else [grid]
        if not counts:
            raise unlaunched("a grid of 0 axes")
        if len(counts) > 3:  # a GPU leaves them out, the interpreter refuses them
            raise NotRead(f"a grid of {len(counts)} axes")
        note_stride(*counts)
        for count in counts:
            if isinstance(count, tuple | list | Array | str):
                name = type(count).__name__
                raise unlaunched(f"a grid with {name} in the place of an integer")
            if not _is_count(count):
                raise NotRead("a grid whose sizes are no integers")
        sizes = [expand(plain(count)) for count in counts]
        for axis, size in enumerate(sizes[1:], start=1):
            if not size.is_Integer:
                state().narrowed[
                    f"{size} of at most 65535, the most along axis {axis} of a grid"
                ] = None
        return sizes

    def _check_one_block(self, kernel, names, values, grid, blocks):
        """Refuses a kernel that is right for rows of one block alone.

        For `BLOCK = 1024` without a loop, which leaves the other columns out where N > 1024.
        """
        stores = _stores(kernel, blocks, values, grid)
        for key in blocks if stores else ():
            e = plain(values[key])
            sizes = state().way.example([N > stores * e])
            small = state().way.example([N <= e, N > 2, Ne(M, N)])
            if not (sizes and small):
                continue
            for kinds in _assignments(blocks, values, {key: WHOLE}):
                try:
                    _Attempt(kernel, names, values, grid, kinds).read()
                except Wrong as reason:
                    words = "" if "M = " in str(reason) else f", as at {small}"
                    raise Wrong(f"{reason}{words}", reason.line) from None
                except NotRead:
                    continue
                words = f"{kernel.name} has one block of {e} columns, and leaves"
                raise _left_out(f"{words} columns out, as {sizes}", kernel, values)

    def _check_grid(self, kernel, names, values, grid, blocks):
        """Refuses a grid that has fewer programs than the kernel needs.

        For a kernel with a program for each row. It stops kernel[(N,)], which leaves rows out where N < M; what too
        many programs do may be guarded in the kernel. What asks how many there are may share out the rows among any
        number.
        """
        ways = _assignments(blocks, values), ("rows", "row tiles", "column tiles")
        for axis, kinds, kind in product(range(len(grid)), *ways):
            try:
                attempt = _Attempt(
                    kernel, names, values, grid, kinds, axes={axis: kind}
                )
                attempt.read()
            except NotRead:
                continue
            needed = attempt.operands.needed(kind)
            sizes = needed and state().way.example([grid[axis] < needed])
            if sizes:
                words = f"axis {axis} of the grid has {grid[axis]} programs, needs {needed}, as {sizes}"
                raise _left_out(words, kernel, values)

    def _check_chunks(self, kernel, names, values, grid, blocks):
        """Refuses a grid that has fewer programs than the kernel needs for R rows each.

        For `for r in range(R): row = pid * R + r`. It stops kernel[(M // R,)], which leaves the last rows out.
        """
        count = prod(grid)
        axes = {axis: "programs" for axis, size in enumerate(grid) if size != 1}
        for needed, kinds in _chunked(blocks, names, values):
            sizes = state().way.example([count < needed])
            given = kernel, names, values, grid, kinds, axes
            if sizes and _is_read(*given):
                words = f"the grid has {count} programs, needs {needed}, as {sizes}"
                raise _left_out(words, kernel, values)

    def _check_strides(self, kernel, names, values, grid, blocks):
        """Refuses a kernel that takes rows to lie a block apart.

        For `X + row * BLOCK + cols`, which is right where N is the block alone.
        """
        for key in blocks:
            e = plain(values[key])
            sizes = state().way.example([Ne(N, e, evaluate=False)])
            if e == N or not sizes or state().way.apart:
                continue
            for kinds in _assignments(blocks, values):
                given = kernel, names, values, grid, kinds
                if _is_read(*given, stride=key):
                    raise Wrong(
                        f"{kernel.name} takes rows to lie {key} = {e} apart, "
                        f"and they lie N apart, as {sizes}"
                    )

    def _check_lanes(self, kernel, names, values, grid):
        """Refuses a launch whose lanes, all programs together, are fewer than the entries of what it stores into.

        For a kernel that is not followed, whatever its addresses are. It stops one store of 128 columns in each of M
        programs, and M // 128 programs where M is 3.
        """
        lanes = _lanes_of_stores(kernel, values)
        for size in grid:
            lanes *= size
        sizes = state().way.example([M * N > lanes])
        reason = _left_out(
            f"{kernel.name} stores {lanes} entries at most, of M*N, as {sizes}",
            kernel,
            values,
        )
        arrays = [t for t in reason.tensors if t.shape == (M, N) and not t.written]
        if lanes and sizes and arrays:
            reason.tensors = tuple(arrays)
            raise reason

    def _check_lengths(self, kernel, values):
        """Refuses a tile whose length is no power of 2.

        For a kernel that is not followed. It stops `min(N, 1024)`, which is 3 at N = 3.
        """
        for key in sorted(lengths(kernel.function)):
            if _is_count(values.get(key)):
                e = plain(values[key])
                sizes = state().way.no_power(e)
                if sizes:
                    raise uncompiled(
                        f"a tile of {e} lanes, which is no power of 2, as {sizes}"
                    )

    def _read(self, kernel, names, values, grid):
        """Reads the kernel by the first way of taking its blocks that comes to an end."""
        lengths = _lengths(kernel)
        blocks = {
            key: key in lengths for key in names if _may_be_block(key, values, kernel)
        }
        for key in lengths & blocks.keys():
            e = plain(values[key])
            if e.is_Integer and e > MOST_LANES:
                raise uncompiled(
                    f"a tile of {key} = {e} lanes, of which 2**20 are the most"
                )
        reasons = []
        several = [count for count in grid if count != 1]
        chunked = (
            kinds
            for needed, kinds in _chunked(blocks, names, values)
            if several == [needed]
        )
        for kinds in chain(_assignments(blocks, values), chunked):
            try:
                attempt = _Attempt(kernel, names, values, grid, kinds)
                tiles, held = attempt.read()
            except NotRead as reason:
                reasons.append(reason)
                continue
            return keep(attempt.operands, tiles, held)
        arrays = [value for value in values.values() if isinstance(value, Array)]
        if any(value.memory.partial for value in arrays):
            # its M is the number of partial sums
            words = f"{kernel.name} of partial sums: {reasons[0]}"
            raise NotRead(words, reasons[0].line)
        accusations = [reason for reason in reasons if isinstance(reason, Wrong)]
        if not accusations:
            given = kernel, names, values, grid
            self._check_one_block(*given, blocks)
            if not _counts_programs(kernel):
                self._check_grid(*given, blocks)
                self._check_chunks(*given, blocks)
            self._check_strides(*given, blocks)
            self._check_lanes(*given)
            self._check_lengths(kernel, values)
        if state().way.equations and accusations:
            words = f"{accusations[0]}, unless sizes divide as the launcher asks"
            raise NotRead(words, accusations[0].line)
        raise [*accusations, *reasons][0]


def _bound(name, names, defaults, args, options, decorators) -> dict[str, Any]:
    """{argument: its value} of a launch."""
    if len(args) > len(names):
        words = f"{name} has {len(names)} arguments, and is given {len(args)}"
        raise unlaunched(words)
    values = dict(zip(names, args, strict=False))
    for key, value in options.items():
        if key in values:
            raise unlaunched(f"{name} is given {key} twice")
        if key in names:
            values[key] = value
        elif key in OTHERS:
            raise NotRead(f"a launch with {key}, which is not read")
        elif key not in COMPILED:
            raise unlaunched(f"{name} has no argument {key}")
        else:
            _check_option(key, value)
    _check_tuners(name, {*values, *options}, decorators)
    for setting in decorators.settings:
        if setting.tuned and setting.name not in names:
            raise unlaunched(
                f"autotune sets {setting.name}, which is no argument of {name}"
            )
    decorators.check_names(names)
    for setting in decorators.settings:
        if setting.name in values and setting.tuned:
            raise unlaunched(f"{name} is given {setting.name}, which autotune sets")
        if setting.name in values:
            raise NotRead(f"{name} is given {setting.name}, which heuristics set")
    return values


def _check_tuners(name, given, decorators):
    """Refuses a launch that hands in what autotune hands in, too.

    For a kernel that autotune runs. It stops `num_warps=8` at its launch, which is a TypeError: every configuration has
    a number of warps, of stages and of blocks' groups, those without one, too.
    """
    if not decorators.tuners:
        return
    twice = [key for key in COUNTS if key in given]
    words = f"{name} is given {', '.join(twice)}, which autotune hands in"
    if len(decorators.tuners) > 1:
        words = f"{name} has two autotunes, which both hand in num_warps"
    elif "maxnreg" in given and not twice:
        raise NotRead(f"{name} is given maxnreg, which autotune may hand in")
    elif not twice:
        return
    raise NotRead(words) if decorators.unseen else unlaunched(words)


def _is_count(value):
    """Whether a value is an integer, and no flag."""
    return is_integer(value) and not isinstance(value, bool)


def _check_option(key, value):
    """Refuses an option with which it is not known that a kernel compiles, and runs at every size.

    For `num_stages=3`. It stops num_ctas=3, which does not compile, and launch_cooperative_grid=True, with which a GPU
    refuses more programs than it can hold at once.
    """
    if key == "num_warps":
        return _check_warps(value)
    is_count = _is_count(value) and plain(value).is_positive
    known = {
        "num_stages": is_count,
        "num_ctas": is_count and plain(value) == 1,
        "maxnreg": value is None or is_count,
        "enable_fp_fusion": isinstance(value, bool),
        "launch_cooperative_grid": value is False,
        "launch_pdl": value is False,
    }
    if not known[key]:
        raise NotRead(f"a launch with {key}, whose value is not read")


def _check_warps(value):
    """Refuses a number of warps that is no power of 2 up to 32.

    For `min(max(B // 256, 1), 8)`. It stops `B // 256`, which is 0 for a narrow row.
    """
    if not _is_count(value):
        raise NotRead(f"num_warps={value!r}, which is no integer")
    e = plain(value)
    for sizes in state().way.sizes():
        count = e.xreplace(sizes)
        if count.is_Integer and count not in COUNTS["num_warps"]:
            raise unlaunched(f"num_warps={e}, which is {count} at {in_words(sizes)}")


def _check_tuned(setting):
    """Refuses a number of autotune that is not in the text, or no power of 2.

    For a block that autotune chooses. It stops BLOCK = 24, which does not compile.
    """
    value = getattr(setting.value, "value", None)
    is_too_long = type(value) is int and value > MOST_LANES
    if is_too_long or not is_power(setting.value) and type(value) is not bool:
        raise NotRead(
            f"autotune sets {setting.name} to what is no power of 2 up to 2**20",
            setting.line,
        )


def _of_tuned(setting, decorators) -> Any:
    """What autotune sets an argument to: any number, unless each of its configurations has the same one.

    For blocks of 128 or 256. It stops "reads past the end" of programs that take one row each by XBLOCK = 1.
    """
    own = [s.value for s in decorators.settings if s.tuned and s.name == setting.name]
    if (
        len(set(map(ast.unparse, own))) == 1
        and type(getattr(own[0], "value", "")) is int
    ):
        return own[0].value
    return Scalar(letter(setting.name), "int")


def _functions(kernel) -> list[ast.FunctionDef]:
    """A kernel and the functions that it calls by their names; none where the text lacks one of them."""
    found, names = {}, [kernel.name]
    for name in names:
        if name in found or hasattr(builtins, name):
            continue
        found[name] = kernel.source.function(name)
        if found[name] is None:
            return []
        for node in nodes_of(found[name]):
            match node:
                case ast.Call(ast.Name(called)):
                    names.append(called)
    return list(found.values())


def _left_out(why, kernel, values) -> LeftOut:
    """What is wrong with a launch that leaves rows or columns out, and the tensors that it stores into."""
    reason = LeftOut(why)
    function = kernel.function
    stored = set()
    for node in nodes_of(function):
        if _is_store(node):
            pointer = [*node.args, *(word.value for word in node.keywords)][0]
            stored |= names_in(pointer)
    made_of = _made_of(stored, function)
    arrays = [v for k, v in values.items() if k in made_of and isinstance(v, Array)]
    reason.tensors = tuple(value.memory for value in arrays)
    return reason


def _made_of(names, function) -> set[str]:
    """The names of what names are made of in a function, as `Y` of `y_rows = Y + row * stride`."""
    waiting = sorted(names)
    for name in waiting:
        for node in nodes_of(function):
            match node:
                case (
                    ast.Assign(targets=[target], value=value)
                    | ast.AnnAssign(target, value=ast.expr() as value)
                    | ast.AugAssign(target, value=value)
                    | ast.For(target, iter=value)
                ):
                    if name in names_in(target):
                        waiting += sorted(names_in(value) - set(waiting))
    return set(waiting)


def _stores(kernel, blocks, values, grid) -> int:
    """How many blocks a kernel stores in a row at most; 0 where the text does not tell.

    For a kernel whose programs, and whose loops, are those of rows. It stops "has one block" of a kernel that goes
    through the columns in a loop, in programs, or in two stores one after the other.
    """
    functions = _functions(kernel)
    if not functions or any(size.has(N) for size in grid):
        return 0
    own = nodes_of(functions[0])
    for node in parts_of(functions):
        # a function that is called stores as often as it is called
        if _is_store(node) and node not in own:
            return 0
        if isinstance(node, ast.For | ast.While):
            if not _is_over_rows(node, functions[0], blocks, values):
                return 0
    count = sum(map(_is_store, own))
    for size in grid:
        count *= int(size) if size.is_Integer else 1
    return count


def _lanes_of_stores(kernel, values) -> Expr:
    """How many entries a program of a kernel stores at most; 0 where the text does not tell.

    For stores outside of loops, of tiles that tl.arange makes. It stops "stores 128 entries at most" of a tile of
    another shape, and of a store in a function that is called twice.
    """
    functions, lengths, axes = _functions(kernel), [S.One], 1
    if not functions:
        return S.Zero
    own = nodes_of(functions[0])
    names = {function.name for function in functions} | OF_ONE_SHAPE
    bound = assigned(functions[:1])
    loops = [node for node in own if isinstance(node, ast.For | ast.While)]
    if any(map(_is_store, parts_of([*functions[1:], *loops]))):
        return S.Zero
    for node in parts_of(functions):
        match node:
            case ast.Subscript(slice=ast.Tuple([_, _])):
                axes = 2
            case ast.Subscript(slice=ast.Tuple() | ast.Constant(None)):
                return S.Zero
            case ast.Call(ast.Attribute(attr="arange"), [ast.Constant(0), end], []):
                name = getattr(end, "id", "")
                e = values.get(name, getattr(end, "value", None))
                if not is_integer(e) or name in bound or node not in own:
                    return S.Zero
                lengths.append(plain(e))
            case ast.Call() if last_name(node) not in names:
                return S.Zero
    return sum(map(_is_store, own)) * Max(*lengths) ** axes


def _is_store(node):
    """Whether a part of a text is a call that stores, as tl.store or tl.atomic_add."""
    name = last_name(node) if isinstance(node, ast.Call) else ""
    return name == "store" or name.startswith("atomic_")


def _is_over_rows(loop, function, blocks, values) -> bool:
    """Whether a loop's range is made of M, and neither of N nor of a block.

    For `range(row, M, programs)`. It stops `range(0, N, BLOCK)`, also where another name is given to N before.
    """
    if not isinstance(loop, ast.For) or loop not in nodes_of(function):
        return False
    names = _made_of(names_in(loop.iter), function)
    sizes = set()
    for name in names & values.keys():
        if name in blocks or not is_number(values[name]):
            return False
        sizes |= plain(values[name]).free_symbols
    return M in sizes and N not in sizes


def _lengths(kernel) -> set[str]:
    """The names in the lengths of a kernel's tiles; all names where none is seen."""
    names, lengths = set(), set()
    for node in nodes_of(kernel.function):
        if isinstance(node, ast.Name):
            names.add(node.id)
        if isinstance(node, ast.Call) and last_name(node) in TILES:
            lengths |= names_in(node)
    return lengths or names


def _may_be_block(key, values, kernel) -> bool:
    """Whether an argument may be the length of a tile: an integer with tl.constexpr."""
    value = values.get(key)
    if not _is_count(value) or not plain(value).is_positive:
        return False
    (node,) = [a for a in kernel.function.args.args if a.arg == key]
    return is_constexpr(node)


def _assignments(blocks, values, given=()) -> list[dict[str, Any]]:
    """{block: WHOLE, COLUMNS or ROWS, or None for a number as it is}, the likeliest first; given: some of them."""
    choices = []
    for key, is_length in blocks.items():
        e = plain(values[key])
        if key in given:
            choices.append([given[key]])
            continue
        own = [COLUMNS, ROWS, None]
        if state().way.is_least(e - N):
            own = [WHOLE, ROWS, None]
        if e in (M, N):
            own = [None]
        if e == 1 or not is_length:
            own = [None, ROWS, COLUMNS]
        choices.append(own)
    found = []
    for kinds in product(*choices):
        given = [kind for kind in kinds if kind is not None]
        columns = [kind for kind in given if kind in (WHOLE, COLUMNS)]
        if len(set(given)) == len(given) and len(columns) <= 1:
            found.append(dict(zip(blocks, kinds, strict=True)))
    # what is the length of a tile is one of rows or columns, and what is none is a number
    found.sort(key=lambda kinds: sum((kinds[k] is None) == blocks[k] for k in kinds))
    return found


def _chunked(blocks, names, values) -> Iterator[tuple[Expr, dict[str, Any]]]:
    """(how many programs are needed, as _assignments) for each argument that may be how many rows a program takes.

    For `for r in range(R): row = pid * R + r` in a grid of cdiv(M, R). A grid of another number of programs is stopped
    by who asks, and so is a second axis of it, whose programs would take the same rows.
    """
    for key in names:
        if not _is_count(values.get(key)):
            continue
        e = plain(values[key])
        needed = ceiling(M, e) if e.is_positive and e not in (S.One, M) else S.One
        if needed != 1 and not state().way.divides(e, M):
            others = {name: blocks[name] for name in blocks if name != key}
            for kinds in _assignments(others, values):
                yield needed, {key: CHUNK, **kinds}


def _counts_programs(kernel) -> bool:
    """Whether a kernel may ask how many programs there are."""
    functions = _functions(kernel)
    texts = " ".join(map(ast.unparse, functions))
    return not functions or "num_programs" in texts


def _is_read(*arguments, **options) -> bool:
    """Whether a kernel is read to its end by a binding."""
    with suppress(NotRead):
        _Attempt(*arguments, **options).read()
        return True
    return False


class _Attempt:
    """A reading of a launch's kernel, by one way of taking its blocks.

    Args:  arguments, options: of Operands
    """

    def __init__(self, kernel, *arguments, **options):
        self.kernel, self.operands = kernel, Operands(*arguments, **options)

    def read(self) -> tuple[Tiles, dict[str, Expr]]:
        """(what it was read on, what it leaves); a masked lane without `other` counts as 0 only where that decides."""
        key = self._key()
        readings = state().way.shared
        if key not in readings:
            try:
                readings[key] = self._read(nan)
                if readings[key] is None:
                    readings[key] = self._read(S.Zero)
            except NotRead as reason:
                readings[key] = reason
        if isinstance(readings[key], NotRead):
            raise readings[key]
        return readings[key]

    def _key(self):
        """By what two launches are one reading."""
        parts = []
        launch = self.operands.launch
        for name, bound in launch.arguments.items():
            e = getattr(bound, "name", bound)
            e = e.as_dummy() if isinstance(e, Expr) else e
            parts.append((name, type(bound), e, getattr(bound, "stride", None)))
        name = id(self.kernel.source), self.kernel.name, str(self.operands.groups)
        blocks = tuple(self.operands.blocks.items())
        return (*name, launch.even), tuple(parts), launch.grid, blocks

    def _read(self, fill):
        reader = Kernel(self.kernel.source, self.operands.launch, fill)
        tiles, memory = reader.tiles, reader.tiles.memory
        with evaluate(True):
            try:
                stored = reader.read(self.kernel.name)
            except NotRead as reason:
                reason.line = reason.line or reader.line or None
                if memory.is_read:
                    self._check_rows(memory)
                if fill is nan and memory.decides([reason]):
                    return None
                raise tiles.sure(reason) from None
        self._check_rows(memory)
        # what the launch leaves as it was may be written by another one
        faults = [f for n, f in memory.faults.items() if n in memory.stores or f.line]
        if fill is nan and memory.decides(faults):
            return None
        faults = list(map(tiles.sure, faults))
        if faults:
            raise sorted(faults, key=lambda fault: not isinstance(fault, Wrong))[0]
        if tiles.sums.maxima.heads and self.operands.parts:
            raise NotRead("the largest of a row of partial sums")
        self._check_blocks(tiles)
        return tiles, stored

    def _check_rows(self, memory):
        """Refuses a kernel that stores in the first row of its outputs alone.

        For `Y + cols` of a grid of columns. It stops a kernel without rows, which leaves them out where M is 2.
        """
        sizes = state().way.example([M > 1])
        tensors = memory.launch.arguments
        stored = {*memory.stores, *memory.in_first_row}
        matrices = [key for key in stored if tensors[key].letters == ("i", "j")]
        if sizes and matrices and all(map(memory.in_first_row.get, matrices)):
            raise _left_out(
                f"{min(matrices)}: all rows but the first are left out, as {sizes}",
                self.kernel,
                self.operands.values,
            )

    def _check_blocks(self, tiles):
        """Refuses a tile whose length is no power of 2.

        For blocks that a launcher computes. It stops BLOCK = x.shape[1], which compiles for N = 4 and not for N = 3.
        """
        if tiles.needs_power:
            raise uncompiled("a tile of N lanes, where N is no power of 2, as N = 3")
        for block in tiles.lengths & self.operands.blocks.keys():
            e = self.operands.blocks[block]
            power = e == block or is_power_of_2(e)
            words = f"a tile of {e} lanes, which is no power of 2"
            sizes = "" if power is not None else state().way.no_power(e)
            if sizes:
                raise uncompiled(f"{words}, as {sizes}")
            if power is False:
                raise uncompiled(words)
            if power is None:
                raise NotRead(f"{block} is {e}, which is not known to be a power of 2")
