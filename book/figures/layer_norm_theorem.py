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
        "$c_2$": (np.full_like(wdy, c2), ORANGE),
        r"$\hat{x} \; c_1$": (x_hat * c1, GREEN),
        "dx / rstd": (wdy - c2 - x_hat * c1, BLUE),
    }
    figure, axes = plt.subplots(1, 4, figsize=(9.4, 2.5), sharey=True)
    signs = ("", "\N{MINUS SIGN}", "\N{MINUS SIGN}", "=")
    for axis, sign, (title, (values, color)) in zip(
        axes, signs, panels.items(), strict=True
    ):
        axis.bar(range(1, len(values) + 1), values, color=color)
        axis.axhline(0, color="black", lw=0.8)
        axis.set(title=title, xticks=range(1, len(values) + 1), xlabel="column $j$")
        axis.text(
            -0.14,
            0.5,
            sign,
            transform=axis.transAxes,
            ha="center",
            va="center",
            fontsize=18,
        )
        axis.spines[["top", "right"]].set_visible(False)
