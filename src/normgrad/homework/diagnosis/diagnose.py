"""From a wrong result to the misconceptions behind it, in words, formulas and numbers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ...checks.cases import Case
from ...checks.tolerance import Dtypes, unit_roundoff
from ...mistakes.table import REFUSED, UNKNOWN, find
from ...spec import NormSpec, check_spec
from .explain import Explained, explain, flat_rows
from .fit import Target, over_rows
from .formulas import Arrays
from .misread import misread
from .named import Diagnosis, equation
from .written import definitions, formula, name, remark_of, should_be

OUTPUTS = ("dx", "dresidual", "dw", "db", "y")
# Half the digits of float32: what no formula is nearer to was not computed by one of them.
NEAR = unit_roundoff("float32") ** 0.5
NOTHING_NEAR = "The result is wrong in a way that the table does not know; no formula of its terms is near it."
LOST_DIGITS = (
    "The formula is right as far as its terms go; look for digits that are lost on the way: in the difference of two "
    "numbers that are nearly equal, as finite differences take it, or in a narrower format."
)


def diagnose(
    output: str,
    got: np.ndarray,
    case: Case,
    spec: NormSpec,
    dtype: str | Dtypes = "float64",
    narrow=lambda: False,
) -> list[Diagnosis]:
    """What is wrong with a result, in terms of the formula that gives it.

    Args:     output: "dx", "dresidual", "dw", "db" or "y"; got: what the student's code returned for it, as float64
              case, spec: what it was called with; dtype: the dtype of the case's arrays and of the arithmetic
              narrow: asked where no formula fits: whether the code is known to compute in float32; an error of that
              size does not say so
    Returns:  [] where the result is right within the bounds of checks.tolerance; otherwise one Diagnosis for each
              misconception found, or one whose key is "unknown" or "hidden-by-rounding"
    Raises:   ValueError for a norm of no homework, an unknown output, one that the case has no argument for, or a
              wrong shape; TypeError for something that is no array of numbers
    """
    check_spec(spec)
    if (spec.reduce, spec.scale, spec.placement) != ("mean", 1, "inside"):
        raise ValueError(
            f"spec: got {spec}, needs LayerNorm or RMSNorm with any eps under the root"
        )
    got = _checked(output, got, case)
    if got.size == 0:
        return []
    with np.errstate(all="ignore"):
        target = Target(output, got, Arrays(case, spec, dtype))
        found = explain(target)
        if found is not None and found.nothing and narrow():
            target, found = _narrower(target, found, case, spec)
        if found is not None and found.keys in ((UNKNOWN,), ("rstd-value",)):
            found = misread(target, found.nothing) or found
        written = [] if found is None else _written(target, found)
        return [_without_guess(each) for each in written]


def _narrower(target, found, case, spec) -> tuple[Target, Explained]:
    """What no formula explains in float64 may be a formula computed in float32, if it is that near to one."""
    far = target.residual(target.prediction(found.parts)) > NEAR
    if far or target.arrays.dtypes.accumulator != "float64":
        return target, found
    narrow, key = (
        Target(target.output, target.whole, Arrays(case, spec, "float32")),
        ("narrow-arithmetic",),
    )
    again = explain(narrow)
    if again is None:
        return narrow, Explained(key, narrow.right.parts, 1.0)
    if again.keys[0] in (UNKNOWN, REFUSED):
        return target, found
    return narrow, replace(again, keys=again.keys + key)


def _without_guess(diagnosis: Diagnosis) -> Diagnosis:
    """A formula is left out where it is not near, or is the right one: it would pass for the student's."""
    if diagnosis.implemented == diagnosis.right:
        hint = LOST_DIGITS if diagnosis.misconception == UNKNOWN else diagnosis.hint
        return replace(diagnosis, hint=hint, coefficients={}, implemented="")
    if diagnosis.confidence or diagnosis.residual <= NEAR:
        return diagnosis
    return replace(diagnosis, hint=NOTHING_NEAR, coefficients={}, implemented="")


