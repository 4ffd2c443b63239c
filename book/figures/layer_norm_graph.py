"""Figures of LayerNorm through its graph: quantities forward, cotangents backward."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, ORANGE

PLACES = {"x": (0, 0), "mean": (1.3, 1), "q": (2.6, 0), "v": (3.5, 1), "D": (5.7, 1), "y": (6.7, 0), "L": (8.4, 0),
          "w": (5.5, -1), "b": (7.2, -1)}  # fmt: skip
LOCAL = {("x", "mean"): "1/N", ("x", "q"): "1", ("mean", "q"): "-1", ("q", "v"): "2q/N", ("v", "D"): "1/(2D)",
         ("D", "y"): "-qw/D^2", ("q", "y"): "w/D", ("w", "y"): "q/D", ("b", "y"): "1",
         ("y", "L"): r"\mathrm{dy}"}  # fmt: skip
TWO_CONSUMERS = "xq"


def _arrow(axes, start, end, color, slope=""):
    style = {
        "arrowstyle": "-|>",
        "color": color,
        "lw": 1.8,
        "shrinkA": 19,
        "shrinkB": 19,
    }
    axes.annotate("", end, start, arrowprops=style)
    if slope:
        box = {"fc": "white", "ec": "none", "pad": 1}
        axes.text(
            *(np.add(start, end) / 2),
            f"${slope}$",
            ha="center",
            va="center",
            fontsize=12,
            bbox=box,
        )


def _node(axes, name, backward, color):
    cotangent = "1" if name == "L" else rf"\mathrm{{d{name}}}"
    text = cotangent if backward else rf"\mathrm{{{name}}}"
    axes.plot(
        *PLACES[name],
        "o",
        ms=35,
        mfc="white",
        mec=color,
        mew=4 if name in TWO_CONSUMERS else 1.2,
    )
    axes.text(*PLACES[name], f"${text}$", ha="center", va="center", fontsize=12)


def both_passes() -> None:
    """The forward graph above, the backward graph with its local derivatives below."""
    figure, panels = plt.subplots(2, 1, figsize=(6.4, 6.2))
    for axes, backward, color in zip(
        panels, (False, True), (BLUE, ORANGE), strict=True
    ):
        for (start, end), slope in LOCAL.items():
            if backward:
                _arrow(axes, PLACES[end], PLACES[start], color, slope)
            else:
                _arrow(axes, PLACES[start], PLACES[end], color)
        for name in PLACES:
            _node(axes, name, backward, color)
        axes.set(xlim=(-0.5, 8.9), ylim=(-1.55, 1.6))
        axes.axis("off")
        axes.set_title(
            "backward: cotangents" if backward else "forward: quantities", loc="left"
        )
