"""Two figures of a results file, on any machine: a roofline in GB/s, and GB/s against N.

What was predicted is drawn hollow and called so; what was measured is drawn filled, with its quartiles.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from . import traffic
from .plan import ALWAYS, MEBI
from .record import COPY, key

GREY = "#767676"
COLOURS = {"normgrad": "#0072B2", "torch": "#D55E00", "torch.compile": "#009E73", "liger": GREY}
MARKERS = {"normgrad": "o", "torch": "s", "torch.compile": "^", "liger": "D"}
OPERATOR_MARKERS = {"layer_norm": "o", "rms_norm": "s", "add_layer_norm": "^", "add_rms_norm": "D"}
SIZE = 64 * MEBI
SPEED = "floor bytes / time, GB/s"
# The same file gives the same picture, byte for byte.
STYLE = {"svg.hashsalt": "normgrad", "svg.fonttype": "none", "font.size": 9}


def _select(found, dtype, operators, directions):
    """(records that were timed and that the filters let through, the dtype they are in)."""
    records = [one for one in found["records"] if not one["refused"]]
    dtype = dtype or next((one["dtype"] for one in records), None)
    chosen = [
        one
        for one in records
        if one["dtype"] == dtype
        and (operators is None or one["operator"] in operators)
        and (directions is None or one["direction"] in directions)
    ]
    if not chosen:
        raise ValueError(f"results: no timed records of dtype {dtype!r} and the operators and directions asked for")
    return chosen, dtype


def _present(records, name, order):
    """The values of a field that occur, in the order given."""
    return [value for value in order if any(one[name] == value for one in records)]


def _marker(implementation, markers, kind):
    colour = COLOURS.get(implementation, "black")
    return {
        "marker": markers, "color": colour, "linestyle": "none", "markeredgewidth": 1.4,
        "markerfacecolor": "none" if kind == "predicted" else colour,
    }  # fmt: skip


def _label(name, kind):
    return f"{name}, predicted" if kind == "predicted" else name


def _title(found, what):
    return f"{found['device']['name']}, {what}" + (" (predicted)" if found["kind"] == "predicted" else "")


def _legend(figure, handles):
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, columnspacing=1)


def _width(panels):
    """Inches: two panels fit on a telephone with their letters as large as the text's."""
    return 2.0 * max(2, len(panels)) + 0.4


def _name_columns(axis, columns):
    """Every other power of two that lies among the row lengths, in full or in Ki."""
    ticks = [4**k for k in range(4, 12) if min(columns) <= 4**k <= max(columns)]
    if ticks:
        axis.set_xticks(ticks, [f"{n // 1024}k" if n >= 1024 else f"{n}" for n in ticks])
        axis.minorticks_off()


def _top(records):
    """The end of the speed axis: a little above the fastest."""
    return 1.12 * max(one["bytes_per_second"] for one in records) / 1e9


def _copy_line(kind):
    return Line2D([], [], color=GREY, linestyle="--", label=_label("device copy", kind))


def _copy_speed(records):
    speeds = sorted(one["bytes_per_second"] for one in records if one["implementation"] == COPY)
    return speeds[len(speeds) // 2] / 1e9 if speeds else None


def roofline(found: dict, dtype=None, shape=None, operators=None, directions=("forward", "backward")) -> Figure:
    """Achieved GB/s against operations a byte, one panel a direction; bytes are the floor's.

    Args:     found: as results.load; dtype: default the first in the file; shape: (M, N), default one of plan.ALWAYS
              or else the commonest; operators, directions: default all operators, forward and backward
    Raises:   ValueError where nothing that was timed fits
    """
    chosen, dtype = _select(found, dtype, operators, directions)
    counted = Counter((one["rows"], one["columns"]) for one in chosen)
    shape = shape or next((one for one in ALWAYS if one in counted), counted.most_common(1)[0][0])
    chosen, kind = [one for one in chosen if (one["rows"], one["columns"]) == tuple(shape)], found["kind"]
    panels = _present(chosen, "direction", traffic.DIRECTIONS)
    if not panels:
        raise ValueError(f"shape: got {tuple(shape)}, needs one of {', '.join(map(str, counted))}")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_width(panels), 4.4), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, direction in zip(axes, panels, strict=True):
            _roofline_panel(axis, [one for one in chosen if one["direction"] == direction], kind)
            axis.set(xlabel="operations a byte")
            axis.set_title(direction, fontsize=9)
            axis.locator_params(axis="x", nbins=4)
        axes[0].set_ylabel(SPEED)
        axes[0].set_ylim(0, _top(chosen))
        figure.suptitle(_title(found, f"{dtype}, M, N = {shape[0]}, {shape[1]}"), fontsize=9)
        names = _present(chosen, "implementation", COLOURS)
        handles = [Line2D([], [], label=_label(name, kind), **_marker(name, "o", kind)) for name in names]
        for name in _present(chosen, "operator", OPERATOR_MARKERS):
            handles.append(Line2D([], [], marker=OPERATOR_MARKERS[name], color="black", linestyle="none", label=name))
        _legend(figure, handles + [_copy_line(kind)])
    return figure


