"""What a refuted program computes instead, where that is what another norm has."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache

from sympy import S, evaluate

from ..symbolic.patience import OutOfPatience
from ..symbolic.symbols import N, eps
from .definitions import CHOICES, Norm, call_of, norm
from .replay import Case
from .verdict import REFUTED, Verdict, compare, eps_of

# {an argument of norm: what it may be}
VALUES = {"center": (False, True), "weight_offset": (0, 1), **CHOICES}
SECONDS = 2  # for each norm that is tried
norms = cache(norm)
UNBIASED = "with N in place of N - 1 it is what is defined"


def named(verdict: Verdict, definitions: Norm) -> Verdict:
    """A refutation with the norm that the program computes, for each output.

    Of eps outside of the root, or a mean that is not subtracted: the difference has many terms there, and one argument
    of norm says which line is wrong.
    """
    if verdict.kind != REFUTED or not definitions.arguments:
        return verdict
    outputs, why = {}, verdict.why
    for name, output in verdict.outputs.items():
        outputs[name] = named(output, definitions)
        if output.case is verdict.case and not verdict.why:
            why = outputs[name].why
    if not outputs and verdict.case is not None and not why:
        with evaluate(True):
            why = _norm_of(verdict.case, definitions)
    return replace(verdict, outputs=outputs, why=why)


def _norm_of(case, definitions):
    """The norm whose output is stored, in words; "" where none is found."""
    if case.stored.has(N - 1):
        biased = replace(case, stored=case.stored.xreplace({N - 1: N}))
        if is_stored(biased, definitions):
            return UNBIASED
        words = _eps_instead(biased, definitions)
        if words:
            return f"{UNBIASED} {words}"
    words = _eps_instead(case, definitions)
    if words:
        return f"it is what is defined {words}"
    arguments = definitions.arguments
    for argument, values in VALUES.items():
        for value in values:
            if value == arguments[argument]:
                continue
            changed = {**arguments, argument: value}
            if is_stored(case, norms(**changed)):
                return f"it is {case.defined} of {call_of(changed)}"
    return ""


def _eps_instead(case, definitions):
    """The number that a program has where the definitions have eps, in words; "" where eps is in it."""
    if case.stored.has(eps):
        return ""
    for number in (*eps_of(case.stored), S.Zero):
        if _is_equal(case, definitions.at_eps(number).defs):
            return f"for eps={float(number):g}, and has no eps"
    return ""


def is_stored(case: Case, definitions: Norm) -> bool:
    """Whether a program stores what other definitions have, at its own eps."""
    if case.defined not in definitions.outputs.values():
        return False
    at_numbers = [definitions.at_eps(number) for number in eps_of(case.stored)]
    choices = [norm_at.defs for norm_at in at_numbers] or [definitions.defs]
    return any(_is_equal(case, defs) for defs in choices)


def _is_equal(case, defs):
    """Whether a program stores what these definitions have."""
    with suppress(NotImplementedError, OutOfPatience, TypeError, ValueError):
        if case.agrees(defs):
            return bool(compare(case.stored, case.defined, defs, seconds=SECONDS))
    return False
