"""What all figures share: four colours, the size of letters, and SVG whose text is the same at every build."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"


def use() -> None:
    """Set the style of every figure that is drawn from here on."""
    set_matplotlib_formats("svg", metadata={"Date": None})
    plt.rcParams.update(
        {"svg.hashsalt": "book", "font.size": 12, "figure.constrained_layout.use": True}
    )


def arrow(axes, end, start, color=GREY, **more) -> None:
    """An arrow from start to end."""
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "->", "color": color, **more}
    )
