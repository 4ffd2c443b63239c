"""Figures of LayerNorm with eps outside the root: two layers against the spread of the row."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, ORANGE

EPS = 1.0


def two_layers() -> None:
    """The size of the normalized row, and the factor in the last term of the Jacobian, for both places of eps."""
    sigma = np.geomspace(0.05, 20, 200)
    figure, (size, factor) = plt.subplots(1, 2, figsize=(8.4, 3.2))
    size.plot(sigma, sigma / np.sqrt(sigma**2 + EPS), color=BLUE, lw=2, label="inside")
    size.plot(sigma, sigma / (sigma + EPS), color=ORANGE, lw=2, label="outside")
    size.set(
        xscale="log",
        ylim=(0, 1.05),
        xlabel=r"spread $\sigma$ of the row",
        title="size of the normalized row",
    )
    size.legend(frameon=False)
    factor.plot(sigma, np.ones_like(sigma), color=BLUE, lw=2)
    factor.plot(sigma, (sigma + EPS) / sigma, color=ORANGE, lw=2)
    factor.set(
        xscale="log",
        yscale="log",
        xlabel=r"spread $\sigma$ of the row",
        title="factor in the last term",
    )
    for axis in (size, factor):
        axis.spines[["top", "right"]].set_visible(False)
