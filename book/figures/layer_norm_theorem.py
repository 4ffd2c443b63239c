"""Figures of LayerNorm's theorem: what is taken from a cotangent, term by term."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE


def terms(wdy, x_hat) -> None:
    """wdy, the two terms that are subtracted, and what is left, as bars. Args: wdy, x_hat (N,): of one row"""
    c1, c2 = np.mean(x_hat * wdy), np.mean(wdy)
    panels = {
        "wdy": (wdy, GREY),
        "\N{MINUS SIGN} $c_2$": (np.full_like(wdy, c2), ORANGE),
        "\N{MINUS SIGN} $\\hat{x} \\; c_1$": (x_hat * c1, GREEN),
        "= dx / rstd": (wdy - c2 - x_hat * c1, BLUE),
    }
    figure, axes = plt.subplots(2, 2, figsize=(6.2, 4.4), sharey=True)
    for axis, (title, (values, color)) in zip(axes.flat, panels.items(), strict=True):
        axis.bar(range(1, len(values) + 1), values, color=color)
        axis.axhline(0, color="black", lw=0.8)
        axis.set(title=title, xticks=range(1, len(values) + 1), xlabel="column $j$")
        axis.spines[["top", "right"]].set_visible(False)
