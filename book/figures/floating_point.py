"""Figures of the chapter on floating point: the spacing of formats, ways to a variance, and rounded statistics."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from normgrad.checks import variance
from normgrad.checks.tolerance import LARGEST, SIGNIFICAND, SMALLEST

from .style import BLUE, GREEN, GREY, ORANGE

COLOURS = {"bfloat16": ORANGE, "float16": GREEN, "float32": BLUE}
WAYS = {
    "one pass": (ORANGE, "o"),
    "Welford": (GREEN, "^"),
    "two passes": (BLUE, "s"),
    "corrected": (GREY, "D"),
}


def spacing() -> None:
    """The distance from a number to the next one, against its size."""
    _, axes = plt.subplots(figsize=(6, 3.6))
    for dtype in ("float32", "float16", "bfloat16"):
        size = 2.0 ** np.arange(-20, 20.01, 0.01)
        size = size[size <= LARGEST[dtype]]
        step = 2.0 ** (np.floor(np.log2(size)) + 1 - SIGNIFICAND[dtype])
        axes.loglog(
            size,
            np.maximum(step, SMALLEST[dtype]),
            color=COLOURS[dtype],
            lw=2,
            label=dtype,
        )
    axes.axhline(1, color=GREY, ls=":")
    for place in (100, 1000):
        axes.axvline(place, color=GREY, lw=0.8)
    axes.annotate("65504", (7e4, 20), (1.2e5, 4), color=GREEN)
    axes.set(
        xlabel="size of the number", ylabel="spacing", xticks=[1e-4, 1e-2, 1, 100, 1e4]
    )
    axes.legend(frameon=False)


def _way(axes, name, places, rows, shown=None):
    """One way's worst errors (markers) and bounds (a line) at several places."""
    colour, marker = WAYS[name]
    pairs = []
    for x in rows:
        error = abs(variance.METHODS[name](x)[1] / x.var(-1) - 1)
        pairs.append((error.max(), variance.bound(name, x, "float32").max()))
    errors, bounds = np.array(pairs).T
    shown = places if shown is None else shown
    axes.loglog(shown, bounds, color=colour, lw=1.2)
    axes.loglog(shown, np.maximum(errors, 1e-8), marker, color=colour, label=name, ms=6)


def ways() -> None:
    """Errors and bounds of four ways to a variance in float32, against the mean of a row and against its length."""
    rng = np.random.default_rng(12)
    fl32 = variance.rounding("float32")
    offsets, lengths = (0, 1, 10, 100, 1e3, 1e4, 1e5), (4, 16, 64, 256, 1024, 4096)
    by_offset = [fl32(offset + rng.standard_normal((16, 512))) for offset in offsets]
    by_length = [fl32(1e3 + rng.standard_normal((16, length))) for length in lengths]
    _, (above, below) = plt.subplots(2, 1, figsize=(5.4, 6.6), sharey=True)
    for name in WAYS:
        _way(above, name, offsets, by_offset, shown=(0.3, *offsets[1:]))
        _way(below, name, lengths, by_length)
    for axes in (above, below):
        axes.axhline(1, color="black", ls=":", lw=0.8)
        axes.set(ylabel="relative error of $v$", ylim=(1e-8, 1e8))
    above.set(xlabel="mean of the row")
    above.set_xticks([0.3, 10, 1e3, 1e5], ["0", "10", "1000", "$10^5$"])
    above.legend(frameon=False, fontsize=11, loc="upper left")
    below.set(xlabel="row length $N$")
