"""Proofs for every size: index notation, a normal form for finite sums, and the registry of proved equations."""

from .adjoint import reverse
from .calculus import D, RangeError
from .chains import Equation, proved
from .codegen import compile, source
from .definitions import Defs
from .derive import Derivation, define, derive, keep_as_typed
from .elementary import sigmoid
from .measured import Largest, largest
from .normal_form import nf
from .notation import Local, Partial, as_written, delta, dim, index, mean, tensor, total
from .opaque import opaque
from .proof import NotProved, Proof, prove
from .refute import Refutation, refute
from .registry import equation, equations
from .render import latex
from .trace import Trace, trace
from .witness import Counterexample, check_fixed, counterexample

__all__ = [
    "Counterexample",
    "D",
    "Defs",
    "Derivation",
    "Equation",
    "Largest",
    "Local",
    "NotProved",
    "Partial",
    "Proof",
    "RangeError",
    "Refutation",
    "Trace",
    "as_written",
    "check_fixed",
    "compile",
    "counterexample",
    "define",
    "delta",
    "derive",
    "dim",
    "equation",
    "equations",
    "index",
    "keep_as_typed",
    "largest",
    "latex",
    "mean",
    "nf",
    "opaque",
    "prove",
    "proved",
    "refute",
    "reverse",
    "sigmoid",
    "source",
    "tensor",
    "total",
    "trace",
]
