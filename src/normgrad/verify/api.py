"""verify: a kernel's text against definitions, by what its launcher promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import NoneType

from sympy import S, evaluate, nan

from ..symbolic.patience import OutOfPatience, limited
from ..symbolic.symbols import M, N, eps, i, j
from .binding import (
    Launch,
    outputs_of,
    resolved,
)
from .conditions import concluded
from .definitions import LETTERS, Norm, no_tensor
from .functions import followed
from .header import parameters
from .kernel import Kernel
from .maxima import Maximum, of_maxima
from .places import CEILING, FLOOR, LEAST
from .source import Source, source_of
from .text import check_seconds, check_type, imports_of
from .values import BEFORE, UNCOMPILED, Flag, NotRead
from .verdict import (
    KINDS,
    NOT_READ,
    REFUTED,
    WRONG,
    Claim,
    Verdict,
    at_its_eps,
    compare,
    if_zero,
    joined,
    refused,
)
from .widths import INTEGERS, below

ALWAYS = (
    f"floating-point numbers are exact: no rounding, no overflow; {INTEGERS}",
    "tensors hold floating-point numbers, have the bound shapes and strides; no two, nor an output's rows, overlap",
    "what a program stores, it reads again as it stored it",
)


FLAGS = 4  # that are not bound, and are tried both ways


def verify(
    program,
    binding: Mapping[str, object],
    grid: tuple | str,
    definitions: Norm,
    *,
    kernel: str | None = None,
    helpers: Mapping[str, str] | None = None,
    zero: bool = False,
    seconds: float = 20,
) -> Verdict:
    """What a Triton kernel stores against definitions, for every number of rows M and of columns N.

    Args:     program: a kernel, a path of a file or a module's text; nothing of it is run
              binding: {argument: what it is}: T("x"), Out("y"), InOut("x", then="y"); M, N, eps or a number; a flag;
              WHOLE, COLUMNS, ROWS, CHUNK or FLOAT; other arguments are integers of at least 1
              grid: for each axis "rows", "row tiles", "column tiles", "programs", or a number: that of the one program
              that is looked at, and no count
              definitions: normgrad.verify.norm(...), or a Norm of your own
              kernel: the function's name, where the text has several
              helpers: {function: what it returns, as text}, taken for granted
              zero: whether numbers that the kernel compares with 0 are 0, as in a row of zeros
              seconds: after how many a proof is given up
    Returns:  Verdict, with one for each output
    Raises:   ValueError for a binding that fits neither the kernel nor the definitions
    """
    if not isinstance(grid, str | int | tuple | list):
        raise TypeError(f"grid: got {grid!r}, needs its axes, as 'rows'")
    grid = (grid,) if isinstance(grid, str | int) else tuple(grid)
    helpers = {} if helpers is None else helpers
    binding, definitions = resolved(binding, definitions)
    launch = Launch(binding, grid, helpers, zero)
    outputs_of(binding, definitions)
    check_type("kernel", kernel, str, NoneType)
    check_seconds(seconds)
    try:
        source, name = source_of(program, kernel)
    except NotRead as reason:
        return refused(reason)

    def judge(definitions):
        return _both_ways(source, name, launch, definitions, seconds, FLAGS)

    with evaluate(True):
        return at_its_eps(judge, definitions, launch.arguments.values())


def _both_ways(source, name, launch, definitions, seconds, flags):
    """The verdict, for either value of each flag that is not bound; flags: how many may be tried."""
    try:
        verdict = _read(source, name, launch, definitions, seconds, nan)
        if verdict is None:
            verdict = _read(source, name, launch, definitions, seconds, S.Zero)
        return verdict
    except Flag as reason:
        flag = str(reason)
        if not flags:
            return refused(
                NotRead(f"more than {FLAGS} flags that are not bound; bind {flag}")
            )
    ways = []
    for value in (True, False):
        arguments = {**launch.arguments, flag: value}
        way = replace(launch, arguments=arguments)
        ways.append(_both_ways(source, name, way, definitions, seconds, flags - 1))
    return _worse(flag, *ways)


def _worse(flag, first, second):
    """The worse of the verdicts with a flag and without; a program is accused where it is wrong either way."""
    other, worst = sorted((second, first), key=lambda v: KINDS.index(v.kind))
    if first.kind == second.kind:
        if first.is_proof:
            return joined(first, second, flag)
        why = f"with {flag}=False as well"
        return replace(first, why="; ".join(filter(None, [first.why, why])))
    why = f"{flag} is not bound: {worst.kind} with {flag}={worst is first}, {other.kind} with {flag}={other is first}"
    if worst.accuses:
        return worst.unread(f"{why}; bind {flag}")
    return replace(worst, why="; ".join(filter(None, [why, worst.why])))


def _read(source: Source, kernel, launch, definitions, seconds, fill):
    """The verdict, if masked lanes without `other` hold `fill`; None where that decides."""
    reader = Kernel(source, launch, fill)
    tiles, memory = reader.tiles, reader.tiles.memory
    try:
        launch.check_strides(parameters(source.function(kernel))[0])
        reader.header.check_binding(kernel)
        with followed():
            held = reader.read(kernel)
        reader.header.check_binding(kernel)
        names, maxima = _maxima(tiles.sums.maxima.heads, definitions)
    except NotRead as reason:
        if isinstance(reason, Flag):
            raise
        memory.faults = {"": reason}
    faults = memory.faults.values()
    if fill is nan and memory.decides(faults):
        return None
    verdicts = {
        name: refused(tiles.sure(reason)) for name, reason in memory.faults.items()
    }
    if "" in verdicts:
        words = (*tiles.assumed, *_promised(reader, launch), *ALWAYS)
        line = verdicts[""].line or reader.line or None
        return _sure(replace(verdicts[""], line=line, assumptions=words), reader)
    for name, stored in held.items():
        stored = stored.xreplace(names)
        bound = launch.arguments[name]
        verdict = compared(name, bound, stored, definitions, seconds, maxima)
        verdict = _without_choice(verdict, stored, tiles.unbound, launch)
        if tiles.needs_power:
            verdict = _at_power_of_2(verdict)
        verdicts[name] = of_maxima(verdict, maxima)
    words = [words for words in tiles.assumed if words.endswith(BEFORE)]
    for axis, number in enumerate(launch.grid):
        if axis not in launch.axes:
            number = launch.number(axis)
            words.append(f"no other program of axis {axis} than {number} writes them")
    words += reader.header.decorators.granted
    results = [verdict.claim or name for name, verdict in verdicts.items()]
    claim = Claim(
        f"{kernel}: {', '.join(results)}",
        tuple(tiles.told),
        tuple(f"if {text}" for text in words),
        numbers=(*tiles.defects, *below(tiles.widths.conditions().items())),
    )
    assumptions = [*tiles.assumed, *_promised(reader, launch), *ALWAYS]
    if fill is not nan:
        verdicts, words = if_zero(verdicts, memory.filled)
        assumptions.insert(0, words)
    conditions = tiles.sums.conditions()
    try:
        with limited(seconds):
            verdict = concluded(
                verdicts,
                claim,
                assumptions,
                conditions,
                definitions,
                tiles.rests_on,
                maxima,
            )
    except OutOfPatience as reason:
        verdict = refused(reason)
    return _sure(verdict, reader)


def _at_power_of_2(verdict):
    """A refutation at numbers for which N is a power of 2.

    For a tile of N lanes, which compiles for no other N. It stops an accusation by a row of three columns.
    """
    if verdict.case is None:
        return verdict
    verdict.case.fits = lambda sizes: sizes[N].bit_count() == 1
    if verdict.counterexample is None or verdict.case.fits(
        verdict.counterexample.numbers
    ):
        return verdict
    at = verdict.case.counterexample()
    if at is None:
        return verdict.unread(
            "it differs where N is no power of 2, and where it is nothing was found"
        )
    return replace(verdict, counterexample=at)


def _sure(verdict, reader):
    """The verdict, unless it accuses a kernel by what the binding does not say, or by a number in the grid.

    For a kernel of which one program of an axis is looked at. Without it what the others store is said to be left out.
    """
    if not verdict.accuses:
        return verdict
    grid = enumerate(reader.tiles.launch.grid)
    fixed = [(axis, number) for axis, number in grid if type(number) is int]
    fixed = [pair for pair in fixed if pair[0] in reader.tiles.asked]
    if fixed and not verdict.why.startswith(UNCOMPILED):
        axis, number = fixed[0]
        why = f"grid: axis {axis} is the number {number} of the one program that is looked at, and no count; "
        why += f"with it the kernel is {verdict.kind}"
    elif reader.tiles.guessed:
        words = ", ".join(reader.tiles.guessed)
        why = f"{verdict.kind} for {words}, which the binding does not say; bind it"
    else:
        return verdict
    return verdict.unread(f"{why}: {verdict.why}" if verdict.why else why)


def _maxima(taken, definitions):
    """({a kernel's name for the largest of a row: the definitions' tensor}, {each of their entries: its Maximum})."""
    names, maxima = {}, dict(taken)
    for head, body in definitions.largest.items():
        maxima[head] = Maximum(body)
        for own, maximum in taken.items():
            if maximum.is_whole and compare(maximum.e, body, definitions.defs):
                names[own.base] = head.base
    return names, maxima


def compared(name, bound, stored, definitions, seconds, maxima=()) -> Verdict:
    """The verdict on one output.

    Args:  name, bound: of the argument; stored: what it holds in the end, in i and j
           maxima: entries of what is the largest of a row
    """
    head = definitions.outputs[bound.after]
    indices = {str(letter) for letter in LETTERS.values() if head.has(letter)}
    if indices != set(bound.letters) - {"p"}:
        why = f"{name} is bound as [{', '.join(bound.letters)}], and {head} is not: its index is "
        why += f'"{", ".join(sorted(indices))}"'
        return Verdict(NOT_READ, why=why)
    claim = f"{name} = {head}"
    if "p" in bound.letters:
        claim = f"the sum of the rows of {claim}"
    verdict = compare(stored, head, definitions.defs, claim, seconds)
    undefined = definitions.undefined(stored, maxima)
    if verdict.kind == REFUTED and undefined:
        return verdict.unread(no_tensor(undefined))
    return verdict


def _without_choice(verdict, stored, unbound, launch):
    """The verdict on an output, unless what is stored depends on what a launcher chooses."""
    if verdict.kind == REFUTED and stored.has(FLOOR, CEILING, LEAST):
        return verdict.unread("what is stored depends on the rounding of a quotient")
    chosen = {s for s in stored.free_symbols if s.is_integer} - {M, N, i, j}
    if verdict.kind != REFUTED or not chosen:
        return verdict
    names = {str(symbol) for symbol in chosen}
    words = f"what is stored depends on {', '.join(sorted(names))}"
    verdict.case.sized = launch.at
    kind, why = WRONG, f"{words}, which the launcher chooses"
    if names & unbound:
        kind, why = NOT_READ, f"{words}: bind {', '.join(sorted(names & unbound))}"
    return replace(verdict, kind=kind, counterexample=None, why=why)


GRID = {
    "rows": "M programs",
    "row tiles": "cdiv(M, block of rows) programs",
    "column tiles": "cdiv(N, block of columns) programs",
    "programs": "any number of programs",
}


def _promised(reader, launch):
    """What is taken from the binding, the grid and the head of the text, in words."""
    yield from imports_of(reader.source.tree)
    for axis, kind in enumerate(launch.grid):
        words = GRID.get(kind, f"the program {launch.number(axis)}")
        if isinstance(kind, tuple):
            words += f" of {kind[1]}"
        yield f"axis {axis} of the grid: {words}"
    words = [f"{name} is {bound}" for name, bound in launch.arguments.items()]
    words += [f"{n} > 0" for n, bound in launch.arguments.items() if bound == eps]
    yield "; ".join(words)
    if reader.tiles.unbound:
        yield f"{', '.join(sorted(reader.tiles.unbound))}: any integers of at least 1"
