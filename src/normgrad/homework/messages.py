"""What happened, in words for the student: every way in which a call can fail, and the lines of a comparison."""

from __future__ import annotations

import re
import signal

import numpy as np

from .named import named
from .sandbox.refusals import EXTRA_MEMORY

INPUTS = "Inputs: "
WRONG_BEFORE = (
    "They are derivatives of the gradients, and are looked at once those stages pass."
)
OUT_OF_TIME = "had not finished after"
STUB = "not implemented yet"
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "cannot allocate memory")
# What autograd says of a Function, as patterns, and the mistake that it says it of.
AUTOGRAD = {
    r"gradient different than None at position": "gradient-misplaced",
    r"invalid gradient at index \d+ - got \[\d*\] but expected shape compatible with \[\d+\]": "wrong-axis",
    r"element 0 of tensors does not require grad": "not-differentiable",
}
# what Python says of a symbol where it needs a number
SYMBOLIC = {"object cannot be interpreted as an integer": "length-counted"}
MEMORY = f"{EXTRA_MEMORY / 2**30:g} GB"


class Wrong(Exception):
    """A check failed. Args: the sentence for the student; evidence: (output, numbers, trial) for the term attribution;
    diagnoses: what the stage itself found out; stub: whether the reason is that nothing is written yet; key: of the
    table, in place of diagnoses, where that tells the mistake"""

    def __init__(self, message, evidence=(), stub=False, diagnoses=(), key=""):
        super().__init__(message)
        self.evidence, self.stub = tuple(evidence), stub
        self.diagnoses = (named(key),) if key else tuple(diagnoses)


def failure(outcome, task) -> Wrong:
    """The words for an outcome without results."""
    facts, kind = outcome.failure, outcome.failure["what"]
    your = "When solution.py was loaded, your" if facts.get("loading") else "Your"
    if kind == "raised" and _is_stub(facts):
        return Wrong(STUB, stub=True)
    if kind == "missing":
        return Wrong(
            f"The submission does not define {facts['entry']}. The signature is {task.signature}"
        )
    if kind == "time":
        limit = f"{facts['seconds']:.2g} s"
        if (
            task.library == "sympy"
            and facts.get("type") == "TimeUp"
            and not facts.get("line")
        ):
            return Wrong(f"Your function had returned, but the grader {OUT_OF_TIME} {limit} to put numbers into its "
                         "answer, and stopped. Write the answer with fewer sums within sums.")  # fmt: skip
        words = f"{your} code {OUT_OF_TIME} {limit} and was stopped. Look for a loop that never ends, or has far to go."
        return Wrong(words + _line(facts))
    if kind == "died":
        return Wrong(f"{your} code ended its process{_died(facts.get('code'))}")
    if kind == "long":
        return Wrong(
            f"solution.py has {facts['bytes']} bytes; at most {facts['most']} are read."
        )
    if kind == "garbled":
        return Wrong(
            f"{your} code wrote into the grader's own pipe, or returned more than the grader reads."
        )
    said = str(facts.get("message", ""))
    patterns = SYMBOLIC if task.library == "sympy" else AUTOGRAD
    keys = [key for pattern, key in patterns.items() if re.search(pattern, said)]
    if facts.get("line") and patterns is AUTOGRAD:
        keys = []
    return Wrong(_raised(facts, your, task), diagnoses=map(named, keys))


def _is_stub(facts) -> bool:
    """Whether an exception is a stub's own; libraries raise the same one for what they do not support, with words."""
    written = str(facts.get("code", "")).startswith("raise ")
    return "NotImplementedError" in facts.get("bases", ()) and (
        written or not facts.get("message")
    )


def _died(code) -> str:
    if code is None or code >= 0:
        return f" with exit status {code}. Take calls of exit or os._exit out."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return (
        f": {name}, a crash. Look for a kernel's load or store outside of a tensor, for recursion without end, or for "
        "too much memory."
    )


def _raised(facts, your, task) -> str:
    """An exception, with the student's own line."""
    name, message = str(facts.get("type")), str(facts.get("message", "")).strip()
    text = f"{name}: {message}" if message else name
    line = _line(facts)
    if "Refused" in facts.get("bases", ()):
        return f"{your} code {message}, which a graded solution may not do.{line}"
    if name == "SystemExit":
        return f"{your} code called exit. A function returns or raises.{line}"
    if name == "RecursionError":
        return f"{your} code called itself without end (RecursionError).{line}"
    if "MemoryError" in facts.get("bases", ()) or any(
        words in message for words in OUT_OF_MEMORY
    ):
        return f"{your} code asked for more memory than the {MEMORY} that it may use.{line}"
    if "active drivers" in message:
        return f"triton.autotune tries its configurations on a GPU, and none is here. Take it off the kernel.{line}"
    if not line and name == "TypeError" and "argument" in message:
        return f"It could not be called with {arguments(task)}. {text}"
    return f"{your} code raised {text}.{line}" if line else text


