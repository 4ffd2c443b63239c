"""Figures of the gallery: how far two tests are from their limits, and what a stride reads."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREY, ORANGE

EDGES = 1e-13, 1e17


def ratios(pairs) -> None:
    """For each bug two dots: the largest error that a test saw over the error that it allows.

    Args:  pairs: {name of a bug: (the usual test, our check)}; 0 and infinity are drawn at the edges
    """
    usual, ours = np.clip(list(pairs.values()), *EDGES).T
    heights = np.arange(len(pairs))
    figure, axes = plt.subplots(figsize=(4.6, 5.2))
    axes.hlines(heights, usual, ours, color="#D9D9D9", zorder=0)
    axes.scatter(usual, heights, color=GREY, label="usual test")
    axes.scatter(ours, heights, color=BLUE, label="our check")
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="largest error / allowed error", yticks=heights, yticklabels=pairs)
    axes.set_xticks([1e-12, 1, 1e12])
    axes.spines[["top", "right"]].set_visible(False)
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.12), ncols=2, frameon=False)


def strides() -> None:
    """Twelve cells of memory that hold a transposed dy, and the four that are read for row 1: rightly, and wrongly."""
    dy = np.arange(12).reshape(4, 3).T  # the cell of each entry
    figure, axes = plt.subplots(figsize=(4.6, 1.7))
    for height, cells, color in ((1, dy[1], BLUE), (0, np.arange(4, 8), ORANGE)):
        for cell in range(12):
            (row,), (column,) = np.nonzero(dy == cell)
            fill, ink = (color, "white") if cell in cells else ("#EBEBEB", "#4D4D4D")
            axes.add_patch(plt.Rectangle((cell, height), 0.92, 0.6, facecolor=fill))
            axes.text(cell + 0.46, height + 0.3, f"{row},{column}", ha="center", va="center", color=ink)
    axes.set(xlim=(-0.1, 12), ylim=(-0.1, 1.7))
    axes.axis("off")
