"""What this package promises of its speed, judged by a results file: only by what was measured.

A promise holds, or fails, or stays open where points that it speaks of are not in the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plan import ALWAYS, DTYPES, OPERATORS
from .record import key

# Of the copy's speed, at the shapes of ALWAYS in the first dtype; and of the fastest other's speed, wherever measured.
OF_THE_COPY = {"forward": 0.90, "backward": 0.85}
OF_THE_BEST = 0.95
OURS, OTHERS = "normgrad", ("torch", "torch.compile", "liger")
# Microseconds of the host, forward and backward, on a few rows; Triton's kernels up to their launch.
OF_THE_HOST = {"triton": (30, 45), "torch": (40, 60), "numba": (25, 40)}


@dataclass(frozen=True)
class Verdict:
    """A promise, whether it holds ("pass", "FAIL" or "open") and the figures."""

    promise: str
    state: str
    figures: str

    def __str__(self):
        return f"{self.state}  {self.promise}: {self.figures}"


def judge(found: dict) -> list[Verdict]:
    """A verdict on each promise.

    Args:    found: as results.load returns it
    Raises:  ValueError where the file, or a record in it, was not measured
    """
    if found["kind"] == "host":
        return [_of_the_host(found["records"], *one) for one in OF_THE_HOST.items()]
    for kind in (found["kind"], *(one["kind"] for one in found["records"])):
        if kind != "measured":
            raise ValueError(f"results: got kind {kind!r}, needs measured; a prediction keeps no promise")
    points = {}
    for one in found["records"]:
        points.setdefault(key(one), {})[one["implementation"]] = one
    return [*(_beside_the_copy(points, *one) for one in OF_THE_COPY.items()), _beside_the_others(points)]


def text(found: dict) -> str:
    """The verdicts, one a line.

    Args, Raises:  as judge
    """
    return "\n".join(map(str, judge(found)))


def _of_the_host(records, backend, most) -> Verdict:
    """Both directions of every operator; the lowest time counts, since a busy machine only adds to it."""
    promise = f"{backend}: at most {most[0]} and {most[1]} microseconds of the host"
    lowest = {"forward": [], "backward": []}
    for one in records:
        if one["implementation"] == f"{OURS} {backend}":
            lowest[one["direction"]].append(one["microseconds"][0])
    if not all(lowest.values()):
        return Verdict(promise, "open", "not measured")
    worst = [max(times) for times in lowest.values()]
    state = "pass" if all(time <= limit for time, limit in zip(worst, most, strict=True)) else "FAIL"
    return Verdict(promise, state, " and ".join(f"{time:.0f}" for time in worst))


def _where(point):
    operator, direction, dtype, rows, columns = point
    return f"{operator} {direction} {dtype} ({rows}, {columns})"


def _beside_the_copy(points, direction, least) -> Verdict:
    promise = f"{direction} at least {least:.0%} of a copy's speed"
    wanted = [(operator, direction, DTYPES[0], *shape) for shape in ALWAYS for operator in OPERATORS]
    ours = {point: points[point][OURS] for point in wanted if OURS in points.get(point, {})}
    speeds = {point: None if one["refused"] else one["fraction"] for point, one in ours.items()}
    return _verdict(promise, least, speeds, len(wanted))


def _beside_the_others(points) -> Verdict:
    """At each point against the fastest of the others that was timed in the same way: by graphs, or by events."""
    promise = f"never below {OF_THE_BEST:.2f} of the fastest of {', '.join(OTHERS)}"
    speeds, met = {}, set()
    for point, timed in points.items():
        ours = timed.get(OURS)
        if ours is None:
            continue
        if ours["refused"]:
            speeds[point] = None
            continue
        others = {name: timed[name] for name in OTHERS if name in timed and _comparable(timed[name], ours)}
        met |= set(others)
        if others:
            speeds[point] = min(one["median"] for one in others.values()) / ours["median"]
    missing = [name for name in OTHERS if name not in met]
    return _verdict(promise, OF_THE_BEST, speeds, None, [f"{name} was timed nowhere" for name in missing])


def _comparable(other, ours):
    return not other["refused"] and other["method"].split()[0] == ours["method"].split()[0]


def _verdict(promise, least, speeds, wanted, missing=()) -> Verdict:
    """Of {point: speed}, None where this package was refused; wanted: how many points there should be."""
    refused = [point for point, speed in speeds.items() if speed is None]
    known = {point: speed for point, speed in speeds.items() if speed is not None}
    figures = [f"{len(speeds)} points measured" if wanted is None else f"{len(speeds)} of {wanted} points measured"]
    if known:
        worst = min(known, key=known.get)
        figures.append(f"{known[worst]:.1%} at {_where(worst)}, the lowest")
    figures += [f"refused at {_where(point)}" for point in refused] + list(missing)
    failed = bool(refused) or any(not speed >= least for speed in known.values())
    whole = known and not missing and (wanted is None or len(speeds) == wanted)
    return Verdict(promise, "FAIL" if failed else "pass" if whole else "open", ", ".join(figures))
