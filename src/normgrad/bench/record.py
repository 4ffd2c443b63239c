"""A record of a results file: one implementation at one point, measured or predicted, in one shape."""

from __future__ import annotations

import math
import statistics

from . import traffic
from .plan import Shape

COPY = "copy"


def _common(kind, shape, direction):
    floor = shape.moved(direction)
    return {
        "kind": kind,
        "operator": shape.operator,
        "direction": direction,
        "dtype": shape.dtype,
        "rows": shape.rows,
        "columns": shape.columns,
        "bytes": floor.total,
        "bytes_per_element": floor.per_element,
        "operations_per_element": traffic.operations(shape.operator, direction),
    }


def key(record: dict) -> tuple:
    """The point that a record belongs to, as plan.Shape.key gives it."""
    return tuple(record[name] for name in ("operator", "direction", "dtype", "rows", "columns"))


def quartiles(values) -> list[float]:
    """The first and the third quartile; the value twice where there is one."""
    if len(values) < 2:
        return [values[0], values[0]]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def spread(values) -> list[float]:
    """The first quartile, the median and the third quartile, to four digits."""
    low, high = quartiles(values)
    return [float(f"{value:.4g}") for value in (low, statistics.median(values), high)]


def _rounded(values):
    """Five digits: more than a clock is good for, and a file that stays small."""
    return [float(f"{value:.5g}") for value in values]


def _plain(difference):
    """What JSON can hold: a difference that is no finite number as a string."""
    if difference is None:
        return None
    return {name: value if math.isfinite(value) else str(value) for name, value in difference.items()}


def measured(shape: Shape, direction: str, timed: dict, found: dict) -> list[dict]:
    """Records of what was timed, every time kept.

    fraction is the median, round by round, of the copy's time over the implementation's.

    Args:  shape, direction: the point; timed: {name: measure.Timed}, the copy among them; found: {name: differences}
    """
    made, copy = [], timed[COPY].seconds
    for name, one in timed.items():
        entry = _common("measured", shape, direction)
        middle = statistics.median(one.seconds)
        entry |= {"implementation": name, "refused": None, "difference": _plain(found.get(name)), "method": one.method}
        entry |= {
            "sets": one.count,
            "calls": one.calls * one.repeats,
            "seconds": _rounded(one.seconds),
            "median": middle,
        }
        entry |= {"quartiles": quartiles(one.seconds), "host_seconds": statistics.median(one.host_seconds)}
        entry |= {"bytes_per_second": entry["bytes"] / middle, "floor_seconds": statistics.median(copy)}
        entry["fraction"] = statistics.median(a / b for a, b in zip(copy, one.seconds, strict=True))
        made.append(entry)
    return made


def refused(shape: Shape, direction: str, name: str, why: str, difference: dict | None = None) -> dict:
    """The record of an implementation that was not timed.

    Args:  shape, direction: the point; name: the implementation; why: the reason; difference: where it was compared
    """
    entry = _common("measured", shape, direction)
    return entry | {"implementation": name, "refused": why, "difference": _plain(difference)}


def predicted(shape: Shape, direction: str, name: str, moved: int, bandwidth: float) -> dict:
    """The record of an implementation that moves given bytes at a given bandwidth; nothing was measured.

    Args:  shape, direction: the point; name: the implementation; moved: its bytes; bandwidth: bytes a second
    """
    entry = _common("predicted", shape, direction)
    seconds, floor = moved / bandwidth, entry["bytes"] / bandwidth
    entry |= {"implementation": name, "refused": None, "difference": None, "method": "predicted", "moved": moved}
    entry |= {"seconds": [seconds], "median": seconds, "quartiles": [seconds, seconds], "host_seconds": None}
    entry |= {"sets": None, "calls": None, "floor_seconds": floor, "fraction": floor / seconds}
    return entry | {"bytes_per_second": entry["bytes"] / seconds}
