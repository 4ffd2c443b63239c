"""The kernels, compiled for GPUs that are not here: what the launchers would launch, read from the machine code."""

import os
from pathlib import Path

import pytest
from processes import python

from normgrad.bench import compile
from normgrad.bench.launches import TARGETS

triton = pytest.importorskip("triton")
# `python -m normgrad.bench`, which leaves out what an older Triton has no compiler for.
ANY_TRITON = Path(__file__).parents[1] / "tools/triton_versions.py"
COMMITTED = compile.read()
REGENERATE = (
    "python -m normgrad.bench compile --json src/normgrad/bench/results/compile.json"
)
# One process compiles for all of these, so a commit has all of them or none.
compiles = pytest.mark.sampled(of=4, key="compile", turn=0)
# Registers are ptxas's business, and it comes with Triton.
same_compiler = pytest.mark.skipif(
    triton.__version__ != COMMITTED.triton, reason=f"needs triton {COMMITTED.triton}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records and assembly of LayerNorm in bfloat16, with tiles of many rows, of one row, and with sweeps."""
    folder = tmp_path_factory.mktemp("compile")
    chosen = "--operators layer_norm --dtypes bfloat16 --columns 128 8192 65536"
    kept = ["--json", folder / "records.json", "--assembly", folder / "assembly"]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    done = python(ANY_TRITON, "compile", *kept, *chosen.split(), env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return compile.read(folder / "records.json")


@pytest.fixture(scope="module")
def records(results):
    return results.records


@compiles
def test_every_target_has_every_kernel(results, records):
    # What an older Triton has no compiler for; the pinned one has all, as the committed results say.
    refused = {name.removeprefix("bfloat16 on ") for name in results.refused}
    assert (
        {one.target for one in records}
        == set(TARGETS) - refused
        >= {"sm_80", "sm_89", "sm_90"}
    )
    for target in set(TARGETS) - refused:
        assert {one.kernel for one in records if one.target == target} == {
            "forward_rows", "backward_rows", "forward_sweeps", "row_sums", "backward_columns", "reduce_partials",
        }  # fmt: skip


@compiles
def test_rows_are_read_and_written_by_16_bytes(records):
    assert {one.load_bits for one in records} == {128}
    wide = [one for one in records if one.kernel not in ("row_sums", "reduce_partials")]
    assert {one.store_bits for one in wide} == {128}


@compiles
def test_shared_memory_is_within_the_limit(records):
    assert [one for one in records if one.shared_bytes > one.shared_limit] == []


def test_the_committed_results_are_of_these_kernels():
    assert COMMITTED.kernels == compile.kernel_sources(), (
        f"the kernels have changed since; run {REGENERATE}"
    )


@compiles
@same_compiler
def test_the_committed_results_are_what_is_compiled_now(records):
    committed = set(COMMITTED.records)
    assert [one for one in records if one not in committed] == [], f"run {REGENERATE}"


RECOMPILATION = """
import torch
from triton import JITFunction
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import create_function_from_signature
from normgrad import LAYER_NORM
from normgrad.triton_kernels import configuration, launch

backend, variants = make_backend(GPUTarget("cuda", 90, 32)), set()

def run(kernel, *arguments, grid, warmup, **options):
    specialize = create_function_from_signature(kernel.signature, kernel.params, backend)
    _, specialization, others = specialize(*arguments, **options)
    variants.add((kernel.__name__, str(specialization), str(sorted(others.items()))))

JITFunction.run = run
configuration.device_of = lambda tensor: configuration.Device(132, 227 << 10)
for n in (96, 1001, 40000):
    for m in (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 513, 1024):
        for stride in (n, 2 * n, 2 * n + 5):
            x = torch.empty(m, stride, dtype=torch.bfloat16)[:, :n]
            dy, w = (x, x[:1].expand(m, n))[m % 2], torch.empty(n, dtype=torch.bfloat16)
            _, p, mean, rstd = launch.forward(x, w, w, x, LAYER_NORM)
            launch.backward(dy, x, p, w, mean, rstd, LAYER_NORM, (x.dtype,) * 4)
print(*sorted(name for name, *_ in variants))
"""


@same_compiler
def test_rows_and_strides_never_recompile():
    done = python("-c", RECOMPILATION, env={**os.environ, "TRITON_INTERPRET": "0"})
    # Triton's own key of each launch: one variant of a kernel for each N, whatever the rows and their distance.
    rows, sweeps = (
        ("backward_rows", "forward_rows"),
        ("backward_columns", "forward_sweeps", "row_sums"),
    )
    assert done.stdout.split() == sorted(
        [*rows * 2, *sweeps, *["reduce_partials"] * 3]
    ), done.stderr
