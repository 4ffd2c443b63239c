"""Forward plus backward on a CPU: Numba's kernels beside torch's own and this package's torch backend, and a copy.

    python tools/cpu_times.py --json FILE                one process
    python tools/cpu_times.py --json FILE --merge FILES  of several processes the spread of their medians

Each round times every implementation once, in an order that rotates, so that a machine whose speed drifts slows all of
them alike; what is compared is the median of the ratios, round by round. What the threads of this process wait for each
other is part of what is measured: two libraries keep their workers awake for a while, and a backward runs in a thread
of its own. Leave the machine alone meanwhile; its load is part of a record.

An output is memory that no page stands behind yet, and the system clears each page when it is first written to. Where
the process keeps the pages that it frees, that is over after the first call. Both are measured, with `memory` "new" and
"kept", and the copy makes its output in the same way.

Where memory lies is one throw of dice for a whole process: at (4096, 1024) the ratio of the same code was 1.0 in one
process and 1.3 in another, each with quartiles of a few hundredths. So run several, and merge their files.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice

import timing
import torch
from timing import COPY, DTYPES, Shape, spread

from normgrad.bench import results
from normgrad.teaching import bytes as traffic

SHAPES = ((128, 256), (4096, 1024), (2048, 8192), (16384, 768))
MEMORY = ("new", "kept")
MEASURED = ("seconds", "over_torch", "over_copy")
# A small shape is called so often in one timing that a clock tick is nothing: about so many elements a timing.
ELEMENTS_PER_TIMING = 4 * 2**20
# glibc's options that decide whether freed memory goes back to the system: M_TRIM_THRESHOLD and M_MMAP_MAX.
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def implementations(operator: str) -> dict:
    """{name: function of (x, residual, weight, bias) that returns a tuple of outputs}; Numba's where it is here."""
    builders = {
        "numba": partial(timing.ours, backend="numba"),
        "torch": timing.eager,
        "normgrad": partial(timing.ours, backend="torch"),
    }
    return timing.installed(builders, operator)


@contextmanager
def _memory(kind):
    """Whether the process keeps the pages that it frees, while the context lasts; an error where it cannot."""
    if kind == "new":
        yield
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError) as error:
        raise RuntimeError("memory: got 'kept', needs the C library glibc") from error
    mallopt(MMAP_MAX, 0)
    mallopt(TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        mallopt(MMAP_MAX, 65536)
        mallopt(TRIM_THRESHOLD, 2**17)


def measure(
    shape: Shape, functions: dict, rounds: int, generator: torch.Generator
) -> dict:
    """{name: seconds, one a round} of forward plus backward, a copy among the names.

    Args:     shape; functions: {name: implementation}; rounds: at least 1; generator: draws the inputs
    Raises:   ValueError naming an implementation whose results are wrong
    """
    inputs = timing.draw(shape, "cpu", generator)
    calls = {}
    for name, function in functions.items():
        reason = timing.refusal(shape, function, inputs)
        if reason:
            raise ValueError(f"{name}: {reason}")
        calls[name] = timing.call(function, "both", inputs)
    moved = traffic.moved(shape.operator, "both", **shape.size).total
    half = torch.empty(moved // 2, dtype=torch.uint8).random_(generator=generator)
    calls[COPY] = half.clone
    repeats = max(1, ELEMENTS_PER_TIMING // (shape.rows * shape.columns))
    turns = timing.interleaved(calls, partial(timing.timed, repeats=repeats))
    times = list(islice(turns, rounds))
    return {name: [seconds[name] for seconds in times] for name in calls}


def _records(shape: Shape, memory: str, times: dict) -> Iterator[dict]:
    """What the file keeps of one shape: for each implementation seconds, and ratios to torch's own and to the copy."""
    for name, seconds in times.items():
        ratios = [
            [mine / its for mine, its in zip(seconds, times[base], strict=True)]
            for base in ("torch", COPY)
        ]
        measured = map(spread, (seconds, *ratios))
        yield {
            "operator": shape.operator,
            **shape.size,
            "memory": memory,
            "implementation": name,
            **dict(zip(MEASURED, measured, strict=True)),
            "rounds": len(seconds),
            "load": os.getloadavg()[0],
        }


def _show(record):
    if record["implementation"] == "numba":
        size = f"({record['rows']}, {record['columns']})"
        print(f"\n{record['operator']} {size}, memory {record['memory']}")
    low, middle, high = (1e3 * seconds for seconds in record["seconds"])
    ratios = "".join(
        "{1:8.2f} [{0:.2f} {2:.2f}]".format(*record[name]) for name in MEASURED[1:]
    )
    name, load = record["implementation"], record["load"]
    print(f"{name:10}{middle:9.3f} ms [{low:.3f} {high:.3f}]{ratios}{load:6.1f}")


def merged(files) -> dict:
    """The results of several processes as one: the spread of their medians, and the largest load."""
    by_process = [results.load(file) for file in files]
    whole = by_process[0]
    whole["settings"]["processes"] = len(files)
    same_points = zip(*(process["records"] for process in by_process), strict=True)
    whole["records"] = []
    for records in same_points:
        medians = {
            name: spread([record[name][1] for record in records]) for name in MEASURED
        }
        rounds = sum(record["rounds"] for record in records)
        load = max(record["load"] for record in records)
        whole["records"].append(
            {**records[0], **medians, "rounds": rounds, "load": load}
        )
    return whole


def run(options, shapes) -> Iterator[dict]:
    """The results after each shape, as they grow."""
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(0)
    cores = os.cpu_count()
    device = {"name": results.processor(), "threads": options.threads, "cores": cores}
    settings = {"processes": 1, "rounds": options.rounds, "direction": "both"}
    begun = timing.begun("cpu", device, settings)
    for memory in MEMORY:
        with _memory(memory):
            for operator in options.operators:
                functions = implementations(operator)
                for size in shapes:
                    shape = Shape(operator, options.dtype, *size)
                    times = measure(shape, functions, options.rounds, generator)
                    begun["records"] += _records(shape, memory, times)
                    yield begun


def main() -> None:
    """Parse the command line and time what it names."""
    parser = timing.parser(__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=21, help="each times every implementation once")
    add("--threads", type=int, default=2, help="torch's and Numba's (default 2)")
    add(
        "--dtype", choices=("float64", *DTYPES), default="float32", help="of all arrays"
    )
    add("--shapes", nargs="+", type=timing.size, metavar="MxN", help="as 4096x1024")
    add("--merge", nargs="+", metavar="FILE", help="results of one process each")
    options = parser.parse_args()
    print("forward + backward; median [quartiles]; over torch, over copy; load")
    finished = 0
    stages = (
        [merged(options.merge)]
        if options.merge
        else run(options, options.shapes or SHAPES)
    )
    for held in stages:
        for record in held["records"][finished:]:
            _show(record)
        finished = len(held["records"])
        if options.json:
            timing.save(options.json, held)


if __name__ == "__main__":
    main()
