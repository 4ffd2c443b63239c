"""A kernel in loops over rows and columns, as Numba compiles it: its text, on the reader of NumPy functions.

All programs together take each row once: `range(M * program // programs, M * (program + 1) // programs)`. What a
program adds up in a place of its own is, over all programs, the sum over all rows.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from types import FunctionType

from sympy import Expr, Integer, evaluate, sympify

from ..symbolic.symbols import i, j
from .api import compared
from .arrays import (
    AXES,
    PROGRAM,
    PROGRAMS,
    Array,
    DType,
    NotRead,
    Scalar,
    array,
    elementwise,
    indexed,
    state,
    tracing,
)
from .binding import (
    AXIS_OF,
    FLOAT,
    LIMIT,
    PROGRAM_COUNT,
    Filled,
    T,
    outputs_of,
    resolved,
)
from .binding import PROGRAM as OWN
from .definitions import Norm
from .functions import entry, followed
from .interpreter import Reader
from .memory import entry_of
from .programs import REAL, digits_of, noted
from .python_objects import Function
from .python_source import definition
from .tables.signatures import Known
from .text import check_seconds, check_type
from .values import BEFORE, Limit
from .verdict import (
    NOT_READ,
    PROVED,
    REFUTED,
    WRONG,
    Claim,
    Verdict,
    at_its_eps,
    beside_run,
    refused,
)

# {a word of a binding: what it is here}
WORDS = {
    OWN: Scalar(PROGRAM, "int"),
    PROGRAM_COUNT: Scalar(PROGRAMS, "int"),
    LIMIT: Limit(),
    FLOAT: DType("numpy", "float64"),
}
# of Numba's compiler, which change no number but its last digits
# of the arguments, which a cast to float64 makes wider
DTYPE = "float32"
OPTIONS = {"nopython", "boundscheck", "nogil", "fastmath", "error_model", "inline"}
ALWAYS = (
    REAL,
    "every program runs once",
    "arguments are arrays of floating-point numbers that do not overlap in memory",
)


@dataclass(eq=False)
class Line:
    """The line in which an array's rows are made."""

    rows: Array


class Lines:
    """Rows of results that are made in a line and sent to memory: a row is sent where it belongs, and arrives."""

    def __init__(self):
        self.made, self.sent = [], []

    def held(self, line, rows, at):
        """Where a row is made."""
        self._check(line, rows, at)
        self.made.append(rows.memory)
        return indexed(rows, (at,), write=True)

    def send(self, line, rows, at):
        """Sends a row."""
        self._check(line, rows, at)
        if rows.memory not in self.made or not rows.memory.changed:
            raise NotRead("a row is sent before it is made")
        self.made.remove(rows.memory)
        self.sent.append(rows.memory)

    def arrived(self):
        """Waits for what was sent."""
        self.sent.clear()

    def _check(self, line, rows, at):
        if not isinstance(line, Line) or line.rows is not rows:
            raise NotRead("a row is made in the line of another array")
        if state().loops != [at]:
            raise NotRead("a row is made or sent that is not the loop's own")

    def check(self):
        """Refuses what is not sent, and what need not have arrived."""
        if self.made:
            raise NotRead("a row is made in a line, and not sent")
        if self.sent:
            raise NotRead("a row is sent, and need not have arrived")


def _load(words, at):
    return indexed(words, (at,))


def _row(matrix, at):
    return indexed(matrix, (at,), write=True)


def _own(vectors, at):
    if state().loops[:1] != [at]:
        raise NotRead("what belongs to a row that is not the loop's own")
    return vectors


def _store(words, at, value):
    indexed(words, (at,), write=True).write(elementwise(lambda e: e, value).e)


class Compiled:
    """What Numba makes of an object: of a function of the package's own helpers what it says, of others their text."""

    def __init__(self):
        self.lines = Lines()
        self.helpers = {
            "line_for": Line,
            "held": self.lines.held,
            "send": self.lines.send,
            "arrived": self.lines.arrived,
            "load": _load,
            "store": _store,
            "row": _row,
            "own": _own,
        }

    def __call__(self, value):
        """An object of Python's, or a helper as a function of a table."""
        if type(value).__module__ == "numba.core.registry":
            unknown = set(value.targetoptions) - OPTIONS
            same = value.py_func is value._compiler.py_func
            if unknown or value.locals or not value._can_compile or not same:
                words = ", ".join(sorted(unknown)) or "types or a text of its own"
                raise NotRead(f"a function that Numba compiles with {words}")
            value = value.py_func
        name = getattr(value, "__name__", "")
        if isinstance(value, FunctionType) and name in self.helpers and _is_own(value):
            run = self.helpers[name]
            return Known("math", name, [(signature(run), run)])
        return value


def _is_own(function):
    """Whether a function is the package's of that name, or has its very text, over the same names."""
    kernels = _kernels()
    own = getattr(kernels, function.__name__, None)
    own = getattr(own, "py_func", own)
    if kernels is None or not isinstance(own, FunctionType) or function is own:
        return function is own
    there, here = function.__globals__, own.__globals__
    for name in own.__code__.co_names:
        # a copy of the text may have a copy of what it calls, and no other np
        value, of_own = there.get(name), here.get(name)
        if (type(value), value) == (type(of_own), of_own):
            continue
        value = getattr(value, "py_func", value)
        if not isinstance(value, FunctionType) or not _is_own(value):
            return False
    return ast.dump(definition(function)) == ast.dump(definition(own))


