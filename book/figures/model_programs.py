"""Figures of the page on what language models write: verdicts by model, and what is wrong."""

from __future__ import annotations

from textwrap import fill

import matplotlib.pyplot as plt

from . import style
from .style import BLUE, GREEN, GREY, ORANGE

FAINT = "#CCCCCC"
COLORS = {
    "proved": GREEN,
    "proved if 0": "#7FCCB9",
    "not read": GREY,
    "no program": FAINT,
    "refuted": BLUE,
    "wrong in itself": ORANGE,
}


def verdicts(counts) -> None:
    """A bar for each model, in shares of its records. Args: counts: {model: {verdict: how many}}"""
    style.use()
    figure, axes = plt.subplots(figsize=(5, 4.8))
    for height, parts in enumerate(counts.values()):
        whole, left = sum(parts.values()), 0
        for verdict, color in COLORS.items():
            share = 100 * parts.get(verdict, 0) / whole
            axes.barh(height, share, left=left, color=color)
            if parts.get(verdict):
                middle = left + share / 2
                text = str(parts[verdict])
                axes.text(middle, height, text, ha="center", va="center", fontsize=11)
            left += share
    axes.set_yticks(range(len(counts)), list(counts))
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="% of the model's records")
    there = [name for name in COLORS if any(name in parts for parts in counts.values())]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLORS[name]) for name in there]
    figure.legend(handles, there, loc="outside upper center", ncols=2, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def kinds(counts) -> None:
    """A bar for each kind of what is wrong. Args: counts: {kind: how many}"""
    style.use()
    figure, axes = plt.subplots(figsize=(5, 0.5 * len(counts) + 1.2))
    names = [fill(name, 20) for name in counts]
    for height, count in enumerate(counts.values()):
        axes.barh(height, count, color=ORANGE)
        axes.text(count + 0.2, height, str(count), va="center", fontsize=11)
    axes.set_yticks(range(len(counts)), names, fontsize=11)
    axes.invert_yaxis()
    axes.set_xlabel("programs")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
