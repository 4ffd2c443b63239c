"""The operator on DTensors: the contract in every placement.

    python tests/distributed_norms.py 2      in so many processes, on the CPU
    python tests/distributed_norms.py 2 some  one backend for each placement, function and dtype, by turns

Prints a line for each case, with the largest error of each output over its bound; ends with an error where a case fails
in any process.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product

os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    init_device_mesh,
)

from normgrad import LAYER_NORM, RMS_NORM
from normgrad.checks.backends import TorchBackend
from normgrad.checks.cases import cases, draw
from normgrad.checks.contract import check_values
from normgrad.checks.tolerance import Dtypes

# Three batches do not divide among two or four processes: one holds fewer rows, or none.
BATCH, SEQUENCE, COLUMNS = 3, 5, 8
R = Replicate()
ON_A_LINE = {
    "batch": Shard(0),
    "sequence": Shard(1),
    "columns": Shard(2),
    "replicated": R,
    "parts of a sum": Partial(),
}
# In 16 bits each process would round its part of dw and db before they are summed, as torch's own norms do.
DTYPES = (Dtypes("float64"), Dtypes("bfloat16", weight="float32", bias="float32"))
ON_A_GRID = {
    "batch, sequence": (Shard(0), Shard(1)),
    "batch, replicated": (Shard(0), R),
    "batch twice": (Shard(0), Shard(0)),
    "sequence, columns": (Shard(1), Shard(2)),
}


class Distributed(TorchBackend):
    """A backend on DTensors: the arguments are shared among processes, the outputs collected from them.

    Args:  name: of the backend; mesh; rows, affine: the placements of x and residual, and of weight and bias
    """

    def __init__(self, name, mesh, rows, affine):
        super().__init__(name)
        self.mesh, self.rows, self.affine = mesh, rows, affine

    def _shared(self, t, placements):
        if t is None:
            return None
        if placements[0].is_partial():
            # the first process has the numbers, the others zeros whose derivative is 1
            part = t if dist.get_rank() == 0 else t - t.detach()
            return DTensor.from_local(part, self.mesh, placements)
        return DTensor.from_local(t, self.mesh, [R] * self.mesh.ndim).redistribute(
            placements=placements
        )

    def normalize(self, x, residual, weight, bias, spec, **options):
        rows = (self._shared(t, self.rows) for t in (x, residual))
        affine = (self._shared(t, self.affine) for t in (weight, bias))
        outputs = super().normalize(*rows, *affine, spec, **options)
        return tuple(t.full_tensor() for t in outputs)


BACKENDS = ("torch", "numba", "triton")
# What each process would import when it needs it: seconds, which are spent once, before there are several.
NEEDED = (
    "torch._dynamo",
    "triton.runtime.interpreter",
    "normgrad.numba_kernels",
    "normgrad.triton_kernels",
)


def calls():
    """{function: (case, spec)}."""
    rng = np.random.default_rng(0)
    case = replace(draw(rng, BATCH * SEQUENCE, COLUMNS), lead=(BATCH, SEQUENCE))
    return {
        "layer_norm": (case.without("residual", "dresidual_out"), LAYER_NORM),
        "add_rms_norm": (case.without("bias"), RMS_NORM.replace(weight_offset=1.0)),
        # of the shape (tokens, heads, columns)
        "a weight for each head": (
            replace(cases(rng, BATCH, COLUMNS)[-1], layout="contiguous"),
            LAYER_NORM,
        ),
    }


def contract(world, some):
    """(title, check) of the operator's cases, or of some in which every two conditions meet."""
    line = init_device_mesh("cpu", (world,))
    settings = [
        (line, name, (placement,), (R,)) for name, placement in ON_A_LINE.items()
    ]
    settings.append((line, "batch, weight split", (Shard(0),), (Shard(0),)))
    if world == 4:
        grid = init_device_mesh("cpu", (2, 2))
        settings += [
            (grid, name, placements, (R, R)) for name, placements in ON_A_GRID.items()
        ]
    conditions = product(*map(enumerate, (settings, calls().items(), DTYPES, BACKENDS)))
    for (a, (mesh, name, rows, affine)), (b, (function, (case, spec))), (c, dtype), (
        d,
        backend,
    ) in conditions:
        if not some or (a + b + c + d) % len(BACKENDS) == 0:
            shared = Distributed(backend, mesh, rows, affine)
            check = partial(check_values, shared, case, spec, dtype)
            yield (
                f"{function}, {name}, {backend}, {dtype.x}",
                lambda check=check: check().errors,
            )


def work(rank, world, file, some):
    """What one process does."""
    torch.set_num_threads(1)
    minute = timedelta(seconds=120)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{file}",
        rank=rank,
        world_size=world,
        timeout=minute,
    )
    if rank == 0:  # the others read from Numba's disk what one has compiled
        for (case, spec), dtype in product(calls().values(), DTYPES):
            check_values("numba", case, spec, dtype)
    dist.barrier()
    for title, check in contract(world, some):
        errors = check()
        if rank == 0:
            parts = (
                f"{name} {error / bound if bound else 0:.2f}"
                for name, (error, bound) in errors.items()
            )
            print(f"{title}: {', '.join(parts)}", flush=True)
    dist.destroy_process_group()


def main():
    """All cases in as many processes as the argument says."""
    world, some = int(sys.argv[1]), sys.argv[2:] == ["some"]
    for module in NEEDED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        arguments = (world, f"{folder}/store", some)
        torch.multiprocessing.start_processes(
            work, arguments, nprocs=world, start_method="fork"
        )


if __name__ == "__main__":
    main()
