"""What the host does for a call: forward and backward on so few rows that nothing else takes time.

Kernels for a GPU are timed up to their launch, and need no GPU for it: Triton is given a driver that launches nothing.
So what is compiled is compiled for nobody, tensors lie on the CPU, and a device's properties cost nothing.

The time is this thread's own, without what other processes take of the machine. Each round times every implementation
once, in an order that rotates.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from unittest import mock

import timing
import torch
from timing import OPERATORS, Shape, spread

import normgrad
from normgrad.bench import results
from normgrad.bench.launches import TARGETS

ROWS, COLUMNS, DTYPE = 4, 64, "float32"
DIRECTIONS = ("forward", "backward")
# Calls of one timing, few enough that most timings are not interrupted.
CALLS = 20


class Driver:
    """Says which GPU there is, and launches nothing."""

    def get_current_target(self):
        """The GPU that kernels are compiled for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        """Its number."""
        return 0

    def get_current_stream(self, _device):
        """A stream's number."""
        return 0


@contextmanager
def without_gpu(launch=lambda *_: None) -> Iterator[None]:
    """Triton launches on tensors of the CPU while the context lasts, by a function in place of a driver's launcher.

    Args:    launch: of a launch's grid, stream, kernel, metadata, hooks and arguments, as Triton's launchers
    Raises:  RuntimeError where this process has imported Triton to interpret
    """
    from normgrad.bench.launches import compiler

    compiler()
    import triton
    from triton.compiler import CompiledKernel

    from normgrad import triton_kernels
    from normgrad.triton_kernels import configuration

    def compiled(source, **_):
        kernel = object.__new__(CompiledKernel)
        kernel.src, kernel.name, kernel.metadata, kernel._run = (
            source,
            source.name,
            None,
            launch,
        )
        kernel.module = kernel.function = kernel.packed_metadata = 0
        return kernel

    target = TARGETS["sm_90"]
    device = configuration.Device(target.multiprocessors, target.shared_bytes)
    with ExitStack() as stack:
        for owner, name, value in (
            (triton.compiler, "compile", compiled),
            (triton.runtime.driver, "_active", Driver()),
            (triton_kernels, "check_device", lambda _: None),
            (configuration, "device_of", lambda _: device),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def implementations(operator: str) -> dict:
    """{name: function of (x, residual, weight, bias)}, those that are installed."""
    ours = {
        f"normgrad {name}": partial(timing.ours, backend=name)
        for name in ("torch", "numba", "triton")
    }
    return timing.installed(
        {"torch": timing.eager, **ours, "liger": timing.liger}, operator
    )


def _timed(call) -> float:
    """Microseconds of a call."""
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return 1e6 * (time.thread_time() - start) / CALLS


def measure(operator: str, rounds: int, generator: torch.Generator) -> dict:
    """{(name, direction): microseconds, one a round}.

    Args:  operator: of OPERATORS; rounds: at least 1; generator: draws the inputs
    """
    inputs = timing.draw(Shape(operator, DTYPE, ROWS, COLUMNS), "cpu", generator)
    functions = implementations(operator)
    calls = {(name, which): timing.call(function, which, inputs) for name, function in functions.items()
             for which in DIRECTIONS}  # fmt: skip
    said = list(islice(timing.interleaved(calls, _timed), rounds))
    return {key: [times[key] for times in said] for key in calls}


def _record(operator, name, which, times):
    microseconds = [float(f"{min(times):.4g}"), *spread(times)]
    return {"kind": "host", "operator": operator, "implementation": name, "direction": which,
            "microseconds": microseconds}  # fmt: skip


def run(rounds: int, operators=OPERATORS, file=None) -> dict:
    """Print the table, and write it to a file as it grows.

    Args:     rounds: how often each is timed; operators: their names; file: results in JSON, or None
    Returns:  the results
    """
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    versions = {
        "torch": torch.__version__,
        "normgrad": normgrad.__version__,
        "python": platform.python_version(),
    }
    settings = {
        "rounds": rounds,
        "rows": ROWS,
        "columns": COLUMNS,
        "spread": "lowest, quartile, median, quartile",
    }
    begun = timing.begun("host", {"name": results.processor()}, versions, settings)
    print(
        f"host time in microseconds at ({ROWS}, {COLUMNS}), Triton's kernels up to their launch: lowest [quartiles]"
    )
    with without_gpu():
        for operator in operators:
            print(f"\n{operator}")
            for (name, which), times in measure(operator, rounds, generator).items():
                record = _record(operator, name, which, times)
                lowest, low, _, high = record["microseconds"]
                print(
                    f"{name:16}{which:9}{lowest:8.1f} [{low:.1f} {high:.1f}]",
                    flush=True,
                )
                begun["records"].append(record)
            if file is not None:
                timing.save(file, begun)
    return begun


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and time what it names."""
    os.environ["TRITON_INTERPRET"] = (
        "0"  # before anything imports triton, which reads it once
    )
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=101, help="each times every implementation once"
    )
    parser.add_argument("--json", help="the results file to write")
    parser.add_argument(
        "--operators",
        nargs="+",
        choices=OPERATORS,
        default=OPERATORS,
        help="only these operators",
    )
    options = parser.parse_args(arguments)
    run(options.rounds, options.operators, options.json)


if __name__ == "__main__":
    main()
