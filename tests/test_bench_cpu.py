"""The benchmark of a CPU on shapes of a few rows: its rounds, its file, and that nothing wrong is timed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numba")

import cpu_times  # noqa: E402
import timing  # noqa: E402
from timing import OPERATORS, Shape  # noqa: E402

from normgrad.bench import results  # noqa: E402

SMALL = Shape("add_layer_norm", "float32", 6, 5)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """One call a timing; torch's number of threads is put back."""
    monkeypatch.setattr(cpu_times, "ELEMENTS_PER_TIMING", 1)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def others(monkeypatch):
    """Sets what another process has run by the beginning and after each round; before it was first seen, nothing."""

    def set_to(*seconds):
        turns = iter(seconds)
        monkeypatch.setattr(cpu_times, "_ran_elsewhere", lambda: {"other": next(turns)})

    return set_to


def test_rounds_beside_other_work_are_tried_again(others, torch_rng):
    functions = cpu_times.implementations("add_layer_norm")
    others(7, 67, 67, 67, 67)
    times, clean = cpu_times.measure(SMALL, functions, 3, torch_rng)
    assert clean == 3 and list(times) == ["numba", "torch", "normgrad", "copy"]
    assert all(len(seconds) == 3 and min(seconds) > 0 for seconds in times.values())
    others(*range(0, 60000, 60))
    times, clean = cpu_times.measure(SMALL, functions, 2, torch_rng)
    assert clean == 0 and len(times["copy"]) == 2


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="the system does not say what ran"
)
def test_what_another_process_runs_is_seen():
    """And not what this one runs."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before = cpu_times._ran_elsewhere()
        deadline = time.monotonic() + 30
        mine = f"/proc/{other.pid}/task/{other.pid}/schedstat"
        while cpu_times._ran_elsewhere()[mine] - before.get(mine, 0) < 0.1:
            assert time.monotonic() < deadline
    finally:
        other.kill()
        other.wait()
    assert not [
        name for name in cpu_times._ran_elsewhere() if f"/proc/{os.getpid()}/" in name
    ]


def test_nothing_wrong_is_timed(torch_rng):
    def wrong(x, residual, weight, bias):
        p = x + residual
        return torch.layer_norm(p, p.shape[-1:], weight, bias, eps=0.1), p

    with pytest.raises(ValueError, match="wrong: differs from the reference: y by"):
        cpu_times.measure(SMALL, {"wrong": wrong}, 1, torch_rng)
    with pytest.raises(
        ValueError, match="operator: got 'batch_norm', needs one of 'layer_norm'"
    ):
        cpu_times.implementations("batch_norm")


@pytest.mark.parametrize("operator", OPERATORS)
def test_baselines_are_the_same_layer(operator, torch_rng):
    functions = cpu_times.implementations(operator, baselines=True)
    assert ("source" in functions) == operator.endswith("layer_norm")
    cpu_times.measure(Shape(operator, "float32", 6, 5), functions, 1, torch_rng)


def test_the_command_writes_what_it_prints(tmp_path, capsys):
    file = tmp_path / "cpu.json"
    options = [
        "--rounds",
        "2",
        "--threads",
        "1",
        "--operators",
        "rms_norm",
        "--shapes",
        "6x5",
        "--json",
        str(file),
    ]
    cpu_times.main(options)
    found, printed = results.load(file), capsys.readouterr().out
    assert found["kind"] == "cpu" and json.loads(file.read_text()) == found
    assert {(one["memory"], one["implementation"]) for one in found["records"]} == {
        (memory, name)
        for memory in cpu_times.MEMORY
        for name in ("numba", "torch", "normgrad", "copy")
    }
    for one in found["records"]:
        assert one["seconds"] == sorted(one["seconds"]) and one["rounds"] == 2
        assert one["implementation"] != "torch" or one["over_torch"] == [1, 1, 1]
        assert one["implementation"] != "copy" or one["over_copy"] == [1, 1, 1]
    assert printed.count("rms_norm (6, 5), memory") == 2 and printed.count("numba") == 2


def test_several_processes_say_the_spread_of_their_medians(
    tmp_path, monkeypatch, capsys
):
    parts = iter([1.0, 3.0, 2.0])

    def ran(command, **_):
        assert "--processes" not in command
        ratio = next(parts)
        one = {
            "operator": "rms_norm",
            "rows": 6,
            "columns": 5,
            "memory": "new",
            "implementation": "numba",
        }
        one |= {
            "seconds": [0, ratio, 9],
            "over_torch": [0, ratio, 9],
            "over_copy": [0, 1, 9],
        }
        one |= {"load": ratio, "clean": 1, "rounds": 2}
        timing.save(command[-1], timing.begun("cpu", {}, {}, {}) | {"records": [one]})
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(cpu_times.subprocess, "run", ran)
    file = tmp_path / "cpu.json"
    options = [
        "--processes",
        "3",
        "--operators",
        "rms_norm",
        "--shapes",
        "6x5",
        "--json",
        str(file),
    ]
    cpu_times.main(options)
    (one,) = results.load(file)["records"]
    assert (
        one["over_torch"] == [1.5, 2.0, 2.5]
        and one["rounds"] == 6
        and one["load"] == 3.0
    )
    assert "2.00 [1.50 2.50]" in capsys.readouterr().out


def test_kept_memory_needs_its_c_library(monkeypatch):
    monkeypatch.setattr(cpu_times.ctypes, "CDLL", lambda _: object())
    with (
        pytest.raises(
            RuntimeError, match="memory: got 'kept', needs the C library glibc"
        ),
        cpu_times._memory("kept"),
    ):
        pass


def test_it_is_the_sum_that_is_normalized(torch_rng):
    x, residual, weight = (torch.randn(4, 3, generator=torch_rng) for _ in range(3))
    norm = timing.summed(lambda p, weight, bias: p * weight)
    assert torch.equal(norm(x, residual, weight, None)[0], (x + residual) * weight)
    assert torch.equal(norm(x, None, weight, None)[0], x * weight)
