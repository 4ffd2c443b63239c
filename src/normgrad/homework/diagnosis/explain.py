"""Explanations of a wrong result, the simplest first; what none explains is said to be unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...checks.cases import Case
from ...checks.tolerance import ELEMENTWISE, round_to, unit_roundoff
from ...mistakes.table import MISTAKES, REFUSED, UNKNOWN
from ...spec import NormSpec
from .fit import SAME, Target, by_row, over_rows, sparse
from .formulas import (
    EPS_IS,
    Arrays,
    Candidate,
    Part,
    changes,
    dictionary,
    doubles,
    singles,
    value,
)
from .written import decimals


def _bases(arrays: Arrays, output):
    """What is not scaled by rstd, what is scaled once, and what is scaled by its cube (None where there is nothing)."""
    saved, case, spec = arrays.saved, arrays.case, arrays.spec
    rstd = saved.rstd[:, None]
    weight = 1 if case.weight is None else case.weight
    if output == "y":
        return 0 if case.bias is None else case.bias, weight * arrays.q * rstd, None
    wdy = weight * case.dy
    once = rstd * (wdy - (wdy.mean(-1, keepdims=True) if spec.center else 0))
    fixed = 0 if case.dresidual_out is None else case.dresidual_out
    return fixed, once, once - (arrays.grads.dx - fixed)


def factors(target: Target) -> tuple[np.ndarray, np.ndarray] | None:
    """By what each row's rstd is off, and how uncertain that is; None where another rstd does not explain the rows.

    All of the output is finite.
    """
    arrays = target.arrays
    fixed, once, cubed = _bases(arrays, target.output)
    terms = [once] if cubed is None else [once, -cubed]
    found, left = by_row(target.whole - fixed, terms)
    if not np.all(found[:, 0] > 0):
        return None
    factor = found[:, 0]
    grown = np.maximum(1, factor**3)[:, None]
    noise = target.bound * grown
    if np.any(np.abs(left) > noise):
        return None
    uncertain = np.linalg.norm(noise, axis=-1) / np.maximum(
        np.linalg.norm(once, axis=-1), 1e-300
    )
    if cubed is not None:
        seen = np.linalg.norm(cubed, axis=-1)
        # Where the two terms are nearly parallel, the row cannot tell one coefficient from the other.
        apart = _apart(once, cubed)
        uncertain = uncertain / apart
        slack = np.linalg.norm(noise, axis=-1) / np.maximum(seen, 1e-300) / apart
        if np.any(np.abs(found[:, 1] - factor**3) > slack + 3 * factor**2 * uncertain):
            return None
        # A part that is too small to be seen in any row cannot tell whether it goes with the cube.
        if np.all(factor**3 <= slack):
            return None
    return factor, uncertain


def _apart(first, second):
    """The sine of the angle between two terms, row by row."""
    sizes = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosine = (first * second).sum(-1) / np.where(sizes > 0, sizes, 1)
    return np.sqrt(np.maximum(1 - cosine**2, unit_roundoff("float64")))


def one_pass_error(arrays: Arrays) -> np.ndarray:
    """How far a variance from mean(x**2) - mean**2 leaves rstd off, row by row and relative."""
    p, u = arrays.rows.p, unit_roundoff(arrays.dtypes.accumulator)
    size = (p * p).max(-1) * arrays.saved.rstd**2
    return u * (p.shape[-1] + ELEMENTWISE) * size


def lengths(target: Target) -> tuple[str, float | None, float] | None:
    """(key, eps behind it or None, largest factor) of what makes each row's rstd another one; None where that is not
    what is wrong. The output is finite, and one of y, dx and dresidual.
    """
    found = factors(target)
    if found is None:
        return None
    factor, uncertain = found
    arrays, off = target.arrays, np.abs(factor - 1)
    if np.all(off <= uncertain):
        return None
    largest = float(off.max())
    eps = _other_eps(arrays, factor, uncertain) if len(factor) > 1 else None
    if eps is not None:
        return ("eps-rounded" if eps == _rounded(arrays) else "eps-value"), eps, largest
    if arrays.spec.center and np.all(off <= one_pass_error(arrays) + uncertain):
        return "one-pass-variance", None, largest
    rstd = arrays.saved.rstd * factor
    narrow = any(_held(rstd, uncertain, dtype) for dtype in ("bfloat16", "float16"))
    return ("narrow-statistics" if narrow else "rstd-value"), None, largest


def _held(rstd, uncertain, dtype) -> bool:
    """Whether all of them are numbers that a 16-bit dtype holds, which no other number is by chance."""
    sure = len(rstd) > 1 and np.all(uncertain <= unit_roundoff(dtype) / 16)
    return bool(
        sure and np.all(np.abs(rstd - round_to(rstd, dtype)) <= uncertain * rstd)
    )


def _rounded(arrays):
    """eps as a float32 holds it."""
    return float(np.float32(arrays.spec.eps))


def _other_eps(arrays, factor, uncertain):
    """The one eps that makes all rows' factors; None where none does."""
    spec, right = arrays.spec, 1 / arrays.saved.rstd
    D = right / factor
    eps, slack = D**2 - right**2 + spec.eps, uncertain * 2 * D**2
    lowest, highest = (eps - slack).max(), (eps + slack).min()
    # A slack as large as the change of eps would make any row agree with any other.
    if lowest <= highest and highest >= 0 and slack.min() < abs(highest - spec.eps):
        if lowest <= _rounded(arrays) <= highest and not lowest <= spec.eps <= highest:
            return _rounded(arrays)
        return max(float(eps[np.argmin(slack)]), 0.0)
    return None


