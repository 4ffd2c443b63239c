"""What the host does for a call: forward and backward on so few rows that nothing else takes time.

Kernels for a GPU are timed up to their launch, and need no GPU for it: Triton is given a driver that launches nothing.
So what is compiled is compiled for nobody, tensors lie on the CPU, and a device's properties cost nothing.

The time is this thread's own, without what other processes take of the machine. Each round times every implementation
once, in an order that rotates.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from unittest import mock

import timing
import torch
from timing import Shape, spread

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


def measure(operator: str, rounds: int, generator: torch.Generator) -> dict:
    """{(name, direction): microseconds, one a round}.

    Args:  operator: of OPERATORS; rounds: at least 1; generator: draws the inputs
    """
    inputs = timing.draw(Shape(operator, DTYPE, ROWS, COLUMNS), "cpu", generator)
    calls = {
        (name, direction): timing.call(function, direction, inputs)
        for name, function in implementations(operator).items()
        for direction in DIRECTIONS
    }
    clock = partial(timing.timed, repeats=CALLS, clock=time.thread_time)
    times = list(islice(timing.interleaved(calls, clock), rounds))
    return {key: [1e6 * seconds[key] for seconds in times] for key in calls}


def run(options) -> None:
    """Print the table, and write it to a file as it grows."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    settings = {"rounds": options.rounds, "rows": ROWS, "columns": COLUMNS}
    settings["spread"] = "lowest, quartile, median, quartile"
    begun = timing.begun("host", {"name": results.processor()}, settings)
    print("host time in microseconds, Triton's up to their launch: lowest [quartiles]")
    with without_gpu():
        for operator in options.operators:
            print(f"\n{operator}")
            times = measure(operator, options.rounds, generator)
            for (name, direction), microseconds in times.items():
                lowest = float(f"{min(microseconds):.4g}")
                low, middle, high = spread(microseconds)
                print(f"{name:16}{direction:9}{lowest:8.1f} [{low:.1f} {high:.1f}]")
                begun["records"].append(
                    {
                        "kind": "host",
                        "operator": operator,
                        "implementation": name,
                        "direction": direction,
                        "microseconds": [lowest, low, middle, high],
                    }
                )
            if options.json:
                timing.save(options.json, begun)


def main() -> None:
    """Parse the command line and time what it names."""
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    parser = timing.parser(__doc__)
    parser.add_argument(
        "--rounds", type=int, default=101, help="each times every implementation once"
    )
    run(parser.parse_args())


if __name__ == "__main__":
    main()