@cache
def _kernels():
    """The package's kernels in loops; None where there is no Numba."""
    try:
        return import_module("normgrad.numba_kernels.kernels")
    except ImportError:
        return None


def _argument(name, bound):
    """The value of an argument."""
    match bound:
        case T(letters=letters, before=before):
            shape, e = tuple(AXIS_OF[letter][0] for letter in letters), Integer(0)
            if before is not None:
                axes = AXES[: len(shape)][::-1]
                e = entry_of(before, list(zip(shape, axes, strict=True)))
            value = array(shape, e, "numpy", DTYPE)
            value.memory.argument = True
            if before is None:
                value.memory.written, value.memory.zero_before = False, name
            return value
        case Filled(shape, value):
            shape = tuple(map(sympify, shape))
            return array(shape, sympify(value), "numpy", DTYPE)
        case str() if bound in WORDS:
            return WORDS[bound]
        case bool():
            return bound
        case int() | float() | Expr():
            return Scalar(sympify(bound), "float")
    raise ValueError(f"binding: {name} is {bound!r}, which is nothing of a loop's")


def _arguments(names, binding):
    """{argument: its value}."""
    if set(names) != set(binding):
        raise ValueError(f"binding: got {', '.join(binding)}, needs {', '.join(names)}")
    return {name: _argument(name, binding[name]) for name in names}


def verify_loops(
    program: FunctionType,
    binding: Mapping[str, object],
    definitions: Norm,
    *,
    zero: bool = False,
    seconds: float = 20,
    run: bool = True,
) -> Verdict:
    """What a function in loops over rows and columns stores against definitions, for every M and N.

    Args:     program: a function, compiled by Numba or not
              binding: {argument: what it is}: T("x"), Out("y"), Out("dw", "p, j"), InOut("x", then="y"); a number or a
              flag; PROGRAM, PROGRAM_COUNT, LIMIT; Filled((M, 0)) for an array that is absent
              definitions: normgrad.verify.norm(...), or a Norm of your own
              zero: whether numbers that are compared with 0 are 0; seconds: after how many a proof is given up
              run: whether a proof is confronted with a run, uncompiled and at small sizes; not where zero is true
    Returns:  Verdict, with one for each output
    Raises:   ValueError for a binding that fits neither the function nor the definitions
    """
    check_type("zero", zero, bool)
    check_seconds(seconds)
    binding, definitions = resolved(binding, definitions)
    outputs = outputs_of(binding, definitions)

    def judge(definitions):
        return _read(program, binding, outputs, definitions, zero, seconds, run)

    return at_its_eps(judge, definitions, binding.values())


def _read(program, binding, outputs, definitions, zero, seconds, run):
    """The verdict, of one reading."""
    compiled = Compiled()
    reader = Reader(symbols=False, compiled=compiled)
    with tracing("numpy", DTYPE) as trace, evaluate(True):
        trace.sizes, trace.zero = (Integer(0),), zero
        if OWN in binding.values():
            trace.sizes = (Integer(0), PROGRAMS)
        try:
            with followed():
                target = reader.introspection.admit(program)
            if not isinstance(target, Function):
                raise TypeError(
                    f"program: got {type(program).__name__}, needs a function in loops"
                )
            values = _arguments(target.parameters, binding)
            with followed():
                reader.call(target, [], values)
                compiled.lines.check()
        except NotRead as reason:
            return refused(reason)
        verdicts = {}
        for name, value in values.items():
            if name in outputs:
                verdicts[name] = _compared(
                    name, value, outputs[name], definitions, seconds
                )
            elif isinstance(value, Array) and value.memory.changed:
                why = f"it writes over {name}, which is bound as an input"
                return Verdict(NOT_READ, why=why)
        results = [verdict.claim or name for name, verdict in verdicts.items()]
        promises = [f"if {text}" for text in trace.words if text.endswith(BEFORE)]
        try:
            clauses, digits = tuple(promises), digits_of(trace)
            claim = Claim(", ".join(results), clauses=clauses, numbers=digits)
            verdict = noted(trace, definitions, verdicts, claim, list(ALWAYS))
        except (NotRead, NotImplementedError) as reason:
            return refused(reason)
    if not run or zero or verdict.kind not in (PROVED, REFUTED):
        return verdict
    from .confront import confronted, of_loops

    ran = of_loops(program, binding, outputs, trace.words)
    if verdict.kind == REFUTED:
        return beside_run(verdict, ran)
    heads = {name: definitions.outputs[outputs[name].after] for name in outputs}
    return confronted(verdict, ran, definitions.defs, heads, trace)


def _compared(name, value, bound, definitions, seconds):
    """The verdict on one output."""
    if not value.memory.changed:
        return Verdict(WRONG, why=f"{name} is not written")
    letters = {"i": i, "j": j, "p": PROGRAM}
    try:
        stored = entry(value, list(map(letters.get, bound.letters)))
    except NotRead as reason:
        return refused(reason)
    if stored.free_symbols & {PROGRAM, PROGRAMS}:
        return Verdict(WRONG, why="it depends on the number of programs")
    return compared(name, bound, stored, definitions, seconds)
