"""The checks, one function a stage: each takes an Exam, returns what it measured in a sentence, or raises Wrong."""

from .exam import Exam
from .interface import inputs_untouched, signature
from .values import degenerate, low_precision, quietly_degenerate, value

__all__ = ["Exam", "degenerate", "inputs_untouched", "low_precision", "quietly_degenerate", "signature", "value"]
