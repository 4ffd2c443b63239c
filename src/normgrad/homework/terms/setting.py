"""What the right formulas depend on, besides the numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ...checks.cases import Case
from ...spec import NormSpec


@dataclass(frozen=True)
class Setting:
    """What the right formulas depend on: the spec, M rows, N columns, and which arguments there are."""

    spec: NormSpec
    rows: int
    columns: int
    weight: bool
    bias: bool
    residual: bool
    stream: bool

    @classmethod
    def of(cls, case: Case, spec: NormSpec) -> Setting:
        """The setting of a case."""
        optional = case.weight, case.bias, case.residual, case.dresidual_out
        return cls(spec, *case.x.shape, *(array is not None for array in optional))

    @property
    def kappa(self) -> bool:
        """Whether kappa is something other than 1."""
        return self.spec.placement != "inside" and self.spec.eps != 0
