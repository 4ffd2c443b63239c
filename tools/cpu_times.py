"""Forward plus backward on a CPU: Numba's kernels beside torch's own and this package's torch backend, and a copy.

Each round times every implementation once, in an order that rotates, so that a machine whose speed drifts slows all of
them alike; what is compared is the median of the ratios, round by round. A round counts as clean where other processes
hardly ran: on a machine with other work it is tried again. What the threads of this process wait for each other is part
of what is measured: two libraries keep their workers awake for a while, and a backward runs in a thread of its own.

An output is memory that no page stands behind yet, and the system clears each page when it is first written to. Where
the process keeps the pages that it frees, that is over after the first call. Both are measured, with `memory` "new" and
"kept", and the copy makes its output in the same way.

Where memory lies is one throw of dice for a whole process: at (4096, 1024) the ratio of the same code was 1.0 in one
process and 1.3 in another, each with quartiles of a few hundredths. So several processes can be asked for, and what is
said then is the spread of their medians.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

import timing
import torch
from timing import COPY, DTYPES, OPERATORS, Shape, spread

import normgrad
from normgrad import LAYER_NORM
from normgrad.bench import results
from normgrad.teaching import bytes as traffic
from normgrad.torch_ops import differentiable

SHAPES = ((128, 256), (4096, 1024), (2048, 8192), (16384, 768))
MEMORY = ("new", "kept")
# A small shape is called so often in one timing that a clock tick is nothing: about so many elements a timing.
ELEMENTS_PER_TIMING = 4 * 2**20
# The share of the cores' time that other processes may have in a clean round, and how many rounds are tried for one.
OTHERS, TRIES = 0.03, 4
# glibc's options that decide whether freed memory goes back to the system: M_TRIM_THRESHOLD and M_MMAP_MAX.
TRIM_THRESHOLD, MMAP_MAX = -1, -4


class StagedLayerNorm(torch.autograd.Function):
    """LayerNorm's gradient as source 003 stages it: each intermediate is a tensor of its own, and all are saved.

    Its weight is an argument here; the source reads it from a global.
    """

    @staticmethod
    def forward(ctx, x, weight, bias):
        mean = x.mean(axis=1)
        q = x - mean.unsqueeze(1)
        v = torch.mean(q**2, axis=1)
        d = torch.sqrt(v + LAYER_NORM.eps)
        y = (q / d.unsqueeze(1)) * weight.unsqueeze(0) + bias.unsqueeze(0)
        ctx.save_for_backward(x, mean, q, v, d, y, weight)
        return y

    @staticmethod
    def backward(ctx, dy):
        _, _, q, _, d, _, weight = ctx.saved_tensors
        n = q.shape[1]
        dw = torch.einsum("bq,bq,b->q", [dy, q, 1 / d])
        c2 = torch.einsum("ph,h,p->p", [dy, weight, 1 / d]).unsqueeze(1) / n
        c1 = torch.einsum("ph,h,ph,p->p", [dy, weight, q, d ** (-3)]).unsqueeze(1) / n
        return (
            dy * weight.unsqueeze(0) / d.unsqueeze(1) - c2 - q * c1,
            dw,
            dy.sum(axis=0),
        )


def _baselines():
    """{name: LayerNorm of (x, weight, bias)}: autograd of the plain formula, and the source's stages."""

    def eager(x, weight, bias):
        return differentiable.forward(x, None, weight, bias, LAYER_NORM)[0]

    return {"eager": eager, "source": StagedLayerNorm.apply}


def implementations(operator: str, baselines: bool = False) -> dict:
    """{name: function of (x, residual, weight, bias) that returns a tuple of outputs}; Numba's where it is installed.

    Args:  operator: of OPERATORS; baselines: LayerNorm in two slower ways as well
    """
    if operator not in OPERATORS:
        raise ValueError(
            f"operator: got {operator!r}, needs one of {', '.join(map(repr, OPERATORS))}"
        )
    builders = {
        "numba": partial(timing.ours, backend="numba"),
        "torch": timing.eager,
        "normgrad": partial(timing.ours, backend="torch"),
    }
    functions = timing.installed(builders, operator)
    if baselines and operator.endswith("layer_norm"):
        functions |= {name: timing.summed(norm) for name, norm in _baselines().items()}
    return functions


