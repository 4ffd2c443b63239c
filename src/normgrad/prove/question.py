"""Whether a true line answers its question, or is the question itself in another dress."""

from __future__ import annotations

import types
from collections.abc import Iterator

from sympy import Expr

from ..symbolic.notation import Local, Partial
from .names import Entry, Name, put
from .typed import questions

ITSELF = "it is the question itself: write out what it comes to"
LEFT = "a derivative with respect to {} is left to be taken: write out what it comes to"


def unanswered(frame: types.FrameType, values: tuple, local) -> str:
    """Why the second argument of the call that a frame makes does not answer the first, or nothing.

    Args:  values: the arguments; local: the function that is read as a node
    """
    question, answer = questions(frame, values, local)
    asked = [*_forms(question)]
    dummies = {form.as_dummy() for form in asked}
    if any(form.as_dummy() in dummies for form in _forms(answer)):
        return ITSELF
    varied = {part.args[1] for form in asked for part in form.atoms(Partial, Local)}
    again = {part.args[1] for part in answer.atoms(Partial)} & varied
    return LEFT.format(min(map(str, again))) if again else ""


def _forms(e: Expr) -> Iterator[Expr]:
    """The expression, and with what stands for it, or for the function that it differentiates, put in."""
    yield e
    if isinstance(e, Partial):
        for inner in _forms(e.args[0]):
            if inner != e.args[0]:
                yield Partial(inner, e.args[1])
    elif isinstance(e, Entry):
        label = e.base.label
        places = dict(zip(label.indices, e.indices, strict=True))
        yield from _forms(put(label.typed, places))
    elif isinstance(e, Name):
        yield from _forms(put(e.typed, {}))
