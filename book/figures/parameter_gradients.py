"""Figures of the chapter on parameter gradients: two directions of a matrix, schedules, errors of sums, atomics."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREY, ORANGE


def _cell(axes, corner, width, height, color):
    axes.add_patch(
        plt.Rectangle(
            corner, width, height, facecolor=color, edgecolor=GREY, alpha=0.75, lw=0.8
        )
    )


def _arrow(axes, start, end, color):
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2}
    )


def directions(row: int = 2, column: int = 5) -> None:
    """A matrix of 6 rows and 8 columns with a row and a column coloured; below, the same entries in memory."""
    _, axes = plt.subplots(figsize=(6.4, 4.1))
    for i, j in np.ndindex(6, 8):
        color = ORANGE if j == column else BLUE if i == row else "white"
        _cell(axes, (j, -i - 1), 1, 1, color)
        _cell(axes, ((8 * i + j) * 0.29, -9.1), 0.29, 0.8, color)
    axes.add_patch(
        plt.Rectangle((column + 0.5, -row - 1), 0.5, 1, facecolor=BLUE, alpha=0.75)
    )
    _arrow(axes, (8.1, -row - 0.5), (10.2, -row - 0.5), BLUE)
    _arrow(axes, (column + 0.5, -6.1), (column + 0.5, -7.2), ORANGE)
    axes.text(10.3, -row - 0.5, r"row of $\mathrm{dx}$", color=BLUE, va="center")
    axes.text(3.9, 0.35, r"$\mathrm{dy}$", ha="center")
    axes.text(
        column + 0.8,
        -6.95,
        r"an entry of $\mathrm{dw}$ and of $\mathrm{db}$",
        color=ORANGE,
        va="center",
    )
    axes.text(0, -8.0, "in memory", color=GREY)
    axes.set(xlim=(-0.2, 14.2), ylim=(-9.4, 0.9), frame_on=False, xticks=[], yticks=[])


def schedules(matrices: dict[str, np.ndarray]) -> None:
    """Matrices of shares by their titles, one below the other, each with the sums of its columns."""
    heights = [len(matrix) + 1 for matrix in matrices.values()]
    _, panels = plt.subplots(
        len(matrices), 1, figsize=(5.4, 6.4), height_ratios=heights
    )
    for axes, (title, matrix) in zip(panels, matrices.items(), strict=True):
        for (g, i), share in np.ndenumerate(matrix):
            axes.add_patch(
                plt.Rectangle(
                    (i, -g - 1),
                    1,
                    1,
                    facecolor=BLUE if share else "white",
                    edgecolor=GREY,
                )
            )
        bottom = -len(matrix) - 0.6
        for i, share in enumerate(matrix.sum(0)):
            axes.text(
                i + 0.5, bottom, str(share), ha="center", va="center", color=ORANGE
            )
        axes.text(matrix.shape[1] + 0.3, bottom, "sums", va="center", color=ORANGE)
        limits = {"xlim": (-0.1, matrix.shape[1] + 2.2), "ylim": (bottom - 0.6, 0.1)}
        axes.set(
            title=title,
            ylabel="program $g$",
            aspect="equal",
            frame_on=False,
            xticks=[],
            yticks=[],
            **limits,
        )
    panels[-1].set_xlabel("row $i$ of the batch")