def _checked(output, got, case):
    if output not in OUTPUTS:
        raise ValueError(
            f"output: got {output!r}, needs one of {', '.join(map(repr, OUTPUTS))}"
        )
    needed = {"dw": "weight", "db": "bias", "dresidual": "residual"}.get(output, "x")
    if getattr(case, needed) is None:
        raise ValueError(f"output: got {output!r}, but the case has no {needed}")
    if not isinstance(got, np.ndarray) or got.dtype.kind not in "fiu":
        kind = getattr(got, "dtype", type(got).__name__)
        raise TypeError(f"got: got {kind}, needs a numpy.ndarray of real numbers")
    shape = getattr(case, needed).shape
    if got.shape != shape:
        raise ValueError(
            f"got: got shape {got.shape}, needs {shape}, the shape of {needed}"
        )
    return got.astype(np.float64)


def _written(target, found: Explained) -> list[Diagnosis]:
    """The explanation in words, formulas and numbers: one Diagnosis a key."""
    best, setting = target.right, target.setting
    noise = target.noise(found.parts)
    terms = [part.term for part in found.parts]
    if all(term.stats == "right" for term in terms):
        terms += [part.term for part in best.parts if part.term not in terms]
    fit = over_rows(target, terms, noise)
    slack = float(fit.uncertainty.max(initial=0))
    coefficients = {}
    for term, coefficient, uncertain in zip(
        fit.terms, fit.coefficients, fit.uncertainty, strict=True
    ):
        coefficients[name(term, setting)] = (
            0.0 if abs(coefficient) <= uncertain else float(coefficient)
        )
    there = {part.slot for part in found.parts}
    known = found.parts and found.keys[0] not in (UNKNOWN, REFUSED)
    missing = [part for part in best.parts if known and part.slot not in there]
    implemented = formula(
        target.output, found.parts, setting, slack, missing, found.remark
    )
    needed = should_be(remark_of(found.parts, setting, found.remark), setting)
    should = formula(target.output, best.parts, setting, 0.0, remark=needed)
    where = definitions(f"{implemented} {should}", setting)
    residual = target.residual(target.prediction(found.parts))
    same = implemented, should, where, coefficients, residual, found.confidence
    return [
        Diagnosis(
            key,
            find(key).title,
            find(key).hint,
            equation(key, target.output, setting),
            *same,
        )
        for key in found.keys
    ]


def _tells_more(settled, named) -> bool:
    """Whether rows without spread show a second mistake, or where eps stands that ordinary rows do not notice."""
    keys = {each.misconception for each in named}
    return settled < keys or settled == {"eps-missing"} and keys == {"eps-placement"}


def attributed(evidence, narrow=lambda: False) -> list[Diagnosis]:
    """What the term attribution says about wrong results, output by output.

    Args:  evidence: (output, numbers, trial) of wrong results; narrow: as diagnose
    """
    found = {}
    for output, numbers, trial in evidence:
        own = getattr(trial, "diagnose", None) or getattr(
            trial, f"diagnose_{output}", None
        )
        if own is None and output not in OUTPUTS or not trial.case.x.size:
            continue
        # What ordinary rows do not explain, fewer or simpler rows explain too easily, with another formula for each.
        settled = {each.misconception for each in found.get(output, ())} - {REFUSED}
        if settled and (
            UNKNOWN in settled or own or not flat_rows(trial.case, trial.spec).any()
        ):
            continue
        if min(trial.case.x.shape) == 1:  # any formula explains one row, or one column
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                named = own(output, numbers) if own else diagnose(
                    output, numbers, trial.case, trial.spec, narrow=narrow
                )  # fmt: skip
                if not settled or _tells_more(settled, named):
                    found[output] = named or found.get(output, [])
        except (
            Exception
        ):  # a diagnosis is extra: without one, the report still says what is wrong
            continue
    shown = {
        each.misconception
        for output, named in found.items()
        if output in OUTPUTS
        for each in named
    } | {UNKNOWN}
    everything = [(output, each) for output, named in found.items() for each in named]
    return [
        each
        for output, each in everything
        if output in OUTPUTS or each.misconception not in shown
    ]
