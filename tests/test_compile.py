"""The kernels, compiled for GPUs that are not here: what the launchers would launch, read from the machine code."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")
COMMAND = [sys.executable, "-m", "normgrad.bench", "compile"]


def _run(*arguments, **environment):
    command = [*COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compile")
    file = folder / "records.json"
    chosen = ["--operators", "add_layer_norm", "l2_norm", "--dtypes", "bfloat16", "--columns", "96", "8192"]
    done = _run("--json", str(file), *chosen, TRITON_CACHE_DIR=str(folder / "cache"))
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())["records"]


def test_every_target_has_every_kernel(records):
    targets = {one["target"] for one in records}
    assert targets == {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "gfx942"}
    for target in targets:
        found = {one["kernel"] for one in records if one["target"] == target}
        assert found == {"_forward_kernel", "_backward_kernel", "_reduce_kernel"}


def test_rows_are_read_and_written_by_16_bytes(records):
    wide = [one for one in records if one["columns"] == 8192 and one["kernel"] != "_reduce_kernel"]
    assert wide and all((one["load_bits"], one["store_bits"]) == (128, 128) for one in wide)


def test_shared_memory_is_within_the_limit(records):
    assert all(one["shared_bytes"] <= one["shared_limit"] for one in records)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--targets", "sm_1", "needs one of sm_75"),
        ("--columns", "0", "needs at least 1"),
        ("--dtypes", "int8", "needs one of bfloat16"),
    ],
)
def test_what_cannot_be_compiled_is_refused(option, value, message, tmp_path):
    done = _run("--json", str(tmp_path / "x.json"), option, value)
    assert done.returncode == 2 and message in done.stderr
