"""The figure of LayerNorm for N = 3: rows on their way forward, and the two projections of a cotangent."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE, arrow

PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt(
    [[2], [6]]
)  # two unit vectors orthogonal to (1, 1, 1)
ANGLES = np.linspace(0, 2 * np.pi, 200)
CIRCLE = np.sqrt(3) * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)  # in the plane
ROWS = np.array([[1.9, 0.9, 1.2], [-0.3, 1.0, -2.4], [-1.5, 0.9, 2.4]])
X_HAT = np.sqrt(3) * np.array(
    [np.cos(np.radians(50)), np.sin(np.radians(50))]
)  # in the plane
CENTRED_WDY = np.array([-1.05, 1.75])  # wdy - c2, in the plane


def _forward(axes):
    q = ROWS - ROWS.mean(axis=1, keepdims=True)
    x_hat = q / np.sqrt((q**2).mean(axis=1, keepdims=True))
    axes.plot_trisurf(*(1.5 * CIRCLE @ PLANE).T, color=GREY, alpha=0.12, linewidth=0)
    axes.plot(*(CIRCLE @ PLANE).T, color=BLUE, lw=2.2)
    axes.plot(*np.full((3, 2), [-1.7, 1.7]), ":", color="black", lw=1.2)
    axes.text(1.75, 1.75, 1.85, "(1, 1, 1)", fontsize=12)
    for start, centred, end in zip(ROWS, q, x_hat, strict=True):
        axes.plot(*np.stack([start, centred]).T, "--", color=ORANGE, lw=1.4)
        axes.plot(*np.stack([centred, end]).T, "-", color=GREEN, lw=1.4)
    axes.scatter(
        *ROWS.T,
        marker="o",
        s=26,
        color="black",
        facecolor="white",
        depthshade=False,
        label="$x$",
    )
    axes.scatter(
        *q.T,
        marker="s",
        s=26,
        color="black",
        facecolor="white",
        depthshade=False,
        label="$q$",
    )
    axes.scatter(
        *x_hat.T, marker="o", s=26, color=BLUE, depthshade=False, label=r"$\hat{x}$"
    )
    axes.legend(
        loc="lower left",
        fontsize=12,
        frameon=False,
        ncols=3,
        columnspacing=0.8,
        handletextpad=0.1,
    )
    axes.view_init(18, -28)
    axes.set_box_aspect((1, 1, 1), zoom=1.25)
    axes.set(title="Forward")
    axes.set_axis_off()


def _backward(axes):
    along = X_HAT * (X_HAT @ CENTRED_WDY) / 3
    dx = CENTRED_WDY - along
    axes.plot(*CIRCLE.T, color=BLUE, lw=2.2)
    axes.plot(*np.outer(X_HAT / np.sqrt(3), [0, 1.95]), ":", color="black", lw=1.2)
    axes.plot(*X_HAT, "o", color=BLUE)
    axes.plot(*np.stack([X_HAT + CENTRED_WDY, X_HAT + dx]).T, "--", color=GREY, lw=1)
    axes.annotate(r"$\hat{x}$", X_HAT, (14, -10), textcoords="offset points")
    for vector, color, label, offset in (
        (CENTRED_WDY, ORANGE, r"$\mathrm{wdy} - c_2$", (-10, 6)),
        (along, GREY, r"$\hat{x}\, c_1$", (6, 0)),
        (dx, GREEN, r"$\mathrm{dx} / \mathrm{rstd}$", (-72, 0)),
    ):
        arrow(axes, X_HAT + vector, X_HAT, color, lw=2)
        axes.annotate(
            label, X_HAT + vector, offset, textcoords="offset points", color=color
        )
    axes.set(
        aspect="equal",
        xlim=(-2.4, 2.9),
        ylim=(-2.0, 3.5),
        title="Backward, seen along (1, 1, 1)",
    )
    axes.set_axis_off()


def two_projections() -> None:
    """Left: rows are centred and scaled to a circle. Right: what is left of a cotangent is tangent to the circle."""
    figure = plt.figure(figsize=(6.2, 3.6))
    _forward(figure.add_subplot(1, 2, 1, projection="3d"))
    _backward(figure.add_subplot(1, 2, 2))
