"""Figures of the chapter on kernels: a GPU, a program's tile and its place in memory, two orders of a sum."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREY, ORANGE

FAINT = "#BBBBBB"


def _box(axes, left, bottom, width, height, color, text, size=10.5, fill="22"):
    axes.add_patch(
        plt.Rectangle(
            (left, bottom),
            width,
            height,
            facecolor=color + fill,
            edgecolor=color,
            lw=1.2,
        )
    )
    middle = left + width / 2, bottom + height / 2
    axes.text(*middle, text, ha="center", va="center", fontsize=size, linespacing=1.4)


def _between(axes, x, upper, lower):
    axes.annotate(
        "",
        (x, upper),
        (x, lower),
        arrowprops={"arrowstyle": "<|-|>", "color": GREY, "lw": 1.6},
    )


def gpu() -> None:
    """Memory, cache, three multiprocessors with two programs each, and the programs that wait."""
    figure, axes = plt.subplots(figsize=(5.6, 4.3))
    _box(
        axes,
        0,
        0,
        12,
        1.5,
        GREY,
        "memory: x, weight, bias, y\n141 GB, 4.8 TB per second",
    )
    _box(axes, 0, 2.3, 12, 0.7, GREY, "L2 cache, tens of MB, shared by all")
    for place in range(3):
        left = 3.1 * place
        _box(axes, left, 3.9, 2.7, 3.6, BLUE, "", fill="11")
        for height, program in ((6.35, 2 * place), (5.35, 2 * place + 1)):
            _box(
                axes,
                left + 0.15,
                height,
                2.4,
                0.85,
                ORANGE,
                f"program {program}",
                10.5,
                "33",
            )
        axes.text(
            left + 1.35,
            4.6,
            "registers,\nshared memory",
            ha="center",
            va="center",
            fontsize=10.5,
        )
        _between(axes, left + 1.35, 3.9, 3.0)
        _between(axes, left + 1.35, 2.3, 1.5)
    axes.text(
        10.6,
        5.7,
        "... 132 of these\nmultiprocessors",
        ha="center",
        va="center",
        fontsize=10.5,
        color=BLUE,
    )
    for place in range(4):
        _box(
            axes, 0.2 + 1.1 * place, 8.3, 0.9, 0.75, ORANGE, str(6 + place), 10.5, "11"
        )
    axes.text(
        4.8, 8.67, "... wait for a free place", va="center", fontsize=10.5, color=ORANGE
    )
    axes.set(xlim=(-0.2, 12.4), ylim=(-0.2, 9.3), frame_on=False, xticks=[], yticks=[])


def tile() -> None:
    """Two tiles of 4 rows and 8 columns on a matrix of 6 rows and 5 columns; below, the same in memory."""
    figure, axes = plt.subplots(figsize=(5.6, 4.4))
    for i in range(8):
        for j in range(8):
            inside, own = i < 6 and j < 5, i >= 4
            if inside or own:
                face = BLUE + "44" if inside and own else "white"
                hatch = None if inside else "////"
                edge = GREY if inside else FAINT
                axes.add_patch(
                    plt.Rectangle(
                        (j, -i - 1),
                        1,
                        1,
                        lw=0.8,
                        hatch=hatch,
                        facecolor=face,
                        edgecolor=edge,
                    )
                )
            if inside:
                axes.text(
                    j + 0.5,
                    -i - 0.5,
                    str(5 * i + j),
                    ha="center",
                    va="center",
                    fontsize=10.5,
                )
    for first, name, width, line in (
        (0, "program 0", 1, ":"),
        (4, "program 1", 2.4, "-"),
    ):
        frame = plt.Rectangle(
            (0, -first - 4), 8, 4, fill=False, edgecolor=ORANGE, lw=width, ls=line
        )
        axes.add_patch(frame)
        axes.text(8.2, -first - 2, name, color=ORANGE, va="center", fontsize=10.5)
    axes.text(2.5, 0.25, "N = 5 columns", ha="center", fontsize=10.5, color=GREY)
    axes.text(
        -0.25,
        -3,
        "M = 6 rows",
        ha="center",
        va="center",
        rotation=90,
        fontsize=10.5,
        color=GREY,
    )
    width = 10.2 / 30
    for place in range(30):
        left = -0.3 + place * width
        face = BLUE + "44" if place >= 20 else "white"
        axes.add_patch(
            plt.Rectangle(
                (left, -10), width, 0.8, facecolor=face, edgecolor=GREY, lw=0.8
            )
        )
        if place % 5 == 0:
            axes.text(
                left + width / 2,
                -9.6,
                str(place),
                ha="center",
                va="center",
                fontsize=10.5,
            )
    axes.text(-0.3, -8.95, "memory", fontsize=10.5, color=GREY)
    axes.set(xlim=(-0.6, 10.3), ylim=(-10.2, 0.8), frame_on=False, xticks=[], yticks=[])


def _add(axes, left, right, at):
    for start in (left, right):
        axes.plot(*zip(start, at, strict=True), color=GREY, lw=1, zorder=1)
    axes.plot(*at, "o", color=ORANGE, ms=6)
    return at


def _terms(axes):
    level = [(float(place), 0.0) for place in range(8)]
    for place, spot in enumerate(level):
        axes.plot(*spot, "o", color=BLUE, ms=6)
        axes.text(place, -0.75, f"$t_{place + 1}$", ha="center", fontsize=10.5)
    return level


def orders() -> None:
    """Eight numbers added from left to right, and in a tree."""
    figure, (chain, tree) = plt.subplots(1, 2, figsize=(5.5, 3.2), sharey=True)
    total, *rest = _terms(chain)
    for place, term in enumerate(rest, start=1):
        total = _add(chain, total, term, (place - 0.3, float(place)))
    level = _terms(tree)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [_add(tree, a, c, ((a[0] + c[0]) / 2, a[1] + 1)) for a, c in pairs]
    for axes, title in ((chain, "left to right"), (tree, "tree")):
        axes.set(
            title=title,
            xlim=(-0.6, 7.6),
            ylim=(-1.1, 7.5),
            frame_on=False,
            xticks=[],
            yticks=[],
        )
