"""What is graded, behind one interface: a function of this process, or a solution.py in a process of its own.

A call never raises and never hangs: whatever happens is an Outcome. The arguments lie in a buffer of the grader's, who
compares it before and after, so that a changed input is seen whatever the student's code says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from . import calls, calls_formats, calls_operators, calls_symbols, calls_tests, calls_watched

BUFFER, ALIGNMENT = 4 * 2**20, 64
STORED = {"bfloat16": "float32"}
for more in (calls_symbols, calls_tests, calls_operators, calls_watched, calls_formats):
    calls.OPERATIONS.update(more.OPERATIONS)


@dataclass(frozen=True)
class Given:
    """One argument of a call.

    Args:  value: an array, held in float64 with numbers that the dtype holds, or a number; kind: "numpy", "torch" or
           "scalar"; grad: whether a tensor requires a gradient; layout: "contiguous", "strided",
           "transposed" or "wide" (rows of a wider matrix); strides differ from one argument to the next
    """

    name: str
    value: object
    dtype: str = "float64"
    kind: str = "numpy"
    grad: bool = False
    layout: str = "contiguous"


@dataclass(frozen=True)
class Request:
    """One call.

    Args:  op: what to do, a name in calls.OPERATIONS; arguments: in their order; options: of the operation
           answer: what the grader says when the operation asks in the middle of the call: takes and returns facts and
           arrays, and never raises
    """

    op: str
    arguments: tuple[Given, ...]
    options: dict = field(default_factory=dict)
    answer: Callable | None = None


@dataclass(frozen=True)
class Value:
    """One result: its numbers in float64, and facts such as type, kind, dtype and shape."""

    numbers: np.ndarray
    facts: dict


@dataclass(frozen=True)
class Outcome:
    """What a call led to.

    Args:  values: the results; None where something went wrong
           failure: what went wrong, as facts with a "what": "raised", "time", "died", "garbled", "replaced", "missing"
           facts: of the operation; changed: inputs whose memory changed; attempts: what was refused
           printed: (number of characters, the first of them)
    """

    values: list[Value] | None
    failure: dict | None = None
    facts: dict = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    attempts: tuple[str, ...] = ()
    printed: tuple[int, str] = (0, "")


class Arena:
    """Places arguments into a buffer and tells which of them were changed there."""

    def __init__(self, buffer):
        self.bytes = np.frombuffer(buffer, np.uint8)
        self.placed = {}

    def place(self, arguments) -> list[dict]:
        """The specs of a request's arguments, whose numbers now lie in the buffer.

        The memory between strided columns holds NaN, so that code that does not look at strides is seen.
        """
        self.placed, specs, at, more = {}, [], 0, 0
        for given in arguments:
            if given.kind == "scalar":
                specs.append({"name": given.name, "kind": "scalar", "value": given.value})
                continue
            array = np.asarray(given.value, STORED.get(given.dtype, given.dtype))
            layout = given.layout if array.ndim == 2 else "contiguous"
            more += layout != "contiguous"
            stored = _laid_out(array, layout, more)
            end = at + stored.nbytes
            if end > self.bytes.size:
                raise ValueError(f"the inputs need more than {self.bytes.size} bytes: use fewer rows or columns")
            self.bytes[at:end] = np.frombuffer(stored.tobytes(), np.uint8)
            self.placed[given.name] = (at, end, self.bytes[at:end].copy())
            specs.append({"name": given.name, "kind": given.kind, "dtype": given.dtype, "stored": str(array.dtype),
                          "shape": list(array.shape), "layout": layout, "more": more, "offset": at,
                          "grad": given.grad})  # fmt: skip
            at = -(-end // ALIGNMENT) * ALIGNMENT
        return specs

    def changed(self) -> tuple[str, ...]:
        """Names of the arguments whose memory is not what it was."""
        return tuple(name for name, (at, end, was) in self.placed.items() if (self.bytes[at:end] != was).any())


def _laid_out(array, layout, more):
    """The memory that an array is a part of; more: 1 for the first such argument, 2 for the second, and so on."""
    if layout == "contiguous":
        return np.ascontiguousarray(array)
    array = array.T if layout == "transposed" else array
    step = 1 + more if layout == "strided" else 1
    wide = np.full((len(array), array.shape[1] * step + (more if step == 1 else 0)), np.nan, array.dtype)
    wide[:, : array.shape[1] * step : step] = array
    return wide


class Student:
    """The interface: begin a stage with so many seconds, call a name, close."""

    entries: tuple[str, ...] = ()

    def begin(self, seconds: float) -> None:
        """Starts the clock: all calls until the next begin share these seconds."""
        self.seconds, self.deadline = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Seconds of the stage that are left, at least a tenth."""
        return max(0.1, self.deadline - time.monotonic())

    def call(self, entry: str, request: Request) -> Outcome:
        """The outcome of one call of the student's code by its name."""
        raise NotImplementedError

    def fresh(self) -> None:
        """Forgets what the student's code kept from earlier calls; the clock runs on."""
        raise NotImplementedError

    def globals_of(self, entry: str) -> list[str]:
        """Module variables that an entry reads."""
        return []

    def forbidden_of(self, entry: str, forbidden) -> list[str]:
        """Forbidden names that an entry uses."""
        return []

    def raises_of(self, entry: str) -> bool:
        """Whether an entry, or what it reads, has a statement that raises or asserts."""
        return True

    def close(self) -> None:
        """Ends whatever was started."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def outcome(results, **parts) -> Outcome:
    """An Outcome of (facts, numbers) pairs."""
    return Outcome([Value(numbers, facts) for facts, numbers in results], **parts)


def as_request(request: Request, arena: Arena, entry: str) -> dict:
    """A request as plain data, its arguments placed in the arena."""
    options = {**request.options, "entry": entry}
    return {"op": request.op, "arguments": arena.place(request.arguments), "options": options, "entry": entry}


def perform(target, plain: dict, buffer):
    """calls.perform, for students in this process."""
    return calls.perform(target, plain, buffer)