# Of more rows, only the first ones, the last ones or one alone are tried.
MOST_ROWS = 12


def left_out(target: Target) -> list[int]:
    """The rows without which a sum over the rows is what it is; [] where no such rows are found."""
    arrays = target.arrays
    each, right = arrays.case.dy, arrays.grads.dbias
    if target.output == "dw":
        each = each * arrays.q * arrays.saved.rstd[:, None]
        right = arrays.grads.dweight
    rows = len(each)
    tried = np.concatenate([np.eye(rows), np.tri(rows), 1 - np.tri(rows)]) == 1
    if rows <= MOST_ROWS:
        tried = np.concatenate(
            [tried, np.arange(1 << rows)[:, None] >> np.arange(rows) & 1 == 1]
        )
    fits = (np.abs(right - tried @ each - target.whole) <= target.bound).all(
        -1
    ) & tried.any(-1)
    return np.flatnonzero(tried[fits.argmax()]).tolist() if fits.any() else []


def one_pass_in_sum(target: Target) -> bool:
    """Whether dw is off by more than its bound and by no more than a one-pass variance makes it."""
    arrays = target.arrays
    if not arrays.spec.center:
        return False
    x_hat = arrays.q * arrays.saved.rstd[:, None]
    each = one_pass_error(arrays)[:, None] * np.abs(arrays.case.dy * x_hat)
    return bool(
        np.all(
            np.abs(target.whole - arrays.grads.dweight) <= target.bound + each.sum(0)
        )
    )


# The arrays of a case that have a row for each row of x.
ROWS = ("x", "residual", "dy", "dresidual_out")
# How many of the nearest candidates are held to the noise; the others are farther away still.
NEAREST = 16


