"""Figures of the chapters on differentials: a tangent, the graph in both directions, the blocks of a batch."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch

from .style import BLUE, GREEN, GREY, ORANGE

START, STEP = np.array([2.1, 0.9]), np.array([-0.75, 1.15])

PLACES = {
    "x": (0, 0),
    "mean": (1.5, 1),
    "q": (3, 0),
    "v": (4.0, 1),
    "rstd": (6.4, 1),
    "x_hat": (7.4, 0),
}
LOCAL = {("x", "mean"): "1/N", ("x", "q"): r"\delta_{kj}", ("mean", "q"): "-1", ("q", "v"): "2q/N",
         ("v", "rstd"): r"-\mathrm{rstd}^3\!/2", ("rstd", "x_hat"): "q", ("q", "x_hat"): r"\mathrm{rstd}"}  # fmt: skip
TWO_CONSUMERS = "xq"


def gaps() -> tuple[np.ndarray, np.ndarray]:
    """(steps h, largest entry of y(x + h x_dot) - y - h y_dot for each) for LayerNorm on a random row of 8."""
    rng = np.random.default_rng(12)
    x, x_dot = (
        torch.from_numpy(rng.standard_normal(8)),
        torch.from_numpy(rng.standard_normal(8)),
    )

    def layer(x):
        return torch.nn.functional.layer_norm(x, (8,))

    y, y_dot = torch.func.jvp(layer, (x,), (x_dot,))
    sizes = np.geomspace(1e-6, 1, 25)
    return sizes, np.array(
        [float((layer(x + h * x_dot) - y - h * y_dot).abs().max()) for h in sizes]
    )


def tangent(sizes, gaps) -> None:
    """A row and its change on the circle; beside it, how the gap to the linear part falls with the step.

    Args:  sizes: steps h; gaps: largest entry of y(x + h x_dot) - y - h y_dot, one for each step
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.3), width_ratios=(1.25, 1))
    _on_the_circle(left)
    right.loglog(sizes, gaps, "o-", color=ORANGE, ms=4)
    right.loglog(
        sizes, np.square(sizes), ":", color="black", lw=2, zorder=3, label="$h^2$"
    )
    right.set(xlabel="$h$", ylabel="largest gap")
    right.legend(frameon=False)


def _scaled(row):
    return row / np.sqrt((row * row).mean())


def _on_the_circle(axes):
    y, moved = _scaled(START), _scaled(START + STEP)
    first = (STEP - y * (y * STEP).mean()) / np.sqrt((START * START).mean())
    turn = np.linspace(-0.1, 1.9, 100)
    axes.plot(*np.sqrt(2) * np.stack([np.cos(turn), np.sin(turn)]), color=GREEN)
    axes.plot(*np.stack([START, 0 * START, START + STEP]).T, ":", color=GREY, lw=1)
    for start, end, color in ((START, START + STEP, BLUE), (y, y + first, ORANGE)):
        style = {
            "arrowstyle": "-|>",
            "color": color,
            "lw": 2,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axes.annotate("", end, start, arrowprops=style)
    names = ((START, "$x$", (0.08, -0.1)), (START + STEP, r"$x + h\dot{x}$", (0.08, 0.02)), (y, "$y(x)$", (0.1, -0.1)),
             (moved, r"$y(x + h\dot{x})$", (-1.2, -0.06)), (y + first, r"$y + h\dot{y}$", (0.08, 0.02)))  # fmt: skip
    for point, name, shift in names:
        axes.plot(*point, "o", color="black", ms=5)
        axes.text(*point + shift, name)
    axes.set(xlim=(-0.55, 2.95), ylim=(-0.1, 2.3), aspect="equal")
    axes.axis("off")


def both_directions() -> None:
    """The graph of a normalized row: tangents forward above, cotangents in reverse below."""
    _, panels = plt.subplots(2, 1, figsize=(6.2, 5.4))
    for axes, back, color in zip(panels, (False, True), (BLUE, ORANGE), strict=True):
        for (start, end), slope in LOCAL.items():
            places = (
                (PLACES[end], PLACES[start]) if back else (PLACES[start], PLACES[end])
            )
            style = {
                "arrowstyle": "-|>",
                "color": color,
                "lw": 1.8,
                "shrinkA": 21,
                "shrinkB": 21,
            }
            axes.annotate("", places[1], places[0], arrowprops=style)
            box = {"fc": "white", "ec": "none", "pad": 1}
            axes.text(
                *np.mean(places, axis=0),
                f"${slope}$",
                ha="center",
                va="center",
                fontsize=12,
                bbox=box,
            )
        for name, place in PLACES.items():
            _node(axes, name, place, back, color)
        axes.set(xlim=(-0.6, 8), ylim=(-0.5, 1.5))
        axes.axis("off")
        axes.set_title(
            "reverse: cotangents" if back else "forward: tangents", loc="left"
        )


def _node(axes, name, place, back, color):
    inner = (
        r"\hat{x}"
        if name == "x_hat"
        else name
        if len(name) == 1
        else rf"\mathrm{{{name}}}"
    )
    text = rf"\mathrm{{d}}{inner}" if back else rf"\dot{{{inner}}}"
    width = 4 if back and name in TWO_CONSUMERS else 1.2
    axes.plot(*place, "o", ms=40, mfc="white", mec=color, mew=width)
    axes.text(*place, f"${text}$", ha="center", va="center", fontsize=12)
