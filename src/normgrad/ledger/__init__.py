"""Ledger entries: each numbered equation's label, tied to the check that backs it.

A cell that ends in one of these functions shows the outcome and carries the entry in its output, under a MIME type
of our own, so that an output taken from the execution cache still holds it. The build collects the entries and fails
on a label without an entry and on an entry without a label.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .entries import KINDS as KINDS
from .entries import MIME as MIME
from .entries import WORDS as WORDS
from .entries import Entry


class Entries(tuple[Entry, ...]):
    """The entries that one cell makes; shown as text and carried in the cell's output."""

    def __repr__(self):
        return "\n".join(map(str, self))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), MIME: [asdict(entry) for entry in self]}


def _judged(label, kind, check, claim="", **more):
    """The entry of a registered equation, for which a check is run that raises where it fails."""
    from normgrad.symbolic import equation

    statement = equation(label)
    start = time.perf_counter()
    check(statement)
    seconds = time.perf_counter() - start
    return Entry(label, kind, claim or statement.claim, seconds=seconds, **more)


def define(*labels: str, claim: str = "") -> Entries:
    """Entries for definitions: equations that say what a symbol means and claim nothing.

    Args:    labels: of the equations; claim: what they define; a registered equation brings its own
    Raises:  ValueError for an equation that claims something: one that is proved, or checked with numbers
    """
    from normgrad.symbolic.registry import entries

    from .formulas import formulas

    definitions = []
    for label in labels:
        entry = entries().get(label, {"kind": "definition", "claim": ""})
        if label in formulas() or entry["kind"] != "definition":
            raise ValueError(
                f"labels: {label} claims something, and is no definition: prove it, or check it"
            )
        text = claim or entry["claim"] or "What the symbols mean."
        definitions.append(Entry(label, "definition", text))
    return Entries(definitions)


def cite(label: str, source: str) -> Entries:
    """The entry of an equation that is taken from a source and not derived here."""
    if not source:
        raise ValueError(
            "source: got an empty text, needs the reference that the equation is taken from"
        )
    return Entries([Entry(label, "cited", source)])


def prove(*labels: str) -> Entries:
    """Prove registered equations for every N, now; NotProved, which names the label, when one does not hold."""
    return Entries(
        _judged(label, "proved-for-every-n", lambda statement: statement.prove())
        for label in labels
    )


def prove_small(*labels: str, sizes: Sequence[int] = (2, 3, 4)) -> Entries:
    """Prove registered equations for a few N, entry by entry, by explicit matrices and scalar derivatives.

    Raises:  ValueError for no sizes, with which nothing would be proved; AssertionError when an entry differs
    """
    from normgrad.symbolic import equation

    if not isinstance(sizes, (tuple, list, range)) or not sizes:
        raise ValueError(
            f"sizes: got {sizes!r}, needs a sequence of at least one row length"
        )
    lengths = ", ".join(map(str, sizes))
    return Entries(
        _judged(
            label,
            "proved-for-small-n",
            lambda statement: statement.check_fixed(sizes),
            f"{equation(label).claim.rstrip('.')}; N = {lengths}",
        )
        for label in labels
    )


def follows(label: str, *labels: str, because: str = "", claim: str = "") -> Entries:
    """The entry of an equation that follows from others by a reason too short for a proof of its own.

    A registered equation of the kind "follows-from" is worked out on the way, as `prove` does it: what it claims is
    then known to be right, and that it is no theorem of its own.

    Args:    label: of the equation; labels: of the equations that it follows from, somewhere in the book
             because: the reason, one line; claim: what holds; a registered equation brings its own
    Raises:  ValueError for no labels, no reason, more than one line of it, or an equation that follows from itself;
             TypeError for a label that is no text; NotProved when a registered equation does not hold
    """
    from normgrad.symbolic.registry import entries

    for name in (label, *labels):
        if not isinstance(name, str):
            raise TypeError(
                f"labels: got {type(name).__name__}, needs the labels of equations, as l2-dq"
            )
    if not labels:
        raise ValueError(
            f"labels: got none, needs the equations that {label} follows from"
        )
    if label in labels:
        raise ValueError(f"labels: {label} cannot follow from itself")
    if not because.strip() or "\n" in because:
        raise ValueError(f"because: got {because!r}, needs the reason in one line")
    more = {"follows_from": labels, "because": because}
    if label not in entries():
        return Entries([Entry(label, "follows-from", claim or because, **more)])
    checked = _judged(label, "follows-from", lambda e: e.prove(), claim, **more)
    return Entries([checked])


def check(
    label: str,
    values: dict[str, Any] | list[dict[str, Any]],
    claim: str,
    within: Any = None,
) -> Entries:
    """The entry of one of the book's formulas about computed numbers: the numbers are put into the formula itself.

    Args:    label: of the formula; values: numbers, arrays or functions by the names in the formula, or a list of such
             cases, of which the nearest to the bound is shown; claim: of what they are
             within: how far apart the sides of an "=" may be
    Raises:  AssertionError when the formula does not hold, or a side is NaN; ValueError for names without a value,
             values without a name, and no case; KeyError for a label that no formula has
    """
    from .formula import nearest
    from .formulas import formulas

    formula = formulas()[label]
    cases = [values] if isinstance(values, dict) else values
    error, tolerance = nearest(formula.measure(case, within) for case in cases)
    if not (error <= tolerance and math.isfinite(tolerance)):
        raise AssertionError(
            f"{label}: error {error:.3e} exceeds the tolerance {tolerance:.3e} ({claim})"
        )
    slack = tolerance / error if formula.is_bound and error else None
    shown = {"formula": formula.latex(), "slack": slack}
    return Entries([Entry(label, "numeric", claim, error, tolerance, **shown)])
