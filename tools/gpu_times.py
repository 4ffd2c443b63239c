"""Times on a GPU, its cache emptied before each call: this package, torch, torch.compile and Liger-Kernel, each as a
share of the speed of a copy that moves the least bytes of the operation; and the time that a call takes on the host.

    python tools/gpu_times.py --json gpu.json

The file is written after every step, and the same command goes on where an earlier one ended. An implementation whose
results are wrong is not timed. The command fails where the package is slower than PROMISED.
With --stand-in nothing needs a GPU: small tensors on the CPU, and a clock that stands.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import timing
import torch
from timing import COPY, DTYPES, Shape

from normgrad.bench import compile, results
from normgrad.teaching import bytes as traffic

SHAPES = ((16384, 4096), (8192, 8192), (65536, 1024), (4096, 16384), (2048, 32768))
STAND_IN_SHAPES = ((8, 16), (4, 32))
# Of the copy's speed, at least, at the first two shapes; and everywhere of the fastest other implementation's.
PROMISED = {"forward": 0.90, "backward": 0.85}
OF_THE_FASTEST = 0.95
# More than the last level of cache of any GPU (H200: 50 MiB, MI300X: 256 MiB).
CACHE_BYTES = 2**29
WARM_UPS, REPEATS = 3, 30
# Of the GPU's clock, about 1 ms; and what no call that leaves the GPU alone takes.
SLEEP_CYCLES, MOST_CYCLES = 2**21, 2**27
POINT = ("operator", "dtype", "rows", "columns", "direction")


class Waits(Exception):
    """A call that waits for the GPU, so that the host cannot run ahead of it."""


def clock(call) -> tuple[list[float], float]:
    """Quartiles of a call's seconds on the GPU, and the median of its seconds on the host.

    The GPU sleeps first, so that all of the call is queued before its first kernel begins: the host takes 100 to
    400 us for a backward, which triton.testing.do_bench would count where the kernels take 100.
    """
    cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(WARM_UPS):
        call()
    torch.cuda.synchronize()
    cycles, seconds, host_seconds = SLEEP_CYCLES, [], []
    while len(seconds) < REPEATS:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(cycles)
        cache.zero_()
        begin.record()
        called = perf_counter()
        call()
        returned = perf_counter()
        end.record()
        host_was_late = begin.query()
        end.synchronize()
        if not host_was_late:
            seconds.append(1e-3 * begin.elapsed_time(end))
            host_seconds.append(returned - called)
        elif cycles < MOST_CYCLES:
            cycles *= 2
        else:
            raise Waits("the call waits for the GPU")
    return quantiles(seconds, n=4), median(host_seconds)


def standing_clock(call) -> tuple[list[float], float]:
    """As clock, without a GPU: the call is made, and each takes a millisecond."""
    call()
    return [1e-3, 1e-3, 1e-3], 1e-3


def implementations(stand_in: bool) -> dict:
    """{name: function of an operator that returns the implementation}; on the CPU those that need no compiler."""
    backend = "torch" if stand_in else "triton"
    builders = {
        "normgrad": lambda operator: timing.ours(operator, backend),
        "torch": timing.eager,
    }
    if stand_in:
        return builders
    return builders | {"torch.compile": timing.compiled, "liger": timing.liger}


def measure(
    shape: Shape, direction: str, functions: dict, inputs: timing.Inputs, clock
) -> list[dict]:
    """A record of each implementation in one direction, the copy first.

    Args:  shape; direction: "forward", "backward" or "both"; functions: {name: implementation, or why it is not
           timed}; inputs: as timing.draw; clock: as clock
    """
    moved = traffic.moved(shape.operator, direction, **shape.size).total
    point = {"operator": shape.operator, **shape.size}
    point |= {"direction": direction, "bytes": moved}
    device = inputs.cotangents[0].device
    source = torch.empty(moved // 2, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_times = clock(lambda: target.copy_(source))
    copied = copy_times[0][1]
    records = [point | timed_record(COPY, *copy_times, copied)]
    for name, function in functions.items():
        refused = function
        if callable(function):
            try:
                times = clock(timing.call(function, direction, inputs))
                records.append(point | timed_record(name, *times, copied))
                continue
            except Exception as error:
                # a kernel of another library may fail in its backward alone
                refused = f"{type(error).__name__}: {error}"
        records.append(point | {"implementation": name, "refused": refused})
    return records


def timed_record(
    name: str, seconds: list[float], host_seconds: float, copied: float
) -> dict:
    """What was measured of an implementation: quartiles, and the copy's median time over its own."""
    return {
        "implementation": name,
        "refused": None,
        "seconds": seconds,
        "host_seconds": host_seconds,
        "of_copy": copied / seconds[1],
    }


