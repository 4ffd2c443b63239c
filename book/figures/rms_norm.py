"""Figures of the chapters on RMSNorm: the sphere, the batch, the Jacobian and its eigenvalues, LayerNorm beside it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from normgrad import LAYER_NORM, RMS_NORM, numpy_ref

from .style import BLUE, GREY, ORANGE, arrow

# The weights of the two panels of `geometry`, and the eps that lets short rows stop inside of the circle.
FLAT_WEIGHT, SPACE_WEIGHT, EPS = np.array([1.5, -0.6]), np.array([1.5, 1.0, -0.5]), 0.05


def _normalized(rows, spec):
    return numpy_ref.forward(np.asarray(rows), spec=spec).y


def geometry() -> None:
    """Rows of two and of three numbers on their way to the sphere, and the ellipsoid that the weight makes of it."""
    figure = plt.figure(figsize=(7, 3.5))
    _plane(figure.add_subplot(1, 2, 1))
    _space(figure.add_subplot(1, 2, 2, projection="3d"))


def _plane(axes):
    turn = np.linspace(0, 2 * np.pi, 13)[:-1] + 0.2
    lengths = np.tile([0.25, 0.8, 2.2, 2.9], 3)[:, None]
    rows = lengths * np.stack([np.cos(turn), np.sin(turn)], 1)
    for start, end in zip(rows, _normalized(rows, RMS_NORM.replace(eps=EPS)), strict=True):
        arrow(axes, end, start)
        axes.plot(*start, "o", mfc="white", color="black")
        axes.plot(*end, "o", color=BLUE)
    around = np.linspace(0, 2 * np.pi, 120)
    circle = np.sqrt(2) * np.stack([np.cos(around), np.sin(around)], 1)
    axes.plot(*circle.T, color=BLUE, lw=2)
    axes.plot(*(circle * FLAT_WEIGHT).T, color=ORANGE, lw=2)
    axes.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def _space(axes):
    polar, azimuth = np.meshgrid(np.linspace(0, np.pi, 13), np.linspace(0, 2 * np.pi, 25))
    round_about = np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)
    ball = np.sqrt(3) * np.stack(round_about)
    ellipsoid = {"color": ORANGE, "alpha": 0.35, "edgecolor": ORANGE, "lw": 0.4}
    axes.plot_surface(*(ball * SPACE_WEIGHT[:, None, None]), rstride=1, cstride=1, **ellipsoid)
    axes.plot_wireframe(*ball, color=BLUE, lw=0.7)
    points = _normalized(np.random.default_rng(7).standard_normal((14, 3)), RMS_NORM)
    axes.scatter(*points.T, color=BLUE, s=22, depthshade=False)
    axes.set(xticks=[], yticks=[], zticks=[], xlabel="$x_1$", ylabel="$x_2$", box_aspect=(1.5, 1, 1))
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
            axes[name].annotate("", (0.3, 1.05), (0.3, 2.1), xycoords="axes fraction", arrowprops=down)
            axes[name].text(0.36, 1.6, "sum over $i$", transform=axes[name].transAxes, va="center")
        else:
            axes[name].set_title(title, fontsize=15)
    axes["dy"].set_ylabel("row $i$")
    axes["x"].set_xlabel("column $j$")
    figure.get_layout_engine().set(h_pad=0.12)


def jacobian(J, weight) -> None:
    """A Jacobian over rstd in both layouts, and below its eigenvalues between the weights.

    Args:  J: (N, N), output k in row k; weight: (N,)
    """
    layout = [["J", "T"], ["values", "values"]]
    _, axes = plt.subplot_mosaic(layout, figsize=(6.4, 5.4), height_ratios=[2.4, 1])
    titles = {
        "J": (J, "numerator layout: $J$", "output $k$", "input $j$"),
        "T": (J.T, r"denominator: $J^{\mathsf{T}}$", "input $j$", "output $k$"),
    }
    for name, (matrix, title, down, across) in titles.items():
        _heat_map(axes[name], matrix)
        axes[name].set(title=title, xlabel=across)
        axes[name].set_ylabel(down, labelpad=9)
    ordered, level = np.sort(weight), axes["values"]
    level.vlines(ordered, -0.5, 1.5, ls=":", color=GREY, lw=1)
    level.plot(ordered, 0 * ordered + 1, "v", color=ORANGE, ms=9, clip_on=False)
    level.plot(np.linalg.eigvals(J).real, 0 * ordered, "o", color=BLUE, ms=8, clip_on=False)
    level.set(yticks=[0, 1], yticklabels=["eigenvalues", "weights"], ylim=(-0.5, 1.5))


def _heat_map(axes, matrix):
    names = range(1, len(matrix) + 1)
    axes.imshow(matrix, cmap="RdBu_r", vmin=-1.2, vmax=1.2)
    axes.set(xticks=range(len(matrix)), yticks=range(len(matrix)), xticklabels=names, yticklabels=names)
    for (down, across), value in np.ndenumerate(matrix):
        color = "white" if abs(value) > 0.8 else "black"
        axes.text(across, down, f"{value:.2f}", ha="center", va="center", fontsize=9, color=color)


def rms_and_layer_norm() -> None:
    """RMSNorm and LayerNorm of the same rows: in the plane of the row and (1, ..., 1), and entry by entry."""
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3.8), width_ratios=[1, 1.15])
    _half_plane(left, N=16)
    example = np.array([[2.0, 3.5, 1.0, 4.2, 2.6, 1.7]])
    bars = (
        (-0.27, GREY, example, "$x$"),
        (0, BLUE, _normalized(example, RMS_NORM), "RMSNorm"),
        (0.27, ORANGE, _normalized(example, LAYER_NORM), "LayerNorm"),
    )
    for offset, color, values, name in bars:
        right.bar(np.arange(1, 7) + offset, values[0], 0.26, color=color, label=name)
    right.axhline(0, color="black", lw=0.8)
    right.legend(frameon=False, fontsize=10, loc="upper right")
    right.set(xlabel="column", xticks=range(1, 7), ylim=(-1.9, 5.6))


def _half_plane(axes, N):
    no_eps = {"rms": RMS_NORM.replace(eps=0), "ln": LAYER_NORM.replace(eps=0)}
    # a row with mean 0 and length sqrt(N), the horizontal direction
    across = _normalized(np.random.default_rng(7).standard_normal((1, N)), no_eps["ln"])[0]
    parts = np.array([[0.6, 0.25], [0.7, 1.5], [1.35, 1.0], [1.5, -0.5], [0.4, -0.7]])
    rows = parts @ np.stack([across, np.ones(N)])

    def place(rows):
        return np.stack([rows @ across / N**0.5, rows.mean(1) * N**0.5], 1)

    ends = place(_normalized(rows, no_eps["rms"])), place(_normalized(rows, no_eps["ln"]))
    for start, by_rms, by_ln in zip(place(rows), *ends, strict=True):
        axes.plot([start[0]] * 2, [start[1], 0], ":", color=ORANGE, lw=2)
        arrow(axes, by_rms, start, color=BLUE, lw=1.4)
        axes.plot(*start, "o", mfc="white", color="black")
        axes.plot(*by_rms, "o", color=BLUE)
        axes.plot(*by_ln, "s", color=ORANGE, ms=9)
        axes.plot(start[0], 0, "s", mfc="white", color=ORANGE, ms=5)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 100)
    axes.plot(N**0.5 * np.cos(angle), N**0.5 * np.sin(angle), color=BLUE, lw=2)
    axes.axhline(0, color=ORANGE, lw=2, zorder=0)
    axes.set(aspect="equal", xlim=(0, 6.4), xticks=[0, 2, 4, 6])
    axes.set(xlabel="length of $q$", ylabel=r"mean $\cdot \sqrt{N}$")
