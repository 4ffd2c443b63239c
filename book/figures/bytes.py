"""Figures of the page on bytes: the roofline, and ways to sum over rows."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE

THIN = {"arrowstyle": "-", "color": ORANGE}


def roofline(gpus, fused, apart) -> None:
    """The slopes and roofs of three GPUs, and where operators stand on that of the H200.

    Args:  gpus: {name: (TB/s, Tera-operations/s, multiprocessors)}; fused, apart: lists of (operations, bytes)
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.9))
    reach = np.geomspace(0.05, 200, 400)
    styles = {
        "H200": (BLUE, "-", "bottom"),
        "A100": (GREEN, "--", "bottom"),
        "T4": (GREY, ":", "top"),
    }
    for name, (color, line, side) in styles.items():
        bandwidth, rate, _ = gpus[name]
        axes.loglog(reach, np.minimum(reach * bandwidth, rate), line, color=color, lw=2)
        axes.text(
            190,
            rate * (1.05 if side == "bottom" else 0.93),
            name,
            color=color,
            ha="right",
            va=side,
        )
    slope = gpus["H200"][0]
    for points, marker, size in ((fused, "o", 8), (apart, "s", 7)):
        for operations, moved in points:
            at = operations / moved
            axes.plot(at, at * slope, marker, color=ORANGE, ms=size, zorder=3)
    axes.annotate("fused", (1.6, 8.2), (0.6, 40), color=ORANGE, arrowprops=THIN)
    axes.annotate(
        "one operation\nat a time",
        (0.115, 0.6),
        (0.06, 6),
        color=ORANGE,
        arrowprops=THIN,
    )
    axes.set(
        xlabel="intensity, operations per byte", ylabel="Tera-operations per second"
    )
    axes.set(xlim=(0.05, 200), ylim=(0.05, 150))
    axes.grid(alpha=0.3)
