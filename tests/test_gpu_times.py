"""The timing of a GPU without one: its file, its promises, and that nothing wrong is timed."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import gpu_times  # noqa: E402
import timing  # noqa: E402
from timing import Shape  # noqa: E402

from normgrad.bench import results  # noqa: E402
from normgrad.teaching import bytes as traffic  # noqa: E402

ROOT = Path(__file__).parents[1]
OPTIONS = ["--stand-in", "--operators", "add_rms_norm", "--json"]


@pytest.fixture
def no_device(monkeypatch):
    monkeypatch.setenv(
        "TRITON_INTERPRET", "1"
    )  # the command sets it where it is not set
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def records_of(file, *options):
    gpu_times.main([*OPTIONS, str(file), *options])
    return results.load(file)["records"]


def test_the_slot_runs_to_its_end_without_a_gpu(tmp_path):
    environment = {**os.environ, "PYTHON": sys.executable}
    command = [
        "bash",
        str(ROOT / "tools/slot.sh"),
        str(tmp_path),
        "--stand-in",
        "--operators",
        "rms_norm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    steps = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert list(steps) == ["tests", "times", "rest"], done.stderr
    for name in ("times", "rest"):
        assert steps[name].startswith("ended with status 0"), (
            tmp_path / f"{name}.txt"
        ).read_text()
    records = results.load(tmp_path / "gpu.json")["records"]
    points = {tuple(record[name] for name in gpu_times.POINT) for record in records}
    assert len(points) == 3 * len(gpu_times.STAND_IN_SHAPES) * len(
        traffic.DIRECTIONS
    )  # 3 dtypes


def test_records(tmp_path, no_device, monkeypatch):
    """The copy takes 2 ms, the others 4: half of its speed; the bytes are the floor's."""
    monkeypatch.setattr(
        gpu_times,
        "standing_clock",
        lambda call: (
            ([2e-3] * 3 if "measure" in call.__qualname__ else [3e-3, 4e-3, 5e-3]),
            1e-3,
        ),
    )
    with pytest.raises(
        SystemExit, match=r"backward'\): 50% of the copy's speed, needs 85%"
    ):
        monkeypatch.setattr(gpu_times, "SHAPES", gpu_times.STAND_IN_SHAPES)
        records_of(tmp_path / "r.json")
    records = results.load(tmp_path / "r.json")["records"]
    assert len(records) == 2 * 3 * 3
    for record in records:
        size = {
            "rows": record["rows"],
            "columns": record["columns"],
            "dtype": "bfloat16",
        }
        assert (
            record["bytes"]
            == traffic.moved("add_rms_norm", record["direction"], **size).total
        )
        assert record["of_copy"] == (1.0 if record["implementation"] == "copy" else 0.5)


def test_a_run_goes_on_where_the_file_ends(tmp_path, no_device, monkeypatch):
    file, measured = tmp_path / "r.json", []
    records = records_of(file)
    assert json.loads(file.read_text())["kind"] == "gpu"
    kept = [record for record in records if record["direction"] != "backward"]
    timing.save(file, results.load(file) | {"records": kept})
    monkeypatch.setattr(
        gpu_times,
        "standing_clock",
        lambda call: measured.append(call) or ([1e-3] * 3, 1e-3),
    )
    after = records_of(file)
    assert after[: len(kept)] == kept and {
        record["direction"] for record in after[len(kept) :]
    } == {"backward"}
    assert len(measured) == len(after) - len(kept) == 2 * 3
    timing.save(file, results.load(file) | {"versions": {"torch": "1"}})
    with pytest.raises(SystemExit, match="2"):
        records_of(file)


def test_every_step_is_in_the_file_before_the_next(tmp_path, no_device, monkeypatch):
    file, calls = tmp_path / "r.json", []

    def failing(call):
        calls.append(call)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return [1e-3] * 3, 1e-3

    monkeypatch.setattr(gpu_times, "standing_clock", failing)
    with pytest.raises(KeyboardInterrupt):
        records_of(file)
    assert {record["direction"] for record in results.load(file)["records"]} == {
        "forward"
    }


def test_promises():
    point = {
        "operator": "rms_norm",
        "dtype": "bfloat16",
        "rows": 16384,
        "columns": 4096,
        "direction": "forward",
    }

    def records(ours, torchs, **changes):
        speeds = {"copy": 1.0, "normgrad": ours, "torch": torchs}
        return [point | changes | {"implementation": name, "refused": None, "of_copy": speed}
                for name, speed in speeds.items()]  # fmt: skip

    assert (
        gpu_times.broken(records(0.90, 0.94))
        == []
        == gpu_times.broken(records(0.85, 0.5, direction="backward"))
    )
    assert (
        "89% of the copy's speed, needs 90%" in gpu_times.broken(records(0.89, 0.5))[0]
    )
    assert (
        "84% of the copy's speed, needs 85%"
        in gpu_times.broken(records(0.84, 0.5, direction="backward"))[0]
    )
    assert gpu_times.broken(records(0.5, 0.5, rows=7)) == []
    assert (
        "90% of the speed of torch" in gpu_times.broken(records(0.45, 0.5, rows=7))[0]
    )
    refused = records(0.9, 0.9)
    refused[1]["refused"] = "no such kernel"
    assert "normgrad was not timed: no such kernel" in gpu_times.broken(refused)[0]


