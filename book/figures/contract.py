"""Figures of the page on the contract of this build."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from . import style


def fractions(table, backends, specs):
    """The largest error of each backend (rows) on each spec (columns), as a fraction of its bound."""
    style.use()
    figure, axes = plt.subplots(figsize=(8.4, 2.6))
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(specs)), [name.replace("_", "\n", 1).replace("_", " ") for name in specs], fontsize=7)
    axes.set_yticks(range(len(backends)), backends)
    for (row, column), value in np.ndenumerate(table):
        axes.text(column, row, f"{value:.3f}" if value else "0", ha="center", va="center", fontsize=8)
    return figure
