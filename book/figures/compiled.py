"""Figure of the page on compiled kernels: registers of a thread against the row length."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .style import BLUE, GREEN, GREY, ORANGE

CURVES = {
    ("backward", "float32"): (ORANGE, "-"),
    ("backward", "bfloat16"): (BLUE, "-"),
    ("forward", "float32"): (GREEN, "-"),
    ("forward", "bfloat16"): (GREY, "--"),
}
KERNELS = {
    "backward": ("backward_rows", "backward_columns"),
    "forward": ("forward_rows", "forward_sweeps"),
}
LIMITS = {255: "the most that a thread can have", 128: "what 16 warps at once leave it"}


def registers(records) -> None:
    """Registers a thread of LayerNorm needs on sm_90. Args: records: of normgrad.bench.compile"""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for (direction, dtype), (color, line) in CURVES.items():
        whole, blocks = KERNELS[direction]
        chosen = [one for one in records if one.kernel in (whole, blocks)]
        chosen = [
            one
            for one in chosen
            if (one.operator, one.dtype, one.target) == ("layer_norm", dtype, "sm_90")
        ]
        chosen.sort(key=lambda one: one.columns)
        lengths, needed = zip(
            *((one.columns, one.registers) for one in chosen), strict=True
        )
        axes.plot(lengths, needed, line, color=color, label=f"{direction}, {dtype}")
        for one in chosen:
            inside = color if one.kernel == whole else "white"
            axes.plot(
                one.columns,
                one.registers,
                "o",
                color=color,
                markerfacecolor=inside,
                markersize=5,
            )
    for limit, text in LIMITS.items():
        axes.axhline(limit, color=GREY, ls="--", lw=1)
        axes.text(
            66000, limit + 5, f"{limit}: {text}", color=GREY, fontsize=12, ha="right"
        )
    axes.set(
        xlabel="columns N", ylabel="registers a thread", xscale="log", ylim=(0, 285)
    )
    axes.set_xticks(
        [128, 512, 2048, 8192, 65536], ["128", "512", "2048", "8192", "65536"]
    )
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.9), ncols=2, frameon=False)
    axes.minorticks_off()
