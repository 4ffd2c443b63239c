"""Figures of the chapter on writing the kernel: trips through memory, steps, who stores where, order of execution."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREEN, GREY, ORANGE

# Below this share of the longest bar a name does not fit into its piece.
NARROWEST = 0.03


def trips(calls, arguments, entries) -> None:
    """Bytes per entry, piece by piece: the operations of torch above, the arguments of one kernel below.

    Args:  calls: of Counted; arguments: the table of Seen.arguments; entries: how many numbers x has
    """
    names = {"_to_copy": "convert", "mul": "times", "add": "plus", "sub": "minus"}
    operations = [
        (names.get(call.name, call.name), (call.reads + call.writes) / entries)
        for call in calls
    ]
    kernel = [
        (name.removesuffix("_ptr"), (loaded + stored) / entries)
        for name, loaded, stored, _ in arguments
    ]
    longest = sum(size for _, size in operations)
    figure, axes = plt.subplots(figsize=(5.9, 2.9))
    for place, pieces, color in ((1, operations, ORANGE), (0, kernel, BLUE)):
        left = 0
        for name, size in pieces:
            axes.barh(
                place,
                size,
                left=left,
                height=0.6,
                color=color,
                edgecolor="white",
                lw=1.5,
            )
            if size > NARROWEST * longest:
                axes.text(
                    left + size / 2,
                    place,
                    name,
                    ha="center",
                    va="center",
                    rotation=90,
                    color="white",
                    size=11,
                )
            left += size
        axes.text(left + 0.01 * longest, place, f"{left:.1f}", va="center")
    axes.set(
        yticks=[1, 0],
        yticklabels=["torch,\nline by line", "one kernel"],
        xlabel="bytes per entry of x",
    )
    axes.set_xlim(0, 1.09 * longest)
    axes.spines[["top", "right"]].set_visible(False)


def steps(counts, split=None) -> None:
    """Bars of bytes requested in units of the floor. Args: counts: {step: times the floor}; split: {step: (forward,
    backward)}, parts of the same length in all, drawn in two colours"""
    figure, axes = plt.subplots(figsize=(6.3, 0.6 + 0.5 * len(counts)))
    for place, (step, times) in enumerate(counts.items()):
        left = 0
        for size, color in zip(
            split[step] if split else (times,), (BLUE, ORANGE), strict=False
        ):
            axes.barh(place, size, left=left, height=0.65, color=color)
            left += size
        axes.text(
            left + 0.01 * max(counts.values()), place, f"{times:.2f}", va="center"
        )
    axes.axvline(1, color=GREEN, ls="--")
    axes.text(
        1, -0.7, "floor", color=GREEN, ha="center", va="center", backgroundcolor="white"
    )
    axes.set(
        yticks=range(len(counts)), yticklabels=counts, xlabel="bytes requested / floor"
    )
    axes.set(xlim=(0, 1.1 * max(counts.values())), ylim=(len(counts) - 0.4, -1))
    axes.spines[["top", "right"]].set_visible(False)
    if split:
        axes.bar(0, 0, color=BLUE, label="forward")
        axes.bar(0, 0, color=ORANGE, label="backward")
        axes.legend(frameon=False, ncol=2, loc="lower right", bbox_to_anchor=(1, 0.98))


def stores(panels, argument) -> None:
    """A panel for each kernel: which program stores to which place of an argument; orange where several do.

    Args:  panels: {title: Seen}; argument: its name in the kernels
    """
    figure, axes = plt.subplots(
        1, len(panels), figsize=(6.4, 3.1), sharex=True, sharey=True
    )
    for panel, (title, seen) in zip(axes, panels.items(), strict=True):
        found = {}
        launch = next(
            one
            for one in seen.launches
            if any(each.name == argument for each in one.arguments)
        )
        target = next(each for each in launch.arguments if each.name == argument)
        for access in launch.accesses:
            if access.kind == "store":
                for address in access.touched[target.holds(access.touched)]:
                    found.setdefault(
                        (int(address) - target.start) // access.size, set()
                    ).add(access.program)
        points = [(place, program, ORANGE if len(programs) > 1 else BLUE)
                  for place, programs in found.items() for program in programs]  # fmt: skip
        places, programs, colors = zip(*points, strict=True)
        panel.scatter(places, programs, c=colors, marker="s", s=14)
        panel.set(title=title, xlabel=f"place in {argument.removesuffix('_ptr')}")
        panel.grid(color=GREY, alpha=0.2)
    axes[0].set_ylabel("program")
    axes[0].yaxis.get_major_locator().set_params(integer=True)
    axes[0].invert_yaxis()
