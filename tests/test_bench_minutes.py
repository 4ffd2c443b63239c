"""A run that is cut short, and the run that goes on; what a chapter measures live."""

import itertools
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from gpu_stand_in import BUILDERS, StandIn  # noqa: E402

from normgrad.bench import __main__ as command  # noqa: E402
from normgrad.bench import device, gpu, plan, results, traffic  # noqa: E402

SHAPES = [plan.Shape("rms_norm", "float32", rows, 16) for rows in (8, 9, 10, 11)]


class Watch(StandIn):
    """A device on whose clock each direction of a shape takes 10 seconds, or what `slow` gives for its rows."""

    def __init__(self, slow=()):
        super().__init__()
        self.now, self.slow = 0.0, dict(slow)

    def clock(self):
        return self.now


@pytest.fixture(autouse=True)
def time_passes(monkeypatch, few_calls):
    visit = gpu.visit

    def slow_visit(shape, directions, builders, device, rounds):
        for made in visit(shape, directions, builders, device, rounds):
            device.now += device.slow.get(shape.rows, 10.0)
            yield made

    monkeypatch.setattr(gpu, "visit", slow_visit)


def run(file, seconds, device=None):
    device = device or Watch()
    found = gpu.begin(file, device)
    gpu.run(file, found, SHAPES, device, BUILDERS, seconds)
    return {(one["rows"], one["direction"]) for one in results.load(file)["records"]}


def points(*rows):
    return set(itertools.product(rows, traffic.DIRECTIONS))


def test_a_run_ends_before_a_shape_that_would_not_fit(tmp_path, capsys):
    """30 seconds a shape: in 89 there is time for two, since the third would end at 90."""
    assert run(tmp_path / "r.json", 89) == points(8, 9)
    said = capsys.readouterr().out
    assert "the time is over: 2 of 4 shapes are left (2 in float32), rms_norm float32 (10, 16) first" in said
    assert run(tmp_path / "exact.json", 90) == points(8, 9, 10)


def test_the_same_command_goes_on(tmp_path, capsys):
    file = tmp_path / "r.json"
    assert run(file, 60) == points(8, 9)
    assert run(file, 60) == points(8, 9, 10, 11)
    assert "[###############...............] 2 of 4 shapes rms_norm float32 (10, 16)" in capsys.readouterr().err
    run(file, 60)
    assert len(results.load(file)["records"]) == len(points(8, 9, 10, 11)) * 3
    assert "the time is over" not in capsys.readouterr().out.split("never below")[-1]


def test_a_shape_that_takes_too_long_is_left_half_done(tmp_path, capsys):
    file = tmp_path / "r.json"
    assert run(file, 60, Watch({9: 20.0})) == points(8) | {(9, "forward"), (9, "backward")}
    assert "3 of 4 shapes are left" in capsys.readouterr().out
    assert run(file, None) == points(8, 9, 10, 11)
    assert "the time is over" not in capsys.readouterr().out


def test_a_slow_first_shape_says_little_of_the_others(tmp_path):
    """120 seconds, then 30 each: at 150 there is time for another one."""
    assert run(tmp_path / "r.json", 240, Watch({8: 40.0})) == points(8, 9, 10, 11)
    assert run(tmp_path / "short.json", 239, Watch({8: 40.0})) == points(8)


def test_the_first_shape_is_always_begun(tmp_path):
    assert run(tmp_path / "r.json", 1) == {(8, "forward")}


def test_a_shape_that_ran_out_of_memory_is_not_left_by_the_time(tmp_path, monkeypatch, capsys):
    def scarce(*arguments):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(gpu, "visit", scarce)
    assert run(tmp_path / "r.json", 60) == set()
    said = capsys.readouterr().out
    assert "left out: rms_norm float32 (11, 16): out of memory" in said and "the time is over" not in said


def test_results_go_on_with_the_rounds_they_have(tmp_path):
    file = tmp_path / "r.json"
    assert gpu.begin(file, Watch())["settings"]["rounds"] == plan.ROUNDS
    gpu.begin(file, Watch(), plan.ROUNDS)
    with pytest.raises(ValueError, match=f"got settings: rounds {plan.ROUNDS}, this run has 3; needs another file"):
        gpu.begin(file, Watch(), 3)
    results.save(file, results.load(file) | {"settings": gpu.fresh(Watch(), 3)["settings"]})
    assert gpu.begin(file, Watch())["settings"]["rounds"] == 3


