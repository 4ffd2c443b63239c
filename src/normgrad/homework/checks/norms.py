"""Right answers for the tasks about normalization: inputs from checks.cases, values and bounds from the reference.

An oracle makes trials, turns a trial into a request to the student's code, and says what must come back and how far
off it may be. All bounds come from normgrad.tolerance or are put together from its constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import numpy_ref
from ...checks.cases import ARRAYS, Case, cases
from ...spec import NormSpec
from ...tolerance import (
    ELEMENTWISE,
    SAFETY,
    SMALLEST,
    accumulator,
    bounds,
    round_to,
    unit_roundoff,
)
from ..sandbox.student import Given, Request

USUAL = ("random", "rows of different scale and offset", "cotangent along x_hat and 1")
DEGENERATE = ("a constant row and a zero row", "no rows", "one row", "one column")
OFFSET = ("mean a thousand deviations away",)
# Beside it the usual 1e-5 is nothing: an eps in the wrong place cannot hide.
LARGE_EPS = 0.25
# By how many rows and columns the second shape is larger: no multiple and no power of two for the usual draw.
MORE = 2, 3


@dataclass(frozen=True)
class Trial:
    """A case without residual, and the operator that it is meant for; other: whether its shape is the second one."""

    case: Case
    spec: NormSpec
    other: bool = False

    @property
    def name(self) -> str:
        """The kind of inputs, in words."""
        kind = "ordinary rows" if self.case.name == "random" else self.case.name
        kind = f"x of shape {self.case.x.shape}" if self.other else kind
        return f"{kind}, eps {self.spec.eps}" if self.spec.eps == LARGE_EPS else kind

    def forward(self) -> numpy_ref.Forward:
        """The reference's forward, in float64."""
        return numpy_ref.forward(
            self.case.x, self.case.weight, self.case.bias, spec=self.spec
        )

    def rounded(self, dtype) -> Trial:
        """The trial with numbers that the dtype holds."""
        return replace(self, case=self.case.rounded(dtype))


# Of every result its axes, M rows and N columns.
AXES = dict.fromkeys(("y", "x_hat", "residual_out", "dx", "dresidual"), "MN")
AXES |= dict.fromkeys(("mean", "rstd", "var", "n", "squares"), "M") | {
    "dw": "N",
    "db": "N",
}


def shape_of(name: str, x) -> tuple[int, ...]:
    """The shape of a result for an x (M, N)."""
    sizes = dict(zip("MN", x.shape, strict=True))
    return tuple(sizes[axis] for axis in AXES[name])


def statistics_bounds(saved, dtype):
    """(mean, rstd) bounds: the mean of N terms; the reciprocal as far as the rounding of the centred row moves it."""
    p, u = saved.residual_out, unit_roundoff(accumulator(dtype))
    terms, size = u * (p.shape[-1] + ELEMENTWISE), np.abs(p).max(-1, initial=0)
    if saved.mean is None:
        return None, SAFETY * terms * saved.rstd
    x_hat = np.abs((p - saved.mean[:, None]) * saved.rstd[:, None]).mean(-1)
    relative = terms * (1 + size * saved.rstd * (x_hat + terms * size * saved.rstd))
    return SAFETY * terms * size + SMALLEST[dtype], SAFETY * relative * saved.rstd


