"""A gallery of real bugs in normalization layers, each in a few lines, with the check that rejects it."""

from .entry import REJECTED, Bug
from .wrong_handling import GRAPH, MEMORY, TESTS
from .wrong_numbers import FORMULAS, PRECISION

BUGS = {bug.name: bug for bug in (*FORMULAS, *MEMORY, *PRECISION, *GRAPH, *TESTS)}

__all__ = ["BUGS", "REJECTED", "Bug"]
