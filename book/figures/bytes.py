"""Figures of the chapter on bytes: the roofline, ways to sum over rows, bytes in flight, predicted times."""

from __future__ import annotations

import math

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


def in_flight(lengths, ours, one_row, needed) -> None:
    """KiB in flight on a multiprocessor against N. Args: ours, one_row: KiB at each length; needed: (least, most)"""
    figure, axes = plt.subplots(figsize=(6.2, 3.7))
    axes.axhspan(*needed, color=GREEN, alpha=0.25, lw=0)
    axes.text(140, math.sqrt(needed[0] * needed[1]), "needed", color=GREEN, va="center")
    axes.loglog(
        lengths,
        one_row,
        "--",
        color=ORANGE,
        lw=2,
        base=2,
        label="one row ahead, two programs",
    )
    axes.loglog(lengths, ours, "o-", color=BLUE, lw=2, base=2, label="our tiles")
    axes.set(xlabel="$N$", ylabel="KiB in flight", xticks=lengths, xticklabels=lengths)
    axes.set(xlim=(120, 8800), ylim=(0.4, 300))
    axes.set_yticks([0.5, 2, 8, 32, 128], ["0.5", "2", "8", "32", "128"])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower right")
    axes.tick_params(axis="x", labelrotation=45)


def predicted(floors, separate) -> None:
    """Hollow bars of predicted microseconds of LayerNorm.

    Args:  floors, separate: {(operator, direction): microseconds}
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    points = [
        (name, way)
        for name in ("layer_norm", "add_layer_norm")
        for way in ("forward", "backward")
    ]
    for name, found, shift, color in (
        ("floor", floors, -0.2, BLUE),
        ("separate kernels", separate, 0.2, ORANGE),
    ):
        places = [place + shift for place in range(4)]
        times = [found[point] for point in points]
        axes.barh(
            places, times, 0.36, fc="none", ec=color, lw=1.6, label=f"{name}, predicted"
        )
    names = [f"add, {way}" if name.startswith("add") else way for name, way in points]
    title = "PREDICTED from bytes, not measured"
    axes.set(yticks=range(4), yticklabels=names, xlabel="microseconds", title=title)
    axes.invert_yaxis()
    axes.legend(frameon=False)
