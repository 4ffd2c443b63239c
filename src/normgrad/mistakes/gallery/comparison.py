"""Comparisons with the oracle as tests: inputs, a dtype, the outputs that are compared, and the error that passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ... import numpy_ref
from ...checks.backends import get
from ...checks.cases import Case, cases, draw
from ...checks.contract import check_values, reference
from ...tolerance import bounds


@dataclass(frozen=True)
class Comparison:
    """One comparison with the oracle, called with a backend and a generator.

    Args:  case: makes the inputs from a generator; spec; dtype: the name of a dtype
           allowed: the largest absolute error that passes, None for the computed bounds of the contract
           outputs: the names that are compared with `allowed`; the bounds hold for all of them
    """

    case: Callable[[np.random.Generator], Case]
    spec: object
    dtype: str = "float64"
    allowed: float | None = None
    outputs: tuple[str, ...] = ("y", "dx", "dw", "db")

    def __call__(self, backend, rng):
        """The comparison as a test.

        Raises:  AssertionError for an error that is not allowed
        """
        if self.allowed is None:
            check_values(backend, self.case(rng), self.spec, self.dtype)
            return
        case = self.case(rng).rounded(self.dtype)
        with np.errstate(all="ignore"):
            outcome = get(backend).run(case, self.spec, self.dtype)
        saved, grads = reference(case, self.spec, self.dtype, case.summed(self.dtype))
        expected = {
            "y": saved.y,
            "dx": grads.dx,
            "dw": grads.dweight,
            "db": grads.dbias,
        }
        for name in self.outputs:
            if expected[name] is None:
                continue
            errors = np.abs(getattr(outcome, name) - expected[name])
            error = np.max(errors, initial=0)
            if not error <= self.allowed:
                raise AssertionError(
                    f"{name}: error {error:.1e} exceeds {self.allowed:.1e}"
                )


def compare(computed, x, weight, dy, where):
    """Compare (dx, dw) of LayerNorm with the oracle's, in float64; AssertionError that says where and how far."""
    saved = numpy_ref.forward(x, weight)
    expected = numpy_ref.backward(dy, saved)
    allowed = bounds(dy, None, saved, "float64")
    _within(f"{where}: dx", computed[0], expected.dx, allowed.dx)
    _within(f"{where}: dw", computed[1], expected.dweight, allowed.dw)


def compare_rows(words, y, x, weight=None):
    """Compare y, of any shape, with LayerNorm of the rows x; AssertionError that says how far it is off."""
    saved = numpy_ref.forward(x, weight)
    _within(words, y.reshape(x.shape), saved.y, bounds(x, None, saved, "float64").y)


def _within(words, output, expected, bound):
    error = np.abs(output - expected)
    if not (error <= bound).all():
        raise AssertionError(
            f"{words} is off by up to {error.max():.1e}, allowed is {bound.max():.1e}"
        )


def rows(m, n, *absent, offset=0.0, scale=1.0, dy=1.0):
    """Makes standard normal cases, without the arrays that are named; dy scaled, x scaled and moved.

    Args:  offset: each row's own is drawn between 0.9 and 1.1 times this
    """

    def case(rng):
        drawn = draw(rng, m, n)
        drawn = drawn.without(*absent) if absent else drawn
        means = offset * rng.uniform(0.9, 1.1, (m, 1))
        return replace(drawn, x=scale * (drawn.x + means), dy=dy * drawn.dy)

    return case


def unit_weight(m, n, *absent):
    """Makes cases with the weight of a layer that was never trained: ones."""

    def case(rng):
        drawn = draw(rng, m, n).without(*absent)
        return replace(drawn, weight=np.ones(n), bias=np.zeros(n))

    return case


def aligned(m, n):
    """Makes cases whose cotangent lies along x_hat and 1, where the projection is all there is."""
    return lambda rng: cases(rng, m, n)[2].without("residual", "dresidual_out")
