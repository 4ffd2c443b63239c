"""The figure of the last homework: gradients by depth."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, ORANGE


def by_depth(pre, post) -> None:
    """The size of the gradient at every place, of a pre-norm and of a post-norm network.

    Args:  pre, post: {words: sizes from the first place to the last}, each before and after training
    """
    _, panels = plt.subplots(1, 2, figsize=(6.4, 3.2), sharex=True, sharey=True)
    for axes, title, lines in zip(
        panels, ("pre-norm", "post-norm"), (pre, post), strict=True
    ):
        for (words, sizes), color, style in zip(
            lines.items(), (BLUE, ORANGE), ("o-", "s--"), strict=True
        ):
            axes.semilogy(sizes, style, color=color, ms=4, label=words)
        axes.set(title=title, xlabel="$k$, norms from the input")
    panels[0].set(ylabel=r"$|\mathrm{dx}_k|$")
    panels[0].legend(frameon=False, loc="lower left")
