"""Whether an equation with its steps is the statement that the registry has under its label."""

from __future__ import annotations

from sympy import evaluate

from .calculus import resolve
from .induction import InductiveEquation
from .normal_form import nf
from .proof import plain
from .registry import DEFINITION, Equation
from .render import latex


def _meaning(e, defs):
    """What an expression stands for, in normal form, definitions unfolded and derivatives carried out."""
    with evaluate(True):
        return nf(resolve(defs.unfold(e)))


def _lines(e, defs):
    """The definitions that an expression needs, in print; where two have the same, both mean the same."""
    return [(latex(head), latex(body)) for head, body in defs.reached(e)]


def _same(one, other) -> bool:
    # two opaque functions with one letter are different classes, and read alike
    return one == other or latex(one) == latex(other)


def differs(own: Equation, statement: Equation | None) -> str:
    """How an equation differs from a statement, in words; nothing where it does not.

    Args:  own: an equation with all its steps; statement: what the registry has under its label, or None
    """
    if statement is None:
        return f"the book has no statement {own.label}"
    if own.claim != statement.claim:
        return f"the claim there is: {statement.claim}"
    if own.kind != statement.kind:
        return f"there it is of the kind {statement.kind}"
    if len(own.chains) != len(statement.chains):
        return f"there are {len(statement.chains)} equations there and {len(own.chains)} here"
    inductive = isinstance(own, InductiveEquation)
    if inductive and own.kind != DEFINITION and not own.means(statement):
        return "it is about other steps there, or about sequences with other lines"
    for mine, theirs in zip(own.chains, statement.chains, strict=True):
        for side, one, other in (
            ("begins with", mine[0], theirs[0]),
            ("ends in", mine[-1], theirs[-1]),
        ):
            if latex(own.defs.shown(one)) != latex(statement.defs.shown(other)):
                return f"there it {side} {plain(str(other))}, here it {side} {plain(str(one))}"
            if own.kind == DEFINITION or inductive:
                continue
            if _lines(one, own.defs) == _lines(other, statement.defs):
                continue
            if not _same(_meaning(one, own.defs), _meaning(other, statement.defs)):
                return f"what it {side}, {plain(str(one))}, has other definitions there"
    return ""
