"""The host's time: a launch of a kept kernel is the launch that Triton makes itself."""

import os
from pathlib import Path

import pytest
from processes import python

pytest.importorskip("triton")

TOOLS = Path(__file__).parents[1] / "tools"
# Triton compiles or interprets, once a process: this one has to compile.
LAUNCHES = """
import torch
from normgrad import LAYER_NORM, RMS_NORM
import host_times

made = []


def launch(*arguments):
    made.append((*arguments[:3], *(described(one) for one in arguments[9:])))


def described(one):
    return (one.dtype, one.shape, one.stride()) if isinstance(one, torch.Tensor) else one


with host_times.without_gpu(launch):
    from normgrad.triton_kernels import launch as kernels

    def tensor(*shape, dtype=torch.float32, offset=0):
        size = torch.Size(shape).numel()
        return torch.zeros(offset + size, dtype=dtype)[offset:].view(shape)

    def run(m, n, spec, residual=False, bias=True, dtype=torch.float32, portable_sums=False, x=None):
        x = tensor(m, n, dtype=dtype) if x is None else x
        added = tensor(m, n, dtype=dtype) if residual else None
        weight, sums = tensor(n), tensor(n) if bias else None
        y, p, mean, rstd = kernels.forward(x, weight, sums, added, spec)
        dtypes = [dtype, dtype if residual else None, weight.dtype, sums.dtype if bias else None]
        kernels.backward(y, p, x if p is None else p, weight, mean, rstd, spec, dtypes, portable_sums=portable_sums)

    rms = RMS_NORM.replace(eps=1e-6)
    cases = [
        (4, 64, LAYER_NORM), (1, 64, LAYER_NORM), (16, 64, LAYER_NORM), (4, 63, LAYER_NORM), (4, 64, rms),
        (4, 64, rms.replace(eps=1e-5)), (4, 64, rms, True), (4, 64, rms, False, False),
        (4, 64, LAYER_NORM, True, True, torch.bfloat16), (4, 64, LAYER_NORM, False, True, torch.float64),
        (300, 64, LAYER_NORM), (300, 64, LAYER_NORM, False, True, torch.float32, True), (4, 20000, LAYER_NORM, True),
    ]
    found = {}
    for kept in (False, True, True):
        for place, case in enumerate(cases):
            if not kept:
                kernels._compiled.clear()
            before = len(kernels._compiled)
            made.clear()
            run(*case)
            assert len(made) >= 3, made
            assert found.setdefault(place, list(made)) == made, (case, made)
    assert len(kernels._compiled) == before and before > 2 * len(cases)
    # A statistic that is no multiple of 16 bytes away is another kernel; rows are copied instead.
    m, n = 4, 64
    x, y, statistic = tensor(m, n), tensor(m, n), tensor(8, offset=1)[:m]
    kernels.backward(y, None, x, None, statistic, statistic, LAYER_NORM, [x.dtype, None, None, None])
    assert len(kernels._compiled) == before + 1
    kernels.forward(tensor(m, n, offset=1), tensor(n), tensor(n), None, LAYER_NORM)
    assert len(kernels._compiled) == before + 1
print("the same launches")
"""


def test_a_kept_kernel_is_launched_as_triton_launches_it():
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(TOOLS)}
    done = python("-W", "ignore", "-c", LAUNCHES, env=environment)
    assert done.returncode == 0 and done.stdout == "the same launches\n", done.stderr
