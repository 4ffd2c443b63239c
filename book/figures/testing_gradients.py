"""Figures of the chapters on tests: the V of finite differences, which test catches which mistake."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from normgrad.checks.finite_difference import best_step, complex_step
from normgrad.checks.tolerance import unit_roundoff

from .style import BLUE, GREEN, GREY, ORANGE

LOOK = {
    "float64": (BLUE, "o"),
    "float32": (ORANGE, "s"),
    "float16": (GREEN, "^"),
    "bfloat16": (GREY, "D"),
}


def v_curves(phi, slope) -> None:
    """The error of a slope against the step, for three formats and for the complex step.

    Args:  phi: the loss on the line, as phi(h, dtype); slope: its slope at 0
    """
    steps = np.geomspace(1e-16, 1, 65)
    _, axes = plt.subplots(figsize=(6, 5.6))

    def error(found):
        return abs(found / slope - 1)

    for dtype in ("float64", "float32", "float16"):
        color, marker = LOOK[dtype]
        steps_here = steps[steps > unit_roundoff(dtype) / 4].tolist()
        here = phi(0.0, dtype)
        one_sided = [error((phi(h, dtype) - here) / h) for h in steps_here]
        two_sided = [
            error((phi(h, dtype) - phi(-h, dtype)) / (2 * h)) for h in steps_here
        ]
        axes.loglog(
            steps_here,
            two_sided,
            color=color,
            marker=marker,
            ms=3,
            lw=1.3,
            label=f"{dtype}, central",
        )
        axes.loglog(
            steps_here, one_sided, color=color, ls="--", lw=1, label=f"{dtype}, forward"
        )
        axes.axvline(best_step(dtype), color=color, ls=":", lw=1)
    small = steps[:40]
    imaginary = [
        max(error(complex_step(lambda z: phi(z, "float64"), 0.0, h)), 2e-17)
        for h in small
    ]
    axes.loglog(small, imaginary, color="black", label="complex step")
    axes.set(xlabel="step h", ylabel="relative error", ylim=(1e-17, 1e2))
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=2)


def caught(table) -> None:
    """Which test rejects which mutant. Args: table: {mutant: {test: whether it rejects}}"""
    grid = np.array([list(row.values()) for row in table.values()])
    tests = list(next(iter(table.values())))
    _, axes = plt.subplots(figsize=(5.4, 6.6))
    axes.pcolormesh(
        grid,
        cmap=ListedColormap(["#E69F00", BLUE]),
        edgecolors="white",
        linewidth=2,
        vmin=0,
        vmax=1,
    )
    axes.invert_yaxis()
    for down, across in np.argwhere(~grid):
        axes.text(across + 0.5, down + 0.5, "✗", ha="center", va="center", fontsize=12)
    axes.set_xticks(
        np.arange(len(tests)) + 0.5,
        tests,
        rotation=45,
        ha="left",
        rotation_mode="anchor",
        fontsize=10,
    )
    axes.set_yticks(np.arange(len(table)) + 0.5, table, fontsize=10)
    axes.tick_params(length=0, top=True, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