@pytest.mark.parametrize(
    "option", [[], ["--stand-in", "--operators", "l2_norm"], ["--dtypes", "int8"]]
)
def test_what_cannot_be_run_is_refused(option, tmp_path, no_device):
    with pytest.raises(SystemExit, match="2"):
        gpu_times.main(["--json", str(tmp_path / "r.json"), *option])
    assert list(tmp_path.iterdir()) == []


# Nothing wrong is timed


def _norm(p, weight, bias, mean=None, rstd=None, extra=1):
    mean = p.mean(-1, keepdim=True) if mean is None else mean
    rstd = (
        (p - mean).square().mean(-1, keepdim=True).add(1e-5).rsqrt()
        if rstd is None
        else rstd
    )
    return (p - mean) * rstd * weight * extra + bias


def _wrong(change):
    def call(x, residual, weight, bias):
        p = x + residual
        mean = p.mean(-1, keepdim=True).detach()
        rstd = (p - mean).square().mean(-1, keepdim=True).add(1e-5).rsqrt().detach()
        return change(p, weight, bias, mean, rstd)

    return call


def _last_row_unwritten(p, weight, bias, mean, rstd):
    y = _norm(p, weight, bias)
    return torch.cat([y[:-1], 0 * y[-1:]]), p


WRONG = {
    "c2 dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b, mean), p),
    "c1 dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b, None, rstd), p),
    "gradient of residual_out dropped": lambda p, w, b, mean, rstd: (
        _norm(p, w, b),
        p.detach() + 0 * p,
    ),
    "weight twice": lambda p, w, b, mean, rstd: (_norm(p, w, b, extra=w), p),
    "dw dropped": lambda p, w, b, mean, rstd: (_norm(p, w.detach() + 0 * w, b), p),
    "db dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b.detach() + 0 * b), p),
    "not a number": lambda p, w, b, mean, rstd: (_norm(p, w, b) * math.nan, p),
    "another dtype": lambda p, w, b, mean, rstd: (_norm(p, w, b).double(), p),
    "last row unwritten": _last_row_unwritten,
}


@pytest.mark.parametrize("dtype", timing.DTYPES)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_implementations_are_refused(name, dtype, torch_rng):
    """At N = 4096 a cotangent without direction would make c1 and c2 as small as bfloat16's roundings."""
    shape = Shape("add_layer_norm", dtype, 16, 4096)
    inputs = timing.draw(shape, "cpu", torch_rng)
    functions = gpu_times.checked(
        shape, {"wrong": lambda operator: _wrong(WRONG[name])}, inputs
    )
    assert "differs from the reference" in functions["wrong"]


@pytest.mark.parametrize("dtype", timing.DTYPES)
@pytest.mark.parametrize("operator", timing.OPERATORS)
def test_right_implementations_are_timed(operator, dtype, torch_rng):
    shape = Shape(operator, dtype, 32, 256)
    inputs = timing.draw(shape, "cpu", torch_rng)
    assert all(
        map(
            callable,
            gpu_times.checked(shape, gpu_times.implementations(True), inputs).values(),
        )
    )


def test_an_implementation_without_residual_out_or_library_is_named(
    monkeypatch, torch_rng
):
    shape = Shape("add_layer_norm", "float32", 4, 8)
    inputs = timing.draw(shape, "cpu", torch_rng)
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    builders = {
        "short": lambda operator: _wrong(lambda p, w, b, *_: (_norm(p, w, b),)),
        "liger": timing.liger,
    }
    functions = gpu_times.checked(shape, builders, inputs)
    assert (
        "outputs: got 1, needs 2" in functions["short"]
        and "normgrad[bench]" in functions["liger"]
    )
    records = gpu_times.measure(
        shape, "both", functions, inputs, gpu_times.standing_clock
    )
    assert [record["refused"] is None for record in records] == [True, False, False]
    assert "not timed" in gpu_times.line(records[1])


def test_the_comparison_sees_every_chunk(monkeypatch):
    monkeypatch.setattr(timing, "CHUNK", 8)
    right = torch.ones(5, 4)
    wrong = right.clone()
    wrong[4, 3] = 3
    assert (
        timing.difference(wrong, right) == 1.0
        and timing.difference(right, right) == 0.0
    )


@pytest.mark.parametrize("operator", timing.OPERATORS)
@pytest.mark.parametrize("direction", traffic.DIRECTIONS)
def test_a_call_computes_its_direction(operator, direction, torch_rng):
    """The right values, again at every call; nothing is accumulated."""
    inputs = timing.draw(Shape(operator, "float32", 8, 16), "cpu", torch_rng)
    function = timing.eager(operator)
    right = timing.outcome(function, inputs)
    outputs = tuple(right[name] for name in ("y", "residual_out") if name in right)
    gradients = tuple(
        right[name] for name in ("dx", "dresidual", "dw", "db") if name in right
    )
    expected = {"forward": outputs, "backward": gradients, "both": outputs + gradients}[
        direction
    ]
    call = timing.call(function, direction, inputs)
    for _ in range(2):
        values = call()
        flat = (*values[0], *values[1]) if direction == "both" else values
        assert all(torch.equal(a, b) for a, b in zip(flat, expected, strict=True))
        assert direction == "backward" or flat[0].requires_grad
    assert all(leaf.grad is None for leaf in inputs.leaves)


@pytest.mark.parametrize("text", ["[", "[]", "{}", '{"records": 1}'])
def test_other_files_are_refused(text, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ValueError, match="results: r.json"):
        results.load(tmp_path / "r.json")
    with pytest.raises(
        FileNotFoundError, match="got 'h300', needs .* the package holds amd"
    ):
        results.load("h300")
