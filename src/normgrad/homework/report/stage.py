"""What came out of one stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

FOLLOWS, AS_ABOVE = "follows from the above", "as above"


@dataclass(frozen=True)
class StageResult:
    """One stage: its points, whether it passed, and a sentence.

    Args:  stub: whether nothing is written yet; explained: whether values that are wrong in an earlier stage are enough
           of a reason
    """

    name: str
    points: int
    max_points: int
    passed: bool
    message: str
    stub: bool = False
    seconds: float = 0.0
    explained: bool = False

    @property
    def full(self) -> bool:
        """Whether it earned all its points."""
        return self.points == self.max_points

    def without_points(self, why: str) -> StageResult:
        """The same result with no points, and why."""
        return replace(self, points=0, message=why)
