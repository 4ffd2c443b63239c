"""Figures of the page on the contract of this build."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from . import style


def fractions(table, backends, specs):
    """The largest error of each backend (across) on each spec (down), as a fraction of its bound.

    Args:  table: a row a backend, a column a spec
    """
    style.use()
    figure, axes = plt.subplots(figsize=(5, 4.6))
    axes.imshow(table.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(backends)), backends, fontsize=11)
    axes.set_yticks(
        range(len(specs)), [name.replace("_", " ") for name in specs], fontsize=11
    )
    axes.tick_params(length=0, top=True, labeltop=True, labelbottom=False)
    for (across, down), value in np.ndenumerate(table):
        axes.text(
            across,
            down,
            f"{value:.3f}" if value else "0",
            ha="center",
            va="center",
            fontsize=11,
        )
    return figure