def _ran_elsewhere() -> dict[str, float]:
    """{thread of another process: seconds that it has run by now}, empty where the system does not say.

    Under "steal": what a hypervisor gave to other machines.
    """
    ran = {}
    for file in Path("/proc").glob("[0-9]*/task/*/schedstat"):
        if file.parts[2] != str(os.getpid()):
            with suppress(OSError):  # a thread that ended meanwhile
                ran[str(file)] = 1e-9 * int(file.read_text().split()[0])
    for line in _lines("/proc/stat")[:1]:
        ran["steal"] = int(line.split()[8]) / os.sysconf("SC_CLK_TCK")
    return ran


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


def watched(rounds: Iterator[dict]) -> Iterator[tuple[dict, bool]]:
    """Each round, and whether it was clean."""
    before, start = _ran_elsewhere(), time.perf_counter()
    for said in rounds:
        after, seconds = _ran_elsewhere(), time.perf_counter() - start
        elsewhere = sum(ran - before.get(name, 0) for name, ran in after.items())
        yield said, elsewhere <= OTHERS * os.cpu_count() * seconds
        before, start = after, time.perf_counter()


def measure(
    shape: Shape, functions: dict, rounds: int, generator: torch.Generator
) -> tuple[dict, int]:
    """({name: seconds, one a round}, how many rounds were clean) of forward plus backward, a copy among the names.

    Of all rounds that are tried the clean ones are taken, and as many others as are missing.

    Args:     shape; functions: {name: implementation}; rounds: at least 1; generator: draws the inputs
    Raises:   ValueError naming an implementation whose results are wrong
    """
    inputs = timing.draw(shape, "cpu", generator)
    for name, function in functions.items():
        why = timing.refusal(shape, function, inputs)
        if why:
            raise ValueError(f"{name}: {why}")
    size = {"rows": shape.rows, "columns": shape.columns, "dtype": shape.dtype}
    moved = traffic.moved(shape.operator, "both", **size).total
    half = torch.empty(moved // 2, dtype=torch.uint8).random_(generator=generator)
    calls = {
        name: timing.call(function, "both", inputs)
        for name, function in functions.items()
    }
    calls[COPY] = half.clone
    repeats, tried = max(1, ELEMENTS_PER_TIMING // (shape.rows * shape.columns)), []
    turns = timing.interleaved(calls, partial(timing.timed, repeats=repeats))
    for said, clean in islice(watched(turns), TRIES * rounds):
        tried.append((said, clean))
        if sum(clean for _, clean in tried) == rounds:
            break
    taken = sorted(tried, key=lambda one: not one[1])[:rounds]
    return {name: [said[name] for said, _ in taken] for name in calls}, sum(
        clean for _, clean in taken
    )


def _records(shape, memory, times, clean):
    """What the file keeps of one shape: for each implementation seconds, and ratios to torch's own and to the copy."""
    for name, seconds in times.items():
        pairs = {
            base: list(zip(seconds, times[base], strict=True))
            for base in ("torch", COPY)
        }
        yield {
            "operator": shape.operator,
            "dtype": shape.dtype,
            "rows": shape.rows,
            "columns": shape.columns,
            "memory": memory,
            "implementation": name,
            "seconds": spread(seconds),
            "over_torch": spread([mine / its for mine, its in pairs["torch"]]),
            "over_copy": spread([mine / its for mine, its in pairs[COPY]]),
            "clean": clean,
            "rounds": len(seconds),
            "load": os.getloadavg()[0],
        }


def _line(record):
    ms = "{:8.3f} [{:.3f} {:.3f}]".format(
        *(1e3 * record["seconds"][k] for k in (1, 0, 2))
    )
    ratios = "".join(
        "{1:8.2f} [{0:.2f} {2:.2f}]".format(*record[name])
        for name in ("over_torch", "over_copy")
    )
    end = f"{record['clean']:5}/{record['rounds']}{record['load']:6.1f}"
    return f"{record['implementation']:10}{ms:>28}{ratios}{end}"


def _lines(path):
    return Path(path).read_text().splitlines() if Path(path).is_file() else []


def _begun(rounds, threads, processes=1):
    device = {"name": results.processor(), "threads": threads, "cores": os.cpu_count()}
    versions = {
        "torch": torch.__version__,
        "normgrad": normgrad.__version__,
        "python": platform.python_version(),
    }
    settings = {
        "processes": processes,
        "rounds": rounds,
        "others": OTHERS,
        "direction": "both",
    }
    settings |= {"spread": "quartile, median, quartile"}
    return timing.begun("cpu", device, versions, settings)


def _print_head(threads, dtype, spread_of=""):
    print(
        f"forward + backward, {dtype}, torch {torch.__version__}, {threads} threads; median [quartiles]{spread_of}"
    )
    print(
        f"{'':10}{'milliseconds':>28}{'over torch':>20}{'over copy':>20}  clean  load"
    )


def _print(records):
    first = records[0]
    size, memory = f"({first['rows']}, {first['columns']})", first["memory"]
    print(
        f"\n{first['operator']} {size}, memory {memory}",
        *map(_line, records),
        sep="\n",
        flush=True,
    )


def run_in_processes(
    processes: int, options: list[str], rounds: int, threads: int, dtype: str, file=None
) -> dict:
    """As run, in processes one after the other: print the spread of their medians, and write it to a file.

    Args:     processes: how many; options: of the command, for each of them; rounds, threads, dtype, file: as run
    Returns:  the results; of a record rounds and clean are sums, load the largest
    Raises:   RuntimeError with a process's words where it fails
    """
    merged_results, by_process = _begun(rounds, threads, processes), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(processes):
            part = Path(folder) / f"{number}.json"
            command = [sys.executable, __file__, *options, "--json", str(part)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"process {number}: {done.stderr.strip()}")
            by_process.append(results.load(part)["records"])
    _print_head(threads, dtype, f" of the medians of {processes} processes")
    measured = ("seconds", "over_torch", "over_copy")
    for same in zip(*by_process, strict=True):
        merged = {
            name: spread([record[name][1] for record in same]) for name in measured
        }
        merged |= {
            name: sum(map(itemgetter(name), same)) for name in ("clean", "rounds")
        }
        merged_results["records"].append(
            same[0] | merged | {"load": max(map(itemgetter("load"), same))}
        )
    for _, records in groupby(
        merged_results["records"], itemgetter("memory", "operator", "rows", "columns")
    ):
        _print(list(records))
    if file is not None:
        timing.save(file, merged_results)
    return merged_results


def run(
    rounds: int,
    threads: int,
    shapes=SHAPES,
    operators=OPERATORS,
    dtype="float32",
    baselines=False,
    file=None,
):
    """Print the table, and write it to a file as it grows.

    Args:  rounds: clean ones wanted; threads: torch's, and as many for Numba's kernels; shapes: (M, N) each; operators:
           their names; dtype: of all arrays; baselines: as implementations; file: results in JSON, or None
    """
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    begun = _begun(rounds, threads)
    _print_head(threads, dtype)
    for memory in MEMORY:
        with _memory(memory):
            for operator in operators:
                functions = implementations(operator, baselines)
                for rows, columns in shapes:
                    shape = Shape(operator, dtype, rows, columns)
                    times, clean = measure(shape, functions, rounds, generator)
                    records = list(_records(shape, memory, times, clean))
                    _print(records)
                    begun["records"] += records
                    if file is not None:
                        timing.save(file, begun)


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and time what it names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rounds",
        type=int,
        default=21,
        help="clean rounds; each times every implementation once",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="torch's threads, and Numba's (default 2)",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        help="one after the other; the spread of their medians",
    )
    parser.add_argument("--json", help="the results file to write")
    parser.add_argument(
        "--operators",
        nargs="+",
        choices=OPERATORS,
        default=OPERATORS,
        help="only these operators",
    )
    parser.add_argument(
        "--shapes", nargs="+", metavar="MxN", help="only these shapes, as 4096x1024"
    )
    parser.add_argument(
        "--dtype",
        choices=("float64", *DTYPES),
        default="float32",
        help="the dtype of all arrays",
    )
    parser.add_argument(
        "--baselines",
        action="store_true",
        help="LayerNorm by autograd and as source 003 has it, too",
    )
    options = parser.parse_args(arguments)
    shapes = (
        [tuple(map(int, text.split("x"))) for text in options.shapes]
        if options.shapes
        else SHAPES
    )
    if options.processes > 1:
        sizes = [f"{rows}x{columns}" for rows, columns in shapes]
        repeated = [
            "--rounds",
            str(options.rounds),
            "--threads",
            str(options.threads),
            "--dtype",
            options.dtype,
        ]
        repeated += [
            "--operators",
            *options.operators,
            "--shapes",
            *sizes,
            *["--baselines"] * options.baselines,
        ]
        most = options.rounds, options.threads, options.dtype, options.json
        run_in_processes(options.processes, repeated, *most)
        return
    named = {
        "dtype": options.dtype,
        "baselines": options.baselines,
        "file": options.json,
    }
    run(options.rounds, options.threads, shapes, options.operators, **named)


if __name__ == "__main__":
    main()