def test_another_driver_is_named_beside_the_first(tmp_path, monkeypatch):
    file = tmp_path / "r.json"
    for driver in ("580.1", "580.2", "580.2"):
        monkeypatch.setattr(Watch, "describe", lambda self, driver=driver: {"name": "GPU", "driver": driver})
        found = gpu.begin(file, Watch())
    assert found["device"] == results.load(file)["device"] == {"name": "GPU", "driver": "580.1, 580.2"}
    monkeypatch.setattr(Watch, "describe", lambda self: {"name": "another", "driver": "580.2"})
    with pytest.raises(ValueError, match="got device: name GPU, this run has another"):
        gpu.begin(file, Watch())


def test_other_kernels_are_not_mixed(tmp_path, monkeypatch):
    gpu.begin(tmp_path / "r.json", Watch())
    (tmp_path / "changed.py").write_text("changed")
    monkeypatch.setattr(gpu, "KERNELS", tmp_path)
    with pytest.raises(ValueError, match="got versions: kernels"):
        gpu.begin(tmp_path / "r.json", Watch())


# What the command hands on


def call(monkeypatch, *options):
    """The arguments with which the command calls gpu.run on a device that computes in float16 only."""
    seen = {}

    class Half(Watch):
        half = "float16"

    def remember(file, found, shapes, here, seconds):
        seen.update(shapes=shapes, seconds=seconds)

    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(device, "Cuda", Half)
    monkeypatch.setattr(gpu, "run", remember)
    monkeypatch.setattr(sys, "argv", ["bench", "gpu", *map(str, options)])
    command.main()
    return seen["shapes"], seen["seconds"]


def test_quick(monkeypatch, tmp_path):
    """Two shapes of each operator, in the device's own 16-bit dtype, fewer rows in a small memory, two minutes."""
    monkeypatch.setattr(StandIn, "free", 2**50)
    shapes, seconds = call(monkeypatch, "--json", tmp_path / "r.json", "--quick")
    assert seconds == 120 and {one.dtype for one in shapes} == {"float16"}
    assert [(one.rows, one.columns) for one in shapes] == [plan.ALWAYS[0]] * 4 + [plan.ALWAYS[1]] * 4
    monkeypatch.setattr(StandIn, "free", 2**30)
    small, _ = call(monkeypatch, "--json", tmp_path / "r.json", "--quick")
    assert len(small) == 8 and max(one.rows for one in small) < 8192


def test_minutes_are_seconds_and_starts_with_the_devices_dtype(monkeypatch, tmp_path):
    shapes, seconds = call(monkeypatch, "--json", tmp_path / "r.json", "--minutes", 9)
    assert seconds == 540 and list(dict.fromkeys(one.dtype for one in shapes)) == ["float16", "bfloat16", "float32"]
    shapes, seconds = call(monkeypatch, "--json", tmp_path / "r.json", "--dtypes", "float32")
    assert seconds is None and {one.dtype for one in shapes} == {"float32"}
    assert call(monkeypatch, "--json", tmp_path / "r.json", "--quick", "--minutes", 0.5)[1] == 30


# Live


def test_nothing_is_measured_without_a_gpu(monkeypatch, capfd):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("no GPU, and yet a process"))
    assert gpu.live() is None
    assert capfd.readouterr() == ("", "")


def test_live_results_are_the_commands(monkeypatch, capfd):
    def command(arguments, **options):
        name, minutes, file = (arguments[arguments.index(one) + 1] for one in ("-c", "--minutes", "--json"))
        assert "--quick" in arguments and float(minutes) == 0.5 and options["capture_output"]
        found = gpu.begin(file, Watch())
        results.save(file, found | {"records": [{"kind": "measured"}]})
        return subprocess.CompletedProcess(arguments, 0, "a table", "a bar")

    monkeypatch.setattr(device, "refusal", lambda: None)
    monkeypatch.setattr(subprocess, "run", command)
    found = gpu.live(30)
    assert found["kind"] == "measured" and found["records"] == [{"kind": "measured"}]
    assert capfd.readouterr() == ("", "")


def test_a_live_run_that_fails_says_why(monkeypatch):
    """The command itself, in its process: it sees no GPU, although this one is told that there is one."""
    monkeypatch.setattr(device, "refusal", lambda: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(RuntimeError, match="normgrad.bench gpu: .*error: gpu: got no CUDA device"):
        gpu.live(1)
    with pytest.raises(ValueError, match="seconds: got 0, needs a positive number"):
        gpu.live(0)


def test_no_time_is_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        call(monkeypatch, "--json", "r.json", "--minutes", 0)
    assert "--minutes: got 0.0, needs a positive number" in capsys.readouterr().err
