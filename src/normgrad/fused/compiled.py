"""A fused layer's kernels, compiled for a GPU that need not be here, in a process of its own: registers and spills."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace

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
        input=pickle.dumps((named, text, target, dtype, columns)),
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
    )
    if done.returncode:
        last = done.stderr.decode().strip().splitlines()[-1]
        raise RuntimeError(f"{programs.name} does not compile for {target}: {last}")
    return pickle.loads(done.stdout)


def _records(programs, text, target, dtype, columns):
    import torch

    from ..bench.compile import record
    from ..bench.launches import ROWS, recorded
    from .kernel_source import kernels_of
    from .launch import backward_kernel, forward_kernel

    narrow = getattr(torch, dtype)
    matrix = torch.empty((ROWS, columns), dtype=narrow, device="meta")
    programs = replace(programs, kernels=kernels_of(programs.name, text))

    def run():
        # eps and its like are numbers that the compiler knows
        constants = dict.fromkeys(programs.constants, 1e-6)
        inputs = dict.fromkeys(programs.matrices, matrix)
        inputs |= dict.fromkeys(programs.vectors, matrix[0])
        dy, *saved = forward_kernel(programs, constants, list(inputs.values()))
        loaded = [name for name in programs.loaded if name in inputs]
        read = {programs.cotangent: dy} | {name: inputs[name] for name in loaded}
        read |= zip(programs.saved, saved, strict=True)
        backward_kernel(programs, constants, read, [narrow] * len(inputs))

    return [
        record(launched, programs.name, dtype, columns, target)
        for launched in recorded(run, target)
        if launched.kernel.__name__.startswith(f"{programs.name}_")
    ]


if __name__ == "__main__":
    records = _records(*pickle.load(sys.stdin.buffer))
    sys.stdout.buffer.write(pickle.dumps(records))
