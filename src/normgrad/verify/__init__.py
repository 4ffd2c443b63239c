"""A program is an equation: what it stores, read and proved, or its wrong term named."""

from .definitions import norm
from .verdict import Verdict

__all__ = ["Verdict", "norm"]
