"""Figure of the gallery: what a stride reads."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, ORANGE


def strides() -> None:
    """Twelve cells of memory that hold a transposed dy, and the four that are read for row 1: rightly, and wrongly."""
    dy = np.arange(12).reshape(4, 3).T  # the cell of each entry
    figure, axes = plt.subplots(figsize=(4.6, 1.7))
    for height, cells, color in ((1, dy[1], BLUE), (0, np.arange(4, 8), ORANGE)):
        for cell in range(12):
            (row,), (column,) = np.nonzero(dy == cell)
            fill, ink = (color, "white") if cell in cells else ("#EBEBEB", "#4D4D4D")
            axes.add_patch(plt.Rectangle((cell, height), 0.92, 0.6, facecolor=fill))
            axes.text(
                cell + 0.46,
                height + 0.3,
                f"{row},{column}",
                ha="center",
                va="center",
                color=ink,
            )
    axes.set(xlim=(-0.1, 12), ylim=(-0.1, 1.7))
    axes.axis("off")