def checked(shape: Shape, builders: dict, inputs: timing.Inputs) -> dict:
    """{name: implementation, or why it is not timed}."""
    functions = {}
    for name, build in builders.items():
        try:
            function = build(shape.operator)
            functions[name] = timing.refusal(shape, function, inputs) or function
        except Exception as error:
            functions[name] = f"{type(error).__name__}: {error}"
    return functions


def broken(records: list[dict]) -> list[str]:
    """Where the package is slower than promised, or was not timed, one line each."""
    lines, points = [], {}
    for record in records:
        point = tuple(record[name] for name in POINT)
        points.setdefault(point, {})[record["implementation"]] = record
    for point, timed in points.items():
        ours = timed.pop("normgrad")
        if ours["refused"]:
            lines.append(f"{point}: normgrad was not timed: {ours['refused']}")
            continue
        share, least = ours["of_copy"], 0.0
        if (ours["rows"], ours["columns"]) in SHAPES[:2] and ours["dtype"] == DTYPES[0]:
            least = PROMISED.get(ours["direction"], 0.0)
        if not share >= least:
            lines.append(f"{point}: {share:.0%} of the copy's speed, needs {least:.0%}")
        for name, record in timed.items():
            if name == COPY or record["refused"]:
                continue
            of_rival = share / record["of_copy"]
            if not of_rival >= OF_THE_FASTEST:
                lines.append(f"{point}: {of_rival:.0%} of the speed of {name}")
    return lines


def line(record: dict) -> str:
    """One line of the table."""
    if record["refused"]:
        return f"{record['implementation']:16}not timed: {record['refused'].splitlines()[0]}"
    low, middle, high = (1e6 * value for value in record["seconds"])
    speed = record["bytes"] / record["seconds"][1] / 1e9
    times = f"{middle:9.1f} us [{low:.1f} {high:.1f}]{speed:8.0f} GB/s"
    host = f"host {1e6 * record['host_seconds']:.0f} us"
    return f"{record['implementation']:16}{times}{record['of_copy']:8.1%}  {host}"


def begin(file, stand_in: bool) -> dict:
    """The results that the file holds already, or results without records.

    Raises:  ValueError where the file is of another device or of other versions
    """
    device = {"name": "stand-in" if stand_in else torch.cuda.get_device_name()}
    begun = timing.begun("gpu", device, {})
    for name in ("triton", "liger-kernel"):
        with contextlib.suppress(PackageNotFoundError):
            begun["versions"][name] = version(name)
    begun["versions"]["kernels"] = compile.kernel_sources()
    if not Path(file).exists():
        return begun
    held = results.load(Path(file))
    for name in ("kind", "device", "versions"):
        if held[name] != begun[name]:
            raise ValueError(
                f"{file}: got {name} {held[name]}, this run has {begun[name]}; needs another file"
            )
    return held


def run(held: dict, options) -> None:
    """Measure what the results do not hold yet; print it and write the file, point by point."""
    device, shapes, time = "cuda", SHAPES, clock
    if options.stand_in:
        device, shapes, time = "cpu", STAND_IN_SHAPES, standing_clock
    builders = implementations(options.stand_in)
    done = {tuple(record[name] for name in POINT) for record in held["records"]}
    for dtype, (rows, columns), operator in product(
        options.dtypes, options.shapes or shapes, options.operators
    ):
        missing = [
            direction
            for direction in traffic.DIRECTIONS
            if (operator, dtype, rows, columns, direction) not in done
        ]
        if not missing:
            continue
        shape = Shape(operator, dtype, rows, columns)
        inputs = timing.draw(shape, device, torch.Generator(device).manual_seed(0))
        functions = checked(shape, builders, inputs)
        for direction in missing:
            records = measure(shape, direction, functions, inputs, time)
            print(f"\n{operator} {direction} {dtype} ({rows}, {columns})")
            print(*map(line, records), sep="\n", flush=True)
            held["records"] += records
            timing.save(options.json, held)


def main() -> None:
    """Parse the command line and time what it names."""
    # before anything imports triton, which reads it once
    os.environ.setdefault("TRITON_INTERPRET", "0")
    parser = timing.parser(__doc__)
    add = parser.add_argument
    add("--dtypes", nargs="+", choices=DTYPES, default=DTYPES[:1], help="(bfloat16)")
    add("--shapes", nargs="+", type=timing.size, metavar="MxN", help="as 4096x1024")
    add("--stand-in", action="store_true", help="without a GPU: a clock that stands")
    options = parser.parse_args()
    if not options.json:
        parser.error("--json: got none, needs the file that is written")
    if not (options.stand_in or torch.cuda.is_available()):
        parser.error(
            f"got no CUDA device (torch {torch.__version__}), needs an NVIDIA GPU or --stand-in"
        )
    try:
        held = begin(options.json, options.stand_in)
    except ValueError as error:
        parser.error(f"--json: {error}")
    run(held, options)
    slower = broken(held["records"])
    if slower:
        sys.exit("\n".join(["", *slower]))


if __name__ == "__main__":
    main()
