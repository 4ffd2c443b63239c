"""The figure of the page on proofs: how a claim becomes proved, refuted or undecided."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREEN, GREY, ORANGE

BOXES = {
    "claim": (3, 9, "claim: left = right", GREY),
    "left rules": (1.5, 7.5, "left: formulas in,\ndifferentiate", BLUE),
    "right rules": (4.5, 7.5, "right: formulas in,\ndifferentiate", BLUE),
    "left form": (1.5, 5.9, "multiply out, contract:\nnormal form", BLUE),
    "right form": (4.5, 5.9, "multiply out, contract:\nnormal form", BLUE),
    "difference": (
        3,
        4.4,
        "left $-$ right, clear\ndenominators: a polynomial",
        BLUE,
    ),
    "proved": (0.9, 2.4, "proved\nfor every N", GREEN),
    "witness": (4.2, 2.6, "second program:\nsums written out, N = 2, 3, 1, 4", ORANGE),
    "refuted": (2.9, 0.6, "refuted,\nwith a counterexample", ORANGE),
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
    ("witness", "refuted", "found"),
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
