"""Results files of the GPU benchmark, and predictions in the same shape where there are none.

A file is named `<device>_<date>.json`, as `h200_2026-11-21.json`: the device in lower case, without blanks, and the day
of the run. It is what `python -m normgrad.bench gpu --json FILE` wrote, copied here unchanged. `compile.json` is of
another kind: what `python -m normgrad.bench compile --json FILE` wrote.

A results file has `kind` ("measured" or "predicted"), `device`, `versions`, `date`, `settings` and `records`; a record
is one implementation at one point (operator, direction, dtype, rows, columns), as `normgrad.bench.record` makes it.
Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

from .. import kernel_traffic, traffic
from ..plan import DTYPES, OPERATORS, shapes
from ..record import COPY
from ..record import predicted as _predicted

FOLDER = Path(__file__).parent
# Bytes a second by the vendors' datasheets: NVIDIA's H200 (141 GB), H100 SXM (80 GB), A100 SXM (80 GB) and T4.
BANDWIDTHS = {"H200": 4.8e12, "H100 SXM": 3.35e12, "A100 80GB": 2.04e12, "T4": 0.32e12}
# Streaming multiprocessors, by the same datasheets.
MULTIPROCESSORS = {"H200": 132, "H100 SXM": 132, "A100 80GB": 108, "T4": 40}
NEEDED = ("kind", "device", "versions", "date", "settings", "records")


def available(kind: str | None = "measured") -> list[str]:
    """Names of the results files that the package holds, in alphabetical order.

    Args:  kind: only files of this kind; None for all of them, compile.json among them
    """
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    return [name for name in names if kind is None or load(name).get("kind") == kind]


def load(name_or_path: str | os.PathLike) -> dict:
    """A results file: one that the package holds, by its name, or any other by its path.

    Raises:  FileNotFoundError where there is none; ValueError where the file holds something else
    """
    inside = FOLDER / f"{name_or_path}.json"
    path = inside if inside.is_file() else Path(name_or_path)
    if not path.is_file():
        held = ", ".join(sorted(one.stem for one in FOLDER.glob("*.json"))) or "no results"
        raise FileNotFoundError(f"results: got {str(name_or_path)!r}, needs a file or a name; the package holds {held}")
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except ValueError as error:
        raise ValueError(f"results: {path.name} is no JSON ({error})") from error
    if not isinstance(found, dict) or not isinstance(found.get("records"), list):
        raise ValueError(f"results: {path.name} has no list of records")
    return found


def check(found: dict) -> dict:
    """The same results, or an error where they are not of the GPU benchmark.

    Raises:  ValueError naming what is missing
    """
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise ValueError(f"results: {', '.join(missing)} missing; needs a file that `bench gpu` wrote")
    return found


def begun(kind: str, device: dict, versions: dict, settings: dict, date: datetime.date | None = None) -> dict:
    """Results without records.

    Args:  kind, device, versions, settings: as the module says; date: None for today's
    """
    date = (date or datetime.date.today()).isoformat()
    return {"kind": kind, "device": device, "versions": versions, "date": date, "settings": settings, "records": []}


def save(file: str | os.PathLike, found: dict) -> None:
    """Write results, a record a line; a run that is cut short leaves the file as it was before or as it is after."""
    target = Path(file)
    beside = target.with_name(f"{target.name}.part")
    head = json.dumps({name: value for name, value in found.items() if name != "records"}, indent=1, allow_nan=False)
    lines = ",\n".join(json.dumps(one, allow_nan=False) for one in found["records"])
    beside.write_text(f'{head[:-2]},\n "records": [\n{lines}\n]}}\n', encoding="utf8")
    os.replace(beside, target)


def predicted(
    bandwidth: float, name: str, *, multiprocessors=None, operators=OPERATORS, dtypes=DTYPES[:1], **grid
) -> dict:
    """Results of the same shape as measured ones, computed from bytes alone and marked "predicted".

    "copy" moves the floor, "normgrad" what its kernels move, "torch" adds the residual in a kernel of its own and reads
    its inputs again for dw and db. Launches, latency and caches are left out, so a prediction is no measurement.

    Args:     bandwidth: bytes a second, as one of BANDWIDTHS; name: of the device; multiprocessors: how many it has,
              None for a device of MULTIPROCESSORS; operators, dtypes: their names; grid: columns and elements, as
              plan.shapes
    Raises:   ValueError naming the argument where the bandwidth is not a positive number, or the device is not known
    """
    count = MULTIPROCESSORS.get(name) if multiprocessors is None else multiprocessors
    if count is None:
        known = ", ".join(MULTIPROCESSORS)
        raise ValueError(f"multiprocessors: got None, needs a number for {name!r}, which is none of {known}")
    records = []
    for shape in shapes(operators, dtypes, **grid):
        size = {"rows": shape.rows, "columns": shape.columns, "dtype": shape.dtype}
        for direction in traffic.DIRECTIONS:
            floor = shape.moved(direction)
            # refuses a bandwidth that is none
            traffic.seconds(floor, bandwidth)
            ours = kernel_traffic.normgrad(shape.operator, direction, multiprocessors=count, **size)
            torchs = kernel_traffic.separate(shape.operator, direction, **size)
            for one, moved in {"normgrad": ours, "torch": torchs, COPY: floor}.items():
                records.append(_predicted(shape, direction, one, moved.total, bandwidth))
    device = {"name": name, "bytes_per_second": bandwidth, "multiprocessors": count}
    return {"kind": "predicted", "device": device, "versions": {}, "date": None,
            "settings": {"model": "bytes over bandwidth"}, "records": records}  # fmt: skip
