"""What is graded, behind one interface: a function of this process, or a solution.py in processes of its own.

A call never raises and never hangs: whatever happens is an Outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import running, source

STORED = {"bfloat16": "float32"}
LEAST_SECONDS = 0.1


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
    """One call. Args: op: a name in OPERATIONS; arguments: in their order; options: of the operation"""

    op: str
    arguments: tuple[Given, ...]
    options: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """One result: its numbers in float64, and facts such as type, kind, dtype and shape."""

    numbers: np.ndarray
    facts: dict


@dataclass(frozen=True)
class Outcome:
    """What a call led to.

    Args:  values: the results; None where something went wrong
           failure: what went wrong, as facts with a "what": "raised", "time", "died", "garbled", "missing", "refused"
           facts: of the operation; changed: inputs whose numbers changed; printed: (number of characters, the first)
    """

    values: list[Value] | None
    failure: dict | None = None
    facts: dict = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    printed: tuple[int, str] = (0, "")


class Student:
    """The interface: begin a stage with so many seconds, look at a name, call it, close."""

    def begin(self, seconds: float) -> None:
        """All calls until the next begin share these seconds."""
        self.seconds = self.left = seconds

    def call(self, entry: str, request: Request) -> Outcome:
        """The outcome of one call of the student's code by its name."""
        header, arrays = self._asked(
            entry, *plain(request, entry, max(LEAST_SECONDS, self.left))
        )
        done = outcome(header, arrays, self.seconds)
        self.left -= max(0.0, header.get("seconds", self.left))  # nobody gets time back
        return done

    def look(self, entry: str) -> dict:
        """What source.look says of a name; of one that is not there, nothing."""
        raise NotImplementedError

    def program(self, entry: str):
        """What is read of a name: the function or class itself, or the text of its module."""
        raise NotImplementedError

    def _asked(self, entry, header, arrays):
        """(header, arrays) of the reply to a request."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends whatever was started."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


KEYS = "names globals parameters shortcuts calls numbers"
NOTHING: dict[str, list[str]] = {key: [] for key in KEYS.split()}


class Local(Student):
    """Functions or classes of this process by their entry names, as notebook cells hand them over."""

    def __init__(self, targets: dict):
        self.targets = targets

    def look(self, entry):
        """What the live object says."""
        return source.look(self.targets[entry]) if entry in self.targets else NOTHING

    def program(self, entry):
        """The live object."""
        return self.targets.get(entry)

    def _asked(self, entry, header, arrays):
        if entry not in self.targets:
            return {"failure": {"what": "missing", "entry": entry}}, []
        header, arrays = running.answer(self.targets[entry], header, arrays)
        if header["error"] and header["error"]["type"] == "KeyboardInterrupt":
            raise KeyboardInterrupt
        return header, arrays


def plain(request: Request, entry: str, seconds: float) -> tuple[dict, list]:
    """A request as plain data and arrays."""
    specs, arrays, more = [], [], 0
    for argument in request.arguments:
        spec = dict(vars(argument))
        if argument.kind != "scalar":
            dtype = STORED.get(argument.dtype, argument.dtype)
            arrays.append(np.array(spec.pop("value"), dtype, order="C"))
            if arrays[-1].ndim < 2:
                spec["layout"] = "contiguous"
            more += spec["layout"] != "contiguous"
            spec["more"] = more
        specs.append(spec)
    header = {
        "action": "call",
        "op": request.op,
        "entry": entry,
        "arguments": specs,
        "options": {**request.options, "entry": entry},
        "seconds": seconds,
    }
    return header, arrays


def outcome(header: dict, arrays, seconds: float) -> Outcome:
    """The Outcome that a reply tells of.

    Args:    seconds: the limit that it had
    Raises:  KeyError, TypeError or ValueError for a header that is none
    """
    if failure := header.get("failure"):
        return Outcome(None, {"seconds": seconds, **failure})
    count, kept = header["printed"]
    printed = int(count), str(kept)
    if error := header["error"]:
        kind = "time" if error["type"] == "TimeUp" else "raised"
        return Outcome(
            None, {"seconds": seconds, **error, "what": kind}, printed=printed
        )
    values = [
        Value(array, dict(facts))
        for facts, array in zip(header["results"], arrays, strict=True)
    ]
    return Outcome(
        values, None, dict(header["facts"]), tuple(map(str, header["changed"])), printed
    )
