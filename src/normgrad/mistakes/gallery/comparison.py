"""Comparisons with the oracle as tests: inputs, a dtype, the outputs that are compared, and the error that passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...checks.backends import get
from ...checks.cases import Case, cases, draw
from ...checks.contract import check_values, reference


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
        for name in self.outputs:
            error = self.error(backend, rng, name)
            if not error <= self.allowed:
                raise AssertionError(
                    f"{name}: error {error:.1e} exceeds {self.allowed:.1e}"
                )

    def error(self, backend, rng, output: str) -> float:
        """The largest absolute error of an output; 0 for one that the oracle does not have."""
        case = self.case(rng).rounded(self.dtype)
        with np.errstate(all="ignore"):
            outcome = get(backend).run(case, self.spec, self.dtype)
        saved, grads = reference(case, self.spec, self.dtype, case.summed(self.dtype))
        gradients = {"dx": grads.dx, "dw": grads.dweight, "db": grads.dbias}
        expected = ({"y": saved.y} | gradients)[output]
        if expected is None:
            return 0.0
        return float(np.max(np.abs(getattr(outcome, output) - expected), initial=0))


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


def sum_loss(m, n):
    """Makes cases of the loss y.sum() at the start of training: cotangent and weight are ones."""

    def case(rng):
        drawn = unit_weight(m, n, "residual", "dresidual_out")(rng)
        return replace(drawn, dy=np.ones((m, n)))

    return case


def aligned(m, n):
    """Makes cases whose cotangent lies along x_hat and 1, where the projection is all there is."""
    return lambda rng: cases(rng, m, n)[2].without("residual", "dresidual_out")
