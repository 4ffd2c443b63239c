"""Operators written as NumPy functions, right or wrong, behind the interface of the contract's backends.

A forward takes what a kernel is given and returns what it saves; a backward takes both and returns the gradients. The
arithmetic is float32 (float64 for float64) on numbers that the dtype holds, and `store` rounds where a kernel stores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ... import numpy_ref
from ...checks.backends import Outcome
from ...checks.cases import Case
from ...checks.tolerance import accumulator, round_to
from ...numpy_ref import Forward, Grads


@dataclass(frozen=True)
class Given:
    """What a kernel is given: rows, parameters, cotangents, the spec and the dtype's name; p is the rounded sum."""

    x: np.ndarray
    p: np.ndarray
    residual: np.ndarray | None
    weight: np.ndarray | None
    bias: np.ndarray | None
    dy: np.ndarray
    dresidual_out: np.ndarray | None
    spec: object
    dtype: str

    def store(self, array):
        """The array as memory of the dtype holds it, back in the dtype of the arithmetic."""
        return None if array is None else round_to(array, self.dtype).astype(accumulator(self.dtype))


def right_forward(given: Given) -> Forward:
    """What the package's oracle saves for the rows p."""
    return numpy_ref.forward(given.p, given.weight, given.bias, spec=given.spec)


def right(given: Given, saved: Forward) -> Grads:
    """The gradients of the package's oracle."""
    return numpy_ref.backward(given.dy, saved, given.dresidual_out)


def parts(given: Given, saved: Forward) -> SimpleNamespace:
    """x_hat, rstd, wdy, c1 and c2 of the rows, for wrong formulas to combine."""
    rstd, p = saved.rstd[:, None], saved.residual_out
    x_hat = (p if saved.mean is None else p - saved.mean[:, None]) * rstd
    wdy = given.dy if given.weight is None else given.dy * (given.spec.weight_offset + given.weight)
    c1 = (x_hat * wdy).sum(-1, keepdims=True) / given.spec.count(p.shape[-1])
    c2 = wdy.mean(-1, keepdims=True) if given.spec.center else 0
    return SimpleNamespace(x_hat=x_hat, rstd=rstd, wdy=wdy, c1=c1, c2=c2)


class Written:
    """A forward and a backward as a backend: the contract's checks run on it as on any other.

    Args:  backward: of (Given, Forward), returns Grads; forward: of Given, returns Forward; name: for messages
    """

    dtypes = ("float64", "float32", "float16", "bfloat16")

    def __init__(self, backward=right, forward=right_forward):
        self.backward, self.forward_function = backward, forward
        self.name = (forward if backward is right else backward).__name__

    def _given(self, case: Case, spec, dtype) -> Given:
        acc = accumulator(dtype)
        names = ("x", "residual", "weight", "bias", "dy", "dresidual_out")
        a = {name: None if getattr(case, name) is None else getattr(case, name).astype(acc) for name in names}
        given = Given(p=a["x"], spec=spec, dtype=dtype, **a)
        return given if case.residual is None else replace(given, p=given.store(a["x"] + a["residual"]))

    def forward(self, case: Case, arrays: dict, spec):
        """(y, residual_out) of the case in float64, some of its arrays replaced."""
        saved = self.forward_function(self._given(replace(case, **arrays), spec, "float64"))
        return saved.y, saved.residual_out

    def run(self, case: Case, spec, dtype: str) -> Outcome:
        """Forward and backward of a case whose numbers the dtype holds, each output rounded once."""
        given = self._given(case, spec, dtype)
        saved = self.forward_function(given)
        grads = self.backward(given, saved)
        dresidual = None if case.residual is None else grads.dx
        outputs = (saved.y, saved.residual_out, grads.dx, dresidual, grads.dweight, grads.dbias)
        return Outcome(*(None if t is None else np.asarray(given.store(t), np.float64) for t in outputs))
