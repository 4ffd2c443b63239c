"""Term attribution: from a wrong gradient to the formula that was implemented and the belief behind it."""

from .diagnose import diagnose
from .misconceptions import CATALOGUE, REFUSED, UNKNOWN, Misconception, find, keys
from .report import Diagnosis

__all__ = ["CATALOGUE", "REFUSED", "UNKNOWN", "Diagnosis", "Misconception", "diagnose", "find", "keys"]
