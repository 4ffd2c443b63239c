"""Figures of the chapters on eps: layers that agree on one row, and the gains of the placements."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, ORANGE

COLOURS = {"inside": BLUE, "outside": ORANGE, "clamp": GREEN}
DASHES = {"inside": "-", "outside": "-", "clamp": "--"}


def denominator(s, eps, place):
    """D(s) of a placement."""
    return {
        "inside": np.sqrt(s**2 + eps),
        "outside": s + eps,
        "clamp": np.maximum(s, eps),
    }[place]


def slope(s, eps, place):
    """D'(s) of a placement; at its corner the clamp has the slope of the floor."""
    return {
        "inside": s / np.sqrt(s**2 + eps),
        "outside": np.ones_like(s),
        "clamp": (s > eps) * 1.0,
    }[place]


def crossing(s, places) -> None:
    """The size of the output against the size of the row, for layers that agree at one size.

    Args:  s: that size; places: the eps of each placement
    """
    _, axes = plt.subplots(figsize=(5.6, 3.5))
    line = np.linspace(0, 3 * s, 301)
    for place, eps in places.items():
        style = {
            "color": COLOURS[place],
            "lw": 2,
            "ls": DASHES[place],
            "label": f"{place}, eps = {eps}",
        }
        axes.plot(line, line / denominator(line, eps, place), **style)
    axes.plot(
        s, s / denominator(s, places["inside"], "inside"), "o", color="black", zorder=5
    )
    axes.set(
        xlabel="size $s$ of the row",
        ylabel="size $s / D(s)$ of the output",
        xlim=(0, 3 * s),
        ylim=(0, 1.05),
    )
    axes.legend(frameon=False)


def atlas() -> None:
    """kappa and the gains across and along the row against its size, in units of D(0)."""
    s = np.geomspace(1e-2, 1e2, 400)
    _, panels = plt.subplots(3, 1, figsize=(5.6, 7), sharex=True)
    for place, colour in COLOURS.items():
        below, rising = denominator(s, 1, place), slope(s, 1, place)
        along = 1 - s * rising / below
        lines = (
            below * rising / s,
            1 / below,
            np.where(along > 0, along / below, np.nan),
        )
        for panel, line in zip(panels, lines, strict=True):
            panel.plot(s, line, color=colour, lw=2, label=place, ls=DASHES[place])
    panels[0].set(xscale="log", ylim=(-0.2, 5), ylabel=r"$\kappa$")
    panels[0].legend(frameon=False)
    panels[1].set(yscale="log", ylabel="gain across")
    panels[2].set(
        yscale="log", ylim=(1e-7, 3), ylabel="gain along", xlabel="$s / D(0)$"
    )
