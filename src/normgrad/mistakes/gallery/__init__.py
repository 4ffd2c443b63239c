"""A gallery of real bugs in normalization layers, each in a few lines, with the check that rejects it."""

from .entry import REJECTED, Bug
from .experiment import BUGS, look

__all__ = ["BUGS", "REJECTED", "Bug", "look"]
