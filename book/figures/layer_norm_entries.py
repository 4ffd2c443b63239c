"""Figures of LayerNorm, entry by entry: the three roads from an input to an output, as matrices."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np


def roads(x_hat) -> None:
    """The Jacobian over rstd as a sum of three matrices, one a road. Args: x_hat (N,): a normalized row"""
    N = len(x_hat)
    direct, by_mean, by_rstd = (
        np.eye(N),
        -np.ones((N, N)) / N,
        -np.outer(x_hat, x_hat) / N,
    )
    panels = {
        "direct": direct,
        "through the mean": by_mean,
        "through rstd": by_rstd,
        "the Jacobian / rstd": direct + by_mean + by_rstd,
    }
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.9))
    for axis, sign, (title, matrix) in zip(
        axes, ("", "+", "+", "="), panels.items(), strict=True
    ):
        picture = axis.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        axis.set(xticks=[], yticks=[], xlabel="input $j$")
        axis.set_title(title, fontsize=12)
        axis.text(
            -0.16,
            0.5,
            sign,
            transform=axis.transAxes,
            ha="center",
            va="center",
            fontsize=18,
        )
    axes[0].set_ylabel("output $k$", labelpad=14)
    figure.colorbar(picture, ax=axes, shrink=0.75)
