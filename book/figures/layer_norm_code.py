"""Figures of LayerNorm in code: what is kept between the forward and the backward pass."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREY, ORANGE


def kept(functions) -> None:
    """Numbers kept by each function, tensor by tensor. Args: functions: {title: {tensor: (numbers, whether used)}}"""
    figure, axes = plt.subplots(figsize=(6.4, 0.7 + 0.65 * len(functions)))
    for place, tensors in enumerate(functions.values()):
        left = 0
        for name, (numbers, used) in tensors.items():
            axes.barh(
                place,
                numbers,
                left=left,
                height=0.6,
                color=BLUE if used else ORANGE,
                edgecolor="white",
            )
            if numbers > 4000:
                axes.text(
                    left + numbers / 2,
                    place,
                    name,
                    ha="center",
                    va="center",
                    color="white",
                )
            left += numbers
    axes.set(yticks=range(len(functions)), yticklabels=functions, xlabel="numbers kept")
    axes.set_ylim(len(functions) - 0.5, -0.5)
    axes.barh(0, 0, color=BLUE, label="used by the backward pass")
    axes.barh(0, 0, color=ORANGE, label="kept for nothing")
    axes.legend(frameon=False, loc="lower right")
    axes.axvline(0, color=GREY, lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
