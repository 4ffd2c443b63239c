"""The table of a results file, as plain text; times in microseconds."""

from __future__ import annotations

import statistics

from .record import COPY, key

HEADER = (
    f"{'implementation':16}{'µs':>10}{'quartiles':>20}{'GB/s':>8}{'of copy':>9}{'host µs':>9}  timed by",
    "bytes: each input read once, each output written once. floor: those bytes at the speed of a device copy that",
    "moves as many, in the same rounds. host: a call's time on the CPU, launches included; a replayed graph has none.",
)


def heading(record: dict) -> str:
    """One line on a point: what it is, its bytes, and the time in which a copy moves them."""
    operator, direction, dtype, rows, columns = key(record)
    point = f"{operator} {direction} {dtype} ({rows}, {columns})"
    size = f"{record['bytes_per_element']:.3f} B/element, {record['bytes'] / 1e6:.1f} MB"
    floor = record.get("floor_seconds")
    return f"{point}: {size}" + (f", floor {1e6 * floor:.1f} µs" if floor else "")


def line(record: dict) -> str:
    """One line on an implementation at a point."""
    name = record["implementation"]
    if record["refused"]:
        return f"{name:16}not timed: {record['refused']}"
    low, high = (1e6 * value for value in record["quartiles"])
    host = "" if record["host_seconds"] is None else f"{1e6 * record['host_seconds']:.1f}"
    spread = f"{low:.1f} - {high:.1f}"
    speed = f"{record['bytes_per_second'] / 1e9:8.0f}{record['fraction']:9.1%}"
    return f"{name:16}{1e6 * record['median']:10.1f}{spread:>20}{speed}{host:>9}  {record['method']}"


def point(records: list[dict]) -> str:
    """The lines of one point, all of whose records are given."""
    timed = [one for one in records if not one["refused"]]
    return "\n".join([heading((timed or records)[0]), *map(line, records), ""])


def summary(records: list[dict]) -> str:
    """Median fraction of the copy's speed over all points, by operator, direction and implementation."""
    groups = {}
    for one in records:
        if not one["refused"] and one["implementation"] != COPY:
            where = groups.setdefault((one["operator"], one["direction"]), {})
            where.setdefault(one["implementation"], []).append(one["fraction"])
    names = list(dict.fromkeys(name for found in groups.values() for name in found))
    lines = [
        "median over the points, as a fraction of the copy's speed",
        f"{'':26}" + "".join(f"{n:>15}" for n in names),
    ]
    for where, found in groups.items():
        cells = "".join(f"{statistics.median(found[n]):15.1%}" if n in found else f"{'':15}" for n in names)
        lines.append(f"{' '.join(where):26}{cells}")
    return "\n".join(lines)


def table(found: dict) -> str:
    """All points of a results file and the summary.

    Args:  found: as results.load or results.predicted returns it
    """
    device, grouped = found["device"]["name"], {}
    for record in found["records"]:
        grouped.setdefault(key(record), []).append(record)
    title = f"{device}: {found['kind']}" + (f", {found['date']}" if found["date"] else "")
    return "\n".join([title, *HEADER, "", *map(point, grouped.values()), summary(found["records"])])
