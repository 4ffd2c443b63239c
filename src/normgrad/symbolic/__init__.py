"""Proofs for every size: index notation, a normal form for finite sums, and the registry of proved equations."""

from .adjoint import reverse
from .calculus import D, RangeError
from .chains import Equation, proved
from .codegen import compile, source
from .definitions import Defs
from .derive import (
    Derivation,
    define,
    derive,
    derive_all,
    derive_by_induction,
    keep_as_typed,
    work_out,
)
from .elementary import sigmoid
from .measured import largest
from .normal_form import nf
from .notation import Local, Partial, as_written, delta, dim, index, mean, tensor, total
from .opaque import opaque
from .proof import NotProved, Proof, prove
from .recurrences import Recurrences, sequences
from .refute import Refutation, judge, refute
from .registry import equation, equations
from .render import latex
from .steps import (
    Step,
    chain_rule,
    collect,
    contract,
    differentiate,
    multiply,
    pull_out,
    unfold,
    using,
)
from .trace import Trace, trace
from .witness import Counterexample, check_fixed, counterexample

__all__ = [
    "Counterexample",
    "D",
    "Defs",
    "Derivation",
    "Equation",
    "Local",
    "NotProved",
    "Partial",
    "Proof",
    "RangeError",
    "Recurrences",
    "Refutation",
    "Step",
    "Trace",
    "as_written",
    "chain_rule",
    "check_fixed",
    "collect",
    "compile",
    "contract",
    "counterexample",
    "define",
    "delta",
    "derive",
    "derive_all",
    "derive_by_induction",
    "differentiate",
    "dim",
    "equation",
    "equations",
    "index",
    "judge",
    "keep_as_typed",
    "largest",
    "latex",
    "mean",
    "multiply",
    "nf",
    "opaque",
    "prove",
    "proved",
    "pull_out",
    "refute",
    "reverse",
    "sequences",
    "sigmoid",
    "source",
    "tensor",
    "total",
    "trace",
    "unfold",
    "using",
    "work_out",
]
