"""The gallery's entries: each bug with its repaired version, the check that rejects it and a test that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...checks.backends import BACKENDS, NAMES
from ...spec import LAYER_NORM
from . import checks, looks, ours, usual
from .looks import Look
from .operators import Written

# What a check looks at; a Look has its own words.
WORDS = {
    checks.check_cotangent: "dy before and after",
    checks.check_layouts: "one argument at a time in another layout",
    checks.check_offsets: "offsets against exact integers",
    checks.check_stays_inside: "marks past the end",
    checks.check_order: "bits, in eight orders",
    checks.check_gate: "central differences, both cotangents",
    checks.check_projected: "central differences, the matrix too",
    checks.check_heads: "heads of a fused tensor",
    checks.check_second: "gradgradcheck",
    checks.check_one_variant: "variants over twenty lengths",
}
REJECTED = (AssertionError, ArithmeticError)


@dataclass(frozen=True)
class Bug:
    """One bug.

    Args:  name, belief: in words; wrong, right: what the check is given; check: of (subject, rng), raises for wrong
           complaint: what the check's message says, a regular expression; usual: a test that accepts wrong
           output: what is off, in words; harm: of (wrong, rng), how far, by default the relative error of output
           unit: of that number; "crash" where there is none
           ours: of a backend's name, gives what the check takes; backends: those that the check is for
           key: of the mistake in mistakes/table.py, where a homework can show it
    """

    name: str
    belief: str
    wrong: object
    right: object
    check: Callable
    complaint: str
    usual: Callable
    output: str
    harm: Callable | None = None
    unit: str = "%"
    ours: Callable = ours.itself
    backends: tuple[str, ...] = NAMES
    key: str = ""

    @property
    def rejected_by(self) -> str:
        """What our check looks at, in a few words."""
        return self.check.words if isinstance(self.check, Look) else WORDS[self.check]

    def damage(self, rng: np.random.Generator) -> str:
        """What the bug costs, measured: a number with its unit."""
        if self.unit == "crash":
            return self.unit
        found = self.check.relative(self.wrong, rng, self.output) if self.harm is None else self.harm(self.wrong, rng)
        if self.unit == "%":
            return f"{100 * found:.0f} %" if found >= 0.1 else f"{100 * found:.1f} %"
        return f"{found:,.0f} {self.unit}".rstrip()


def _dtypes(backend):
    """A backend's dtypes, from its class: making the backend would import its libraries."""
    made_by = BACKENDS[backend]
    return getattr(made_by, "func", made_by).dtypes


def values(name, belief, wrong, right, check, usual, output, complaint=None, **options):
    """An entry whose operators are NumPy functions and whose check is a comparison of values."""
    forward = output == "y" or output == "residual_out"
    wrap = (lambda f: Written(forward=f)) if forward else Written
    right = Written() if right is None else wrap(right)
    options.setdefault("backends", tuple(name for name in NAMES if check.dtype in _dtypes(name)))
    return Bug(name, belief, wrap(wrong), right, check, complaint or rf"{output}\[", usual, output, **options)


PLAIN = checks.PLAIN
ROWS = looks.rows(8, 64)
NORM = looks.rows(8, 64, *PLAIN)
STRONG = Look("weights of both signs, random dy", NORM, LAYER_NORM)
WITH_STREAM = Look("both cotangents", ROWS, LAYER_NORM)
AT_ONE = Look("weight 1", looks.unit_weight(8, 64, *PLAIN), LAYER_NORM, allowed=usual.FIXED["float32"])
EIGHTH = Look(
    "0.05, dy / 8, N = 4096",
    looks.rows(4, 4096, *PLAIN, dy=1 / 8),
    LAYER_NORM,
    "bfloat16",
    usual.FIXED["bfloat16"],
    ("dx",),
)
INPUT_ONLY = Look("y and dx", NORM, LAYER_NORM, allowed=usual.FIXED["float32"], outputs=("y", "dx"))
