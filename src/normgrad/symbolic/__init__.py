"""Proofs for every size: index notation, a normal form for finite sums, and the registry of proved equations."""

from .calculus import D, RangeError
from .chains import Equation, proved
from .codegen import compile, source
from .definitions import Defs
from .elementary import sigmoid
from .measured import Largest, largest
from .normal_form import nf
from .notation import Local, Partial, as_written, delta, dim, index, mean, tensor, total
from .opaque import opaque
from .proof import NotProved, Proof, prove
from .registry import equation, equations
from .render import latex
from .trace import Trace, trace
from .witness import Counterexample, check_fixed, counterexample

__all__ = [
    "Counterexample",
    "D",
    "Defs",
    "Equation",
    "Largest",
    "Local",
    "NotProved",
    "Partial",
    "Proof",
    "RangeError",
    "Trace",
    "as_written",
    "check_fixed",
    "compile",
    "counterexample",
    "delta",
    "dim",
    "equation",
    "equations",
    "index",
    "largest",
    "latex",
    "mean",
    "nf",
    "opaque",
    "prove",
    "proved",
    "sigmoid",
    "source",
    "tensor",
    "total",
    "trace",
]
