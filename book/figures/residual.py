"""Figures of the chapters on the residual: two ways back through the operator, a stack's kernels and gradient."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREEN, GREY, ORANGE

BOX = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": "black"}


def _arrow(axes, start, end, color=GREY, **more):
    look = {
        "arrowstyle": "-|>",
        "color": color,
        "lw": 1.6,
        "shrinkA": 0,
        "shrinkB": 0,
        **more,
    }
    axes.annotate("", end, start, arrowprops=look)


def _empty(width, height, xlim, ylim):
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set(xlim=xlim, ylim=ylim, xticks=[], yticks=[], frame_on=False)
    return axes


def paths() -> None:
    """The operator with its two inputs and outputs: forward in grey, what comes back in orange and green."""
    axes = _empty(6.4, 3.0, (-1.3, 10.3), (-1.6, 3.3))
    for start, end in (
        ((0.4, 1.6), (2, 0.35)),
        ((0.4, -1), (2, -0.2)),
        ((2.5, 0), (8, 0)),
        ((4.5, 0.05), (4.5, 1.6)),
    ):
        _arrow(axes, start, end)
    _arrow(axes, (5.4, 2), (8, 2))
    for place, text in (((2.2, 0), "$+$"), ((4.5, 2), "norm")):
        axes.text(
            *place, text, ha="center", va="center", fontsize=14, bbox=BOX, zorder=4
        )
    names = [
        (-0.3, 1.8, "$x$"),
        (-0.3, -1.1, "residual"),
        (8.8, 2, "$y$"),
        (9.3, 0, "residual_out"),
    ]
    for place in names:
        axes.text(*place, ha="center", va="center")
    _arrow(axes, (8, 2.35), (5.4, 2.35), ORANGE)
    axes.text(6.7, 2.5, r"$\mathrm{dy}$", color=ORANGE, ha="center", va="bottom")
    _arrow(axes, (4.8, 1.6), (4.8, 0.35), ORANGE)
    axes.text(
        4.95, 1, r"$J^{\mathsf{T}}\,\mathrm{dy}$", color=ORANGE, ha="left", va="center"
    )
    _arrow(axes, (8, -0.35), (5, -0.35), GREEN)
    axes.text(6.5, -0.5, "dresidual_out", color=GREEN, ha="center", va="top")
    _arrow(axes, (2.25, 0.5), (0.65, 1.75), BLUE)
    _arrow(axes, (2.15, -0.5), (0.6, -1.28), BLUE)
    axes.text(3.6, -0.55, "their sum", color=BLUE, ha="center", va="top")
    _arrow(axes, (4.6, -0.35), (2.5, -0.35), BLUE)
    axes.text(1.6, 1.3, "dx", color=BLUE, ha="left", va="center")
    axes.text(1.35, -1.3, "dresidual", color=BLUE, ha="left", va="center")


def kernels() -> None:
    """Two layers of a pre-norm stack, naive above and fused below, the kernels as grey areas."""
    figure, axes = plt.subplots(2, 1, figsize=(6.6, 4.9))
    naive = [_area(left, left + 1.7, 0.85, 1.8) for left in (0.05, 4.25)]
    naive += [_area(left, left + 1, -0.5, 0.5) for left in (3.3, 7.5)]
    stream = [
        (-0.1, -0.4, "$x_{k-1}$", BLUE),
        (4.75, -0.4, "$x_k$", BLUE),
        (9.0, -0.4, "$x_{k+1}$", BLUE),
    ]
    _chain(
        axes[0],
        "naive: norm, add, norm, add",
        naive,
        [*stream, (2.4, 1.55, "$y_k$", ORANGE)],
    )
    # The layer between an add and the norm after it belongs to no kernel of ours, so the areas go round it.
    low, top, shoulder = -0.6, 1.85, 0.8
    fused = [_area(-0.7, 1.7, low, top)]
    for left, rise, right in ((3.3, 4.18, 5.95), (7.5, 8.62, 9.5)):
        fused.append(
            [
                (left, low),
                (right, low),
                (right, top),
                (rise, top),
                (rise, shoulder),
                (left, shoulder),
            ]
        )
    sums = [(2.35, -0.4, "$p_k$", BLUE), (6.6, -0.4, "$p_{k+1}$", BLUE)]
    branch = [(2.35, 1.62, "$y'_k$", ORANGE), (4.2, 0.62, "$z'_k$", ORANGE)]
    _chain(axes[1], "fused: add and norm in one", fused, sums + branch)


def _area(left, right, low, top):
    return [(left, low), (right, low), (right, top), (left, top)]


def _chain(axes, title, areas, names):
    for corners in areas:
        axes.add_patch(plt.Polygon(corners, fc="#DDDDDD", ec="none", zorder=0))
    _arrow(axes, (-0.6, 0), (9.4, 0), BLUE)
    for at, step in ((0.9, "k"), (5.1, "k+1")):
        corners = [(at, 0), (at, 1.3), (at + 2.9, 1.3), (at + 2.9, 0.3)]
        _arrow(axes, corners[0], (at, 0.98), ORANGE)
        _arrow(axes, corners[1], (at + 1.9, 1.3), ORANGE)
        _arrow(axes, (at + 1.9, 1.3), corners[2], ORANGE)
        _arrow(axes, (at + 2.9, 0.98), corners[3], ORANGE)
        norm = rf"$\mathrm{{norm}}_{{{step}}}$"
        boxed = [
            (*corners[1], norm),
            (*corners[2], f"$f_{{{step}}}$"),
            (at + 2.9, 0, "$+$"),
        ]
        for x, y, text in boxed:
            axes.text(
                x, y, text, ha="center", va="center", fontsize=14, bbox=BOX, zorder=4
            )
    for x, y, text, color in names:
        axes.text(x, y, text, color=color, ha="center", va="center", fontsize=13)
    axes.set_title(title, loc="left", fontsize=13)
    axes.set(xlim=(-0.8, 9.6), ylim=(-0.75, 1.9), xticks=[], yticks=[], frame_on=False)
