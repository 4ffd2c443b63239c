"""Figures of the chapter on L2 normalization: steps, spectrum, field of gradients.

The numbers are the package's: rows go through numpy_ref.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from normgrad import L2_NORM, numpy_ref

from .style import BLUE, GREEN, GREY, ORANGE

BOLD = {
    "arrowstyle": "-|>",
    "lw": 2.2,
    "shrinkA": 0,
    "shrinkB": 0,
    "mutation_scale": 14,
}


def gradient(q, dr):
    """dq for rows q and cotangents dr."""
    return numpy_ref.backward(dr, numpy_ref.forward(q, spec=L2_NORM)).dx


def _bold(axes, end, start, color):
    axes.annotate("", end, start, arrowprops=BOLD | {"color": color})


def steps() -> None:
    """Two rows in the plane, a step of each across its ray and one along it, and what their points on the circle do."""
    _, axes = plt.subplots(figsize=(6.4, 4.4))
    arc = np.linspace(-0.1, np.pi / 2 + 0.1, 100)
    axes.plot(np.cos(arc), np.sin(arc), color="black", lw=1)
    across = 0.48
    for angle, length in ((0.25, 2.4), (1.0, 1.2)):
        r, r_dot = (
            np.array([np.cos(angle), np.sin(angle)]),
            np.array([-np.sin(angle), np.cos(angle)]),
        )
        q, moved = length * r, length * r + across * r_dot
        for end, style in ((q, "-"), (moved, "--")):
            axes.plot(*np.transpose([[0, 0], end]), style, color=GREY, lw=1)
        _bold(axes, moved, q, ORANGE)
        _bold(axes, moved / np.hypot(*moved), r, BLUE)
        axes.plot(*q, "o", color="black")
        axes.text(*(q + (0.06, -0.18)), f"$q$, $s = {length}$", fontsize=15)
        axes.plot(*r, "o", color=BLUE)
        axes.text(
            *(0.84 * r - 0.11 * r_dot),
            "$r$",
            color=BLUE,
            fontsize=15,
            ha="center",
            va="center",
        )
        if length > 2:
            _bold(axes, 1.2 * q, q, GREY)
    axes.set(
        aspect="equal",
        xlim=(-0.15, 3.1),
        ylim=(-0.15, 1.75),
        xticks=[0, 1, 2, 3],
        yticks=[0, 1],
    )
    axes.spines[["top", "right"]].set_visible(False)


def spectrum(matrix, values, share, with_eps) -> None:
    """A Jacobian times s as a heat map, and its eigenvalues; beside them those with eps inside the root.

    Args:  matrix: s J; values: its eigenvalues; share: eps over s**2 + eps; with_eps: the eigenvalues of D J with eps
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.3))
    figure.colorbar(
        left.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1), ax=left, shrink=0.8
    )
    left.set(
        title="$s J_{kj}$",
        xticks=[],
        yticks=[],
        xlabel="input $j$",
        ylabel="output $k$",
    )
    numbers = range(1, len(values) + 1)
    right.plot(numbers, values, "o", color=BLUE, ms=7, label="no $\\varepsilon$")
    right.axhline(share, ls="--", lw=1, color=ORANGE)
    rings = {"mfc": "none", "ms": 12, "mew": 1.6}
    right.plot(
        numbers,
        with_eps,
        "o",
        color=ORANGE,
        label="$\\varepsilon$ inside the root",
        **rings,
    )
    right.set(title="eigenvalues", xlabel="number", ylim=(-0.1, 1.15))
    right.legend(loc="center right", frameon=False)


def field() -> None:
    """The gradient at rows on three circles, for one cotangent."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    _, axes = plt.subplots(figsize=(5.2, 5.2))
    for s, color in ((1, ORANGE), (2, BLUE), (3, GREEN)):
        rows = s * np.stack([np.cos(angles), np.sin(angles)], 1)
        dq = gradient(rows, np.tile([1.0, 0.0], (12, 1)))
        axes.add_patch(plt.Circle((0, 0), s, fill=False, color="#CCCCCC", lw=0.8))
        arrows = {
            "angles": "xy",
            "scale_units": "xy",
            "scale": 1,
            "width": 0.008,
            "headwidth": 4.5,
            "zorder": 3,
        }
        axes.quiver(*rows.T, *(0.7 * dq.T), color=color, **arrows)
        axes.plot(*rows.T, "o", color=color, ms=4)
    ticks = {
        "xticks": [-3, 0, 3],
        "yticks": [-3, 0, 3],
        "xlabel": "$q_1$",
        "ylabel": "$q_2$",
    }
    axes.set(aspect="equal", xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), **ticks)