def _line(facts) -> str:
    """The student's own line, where it is known."""
    if not facts.get("line"):
        return ""
    inside = (
        f" in {facts['function']}"
        if facts.get("function", "<module>") != "<module>"
        else ""
    )
    return f" Line {facts['line']}{inside}" + (
        f": {facts['code']}" if facts.get("code") else "."
    )


def a(kind) -> str:
    """The name of a type with its article: "an int", "a list", "None"."""
    if kind == "NoneType":
        return "None"
    return f"{'an' if str(kind)[:1].lower() in 'aeiou' else 'a'} {kind}"


def arguments(task) -> str:
    """The arguments of a task in words: "(dy, x, weight, rstd)"."""
    return f"({', '.join(task.oracle.arguments)})"


def apart(value, other) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them from each other."""
    for digits in range(6, 18):
        first, second = f"{value:.{digits}g}", f"{other:.{digits}g}"
        if first != second:
            break
    return first, second


def small(value) -> str:
    """An error or a bound in a report."""
    return f"{value:.1e}"


def largest(errors) -> str:
    """The words about the one of some (error, bound) that is nearest to its bound."""
    error, bound = 0.0, 0.0
    for pair in errors:
        if pair[1] and pair[0] * bound >= error * pair[1]:
            error, bound = pair
    return f"largest error {small(error)}, allowed {small(bound)}."


def compare(name, got, expected, bound) -> tuple[float, float, str]:
    """(largest error, its bound, "" or a sentence about the worst place); NaN never passes."""
    if got.size == 0:
        return 0.0, 0.0, ""
    bound, finite = np.broadcast_to(bound, got.shape), np.isfinite(got)
    with np.errstate(all="ignore"):
        error = np.abs(got - expected)
        score = np.nan_to_num(error / bound)
    bad = ~(error <= bound)
    if not finite.all():
        score = ~finite
    elif bad.any():
        score = np.where(bad, error, -1)
    at = tuple(map(int, np.unravel_index(np.argmax(score), got.shape)))
    which = f"{name}{_place(at)} is"
    if not finite.all():
        count = got.size - int(finite.sum())
        words = f"{count} of {got.size} numbers are not finite."
        return np.inf, 0.0, f"{which} {got[at]:g}; {words}"
    words = ""
    if bad.any():
        is_, needs = apart(got[at], expected[at])
        distance = f"off by {small(error[at])}, where {small(bound[at])} is allowed."
        words = f"{which} {is_}, needs {needs}: {distance} {_how_many(bad)}"
    return float(error[at]), float(bound[at]), words


def swapped(name, got, known) -> str:
    """A sentence where a wrong result holds what another one must be, that one a third, and so back to the first.

    Args:  got: {result: numbers}; known: {result: (value, bound)}
    """

    def holder(value):
        return next((other for other, (right, bound) in known.items() if right.shape == value.shape
                     and value.size and (np.abs(value - right) <= bound).all()), "")  # fmt: skip

    order = [name]
    while (
        other := holder(got[order[-1]]) if order[-1] in got else ""
    ) and other not in order:
        order.append(other)
    if len(order) < 2 or other != name:
        return ""
    names = [other for other in known if other.startswith("d") == name.startswith("d")]
    return f"That is what {order[1]} must be: the order is {', '.join(names)}."


def _place(at):
    return f"[{', '.join(map(str, at))}]" if at else ""


def _how_many(bad) -> str:
    if bad.ndim < 2:
        return f"{int(bad.sum())} of {bad.size} entries are wrong."
    rows, columns = bad.any(-1), bad.reshape(-1, bad.shape[-1]).any(0)
    if rows.all():
        words = "All rows are wrong." if rows.size > 1 else "The row is wrong."
        if columns.all():
            return words
        names = ", ".join(map(str, np.flatnonzero(columns)[:8]))
        several = "s" * bool(columns.sum() > 1)
        return f"{words[:-1]}, in column{several} {names} of {columns.size}."
    if rows.ndim > 1:
        return f"{int(rows.sum())} of {rows.size} rows are wrong."
    wrong = np.flatnonzero(rows)
    first, second = wrong[0], len(wrong) > 1 and 2 * len(wrong) >= len(rows) - 1
    if second and np.array_equal(wrong, np.arange(first, len(rows), 2)):
        return f"Every second row is wrong, from row {first} on."
    names = ", ".join(map(str, wrong[:8]))
    if len(wrong) == 1:
        return f"Row {names} is wrong, of {len(bad)} rows."
    return f"Rows {names} are wrong, of {len(bad)} rows."
