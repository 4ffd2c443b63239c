"""Explanations row by row: another rstd in each row, which leads to the eps or the rounding behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...checks.tolerance import ELEMENTWISE, round_to, unit_roundoff
from .fit import Target, by_row
from .formulas import Arrays


def _bases(arrays: Arrays, output):
    """What is not scaled by rstd, what is scaled once, and what is scaled by its cube (None where there is nothing)."""
    saved, case, spec = arrays.saved, arrays.case, arrays.spec
    rstd = saved.rstd[:, None]
    q = arrays.rows.p - (0 if saved.mean is None else saved.mean[:, None])
    weight = 1 if case.weight is None else case.weight
    if output == "y":
        return 0 if case.bias is None else case.bias, weight * q * rstd, None
    wdy = weight * case.dy
    once = rstd * (wdy - (wdy.mean(-1, keepdims=True) if spec.center else 0))
    fixed = 0 if case.dresidual_out is None else case.dresidual_out
    return fixed, once, once - (arrays.grads.dx - fixed)


def factors(target: Target, got: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """By what each row's rstd is off, and how uncertain that is; None where another rstd does not explain the rows.

    Args:  got (M, N), finite
    """
    arrays = target.arrays
    fixed, once, cubed = _bases(arrays, target.output)
    terms = [once] if cubed is None else [once, -cubed]
    found, left = by_row(got - fixed, terms)
    if not np.all(found[:, 0] > 0):
        return None
    factor = found[:, 0]
    grown = np.maximum(1, factor**3)[:, None]
    noise = target.bound * grown
    if np.any(np.abs(left) > noise):
        return None
    uncertain = np.linalg.norm(noise, axis=-1) / np.maximum(np.linalg.norm(once, axis=-1), 1e-300)
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


@dataclass(frozen=True)
class Length:
    """Why each row's rstd is another one: the key, the eps behind it where there is one, and the largest factor."""

    key: str
    eps: float | None
    off: float


def explain(target: Target, got: np.ndarray) -> Length | None:
    """What makes each row's rstd another one; None where that is not what is wrong.

    Args:  got (M, N), finite, of y, dx or dresidual
    """
    found = factors(target, got)
    if found is None:
        return None
    factor, uncertain = found
    arrays, off = target.arrays, np.abs(factor - 1)
    if np.all(off <= uncertain):
        return None
    largest = float(off.max())
    eps = _other_eps(arrays, factor, uncertain) if len(factor) > 1 else None
    if eps is not None:
        return Length("eps-rounded" if eps == _rounded(arrays) else "eps-value", eps, largest)
    if arrays.spec.center and np.all(off <= one_pass_error(arrays) + uncertain):
        return Length("one-pass-variance", None, largest)
    rstd = arrays.saved.rstd * factor
    narrow = any(_held(rstd, uncertain, dtype) for dtype in ("bfloat16", "float16"))
    return Length("narrow-statistics" if narrow else "rstd-value", None, largest)


def _held(rstd, uncertain, dtype) -> bool:
    """Whether all of them are numbers that a 16-bit dtype holds, which no other number is by chance."""
    sure = len(rstd) > 1 and np.all(uncertain <= unit_roundoff(dtype) / 16)
    return bool(sure and np.all(np.abs(rstd - round_to(rstd, dtype)) <= uncertain * rstd))


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


def left_out(target: Target, got: np.ndarray) -> bool:
    """Whether a sum over the rows is right but for one row, the first rows or the last ones."""
    arrays = target.arrays
    each, right = arrays.case.dy, arrays.grads.dbias
    if target.output == "dw":
        each = each * arrays.q * arrays.saved.rstd[:, None]
        right = arrays.grads.dweight
    lost = np.concatenate([each, each.cumsum(0)[:-1], each[::-1].cumsum(0)[:-1]])
    return bool((np.abs(right - lost - got) <= target.bound).all(-1).any())


def one_pass_in_sum(target: Target, got: np.ndarray) -> bool:
    """Whether dw is off by more than its bound and by no more than a one-pass variance makes it."""
    arrays = target.arrays
    if not arrays.spec.center:
        return False
    x_hat = arrays.q * arrays.saved.rstd[:, None]
    each = one_pass_error(arrays)[:, None] * np.abs(arrays.case.dy * x_hat)
    return bool(np.all(np.abs(got - arrays.grads.dweight) <= target.bound + each.sum(0)))