@dataclass(frozen=True)
class Explained:
    """An explanation: its keys, the formula, how sure it is, and a remark on the formula."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]
    confidence: float
    remark: str = ""

    @property
    def nothing(self) -> bool:
        """Whether no formula fits at all."""
        return self.keys == (UNKNOWN,) and not self.confidence


def flat_rows(case: Case, spec: NormSpec) -> np.ndarray:
    """Whether a row has no spread: it is constant, or 0 in a norm that does not centre."""
    p = case.x if case.residual is None else case.x + case.residual
    return (p == (p[:, :1] if spec.center else 0)).all(-1)


def _flat_apart(target: Target):
    """What explains the other rows, where the norm of rows without spread is 0 and that gives it otherwise; or None."""
    case, spec, dtypes = target.arrays.case, target.arrays.spec, target.arrays.dtypes
    zero = flat_rows(case, spec)
    if len(target.shape) == 2:
        nothing = ~target.whole.any(-1)
        if target.output in ("dx", "dresidual") and case.dresidual_out is not None:
            alone = ~(target.whole - case.dresidual_out).any(-1)
            if not alone[~zero].any():  # else it is no matter of rows without spread
                nothing |= alone
        zero = zero & nothing
    if (
        len(target.shape) != 2
        or zero.all()
        or not zero.any()
        or not target.finite.all()
    ):
        return None
    rows = {
        name: each[~zero] for name in ROWS if (each := getattr(case, name)) is not None
    }
    rest = Target(
        target.output, target.whole[~zero], Arrays(replace(case, **rows), spec, dtypes)
    )
    found = explain(rest) or Explained((), target.right.parts, 1.0)
    given, right = (
        target.prediction(found.parts).reshape(target.shape)[zero],
        target.expected[zero],
    )
    seen = np.isfinite(given) & (
        np.minimum(np.abs(given), np.abs(right)) > target.bound[zero]
    )
    if found.keys[:1] in ((UNKNOWN,), (REFUSED,)) or not seen.any():
        return None
    return replace(found, keys=(*found.keys, "flat-row"))


def explain(target: Target) -> Explained | None:
    """The first explanation that fits: one mistake, another rstd in each row, two mistakes, regression; None where the
    output is right."""
    if target.finite.all() and np.all(
        np.abs(target.whole - target.expected) <= target.bound
    ):
        return None
    if apart := _flat_apart(target):
        return apart
    output, setting, nearest = target.output, target.setting, []
    found = _fitting(target, singles(output, setting), nearest) or _not_finite(target)
    each = None if found else _by_rows(target)
    if each is not None and each.keys != ("rstd-value",):
        return each
    if found is None and target.finite.any():
        found = _fitting(target, doubles(output, setting), nearest) or each
        found = found or _coefficients(target, nearest) or _sparse(target)
    if found is not None:
        return found
    parts = min(
        nearest, key=lambda parts: target.residual(target.prediction(parts)), default=()
    )
    return Explained((UNKNOWN,), tuple(parts), 0.0)


def _fitting(target, compiled, nearest):
    """The candidates that explain the output within the noise, reduced to one explanation; None where none does."""
    if not compiled.candidates:
        return None
    some = target.some
    predictions = compiled.predictions(target.arrays, target.shape, some)
    seen = target.finite[some]
    agree = (np.isfinite(predictions) == seen).all(-1)
    distance = np.linalg.norm(
        predictions[:, seen] - target.whole.ravel()[some][seen], axis=-1
    )
    distance = np.where(agree & np.isfinite(distance), distance, np.inf)
    order = np.argsort(distance, kind="stable")[:NEAREST]
    near = [compiled.candidates[at] for at in order if np.isfinite(distance[at])]
    if not near:
        return None
    nearest += [near[0].parts]
    distances = [target.distance(candidate.parts) for candidate in near]
    # What is the right formula in other words explains nothing.
    fits = [
        one
        for one, far in zip(near, distances, strict=True)
        if far <= 1 and not _same(target, one, target.right)
    ]
    if not fits:
        return None
    others = [far for far in distances if far > 1] + [
        target.distance(target.right.parts)
    ]
    return _chosen(target, fits, min(others))


def _chosen(target, fits: list[Candidate], next_one) -> Explained:
    """One explanation from several: the common one, the earliest where all give the same numbers, else a refusal."""
    rank = {key: at for at, key in enumerate(MISTAKES)}
    fits = sorted(fits, key=lambda candidate: [rank[key] for key in candidate.keys])
    confidence = 1 - 1 / max(next_one, 1) if np.isfinite(next_one) else 1.0
    if all(_same(target, other, fits[0]) for other in fits):
        return Explained(fits[0].keys, fits[0].parts, confidence)
    common = set(fits[0].keys).intersection(*(candidate.keys for candidate in fits))
    if not common:
        return Explained((REFUSED,), fits[0].parts, 0.0)
    # Where a second mistake is hidden by the noise, only the one that all explanations share is named.
    first = fits[0]
    return Explained(
        tuple(key for key in first.keys if key in common), first.parts, confidence / 2
    )


def _same(target, one, other):
    """Whether two formulas give the same numbers, up to what float64 loses when it evaluates them."""
    first, second = target.prediction(one.parts), target.prediction(other.parts)
    size = max(np.abs(first).max(initial=0), np.abs(target.expected).max(initial=0))
    return bool(np.all(np.abs(first - second) <= SAME * size))


def _not_finite(target):
    """Infinities and NaN: in the rows without spread, in rows far from 0, or anywhere."""
    if target.finite.all():
        return None
    parts, arrays, key = target.right.parts, target.arrays, "not-finite"
    rest = target.distance(parts) <= 1
    if len(target.shape) == 2:
        bad = ~np.isfinite(target.whole).all(-1)
        if rest and not np.any(arrays.q[bad]):
            key = "division-by-zero"
        elif rest and np.all(one_pass_error(arrays)[bad] >= 1):
            key = "one-pass-variance"
    return Explained((key,), parts, 1.0 if rest else 0.5)


def _by_rows(target):
    """Another rstd in each row, or, where rows are summed, an error of the size that a one-pass variance makes."""
    parts = target.right.parts
    if not target.finite.all():
        return None
    if len(target.shape) == 2:
        found = lengths(target)
        if found is None:
            return None
        key, eps, off = found
        if eps is not None:
            parts = [
                replace(part, term=replace(part.term, stats=f"{EPS_IS}{eps!r}"))
                for part in parts
            ]
            return Explained((key,), tuple(parts), 0.9)
        return Explained(
            (key,), parts, 0.9, f"rstd is off by up to {decimals(off)} of itself"
        )
    if lost := left_out(target):
        which = f"row{'s' * (len(lost) > 1)} {', '.join(map(str, lost))} of {target.setting.rows}"
        return Explained(("rows-left-out",), parts, 1.0, f"the sum is without {which}")
    if target.output == "dw" and one_pass_in_sum(target):
        return Explained(("one-pass-variance",), parts, 0.5)
    return None


def _coefficients(target, nearest):
    """The right terms with other coefficients, the same in all rows."""
    true = target.right.parts
    fit = over_rows(target, [part.term for part in true], target.noise(true))
    if len(fit.terms) < len(true):
        return None
    fitted = [
        Part(p.slot, p.term, float(c))
        for p, c in zip(true, fit.coefficients, strict=True)
    ]
    nearest.append(tuple(fitted))
    if target.distance(fitted) > 1:
        return None
    should = np.array([part.coefficient for part in true])
    ratio, slack = fit.coefficients / should, fit.uncertainty / np.abs(should)
    found = _names_of_ratios(target, [part.slot for part in true], ratio, slack)
    there = tuple(
        part
        for part, off in zip(fitted, fit.uncertainty, strict=True)
        if abs(part.coefficient) > off
    )
    return Explained(found, there, 0.9) if found else None


def _sparse(target):
    """A formula in the dictionary's terms that no misconception is known for."""
    true = {part.term: part for part in target.right.parts}
    terms = [*true, *dictionary(target.output)]
    fit = sparse(target, terms, target.noise(list(true.values())))
    parts = [
        replace(part, slot=true[part.term].slot if part.term in true else "")
        for part in fit.parts()
    ]
    # As many terms as half the entries fit anything.
    if not parts or 2 * len(parts) > target.got.size or target.distance(parts) > 1:
        return None
    place = {term: at for at, term in enumerate(dict.fromkeys(terms))}
    parts.sort(
        key=lambda part: (
            part.term.outer == ("g",),
            part.term.post,
            -part.term.power,
            place[part.term],
        )
    )
    return Explained((UNKNOWN,), tuple(parts), 0.5)


