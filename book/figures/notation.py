"""Figures of the page on notation: what there is one of per entry, row and column; two paths through the mean."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE, arrow


def shapes() -> None:
    """The matrix x, what there is one of per column above and below it, and what there is one of per row beside it."""
    _, axes = plt.subplots(figsize=(5.8, 3.4))
    _grid(axes, (0, 3.0), (3, 5), GREY, (1, 3), "$x_{ij}$")
    _grid(axes, (0, 4.7), (1, 5), GREEN, (0, 3), "$w_j$")
    _grid(axes, (7.6, 3.0), (3, 1), BLUE, (1, 0), "")
    _grid(axes, (0, -0.9), (1, 5), ORANGE, (0, 3), r"$\mathrm{db}_j$")
    arrow(axes, (7.5, 1.5), (5.1, 1.5), BLUE, lw=1.6)
    arrow(axes, (3.5, -0.8), (3.5, 0.9), ORANGE, lw=1.6)
    axes.text(6.3, 1.8, "sum over $r$", ha="center", color=BLUE, fontsize=11)
    axes.text(6.3, 1.0, "axis $-1$", ha="center", color=BLUE, fontsize=11)
    axes.text(
        3.8, -0.45, "sum over $i$, axis 0", va="center", color=ORANGE, fontsize=11
    )
    axes.text(8.8, 1.5, "mean, rstd\n(M,)", va="center", color=BLUE, fontsize=11)
    left = {"ha": "right", "va": "center", "fontsize": 11}
    axes.text(-0.2, 4.2, "weight, bias\n(N,)", color=GREEN, **left)
    axes.text(-0.2, 1.5, "x, y, dy,\ndx, x_hat\n(M, N)", color=GREY, **left)
    axes.text(-0.2, -1.4, "dw, db\n(N,)", color=ORANGE, **left)
    axes.set(xlim=(-3.4, 11.3), ylim=(-2, 4.8), aspect="equal")
    axes.axis("off")


def _grid(axes, corner, size_of, color, marked, text):
    left, top = corner
    for down, across in np.ndindex(size_of):
        face = color + "44" if (down, across) == marked else "white"
        axes.add_patch(
            plt.Rectangle(
                (left + across, top - down - 1), 1, 1, facecolor=face, edgecolor=color
            )
        )
    down, across = marked
    axes.text(
        left + across + 0.5,
        top - down - 0.5,
        text,
        ha="center",
        va="center",
    )


def two_paths() -> None:
    """From x_k to q_j: straight, and through the mean."""
    _, axes = plt.subplots(figsize=(6, 2.6))
    places = {"$x_k$": (0, 1.4), "mean": (2.6, 0), "$q_j$": (5.2, 1.4)}
    gaps = {"lw": 1.6, "shrinkA": 22, "shrinkB": 22}
    for start, end, color in (
        ("$x_k$", "$q_j$", BLUE),
        ("$x_k$", "mean", ORANGE),
        ("mean", "$q_j$", ORANGE),
    ):
        arrow(axes, places[end], places[start], color, **gaps)
    for name, place in places.items():
        axes.text(
            *place,
            name,
            ha="center",
            va="center",
            bbox={"boxstyle": "round", "fc": "white", "ec": GREY},
        )
    axes.text(2.6, 1.55, r"$\delta_{jk}$  (mean held fixed)", ha="center", color=BLUE)
    axes.text(0.95, 0.3, "$1/N$", ha="center", color=ORANGE)
    axes.text(4.25, 0.3, "$-1$", ha="center", color=ORANGE)
    axes.set(xlim=(-0.6, 5.8), ylim=(-0.4, 1.9))
    axes.axis("off")
