"""Proofs for every size: index notation, a normal form for finite sums, and the registry of proved equations."""

from .calculus import D, RangeError
from .definitions import Defs
from .notation import Local, Partial, as_written, delta, dim, index, mean, tensor, total
from .proof import NotProved, Proof, prove
from .registry import Equation, equation, equations
from .render import latex
from .sums import nf
from .witness import Counterexample, check_fixed, counterexample

__all__ = [
    "Counterexample",
    "D",
    "Defs",
    "Equation",
    "Local",
    "NotProved",
    "Partial",
    "Proof",
    "RangeError",
    "as_written",
    "check_fixed",
    "counterexample",
    "delta",
    "dim",
    "equation",
    "equations",
    "index",
    "latex",
    "mean",
    "nf",
    "prove",
    "tensor",
    "total",
]
