"""Right answers for a norm with a residual: two inputs of one sum, two outputs, and the stream's own gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import numpy_ref
from ...checks.cases import Case
from ...checks.tolerance import round_to
from ..diagnosis.named import named
from ..sandbox.student import Request
from ..words import Wrong
from .norms import NormOracle, Trial

NAMES = ("x", "residual", "weight", "bias")
NO_KERNEL = "No result was written by a Triton kernel. Launch one that writes them."


@dataclass(frozen=True)
class StreamTrial(Trial):
    """A case with a residual; dtype: in which the sum is stored before it is normalized."""

    dtype: str = "float64"

    def forward(self) -> numpy_ref.Forward:
        """The reference's forward of the sum as residual_out holds it, in float64."""
        stored = round_to(self.case.x + self.case.residual, self.dtype)
        return numpy_ref.forward(stored, self.case.weight, self.case.bias, spec=self.spec)

    def rounded(self, dtype) -> StreamTrial:
        """The trial with numbers that the dtype holds."""
        return replace(self, case=self.case.rounded(dtype), dtype=dtype)


@dataclass(frozen=True)
class StreamOracle(NormOracle):
    """A fused residual add and norm, whose launchers take torch tensors."""

    op: str = "kernels"
    kind: str = "torch"
    dtypes: tuple[str, ...] = ("float32", "float16")
    trial: type = StreamTrial

    def scaled(self, case: Case, scale: float) -> Case:
        """Both halves of the sum, multiplied by a number."""
        return replace(case, x=scale * case.x, residual=scale * case.residual)

    def request(self, trial, dtype="float64", layout="contiguous", apart=False) -> Request:
        """The call that a trial leads to; apart: whether every input has memory of its own."""
        return Request(self.op, tuple(self.given(trial.rounded(dtype), dtype, layout)), {"apart": apart})

    def admit(self, request, outcome) -> None:
        """Raises Wrong where nothing is to be earned: no result is a kernel's, or one leaves its tensors."""
        facts, rows = outcome.facts, all(np.size(given.value) for given in request.arguments)
        for launch in facts["launches"]:
            for place, count in launch["outside"].items():
                words = f"{launch['kernel']} {place} ({count} numbers): mask its loads and stores."
                raise Wrong(words, diagnoses=[named("out-of-bounds")])
            if launch["foreign"]:
                words = f"{launch['kernel']} uses {', '.join(launch['foreign'][:3])} in its body. No GPU runs Python."
                raise Wrong(f"{words} Write it with triton.language, and helpers under @triton.jit.",
                            diagnoses=[named("python-in-kernel")])  # fmt: skip
        if rows and not facts["own"] and (facts["torch"] or not facts["launches"]):
            raise Wrong(NO_KERNEL, diagnoses=[named("work-outside")])

    def loss(self, trial):
        """(names, inputs, f) for central differences: the loss <dy, y> + <dresidual_out, residual_out>."""
        case = trial.case
        names = tuple(name for name in NAMES if getattr(case, name) is not None)

        def f(*arrays):
            saved = replace(trial, case=replace(case, **dict(zip(names, arrays, strict=True)))).forward()
            terms = case.dy * saved.y, case.dresidual_out * saved.residual_out
            far = np.abs(saved.residual_out).max(-1, keepdims=True, initial=0) * saved.rstd[:, None]
            lost = (np.abs(case.dy * (1 if case.weight is None else case.weight)) * far).sum()
            return float(sum(t.sum() for t in terms)), float(lost + sum(np.abs(t).sum() for t in terms))

        return names, [getattr(case, name) for name in names], f
