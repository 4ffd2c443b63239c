"""Figures of LayerNorm: a row in bars; rows in space, centred, scaled to a circle, stretched to an ellipse."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from normgrad import LAYER_NORM, numpy_ref

from .style import BLUE, GREEN, GREY, ORANGE, arrow

PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt(
    [[2], [6]]
)  # two unit vectors across (1, 1, 1)
WEIGHT, BIAS = np.array([1.5, -0.6, 1.0]), np.array([0.3, 2.2, 1.2])
SPEC = LAYER_NORM.replace(eps=0.05)


def in_bars(x_row, x_hat_row, dy_row, dx_row) -> None:
    """A row before and after the forward, and the two slopes of the backward, as bars with their numbers."""
    shown = {
        "$x$": (x_row, GREY),
        r"$\hat{x}$": (x_hat_row, BLUE),
        "dy": (dy_row, ORANGE),
        "dx": (dx_row, GREEN),
    }
    figure, places = plt.subplots(1, len(shown), figsize=(7.8, 1.5), sharey=True)
    for axes, (name, (row, color)) in zip(places, shown.items(), strict=True):
        bars = axes.bar(range(len(row)), row, color=color)
        axes.bar_label(bars, [f"{number:g}" for number in row], padding=2, fontsize=11)
        axes.axhline(0, color="black", lw=0.8)
        axes.set(title=name, xticks=[], yticks=[], ylim=(-1.8, 2.9))
        axes.spines[:].set_visible(False)


def _rows():
    turn, radius = (
        np.linspace(0, 2 * np.pi, 15),
        np.tile([0.25, 1.1, 2.3, 3.2], 4)[:15, None],
    )
    offsets = np.random.default_rng(8).uniform(-1.5, 1.5, (15, 1))
    return radius * np.stack([np.cos(turn), np.sin(turn)], 1) @ PLANE + offsets


def _in_space(axes, rows, circle):
    axes.plot(*(circle @ PLANE).T, color=BLUE, lw=2.5, label=r"$\hat{x}$: a circle")
    axes.plot(
        *(circle @ PLANE * WEIGHT + BIAS).T,
        color=ORANGE,
        lw=2.5,
        label="$y$: an ellipse",
    )
    axes.plot(*np.outer([1, 1, 1], [-2, 2]), ":", color="black", label="(1, 1, 1)")
    axes.scatter(*rows.T, color="grey", s=18, label="rows $x$", depthshade=False)
    axes.legend(loc="upper left", fontsize=10, frameon=False)
    axes.view_init(20, -20)
    axes.set(xticks=[], yticks=[], zticks=[], xlabel="$x_1$", ylabel="$x_2$")
    axes.set_zlabel("$x_3$", labelpad=-14)


def _in_the_plane(axes, rows, x_hat, circle):
    for start, end in zip(rows @ PLANE.T, x_hat @ PLANE.T, strict=True):
        arrow(axes, end, start)
        axes.plot(*start, "o", mfc="white", color="black")
        axes.plot(*end, "o", color=BLUE)
    axes.plot(*circle.T, color=BLUE, lw=2)
    axes.set(aspect="equal", xlabel="along $(1, -1, 0)$", ylabel="along $(1, 1, -2)$")


def geometry() -> None:
    """Left, in space: rows, the circle of normalized rows, the ellipse of outputs. Right: the plane of centred rows."""
    rows, around = _rows(), np.linspace(0, 2 * np.pi, 200)
    circle = np.sqrt(3) * np.stack([np.cos(around), np.sin(around)], 1)
    figure = plt.figure(figsize=(7.8, 3.8))
    _in_space(figure.add_subplot(1, 2, 1, projection="3d"), rows, circle)
    _in_the_plane(
        figure.add_subplot(1, 2, 2), rows, numpy_ref.forward(rows, spec=SPEC).y, circle
    )
