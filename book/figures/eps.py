"""Figures of the chapters on eps: layers that agree on one row, the atlas of placements, where NaN comes from."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE

COLOURS = {"inside": BLUE, "outside": ORANGE, "clamp": GREEN}
DASHES = {"inside": "-", "outside": "-", "clamp": "--"}
FACES = {"NaN": ORANGE, "wrong": "#bbbbbb", "ok": "white"}


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


def outcomes(found) -> None:
    """A table of words, the upper half of a field for the value and the lower half for the gradient.

    Args:  found: {(line, kind of row): (word of the value, word of the gradient)}, words as in FACES
    """
    lines = list(dict.fromkeys(line for line, _ in found))
    kinds = list(dict.fromkeys(kind for _, kind in found))
    _, axes = plt.subplots(figsize=(5, 0.5 + 0.56 * len(lines)))
    for (line, kind), words in found.items():
        left, top = kinds.index(kind), -lines.index(line)
        for half, word in enumerate(words):
            corner = left, top - half / 2 - 0.5
            axes.add_patch(
                plt.Rectangle(corner, 1, 0.5, facecolor=FACES[word], edgecolor=GREY)
            )
            colour = "white" if word == "NaN" else "black"
            axes.text(
                left + 0.5,
                top - half / 2 - 0.26,
                word,
                ha="center",
                va="center",
                fontsize=10,
                color=colour,
            )
    for place, line in enumerate(lines):
        axes.text(-0.1, -place - 0.5, line, ha="right", va="center", fontsize=11)
    for place, kind in enumerate(kinds):
        axes.text(place + 0.5, 0.15, kind, ha="center", fontsize=11)
    axes.set(xlim=(-1.5, len(kinds) + 0.05), ylim=(-len(lines) - 0.1, 0.6))
    axes.axis("off")


def tell() -> None:
    """D / D(0) against the size of the row, with the values at s = D(0) that tell the places apart."""
    _, axes = plt.subplots(figsize=(5.6, 3.4))
    line = np.linspace(0, 3, 301)
    for place, colour in COLOURS.items():
        axes.plot(
            line,
            denominator(line, 1, place),
            color=colour,
            lw=2,
            ls=DASHES[place],
            label=place,
        )
        axes.plot(1, denominator(1.0, 1, place), "o", color=colour, zorder=5)
    axes.set(xlabel="$s / D(0)$", ylabel="$D(s) / D(0)$", xlim=(0, 3), ylim=(0, 4.1))
    axes.legend(frameon=False)
