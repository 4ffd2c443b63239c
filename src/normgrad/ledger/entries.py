"""One entry of the ledger: a numbered equation's label, and what is known about it.

An entry travels in a cell's output under a MIME type of our own.
"""

from __future__ import annotations

from dataclasses import dataclass

MIME = "application/vnd.normgrad.ledger+json"
WORDS = {
    "definition": "definition",
    "cited": "cited",
    "proved-for-every-n": "proved for every N",
    "proved-for-small-n": "proved for small N",
    "follows-from": "follows from",
    "numeric": "checked numerically",
}
KINDS = tuple(WORDS)
# A bound that is further above every error that was found says no more than an order of magnitude.
NEAR = 100
# One that is nearer than this to an error is reached.
REACHED = 1.05


@dataclass(frozen=True)
class Entry:
    """What is known about one labelled equation.

    Args:  label: the equation's label; kind: one of KINDS; claim: one sentence that says what holds
           error, tolerance: the measured error and the bound it was held to (numeric entries)
           formula: the LaTeX of the object that was checked (numeric entries), which the page has to show
           slack: how many times the bound is above what came nearest to it, for bounds
           seconds: how long the proof or the check took
           follows_from, because: the labels of the equations it follows from, and the one-line reason
    """

    label: str
    kind: str
    claim: str
    error: float | None = None
    tolerance: float | None = None
    seconds: float | None = None
    follows_from: tuple[str, ...] = ()
    because: str = ""
    formula: str = ""
    slack: float | None = None

    def __str__(self):
        kind = f"{self.label}: {WORDS[self.kind]} {', '.join(self.follows_from)}"
        parts = [kind.rstrip()]
        if self.error is not None:
            parts.append(f"error {self.error:.1e}, tolerance {self.tolerance:.1e}")
        if self.slack is not None:
            parts.append(slack_in_words(self.slack))
        if self.seconds is not None:
            parts.append(f"{self.seconds:.2f} s")
        claim = self.claim
        if self.because not in ("", claim):
            claim = f"{claim.removesuffix('.')}, because {self.because}"
        return f"{', '.join(parts)}\n    {claim}"


def slack_in_words(slack: float) -> str:
    """How near a bound comes to what it bounds; far above it, it is an order of magnitude and no more."""
    if slack > NEAR:
        return f"an order of magnitude: {slack:.0f} times the error"
    if slack < REACHED:
        return "as large as the error"
    return f"{slack:.2g} times the error"
