"""Figures of LayerNorm as two projections: the Jacobian of one row and its eigenvalues."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, ORANGE


def spectrum(J, rstd, eps) -> None:
    """J / rstd as a heat map, and its eigenvalues. Args: J (N, N): a Jacobian; rstd, eps: those of its row"""
    N = len(J)
    values = np.linalg.eigvalsh((J + J.T) / 2 / rstd)
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.1))
    picture = left.imshow(J / rstd, cmap="RdBu_r", vmin=-1, vmax=1)
    figure.colorbar(picture, ax=left, shrink=0.8)
    left.set(
        title=r"$J_{kj}$ / rstd",
        xticks=[],
        yticks=[],
        xlabel="input $j$",
        ylabel="output $k$",
    )
    right.axhline(eps * rstd**2, ls="--", color=ORANGE)
    right.plot(range(1, N + 1), values, "o", color=BLUE, ms=8)
    right.set(title="eigenvalues", xlabel="number", ylim=(-0.1, 1.1))
    right.spines[["top", "right"]].set_visible(False)
