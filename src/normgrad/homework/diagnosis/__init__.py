"""The diagnosis: from a wrong result to the formula that was implemented and the belief behind it."""

from .diagnose import diagnose
from .named import Diagnosis
from .table import MISTAKES, REFUSED, UNKNOWN, Mistake, find

__all__ = ["MISTAKES", "REFUSED", "UNKNOWN", "Diagnosis", "Mistake", "diagnose", "find"]
