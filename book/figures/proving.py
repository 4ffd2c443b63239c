"""Figures of the chapters on proofs: claims against N, the kernel as a flow chart, the entries that settle a claim."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib.pyplot as plt
from sympy import Expr, S, sqrt

from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    check_fixed,
    delta,
    dim,
    equation,
    index,
    mean,
    prove,
    tensor,
    total,
)

from .style import BLUE, GREEN, GREY, ORANGE

SIZES = range(1, 7)
MARKS = {True: (GREEN, "✓"), False: (ORANGE, "✗"), None: (GREY, "–")}


@dataclass(frozen=True)
class Claim:
    """lhs = rhs, with its words; at N = 1 it may have no value."""

    text: str
    lhs: Expr
    rhs: Expr
    defs: Defs
    no_value_at_one: bool = False

    def holds(self, size: int) -> bool | None:
        """Whether it holds for rows of that length; None where it has no value."""
        if size == 1 and self.no_value_at_one:
            return None
        try:
            return bool(check_fixed(self.lhs, self.rhs, (size,), self.defs))
        except AssertionError:
            return False

    def verdict(self) -> str:
        """What `prove` says."""
        try:
            prove(self.lhs, self.rhs, self.defs)
        except NotProved as refusal:
            return "refuted" if refusal.counterexample else "undecided"
        return "proved"


def _claims():
    N, (j, k) = dim("N"), index("j", "k")
    x, q, average, row = tensor("x", N), tensor("q", N), tensor("mean"), Defs()
    row[average] = mean(N, lambda r: x[r])
    row[q[j]] = x[j] - average

    def powers(m):
        return total(N, lambda r: q[r] ** m)

    def centring(one, other):
        return delta(one, other) - 1 / N

    two, three, four, five, six = (powers(m) for m in range(2, 7))
    x_hat = q[k] / sqrt(mean(N, lambda r: q[r] ** 2))
    sixth = "\n".join(
        (
            r"$24 \Sigma q^6 = 8 (\Sigma q^3)^2$",
            r"$+ 18 \Sigma q^2 \Sigma q^4$",
            r"$- 3 (\Sigma q^2)^3$",
        )
    )
    twice = total(N, lambda r: centring(k, r) * centring(r, j))
    layer = equation("ln-proj-jacobian")
    return (
        Claim(
            r"$\partial \hat{x}_k / \partial x_j = 0$",
            Partial(x_hat, x[j]),
            S.Zero,
            row,
            no_value_at_one=True,
        ),
        Claim(r"$\Sigma q^3 = 0$", three, S.Zero, row),
        Claim(r"$2 \Sigma q^4 = (\Sigma q^2)^2$", 2 * four, two**2, row),
        Claim(
            r"$6 \Sigma q^5 = 5 \Sigma q^2 \Sigma q^3$", 6 * five, 5 * two * three, row
        ),
        Claim(sixth, 24 * six, 18 * two * four + 8 * three**2 - 3 * two**3, row),
        Claim(r"$\Sigma q = 0$", powers(1), S.Zero, row),
        Claim(r"$C\,C = C$", twice, centring(k, j), row),
        Claim(
            r"$J = \mathrm{rstd}\,(C - \hat{x}\,\hat{x}^{T}/N)$",
            layer.chain[0],
            layer.chain[-1],
            layer.defs,
        ),
    )


def sizes() -> None:
    """Which claim holds at which N, entry by entry, and what `prove` says of it."""
    _, axes = plt.subplots(figsize=(4.9, 4.9))
    for down, claim in enumerate(_claims()):
        marks = [claim.holds(size) for size in SIZES]
        for across, good in enumerate(marks):
            color, mark = MARKS[good]
            axes.add_patch(
                plt.Rectangle((across, -down), 0.94, 0.94, color=color, alpha=0.3)
            )
            axes.text(
                across + 0.47, 0.45 - down, mark, ha="center", va="center", fontsize=11
            )
        said = claim.verdict()
        assert (said == "proved") == all(mark is not False for mark in marks), (
            claim.text,
            said,
            marks,
        )
        color = GREEN if said == "proved" else "black"
        axes.text(6.2, 0.45 - down, said, va="center", fontsize=10, color=color)
        axes.text(-0.2, 0.45 - down, claim.text, ha="right", va="center", fontsize=10)
    for size in SIZES:
        axes.text(size - 0.53, 1.15, size, ha="center", fontsize=10)
    axes.text(-0.2, 1.15, "N =", ha="right", fontsize=10)
    axes.text(6.2, 1.15, "every N", fontsize=10)
    axes.set(xlim=(-4.9, 8.6), ylim=(-7.1, 1.6), frame_on=False, xticks=[], yticks=[])


BOXES = {
    "claim": (3, 9, "claim: left = right", GREY),
    "left rules": (1.5, 7.5, "left: definitions in,\nR1 R2 differentiate", BLUE),
    "right rules": (4.5, 7.5, "right: definitions in,\nR1 R2 differentiate", BLUE),
    "left form": (1.5, 5.9, "R3 ... R7\nnormal form", BLUE),
    "right form": (4.5, 5.9, "R3 ... R7\nnormal form", BLUE),
    "difference": (
        3,
        4.4,
        "left $-$ right, R8 clear\ndenominators: a polynomial",
        BLUE,
    ),
    "proved": (0.9, 2.4, "proved\nfor every N", GREEN),
    "witness": (4.2, 2.6, "second witness:\nsums written out, N = 2, 3, 1, 4", ORANGE),
    "refuted": (2.9, 0.6, "refuted,\nwith a point", ORANGE),
    "undecided": (5.2, 0.6, "undecided", GREY),
}
ARROWS = (
    ("claim", "left rules", ""),
    ("claim", "right rules", ""),
    ("left rules", "left form", ""),
    ("right rules", "right form", ""),
    ("left form", "difference", ""),
    ("right form", "difference", ""),
    ("difference", "proved", "0"),
    ("difference", "witness", "not 0"),
    ("witness", "refuted", "point found"),
    ("witness", "undecided", "none"),
)


def kernel() -> None:
    """How a claim becomes proved, refuted or undecided."""
    _, axes = plt.subplots(figsize=(5, 5.8))
    for start, end, text in ARROWS:
        (x0, y0), (x1, y1) = BOXES[start][:2], BOXES[end][:2]
        line = {"arrowstyle": "-|>", "color": GREY, "lw": 1.4}
        axes.annotate("", (x1, y1 + 0.47), (x0, y0 - 0.47), arrowprops=line)
        side, offset = ("right", -0.15) if x1 < x0 else ("left", 0.15)
        axes.text(
            (x0 + x1) / 2 + offset,
            (y0 + y1) / 2,
            text,
            ha=side,
            va="center",
            fontsize=11,
        )
    for across, up, text, color in BOXES.values():
        frame = {"boxstyle": "round,pad=0.45", "fc": "white", "ec": color, "lw": 2}
        axes.text(
            across,
            up,
            text,
            ha="center",
            va="center",
            fontsize=11,
            linespacing=1.35,
            bbox=frame,
        )
    axes.set(xlim=(-0.4, 6.4), ylim=(0, 9.5), frame_on=False, xticks=[], yticks=[])
