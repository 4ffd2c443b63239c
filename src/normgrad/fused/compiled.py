"""A fused layer's kernels, compiled for a GPU that need not be here, in a process of its own: registers and spills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, astuple, replace

from ..dtypes import NAMES
from .launch import Programs


def compile_kernels(
    programs: Programs, text: str, target: str, dtype: str, columns: int
) -> list:
    """A `normgrad.bench.compile.Record` for each of the two kernels.

    Args:    programs: how the kernels are called; text: their source; target: a GPU as Triton names it, one of
             `normgrad.bench.launches.TARGETS`; dtype: of all tensors, as "bfloat16"; columns: N
    Raises:  ValueError for a target or dtype that is not known; RuntimeError with the compiler's words
    """
    from ..bench.compile import Record
    from ..bench.launches import TARGETS

    for name, value, allowed in (("target", target, TARGETS), ("dtype", dtype, NAMES)):
        if value not in allowed:
            raise ValueError(
                f"{name}: got {value!r}, needs one of {', '.join(allowed)}"
            )
    if not isinstance(columns, int) or columns < 1:
        raise ValueError(f"columns: got {columns!r}, needs an int from 1 on")
    named = replace(programs, forward=None, backward=None, kernels=None)
    # a process that has imported triton to interpret cannot compile
    done = subprocess.run(
        [sys.executable, "-m", "normgrad.fused.compiled"],
        input=json.dumps((astuple(named), text, target, dtype, columns)),
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"{programs.name} does not compile for {target}: {done.stderr.strip().splitlines()[-1]}"
        )
    return [Record(**fields) for fields in json.loads(done.stdout)]


def _records(fields, text, target, dtype, columns):
    import torch

    from ..bench.compile import record
    from ..bench.launches import ROWS, recorded
    from . import launch
    from .kernel_source import kernels_of

    narrow = getattr(torch, dtype)
    programs = launch.Programs(*fields)
    programs = replace(programs, kernels=kernels_of(programs.name, text))

    def matrix():
        return torch.empty((ROWS, columns), dtype=narrow, device="meta")

    def run():
        # eps and its like are numbers that the compiler knows
        constants = dict.fromkeys(programs.constants, 1e-6)
        values = {name: matrix() for name in programs.matrices}
        values |= {name: matrix()[0] for name in programs.vectors}
        dy, *saved = launch.forward_kernel(programs, constants, list(values.values()))
        read = {name: values[name] for name in programs.loaded if name in values}
        read = {programs.cotangent: dy, **read}
        read |= zip(programs.saved, saved, strict=True)
        dtypes = [narrow] * len(programs.inputs)
        launch.backward_kernel(programs, constants, read, dtypes)

    launches = [
        launched
        for launched in recorded(run, target)
        if launched.kernel.__name__.startswith(f"{programs.name}_")
    ]
    return [
        asdict(record(launched, programs.name, dtype, columns, target))
        for launched in launches
    ]


if __name__ == "__main__":
    print(json.dumps(_records(*json.load(sys.stdin))))
