"""Ways of looking at an operator: inputs, a dtype, the outputs that are compared, and the error that passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...checks.backends import get
from ...checks.cases import Case, cases, draw
from ...checks.contract import check_values, reference
from ...checks.tolerance import bounds


def _names(outcome, saved, grads):
    """{output: (got, wanted)} for the outputs that exist on either side."""
    pairs = {
        "y": (outcome.y, saved.y),
        "residual_out": (outcome.residual_out, saved.residual_out),
        "dx": (outcome.dx, grads.dx),
        "dw": (outcome.dw, grads.dweight),
        "db": (outcome.db, grads.dbias),
    }
    return {name: pair for name, pair in pairs.items() if pair[1] is not None}


@dataclass(frozen=True)
class Look:
    """One comparison with the oracle.

    Args:  words: the look in a few words; case: makes the inputs from a generator; spec; dtype: the name of a dtype
           allowed: the largest absolute error that passes, None for the bounds of checks.tolerance
           outputs: the names that are compared; with bounds always all of them
    """

    words: str
    case: Callable[[np.random.Generator], Case]
    spec: object
    dtype: str = "float64"
    allowed: float | None = None
    outputs: tuple[str, ...] = ("y", "dx", "dw", "db")

    def pairs(self, backend, rng):
        """{output: (got, wanted, allowed error)} on one draw of the inputs."""
        case = self.case(rng).rounded(self.dtype)
        with np.errstate(all="ignore"):
            outcome = get(backend).run(case, self.spec, self.dtype)
        saved, grads = reference(case, self.spec, self.dtype, case.summed(self.dtype))
        pairs = _names(outcome, saved, grads)
        limits = bounds(case.dy, case.dresidual_out, saved, self.dtype)
        chosen = [name for name in pairs if self.allowed is None or name in self.outputs]
        return {
            name: (*pairs[name], getattr(limits, name) if self.allowed is None else self.allowed) for name in chosen
        }

    def ratio(self, backend, rng) -> float:
        """The largest error in units of what is allowed; infinite for NaN and for an output that is absent."""
        worst = [0.0]
        for got, wanted, allowed in self.pairs(backend, rng).values():
            part = np.inf if got is None else np.max(np.abs(got - wanted) / allowed, initial=0)
            worst.append(part if np.isfinite(part) else np.inf)
        return float(max(worst))

    def relative(self, backend, rng, output) -> float:
        """The norm of an output's error over the norm of what it should be; 1 for an output that is absent."""
        got, wanted, _ = replace(self, allowed=None).pairs(backend, rng)[output]
        if got is None:
            return 1.0
        return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))

    def __call__(self, backend, rng):
        """The look as a test.

        Raises:  AssertionError for an error that is not allowed
        """
        if self.allowed is None:
            return check_values(backend, self.case(rng), self.spec, self.dtype)
        for name, (got, wanted, allowed) in self.pairs(backend, rng).items():
            error = np.max(np.abs(got - wanted), initial=0)
            if not error <= allowed:
                raise AssertionError(f"{name}: error {error:.1e} exceeds {allowed:.1e}")
        return None


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


def along_x(m, n):
    """Makes cases without parameters whose cotangent is the row, but for one part in 300: little is left of dx."""

    def case(rng):
        drawn = draw(rng, m, n).without("residual", "dresidual_out", "weight", "bias")
        return replace(drawn, dy=drawn.x + drawn.dy / 300)

    return case


def aligned(m, n):
    """Makes cases whose cotangent lies along x_hat and 1, where the projection is all there is."""
    return lambda rng: cases(rng, m, n)[2].without("residual", "dresidual_out")