@dataclass(frozen=True)
class NormOracle:
    """What all tasks about one normalization share.

    Args:  spec: the operator; affine: which of weight and bias it has; arguments, results: names in their order
           op: the operation that calls the entry; dtypes: the narrow dtypes of the last stage
    """

    spec: NormSpec
    affine: tuple[str, ...]
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    op: str = "call"
    kind: str = "numpy"
    dtypes: tuple[str, ...] = ("float32",)
    base: str = "float64"
    trial: type = Trial

    def with_options(self, **options) -> NormOracle:
        """The oracle of another norm of the family."""
        return replace(self, spec=self.spec.replace(**options))

    def trials(self, rng, draw, kinds=USUAL) -> list[Trial]:
        """One trial of each kind; of the usual kinds also one with a large eps, then another shape and a square one."""
        trials = [
            self._trial(case, draw)
            for case in cases(rng, draw.rows, draw.columns)
            if case.name in kinds and case.layout == "contiguous"
        ]
        if kinds == USUAL:
            trials.append(replace(trials[0], spec=self.spec.replace(eps=LARGE_EPS)))
            rows, columns = draw.rows + MORE[0], draw.columns + MORE[1]
            # `rstd if rstd.shape == weight.shape else rstd[:, None]` is right for all others
            for shape in ((rows, columns), (columns, columns)):
                case = cases(rng, *shape)[0]
                trials.append(replace(self._trial(case, draw), other=True))
        return trials

    def _trial(self, case, draw):
        case = self.taken(case)
        case = case.without(
            *(name for name in ("weight", "bias") if name not in self.affine)
        )
        return self.trial(replace(case, name=case.name.partition(", no")[0]), self.spec)

    def taken(self, case: Case) -> Case:
        """A case as this operator takes it."""
        summed = replace(case, x=case.x + case.residual)
        return summed.without("residual", "dresidual_out")

    def given(
        self, trial: Trial, dtype: str, layout: str = "contiguous"
    ) -> list[Given]:
        """The arguments of the student's function, of a trial that is rounded already."""
        saved = trial.forward()
        values = {name: getattr(trial.case, name) for name in ARRAYS} | {
            "residual_out": saved.residual_out
        }
        values |= {name: None if a is None else round_to(a, accumulator(dtype))
                   for name, a in (("mean", saved.mean), ("rstd", saved.rstd))}  # fmt: skip

        def made(name):
            if name == "eps":
                return Given("eps", trial.spec.eps, kind="scalar")
            stored = accumulator(dtype) if name in ("mean", "rstd") else dtype
            return Given(name, values[name], stored, self.kind, layout=layout)

        return [made(name) for name in self.arguments]

    def request(self, trial: Trial, dtype="float64", layout="contiguous") -> Request:
        """The call that a trial leads to."""
        return Request(self.op, tuple(self.given(trial.rounded(dtype), dtype, layout)))

    def expected(self, trial: Trial, dtype="float64") -> dict:
        """{result: (value, bound)} of a trial in a dtype."""
        trial = trial.rounded(dtype)
        saved = trial.forward()
        grads = numpy_ref.backward(trial.case.dy, saved, trial.case.dresidual_out)
        allowed = bounds(trial.case.dy, trial.case.dresidual_out, saved, dtype)
        e_mean, e_rstd = statistics_bounds(saved, dtype)
        known = {
            "y": (saved.y, allowed.y),
            "mean": (saved.mean, e_mean),
            "rstd": (saved.rstd, e_rstd),
            "residual_out": (saved.residual_out, allowed.residual_out),
            "dx": (grads.dx, allowed.dx),
            "dresidual": (grads.dx, allowed.dresidual),
            "dw": (grads.dweight, allowed.dw),
            "db": (grads.dbias, allowed.db),
        }
        return {name: known[name] for name in self.results}

    def loss(self, trial: Trial):
        """(names, inputs, f) for central differences: f gives the loss <dy, y> + <dresidual_out, residual_out>, and the
        size of its terms, with the digits that a row far from 0 loses when its mean is subtracted."""
        case = trial.case
        names = tuple(
            name
            for name in ("x", "residual", "weight", "bias")
            if getattr(case, name) is not None
        )

        def f(*arrays):
            saved = replace(
                trial, case=replace(case, **dict(zip(names, arrays, strict=True)))
            ).forward()
            terms = [case.dy * saved.y]
            if case.dresidual_out is not None:
                terms.append(case.dresidual_out * saved.residual_out)
            far = (
                np.abs(saved.residual_out).max(-1, keepdims=True, initial=0)
                * saved.rstd[:, None]
            )
            lost = np.abs(case.dy * (1 if case.weight is None else case.weight)) * far
            return float(sum(t.sum() for t in terms)), float(
                lost.sum() + sum(np.abs(t).sum() for t in terms)
            )

        return names, [getattr(case, name) for name in names], f
