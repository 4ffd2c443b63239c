"""Figures of the page on training: the norm of a weight matrix by step, gradients and learning rates by depth."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREEN, GREY, ORANGE


def norms(curves: dict, predictions: dict) -> None:
    """The norm of W at every step of several runs by their labels, with the predicted norm as a dashed line."""
    _, axes = plt.subplots(figsize=(6.4, 3.6))
    colors = dict(zip(curves, (ORANGE, BLUE, GREEN), strict=True))
    for label, curve in curves.items():
        axes.plot(curve, color=colors[label], label=label, lw=1.2)
    for label, norm in predictions.items():
        axes.axhline(norm, color=colors[label], ls="--", lw=1.5)
    axes.set(xlabel="step", ylabel=r"$\|W\|$", yscale="log")
    axes.set_yticks([2, 5, 10], ["2", "5", "10"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", bbox_to_anchor=(0.12, 0.12))


def depths(depths, gradients: dict, rates: dict) -> None:
    """Gradient of the last branch and best first learning rate against the depth, one line for each place."""
    _, panels = plt.subplots(1, 2, figsize=(6.4, 3.5))
    looks = {
        "post": {"color": ORANGE, "marker": "s"},
        "pre": {"color": BLUE, "marker": "o"},
        "sandwich": {"color": GREEN, "marker": "x", "ls": ":"},
    }
    for axes, lines in zip(panels, (gradients, rates), strict=True):
        for place, look in looks.items():
            axes.plot(depths, lines[place], label=place, **look)
        axes.set(xscale="log", yscale="log", xlabel="number of branches $K$")
        axes.set_xticks(depths, [str(depth) for depth in depths])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    start = gradients["pre"][0] * (1 + depths[0]) ** 0.5
    predicted = [start / (1 + depth) ** 0.5 for depth in depths]
    panels[0].plot(
        depths, predicted, color=GREY, ls="--", zorder=0, label=r"$(1+K)^{-1/2}$"
    )
    panels[0].set_title("gradient of the last branch", fontsize=12)
    panels[0].set_yticks([1, 2, 4], ["1", "2", "4"])
    panels[0].legend()
    panels[1].set_title("best first learning rate", fontsize=12)
