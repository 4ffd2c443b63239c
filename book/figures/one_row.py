"""The figure of the chapter on one row: the row forward, and its gradient backward."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .style import BLUE, GREEN, GREY, ORANGE


def _bars(axes, values, color, title):
    places = np.arange(1, len(values) + 1)
    axes.bar(places, values, color=color, width=0.62)
    axes.axhline(0, color="black", lw=0.8)
    for place, value in zip(places, values, strict=True):
        above = value >= 0
        axes.text(
            place,
            value + (0.08 if above else -0.08),
            f"{value:g}",
            ha="center",
            va="bottom" if above else "top",
        )
    axes.set(title=title, xticks=places, yticks=[], ylim=(-1.6, 2.6))
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def there_and_back(x, x_hat, dy, dx) -> None:
    """Four rows as bars: forward from x to x_hat above, backward from dy to dx below."""
    _, panels = plt.subplots(2, 2, figsize=(6.2, 4.4))
    _bars(panels[0, 0], x, GREY, "$x$")
    _bars(panels[0, 1], x_hat, BLUE, r"$\hat{x}$")
    _bars(panels[1, 1], dy, ORANGE, r"$\mathrm{dy}$")
    _bars(panels[1, 0], dx, GREEN, r"$\mathrm{dx}$")
    forward = {"arrowstyle": "-|>", "color": "black", "lw": 1.4}
    for line, start, end, words in (
        (0, 1.02, 1.22, "forward"),
        (1, 1.22, 1.02, "backward"),
    ):
        axes = panels[line, 0]
        axes.annotate(
            "", (end, 0.5), (start, 0.5), xycoords="axes fraction", arrowprops=forward
        )
        axes.text(1.12, 0.58, words, transform=axes.transAxes, ha="center", size=12)
    plt.gcf().get_layout_engine().set(wspace=0.25, hspace=0.15)
