"""Whether a true line answers its question, or is the question itself in another dress."""

from __future__ import annotations

import types
from collections.abc import Iterator
from math import prod

from sympy import Add, Expr, Integer, Mul, Pow, Sum, evaluate

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
    asked = [*_forms(question.value)]
    dummies = {form.as_dummy() for form in asked}
    equal = [form for form in _forms(answer.value) if form.as_dummy() in dummies]
    if equal and not _reworked(question, answer, equal):
        return ITSELF
    varied = {part.args[1] for form in asked for part in form.atoms(Partial, Local)}
    subjects = {_subject(part) for form in asked for part in form.atoms(Partial, Local)}
    functions = {function for function, _ in subjects}
    again = {
        part.args[1]
        for part in answer.value.atoms(Partial)
        if part.args[1] in varied
        or _subject(part) in subjects
        or part == answer.value
        and _subject(part)[0] in functions
    }
    return LEFT.format(min(map(str, again))) if again else ""


def _subject(part):
    """What a derivative is of, and with respect to what, whatever the indices are."""
    return tuple(getattr(e, "base", e) for e in part.args[:2])


def _reworked(question, answer, equal):
    """Whether an answer that SymPy writes as the question was worked out: SymPy cancels and collects what is typed.

    For a question as `sum(loss.diff(S) * ...)`, or (up - down) / 2, that is answered by what it comes to, no answer
    would be right; an answer that takes the same derivative, calls the same, or only orders the question anew, is none.
    """
    if any(form.has(Partial, Local) for form in equal):
        return False
    if question.computed:
        return not question.computed & answer.computed
    asked = {_written(form) for form in _forms(question.unevaluated)}
    return not any(_written(form) in asked for form in _forms(answer.unevaluated))


def _written(e):
    """An unevaluated expression as a key: without zeros, ones and brackets that change nothing, in one order."""
    with evaluate(True):
        e = e.as_dummy() if e.has(Sum) else e
    return _signed(e)


def _signed(e):
    """(sign, key) of an unevaluated expression; terms and factors are (sign, key), too."""
    if isinstance(e, Add):
        terms = sorted(_terms(e), key=str)
        opposite = sorted([(-sign, key) for sign, key in terms], key=str)
        sign = -1 if str(opposite) < str(terms) else 1
        terms = min(terms, opposite, key=str)
        return (
            (sign * terms[0][0], terms[0][1])
            if len(terms) == 1
            else (sign, (Add, *terms))
        )
    if isinstance(e, Mul):
        factors = [_signed(part) for part in e.args]
        keys = sorted(_flat(key for _, key in factors if key != 1), key=str)
        key = keys[0] if len(keys) == 1 else (Mul, *keys)
        return prod(sign for sign, _ in factors), key
    if isinstance(e, Pow) and isinstance(e.exp, Integer):
        sign, key = _signed(e.base)
        keys = [(Pow, factor, e.exp) for factor in _flat([key])]
        return sign**e.exp, keys[0] if len(keys) == 1 else (Mul, *keys)
    if isinstance(e, Integer) and e < 0:
        return -1, -e
    if e.args and not isinstance(e, Entry):
        return 1, (type(e), *map(_signed, e.args))
    return 1, e


def _terms(e):
    for part in e.args:
        sign, key = _signed(part)
        if isinstance(key, tuple) and key[0] is Add:
            yield from ((sign * inside, term) for inside, term in key[1:])
        elif key != 0:
            yield sign, key


def _flat(keys):
    for key in keys:
        if isinstance(key, tuple) and key[0] is Mul:
            yield from key[1:]
        else:
            yield key


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
