"""A program is an equation: what it stores, read from its text, and proved."""

from ..symbolic.symbols import M, N, eps
from .api import verify
from .binding import (
    CHUNK,
    COLUMNS,
    FLOAT,
    PROGRAM_COUNT,
    ROWS,
    WHOLE,
    InOut,
    Out,
    T,
)
from .definitions import OFFSET, Norm, norm
from .verdict import Verdict

__all__ = [
    "CHUNK",
    "COLUMNS",
    "FLOAT",
    "M",
    "N",
    "OFFSET",
    "PROGRAM_COUNT",
    "ROWS",
    "WHOLE",
    "InOut",
    "Norm",
    "Out",
    "T",
    "Verdict",
    "eps",
    "norm",
    "verify",
]
