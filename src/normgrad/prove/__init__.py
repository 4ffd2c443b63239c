"""Derivations typed in SymPy itself: nine verbs on top of the proof kernel.

The nouns are SymPy's: symbols, IndexedBase, Sum, KroneckerDelta, diff, sqrt, Function. A cell shows its lines as they
are typed, since the display is read off the cell's text; what it computes with are ordinary expressions of SymPy.
"""

from .verbs import (
    contract,
    define,
    definitions,
    derive,
    in_names,
    local,
    prove,
    refute,
    unfold,
)

__all__ = [
    "contract",
    "define",
    "definitions",
    "derive",
    "in_names",
    "local",
    "prove",
    "refute",
    "unfold",
]
