"""Figures of the chapter on higher derivatives: a gradient that moves, slices, curvature, and what autograd sees."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE, arrow


def passes() -> None:
    """What goes into the three passes and what comes out of each: forward, backward, and the backward's backward."""
    boxes = {
        "forward": ((r"$x, w, b$", r"$y$"), BLUE),
        "backward": (
            (r"$\mathrm{dy}, x, w$", r"$\mathrm{dx}, \mathrm{dw}, \mathrm{db}$"),
            ORANGE,
        ),
        "the backward's\nbackward": (
            (
                r"$\mathrm{ddx}, \mathrm{ddw}, \mathrm{ddb}$",
                r"to $\mathrm{dy}$, to $x$, to $w$",
            ),
            GREEN,
        ),
    }
    figure, axes = plt.subplots(figsize=(6.4, 2.9))
    for place, (name, ((given, made), color)) in enumerate(boxes.items()):
        height = -1.1 * place
        box = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": color, "lw": 2}
        axes.text(3, height, name, ha="center", va="center", bbox=box)
        axes.text(0.9, height, given, ha="center", va="center", fontsize=14)
        axes.text(5.2, height, made, ha="center", va="center", fontsize=14)
        arrow(axes, (2.2, height), (1.6, height), color, lw=2)
        arrow(axes, (4.3, height), (3.8, height), color, lw=2)
    for height in (0, -1.1):
        arrow(axes, (0.9, height - 0.85), (5.0, height - 0.25), GREY, linestyle="--")
    axes.set(xlim=(-0.2, 6.4), ylim=(-2.8, 0.6))
    axes.axis("off")


PLACES = {
    "x": (0, 1),
    "rstd": (1.5, 1.9),
    "x_hat": (1.5, 0.6),
    "dx": (3.1, 1),
    "dy": (1.5, -0.7),
}
NAMES = {
    "x": "x",
    "rstd": r"\mathrm{rstd}",
    "x_hat": r"\hat{x}",
    "dx": r"\mathrm{dx}",
    "dy": r"\mathrm{dy}",
}
PATHS = ("x rstd", "x x_hat", "rstd dx", "x_hat dx", "dy dx", "rstd x_hat")
CUT = ("x rstd", "x x_hat", "rstd x_hat")


def graph() -> None:
    """What autograd sees of a backward: with the statistics computed in it, and with saved numbers."""
    figure, panels = plt.subplots(1, 2, figsize=(6.9, 3.4))
    for axis, cut in zip(panels, ((), CUT), strict=True):
        for path in PATHS:
            start, end = (np.array(PLACES[name]) for name in path.split())
            gone = path in cut
            color = ORANGE if gone else BLUE
            arrow(
                axis,
                end,
                start,
                color,
                lw=2,
                ls="--" if gone else "-",
                shrinkA=18,
                shrinkB=19,
            )
            sign = r"$\times$" if gone else ""
            axis.text(
                *(start + end) / 2,
                sign,
                color=ORANGE,
                fontsize=22,
                ha="center",
                va="center",
            )
        for name, at in PLACES.items():
            axis.plot(*at, "o", ms=36, mfc="white", mec=GREY)
            axis.text(*at, f"${NAMES[name]}$", ha="center", va="center", fontsize=13)
        axis.set(
            xlim=(-0.5, 3.6),
            ylim=(-1.2, 2.4),
            title="saved as numbers" if cut else "part of the graph",
        )
        axis.axis("off")
