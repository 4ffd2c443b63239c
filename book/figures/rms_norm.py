"""Figures of the chapters on RMSNorm: the sphere, the batch, the Jacobian and its eigenvalues, LayerNorm beside it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from normgrad import RMS_NORM, numpy_ref

from .style import BLUE, ORANGE, arrow

# The weights of the two panels of `geometry`, and the eps that lets short rows stop inside of the circle.
FLAT_WEIGHT, SPACE_WEIGHT, EPS = np.array([1.5, -0.6]), np.array([1.5, 1.0, -0.5]), 0.05


def _normalized(rows, spec):
    return numpy_ref.forward(np.asarray(rows), spec=spec).y


def geometry() -> None:
    """Rows of two and of three numbers on their way to the sphere, and the ellipsoid that the weight makes of it."""
    figure = plt.figure(figsize=(6.2, 3.4))
    _plane(figure.add_subplot(1, 2, 1))
    _space(figure.add_subplot(1, 2, 2, projection="3d"))


def _plane(axes):
    turn = np.linspace(0, 2 * np.pi, 13)[:-1] + 0.2
    lengths = np.tile([0.25, 0.8, 2.2, 2.9], 3)[:, None]
    rows = lengths * np.stack([np.cos(turn), np.sin(turn)], 1)
    for start, end in zip(
        rows, _normalized(rows, RMS_NORM.replace(eps=EPS)), strict=True
    ):
        arrow(axes, end, start)
        axes.plot(*start, "o", mfc="white", color="black")
        axes.plot(*end, "o", color=BLUE)
    around = np.linspace(0, 2 * np.pi, 120)
    circle = np.sqrt(2) * np.stack([np.cos(around), np.sin(around)], 1)
    axes.plot(*circle.T, color=BLUE, lw=2)
    axes.plot(*(circle * FLAT_WEIGHT).T, color=ORANGE, lw=2)
    axes.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def _space(axes):
    polar, azimuth = np.meshgrid(
        np.linspace(0, np.pi, 13), np.linspace(0, 2 * np.pi, 25)
    )
    round_about = (
        np.sin(polar) * np.cos(azimuth),
        np.sin(polar) * np.sin(azimuth),
        np.cos(polar),
    )
    ball = np.sqrt(3) * np.stack(round_about)
    ellipsoid = {"color": ORANGE, "alpha": 0.35, "edgecolor": ORANGE, "lw": 0.4}
    axes.plot_surface(
        *(ball * SPACE_WEIGHT[:, None, None]), rstride=1, cstride=1, **ellipsoid
    )
    axes.plot_wireframe(*ball, color=BLUE, lw=0.7)
    points = _normalized(np.random.default_rng(7).standard_normal((14, 3)), RMS_NORM)
    axes.scatter(*points.T, color=BLUE, s=22, depthshade=False)
    axes.set(
        xticks=[],
        yticks=[],
        zticks=[],
        xlabel="$x_1$",
        ylabel="$x_2$",
        box_aspect=(1.5, 1, 1),
    )
    axes.set(xlim=(-2.7, 2.7), ylim=(-1.8, 1.8), zlim=(-1.8, 1.8))
    axes.set_zlabel("$x_3$", labelpad=-14)
    axes.view_init(16, -62)


def batch(dy, x_hat) -> None:
    """How the entries of a batch become dw and db: products above, column sums below.

    Args:  dy, x_hat: (M, N)
    """
    panels = {
        "dy": (dy, r"$\mathrm{dy}_{ij}$"),
        "x": (x_hat, r"$\hat{x}_{ij}$"),
        "both": (dy * x_hat, r"$\mathrm{dy}_{ij} \; \hat{x}_{ij}$"),
        "db": (dy.sum(0)[None], r"$\mathrm{db}_j$"),
        "dw": ((dy * x_hat).sum(0)[None], r"$\mathrm{dw}_j$"),
    }
    layout = [["dy", "x", "both"], ["db", ".", "dw"]]
    figure, axes = plt.subplot_mosaic(layout, figsize=(6.4, 3.6), height_ratios=[5, 1])
    for name, (values, title) in panels.items():
        axes[name].imshow(values, cmap="RdBu_r", vmin=-4, vmax=4)
        axes[name].set(xticks=[], yticks=[])
        if name in ("db", "dw"):
            axes[name].set_xlabel(title, fontsize=14)
            down = {"arrowstyle": "-|>", "lw": 1.8}
            axes[name].annotate(
                "", (0.3, 1.05), (0.3, 2.1), xycoords="axes fraction", arrowprops=down
            )
            axes[name].text(
                0.36, 1.6, "sum over $i$", transform=axes[name].transAxes, va="center"
            )
        else:
            axes[name].set_title(title, fontsize=15)
    axes["dy"].set_ylabel("row $i$")
    axes["x"].set_xlabel("column $j$")
    figure.get_layout_engine().set(h_pad=0.12)
