"""One contract for every backend: each check is a function that raises AssertionError and returns what it measured.

The tests run these checks on every backend, spec, case and dtype; the mutant tests run the same functions on wrong
backwards and require them to fail; chapters run them in the page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import numpy_ref
from ..spec import NormSpec
from ..tolerance import LARGEST, SMALLEST_NORMAL, Dtypes, bounds, factor, unit_roundoff
from .backends import INPUTS, OUTPUTS, Backend, Name, Outcome, get
from .cases import MATRICES, Case, of_head
from .finite_difference import directional, inner

GRADIENT_OF = {"dx": "x", "dresidual": "residual", "dw": "weight", "db": "bias"}

GRADCHECK_STEP = 1e-6  # torch's default


@dataclass(frozen=True)
class Measured:
    """What a check found: the largest error of each output and the bound it was held to.

    Args:  errors: {output: (error, bound)}, for each output the pair whose error is the largest part of its bound
    """

    title: str
    errors: dict[str, tuple[float, float]]

    def __str__(self):
        rows = [
            f"{name:13}error {error:8.1e}   bound {bound:8.1e}"
            for name, (error, bound) in self.errors.items()
        ]
        return "\n".join([self.title, *rows])

    __repr__ = __str__

    @property
    def worst(self) -> tuple[float, float]:
        """(error, bound) of the output that comes closest to its bound."""
        return max(self.errors.values(), key=_share)


def check_within(
    title: str,
    got: np.ndarray,
    expected: np.ndarray,
    error: np.ndarray,
    bound: np.ndarray,
) -> None:
    """Nothing, or an AssertionError with the first place where the error exceeds its bound; NaN never passes."""
    bad = ~(error <= bound)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise AssertionError(
            f"{title}{list(at)} is {got[at]:.6e}, needs {expected[at]:.6e}; "
            f"error {error[at]:.1e} exceeds the bound {bound[at]:.1e}"
        )


def compare_output(title, got, expected, bound, largest, lost):
    """The error and bound where the error is the largest part of its bound; None where there is no such output.

    NaN passes nowhere but where the sum of squares is lost: a number would be wrong there, and NaN says so.
    """
    if (got is None) != (expected is None):
        state = "absent" if got is None else "present"
        raise AssertionError(f"{title} is {state}, the oracle's is not")
    if got is None:
        return None
    if got.shape != expected.shape:
        raise AssertionError(f"{title} has shape {got.shape}, needs {expected.shape}")
    if got.size == 0:
        return 0.0, 0.0
    # Past the dtype's largest number the right answer is an infinity of the right sign.
    same_sign = np.sign(got) == np.sign(expected)
    too_large = (np.abs(expected) > largest) & same_sign & np.isinf(got)
    passed = too_large | (lost & ~np.isfinite(got))
    error = np.abs(np.where(passed, 0, got) - np.where(passed, 0, expected))
    check_within(title, got, expected, error, bound)
    index = np.unravel_index(np.argmax(error / bound), error.shape)
    return float(error[index]), float(bound[index])


def _flat(case, spec, dtype):
    """Whether some row, as it is normalized, has s = 0: constant where the spec centres, zero where it does not."""
    p = case.rounded(dtype).summed(dtype)
    size = np.ptp(p, axis=-1) if spec.center else np.abs(p).max(-1)
    return bool((size == 0).any())


def defined(case: Case, spec: NormSpec, dtype: str | Dtypes = "float64") -> bool:
    """Whether the operator has a value on the case: without eps, a row with s = 0 has none.

    An offset of the weight asks for a weight.
    """
    if spec.weight_offset != 0 and case.weight is None:
        return False
    return spec.eps != 0 or not _flat(case, spec, dtype)


def differentiable(case: Case, spec: NormSpec) -> bool:
    """Whether finite differences can see both derivatives of every row.

    Where s = 0, eps outside the root leaves the first one alone, and a floor below the step looks like no eps.
    """
    if spec.weight_offset != 0 and case.weight is None:
        return False
    return spec.place.differentiable(0.0, spec.eps, GRADCHECK_STEP) or not _flat(
        case, spec, "float64"
    )


def reference(
    case: Case,
    spec: NormSpec,
    dtype: str | Dtypes,
    residual_out: np.ndarray | None = None,
) -> tuple[numpy_ref.Forward, numpy_ref.Grads]:
    """(saved, grads) of the oracle in float64, on inputs rounded to dtype and on the sum as the backend rounded it.

    Where the sum is normalized before it is rounded, only the backward gets the rounded one.
    """
    dtypes = Dtypes.of(dtype)
    case = case.rounded(dtypes)
    stored = case.x if residual_out is None else residual_out
    p = stored
    if case.residual is not None and not dtypes.round_residual:
        p = case.exact_sum
    spec = spec.resolve(2 * unit_roundoff(dtypes.accumulator))
    saved = numpy_ref.forward(p, case.weight, case.bias, spec=spec)
    saved = replace(saved, residual_out=stored)
    return saved, numpy_ref.backward(case.dy, saved, case.dresidual_out)


def lost_rows(saved: numpy_ref.Forward, dtype: str | Dtypes) -> np.ndarray:
    """Rows (M, 1) whose squares leave the range of the accumulator's dtype: their sum is infinite, or too small for D.

    Below the smallest normal number a square has lost digits; eps hides that where it carries D.
    """
    acc, q = Dtypes.of(dtype).accumulator, saved.residual_out
    if saved.mean is not None:
        q = q - saved.mean[:, None]
    # The rows as they are stored, and as they were where the statistics are of the sum before it was rounded.
    d = 1 / saved.rstd[:, None]
    stored = (q * q).sum(-1, keepdims=True)
    squares = np.maximum(stored, saved.spec.count(q.shape[-1]) * d * d)
    return (squares > LARGEST[acc]) | (d < SMALLEST_NORMAL[acc] ** 0.5)


def _some_lost(case, spec, dtype):
    for part in case.by_head():
        saved, _ = reference(part, spec, dtype, part.exact_sum)
        if lost_rows(saved, dtype).any():
            return True
    return False


def _expected(case, spec, dtypes, residual_out, corrected):
    """What the oracle gives for a case of rounded numbers, the bounds, and where squares are lost."""
    saved, grads = reference(case, spec, dtypes, residual_out)
    allowed = bounds(case.dy, case.dresidual_out, saved, dtypes, corrected)
    gradients = grads.dx, grads.dx, grads.dweight, grads.dbias
    rows = lost_rows(saved, dtypes)
    lost = Outcome(rows, False, rows, rows, rows.any(), False)
    return Outcome(saved.y, case.exact_sum, *gradients), allowed, lost


def check_values(
    backend: Name | Backend,
    case: Case,
    spec: NormSpec,
    dtype: str | Dtypes = "float64",
    *,
    corrected: bool = False,
) -> Measured:
    """Every output and gradient against the float64 oracle on the same rounded inputs, elementwise.

    Args:     backend: a name ("numpy", "sympy", "torch", "triton", "numba") or a Backend; case, spec; dtype: the name
              of the dtype of all arrays, or, for the last three, Dtypes; corrected: whether the backend is held to the
              bounds of a mean that is corrected, as `tolerance.bounds` has them
    Returns:  Measured, with each output's largest error and its computed bound
    Raises:   AssertionError that names the output, the place, the value and the bound
    """
    backend = get(backend)
    rounded = case.rounded(dtype)
    # A row whose squares are lost may divide by zero on its way to NaN; elsewhere that would be a mistake.
    zeros = "ignore" if _some_lost(rounded, spec, dtype) else "raise"
    with np.errstate(invalid=zeros, divide=zeros, over="ignore"):
        outcome = backend.run(rounded, spec, dtype)
        # A gradient that may be differentiated again takes the statistics, too, from the sum as it is stored.
        restored = getattr(backend, "create_graph", False)
        errors = compared(outcome, rounded, spec, dtype, restored, corrected)
    return Measured(f"{backend.name}: {case.name}, {dtype}", errors)


def compared(
    outcome: Outcome,
    case: Case,
    spec: NormSpec,
    dtype: str | Dtypes,
    restored: bool = False,
    corrected: bool = False,
) -> dict[str, tuple[float, float]]:
    """{output: (error, bound)} of an outcome; AssertionError where an error exceeds its bound.

    Args:  case: of numbers that the dtype holds; restored: whether the gradients take the statistics from the sum as it
           is stored, where the forward does not; corrected: as check_values
    """
    dtypes, worst = Dtypes.of(dtype), {}
    for head, part in enumerate(case.by_head()):
        results = outcome
        if case.heads is not None:
            results = Outcome(**of_head(outcome, head, case.heads, OUTPUTS))
        limits = _limits(results, part, spec, dtypes, restored, corrected)
        for name in OUTPUTS:
            source = GRADIENT_OF.get(name)
            absent = name == "dresidual" and part.residual is None
            if absent or source and part.wanted and source not in part.wanted:
                continue
            expected, bound, lost = (getattr(arrays, name) for arrays in limits)
            title, largest = f"{part.name}, {dtype}: {name}", LARGEST[dtypes[name]]
            got = getattr(results, name)
            pair = compare_output(title, got, expected, bound, largest, lost)
            if pair is not None:
                worst[name] = max(worst.get(name, pair), pair, key=_share)
    return worst


def _limits(outcome, case, spec, dtypes, restored, corrected):
    """As _expected, on the sum as the backend rounded it."""
    # Without a residual x is normalized, whatever dtype it is returned in.
    residual_out = case.x if case.residual is None else outcome.residual_out
    limits = _expected(case, spec, dtypes, residual_out, corrected)
    if dtypes.round_residual or not restored:
        return limits
    dtypes = replace(dtypes, round_residual=True)
    of_sum = _expected(case, spec, dtypes, residual_out, corrected)
    return [
        replace(of_gradients, y=of_forward.y)
        for of_gradients, of_forward in zip(of_sum, limits, strict=True)
    ]


def _share(pair):
    """Which part of its bound an error is."""
    error, bound = pair
    return error / bound if bound else 0.0


def check_differences(
    backend: Name | Backend, case: Case, spec: NormSpec, rng: np.random.Generator
) -> Measured:
    """The backend's gradients against central differences of the backend's own forward, along a random direction.

    L = <dy, y> + <dresidual_out, residual_out>; its slope along v must be <dx, v_x> + <dresidual, v_residual> + ...

    Args:     rng: draws the direction, scaled row by row to the size of the row's deviations
    Raises:   AssertionError with both slopes and the tolerance
    """
    backend = get(backend)
    inputs = {name: getattr(case, name) for name in INPUTS}
    inputs = {name: array for name, array in inputs.items() if array is not None}
    spread = case.x - (case.x.mean(-1, keepdims=True) if spec.center else 0)
    scale = np.sqrt((spread * spread).mean(-1, keepdims=True))
    direction = {name: rng.standard_normal(a.shape) for name, a in inputs.items()}
    for name in direction.keys() & MATRICES:
        direction[name] *= scale

    # A row far from 0 loses digits when its mean is subtracted: y is as uncertain as a term of size max|p| rstd w.
    saved = numpy_ref.forward(case.exact_sum, spec=spec.replace(weight_offset=0.0))
    weight = case.weight
    if case.heads is not None and weight is not None:
        weight = np.tile(weight, (len(case.x) // case.heads, 1))
    lost = np.abs(case.exact_sum).max(-1, keepdims=True) * saved.rstd[:, None]
    lost = lost * np.abs(factor(weight, case.x.shape[-1], spec))

    def loss(*arrays):
        moved = dict(zip(inputs, arrays, strict=True))
        value, size = 0.0, inner(np.abs(case.dy), lost)
        cotangents = case.dy, case.dresidual_out
        outputs = backend.forward(case, moved, spec)
        for cotangent, output in zip(cotangents, outputs, strict=True):
            if cotangent is not None:
                value += inner(cotangent, output)
                size += inner(np.abs(cotangent), np.abs(output))
        return value, size

    slope = directional(loss, [*inputs.values()], [*direction.values()])
    outcome = backend.run(case, spec, "float64")
    claimed = sum(
        inner(getattr(outcome, output), direction.get(name))
        for output, name in GRADIENT_OF.items()
    )
    error = abs(claimed - slope.value)
    if not error <= slope.tolerance:
        raise AssertionError(
            f"{case.name}: the gradients give the slope {claimed:.9e}, central differences {slope.value:.9e}; "
            f"error {error:.1e} exceeds the tolerance {slope.tolerance:.1e}"
        )
    title = f"{backend.name}: {case.name}, central differences"
    return Measured(title, {"slope": (error, slope.tolerance)})


def check_gradcheck(
    backend: Name | Backend,
    case: Case,
    spec: NormSpec,
    second: bool = False,
    forward_mode: bool = False,
) -> Measured:
    """torch.autograd.gradcheck, float64, torch's default tolerances, on the backend itself; and gradgradcheck.

    Args:     second: gradgradcheck as well; forward_mode: check jvp too
    Raises:   AssertionError with torch's report; ValueError for a backend without autograd
    """
    import torch
    from torch.autograd.gradcheck import GradcheckError

    backend = get(backend)
    if not hasattr(backend, "function"):
        needs = "'torch', 'triton' or 'numba', whose gradients are autograd's"
        raise ValueError(f"backend: got {backend.name!r}, needs {needs}")
    function, tensors = backend.function(case, spec)
    try:
        torch.autograd.gradcheck(function, tensors, check_forward_ad=forward_mode)
        if second:
            # gradgradcheck differentiates whatever the first gradient is, right or wrong. So that gradient is checked
            # first, on the path that is differentiated, which is not the one that gradcheck took.
            check_values(backend.differentiable(), case, spec)
            torch.autograd.gradgradcheck(
                function, tensors, check_fwd_over_rev=forward_mode
            )
    except GradcheckError as error:
        raise AssertionError(f"{case.name}: {error}") from error
    title = f"{backend.name}: {case.name}, gradcheck{' and gradgradcheck' if second else ''} at torch's tolerances"
    return Measured(title, {})
