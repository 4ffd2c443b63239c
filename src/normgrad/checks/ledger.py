"""Ledger entries: each numbered equation's label, tied to the check that backs it.

A cell that ends in one of these functions shows the outcome and carries the entry in its output, under a MIME type
of our own, so that an output taken from the execution cache still holds it. The build collects the entries and fails
on a label without an entry and on an entry without a label.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass

MIME = "application/vnd.normgrad.ledger+json"
WORDS = {
    "definition": "definition",
    "cited": "cited",
    "proved-for-every-n": "proved for every N",
    "proved-for-small-n": "proved for small N",
    "follows-from": "follows from",
    "numeric": "checked numerically",
}
KINDS = tuple(WORDS)


@dataclass(frozen=True)
class Entry:
    """What is known about one labelled equation.

    Args:  label: the equation's label; kind: one of KINDS; claim: one sentence that says what holds
           error, tolerance: the measured error and the bound it was held to (numeric entries)
           seconds: how long the proof or the check took
           follows_from, because: the labels of the equations it follows from, and the one-line reason
    """

    label: str
    kind: str
    claim: str
    error: float | None = None
    tolerance: float | None = None
    seconds: float | None = None
    follows_from: tuple[str, ...] = ()
    because: str = ""

    def __str__(self):
        parts = [" ".join([f"{self.label}: {WORDS[self.kind]}", ", ".join(self.follows_from)]).rstrip()]
        if self.error is not None:
            parts.append(f"error {self.error:.1e}, tolerance {self.tolerance:.1e}")
        if self.seconds is not None:
            parts.append(f"{self.seconds:.2f} s")
        reason = f", because {self.because}" if self.because not in ("", self.claim) else ""
        return ", ".join(parts) + f"\n    {self.claim.removesuffix('.') if reason else self.claim}{reason}"


class Entries(tuple):
    """The entries that one cell makes; shown as text and carried in the cell's output."""

    def __repr__(self):
        return "\n".join(map(str, self))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), MIME: [asdict(entry) for entry in self]}


def _registered(label):
    from normgrad.symbolic import equation

    return equation(label)


def define(*labels: str, claim: str = "") -> Entries:
    """Entries for definitions: equations that say what a symbol means and claim nothing.

    Args:  labels: of the equations; claim: what they define; a registered equation brings its own
    """
    from normgrad.symbolic import equations

    known = {} if claim else equations()
    claims = (claim or (known[label].claim if label in known else "What the symbols mean.") for label in labels)
    return Entries(Entry(label, "definition", text) for label, text in zip(labels, claims, strict=True))


def cite(label: str, source: str) -> Entries:
    """The entry of an equation that is taken from a source and not derived here."""
    if not source:
        raise ValueError("source: got an empty text, needs the reference that the equation is taken from")
    return Entries([Entry(label, "cited", source)])


def prove(*labels: str) -> Entries:
    """Prove registered equations for every N, now; NotProved, which names the label, when one does not hold."""
    entries = []
    for label in labels:
        start = time.perf_counter()
        equation = _registered(label)
        equation.prove()
        entries.append(Entry(label, "proved-for-every-n", equation.claim, seconds=time.perf_counter() - start))
    return Entries(entries)


def prove_small(*labels: str, sizes=(2, 3, 4)) -> Entries:
    """Prove registered equations for a few N, entry by entry, by explicit matrices and scalar derivatives.

    Raises:  ValueError for no sizes, with which nothing would be proved; AssertionError when an entry differs
    """
    if not isinstance(sizes, (tuple, list, range)) or not sizes:
        raise ValueError(f"sizes: got {sizes!r}, needs a sequence of at least one row length")
    entries = []
    for label in labels:
        start = time.perf_counter()
        equation = _registered(label)
        equation.check_fixed(sizes)
        claimed = equation.claim.rstrip(".")
        claim = f"{claimed}; N = {', '.join(map(str, sizes))}"
        entries.append(Entry(label, "proved-for-small-n", claim, seconds=time.perf_counter() - start))
    return Entries(entries)


def follows(label: str, *labels: str, because: str = "", claim: str = "") -> Entries:
    """The entry of an equation that follows from others by a reason too short for a proof of its own.

    A registered equation of the kind "follows-from" is worked out on the way, as `prove` does it: what it claims is
    then known to be right, and that it is no theorem of its own.

    Args:    label: of the equation; labels: of the equations that it follows from, somewhere in the book
             because: the reason, one line; claim: what holds; a registered equation brings its own
    Raises:  ValueError for no labels, no reason, more than one line of it, or an equation that follows from itself;
             TypeError for a label that is no text; NotProved when a registered equation does not hold
    """
    from normgrad.symbolic import equations

    for one in (label, *labels):
        if not isinstance(one, str):
            raise TypeError(f"labels: got {type(one).__name__}, needs the labels of equations, as l2-dq")
    if not labels:
        raise ValueError(f"labels: got none, needs the equations that {label} follows from")
    if label in labels:
        raise ValueError(f"labels: {label} cannot follow from itself")
    if not because.strip() or "\n" in because:
        raise ValueError(f"because: got {because!r}, needs the reason in one line")
    known = equations().get(label)
    start = time.perf_counter()
    if known is not None:
        known.prove()
    seconds = None if known is None else time.perf_counter() - start
    claim = claim or (known.claim if known is not None else because)
    return Entries([Entry(label, "follows-from", claim, seconds=seconds, follows_from=labels, because=because)])


def check(label: str, error: float, tolerance: float, claim: str) -> Entries:
    """The entry of an equation checked numerically; AssertionError when the error exceeds the tolerance or is NaN."""
    error, tolerance = float(error), float(tolerance)
    if not (error <= tolerance and math.isfinite(tolerance)):
        raise AssertionError(f"{label}: error {error:.3e} exceeds the tolerance {tolerance:.3e} ({claim})")
    return Entries([Entry(label, "numeric", claim, error, tolerance)])