def _roofline_panel(axis, records, kind):
    speed = _copy_speed(records)
    if speed:
        axis.axhline(speed, color=GREY, linestyle="--", linewidth=1.2)
    for one in records:
        if one["implementation"] != COPY:
            intensity = one["operations_per_element"] / one["bytes_per_element"]
            style = _marker(one["implementation"], OPERATOR_MARKERS[one["operator"]], kind)
            axis.plot([intensity], [one["bytes_per_second"] / 1e9], **style)
    axis.margins(x=0.2)


def bandwidth(found: dict, dtype=None, elements=SIZE, operators=None, directions=("forward", "backward")) -> Figure:
    """Achieved GB/s against N, one panel an operator and direction; of each N the size nearest to `elements`.

    Args:     found: as results.load; dtype: default the first in the file; elements: M N; operators, directions:
              default all operators, forward and backward
    Raises:   ValueError where nothing that was timed fits
    """
    chosen, dtype = _select(found, dtype, operators, directions)
    chosen, kind = _nearest(chosen, elements), found["kind"]
    rows, columns = (
        _present(chosen, "operator", OPERATOR_MARKERS),
        _present(chosen, "direction", traffic.DIRECTIONS),
    )
    with matplotlib.rc_context(STYLE):
        size = (_width(columns), 1.7 * len(rows) + 1.4)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), len(columns), sharex=True, sharey=True, squeeze=False)
        figure.supylabel(SPEED, fontsize=9)
        for axes, operator in zip(grid, rows, strict=True):
            axes[0].set_ylim(0, _top(chosen))
            for axis, direction in zip(axes, columns, strict=True):
                here = [one for one in chosen if (one["operator"], one["direction"]) == (operator, direction)]
                _bandwidth_panel(axis, here, kind)
                axis.set_title(f"{operator}, {direction}", fontsize=8)
        for axis in grid[-1]:
            axis.set_xlabel("N")
            _name_columns(axis, {one["columns"] for one in chosen})
        figure.suptitle(_title(found, f"{dtype}, about {elements / MEBI:g} Mi elements"), fontsize=9)
        names = _present(chosen, "implementation", COLOURS)
        handles = [
            Line2D([], [], label=_label(n, kind), **_marker(n, MARKERS[n], kind) | {"linestyle": "-"}) for n in names
        ]
        _legend(figure, handles + [_copy_line(kind)])
    return figure


def _nearest(records, elements):
    """Of each N, the records of the one M whose M N is nearest to a size."""

    def distance(one):
        return abs(math.log(one["rows"] * one["columns"] / elements)), one["rows"]

    best = {}
    for one in records:
        best[one["columns"]] = min(best.get(one["columns"], one), one, key=distance)
    return [one for one in records if one["rows"] == best[one["columns"]]["rows"]]


def _bandwidth_panel(axis, records, kind):
    for name in (COPY, *_present(records, "implementation", COLOURS)):
        line = sorted((one for one in records if one["implementation"] == name), key=lambda one: one["columns"])
        x, y = [one["columns"] for one in line], [one["bytes_per_second"] / 1e9 for one in line]
        if name == COPY:
            axis.plot(x, y, color=GREY, linestyle="--", linewidth=1.2)
            continue
        axis.plot(x, y, **_marker(name, MARKERS[name], kind) | {"linestyle": "-", "markersize": 4, "linewidth": 1.2})
        if kind != "predicted":
            ends = [[one["bytes"] / quartile / 1e9 for quartile in one["quartiles"]] for one in line]
            axis.vlines(x, [end[1] for end in ends], [end[0] for end in ends], color=COLOURS[name], linewidth=1)
    axis.set_xscale("log", base=2)


def write(found: dict, folder) -> list[Path]:
    """Draw both figures for every dtype of the results, as SVG, and return the files.

    Args:    found: as results.load; folder: made where it is missing
    Raises:  ValueError where nothing was timed
    """
    folder, written = Path(folder), []
    dtypes = dict.fromkeys(key(one)[2] for one in found["records"] if not one["refused"])
    if not dtypes:
        raise ValueError("results: no timed records, so that there is nothing to draw")
    folder.mkdir(parents=True, exist_ok=True)
    for dtype in dtypes:
        for draw in (roofline, bandwidth):
            file = folder / f"{draw.__name__}_{dtype}.svg"
            with matplotlib.rc_context(STYLE):
                draw(found, dtype).savefig(file, metadata={"Date": None})
            written.append(file)
    return written