# The field of a recipe that multiplies a part, and what a factor of it is called where the table does not know it.
_FIELDS = {
    "u": ("k0", "coefficient-u"),
    "c1": ("k1", "coefficient-c1"),
    "c2": ("k2", "coefficient-c2"),
}
_FIELDS |= {
    "g": ("kg", "coefficient-g"),
    "bias": ("kb", "coefficient-bias"),
    "x_hat": ("k", "constant-factor"),
}


def _ratio_names(target, field, ratio, slack):
    """The mistakes that multiply one part by a ratio: one, or one for the sign and one for the size."""
    known = {}
    for key, change in changes(target.output, target.setting):
        if change.keys() == {field}:
            known.setdefault(value(change[field], target.setting), key)
    near = next(
        (key for number, key in known.items() if abs(number - ratio) <= slack), None
    )
    if near is None and -1.0 in known:
        size = next(
            (key for number, key in known.items() if abs(number + ratio) <= slack), None
        )
        return size and (known[-1.0], size)
    return near and (near,)


def _names_of_ratios(target, slots, ratio, slack) -> tuple[str, ...]:
    """The keys for right parts with wrong coefficients.

    Args:  slots: the part each ratio belongs to; ratio: found over right; slack: how far off each may be
    """
    norm = [at for at, slot in enumerate(slots) if slot != "g"]
    wrong = [at for at in range(len(slots)) if abs(ratio[at] - 1) > slack[at]]
    found = []
    if set(norm) <= set(wrong) and np.ptp(ratio[norm]) <= 2 * max(slack[norm]):
        found, wrong = ["constant-factor"], [at for at in wrong if at not in norm]
    for at in wrong:
        field, generic = _FIELDS.get(slots[at], ("all", "constant-factor"))
        found += _ratio_names(target, field, ratio[at], slack[at]) or (generic,)
    return tuple(dict.fromkeys(found))
