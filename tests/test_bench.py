"""The GPU benchmark without a GPU: a stand-in for the device drives plan, guard, rounds, files, tables and figures."""

import json
import math
import sys

import pytest

torch = pytest.importorskip("torch")

from gpu_stand_in import BUILDERS, StandIn  # noqa: E402

from normgrad.bench import __main__ as command  # noqa: E402
from normgrad.bench import contenders, gpu, guard, measure, plan, record, report, results, traffic, work  # noqa: E402

SMALL = plan.Shape("add_layer_norm", "float32", 24, 16)


@pytest.fixture(autouse=True)
def quickly(few_calls):
    """No test here needs more calls than few_calls leaves."""


def drawn(shape, count=1):
    return work.draw(shape, count, "cpu", torch.Generator().manual_seed(3))


def small_prediction():
    return results.predicted(1e12, "some", multiprocessors=8, columns=(1024,), elements=(1,))


def run(file, shapes=(SMALL,), device=None, builders=BUILDERS, rounds=2):
    device = device or StandIn()
    found = gpu.begin(file, device, rounds)
    gpu.run(file, found, list(shapes), device, builders)
    return results.load(file)


# The plan


def test_required_shapes_come_first():
    planned = plan.shapes(plan.OPERATORS)
    first = planned[: len(plan.OPERATORS)]
    assert {(one.operator, one.dtype, one.rows, one.columns) for one in first} == {
        (operator, "bfloat16", 16384, 4096) for operator in plan.OPERATORS
    }
    for size in plan.ALWAYS:
        assert {(one.operator, one.dtype) for one in planned if (one.rows, one.columns) == size} == {
            (operator, dtype) for operator in plan.OPERATORS for dtype in plan.DTYPES
        }


def test_what_matters_most_comes_first():
    """The shapes of the promises in bfloat16; every N in it; the other dtypes at the same size; the other sizes."""

    def stage(one):
        main, usual = one.dtype == "bfloat16", abs(one.rows * one.columns - 64 * plan.MEBI) < one.columns
        return 4 if not usual else (0 if main else 2) + ((one.rows, one.columns) not in plan.ALWAYS)

    stages = [stage(one) for one in plan.shapes(plan.OPERATORS)]
    assert stages == sorted(stages) and [stages.count(k) for k in range(4)] == [8, 32, 16, 64]


def test_rows_are_halved_until_they_fit():
    planned = plan.shapes(("rms_norm",), ("bfloat16",), **plan.QUICK)
    assert plan.scaled(planned, 2**22, 2**40, 4) == planned
    free = plan.memory(planned[0], 2**22, 4) / plan.MEMORY_SHARE / 3
    small = plan.scaled(planned, 2**22, free, 4)
    assert {one.columns for one in small} == {4096, 8192}
    for before, after in zip(planned, small, strict=True):
        assert plan.memory(after, 2**22, 4) <= plan.MEMORY_SHARE * free
        assert after.rows in (before.rows // 2, before.rows // 4)
        twice = plan.Shape(after.operator, after.dtype, 2 * after.rows, after.columns)
        assert plan.memory(twice, 2**22, 4) > plan.MEMORY_SHARE * free
    assert plan.scaled(planned[:1], 2**22, 0, 4)[0].rows == 1


def test_each_shape_once_and_of_its_size():
    planned = plan.shapes(plan.OPERATORS)
    assert len(planned) == len(set(planned)) == 4 * 3 * len(plan.COLUMNS) * len(plan.ELEMENTS)
    for one in planned:
        sizes = [size * plan.MEBI - one.rows * one.columns for size in plan.ELEMENTS]
        assert any(0 <= missing < one.columns for missing in sizes), one


@pytest.mark.parametrize(("moved", "l2"), [(64 << 20, 60 << 20), (1, 4096), (1 << 30, 4 << 20), (7, 0)])
def test_sets_pass_the_cache_and_no_more(moved, l2):
    count = plan.sets(moved, l2)
    assert (count - 1) * moved >= plan.CACHES * l2
    assert count == 2 or (count - 2) * moved < plan.CACHES * l2


def test_estimate_covers_what_is_allocated(monkeypatch):
    """Inputs, every contender's outputs, one contender's results, the copy: for each set, their sizes added up."""
    monkeypatch.setattr(plan, "TEMPORARIES", 0)
    shape, contestants = plan.Shape("add_rms_norm", "bfloat16", 512, 256), 3
    total = shape.moved("backward").total
    count = plan.sets(total, 2**20)
    one = drawn(shape)[0]
    outputs = contenders.eager(shape.operator)(*one.arguments)
    sizes = [t.nbytes for t in (*one.leaves[:2], *one.cotangents, *outputs * contestants, *outputs, *outputs)]
    assert plan.memory(shape, 2**20, contestants) >= count * (sum(sizes) + total)


def test_what_does_not_fit_is_left_out(tmp_path, capsys):
    large = plan.Shape("rms_norm", "float32", 2**20, 256)
    found = run(tmp_path / "r.json", (SMALL, large))
    assert {(one["rows"], one["columns"]) for one in found["records"]} == {(24, 16)}
    assert "left out: rms_norm float32 (1048576, 256) may need" in capsys.readouterr().out


# The guard


def _norm(p, weight, bias, mean=None, rstd=None, extra=1):
    mean = p.mean(-1, keepdim=True) if mean is None else mean
    rstd = (p - mean).square().mean(-1, keepdim=True).add(1e-5).rsqrt() if rstd is None else rstd
    return (p - mean) * rstd * weight * extra + bias


def _wrong(change):
    def build(operator):
        def call(x, residual, weight, bias):
            p = x + residual
            mean = p.mean(-1, keepdim=True).detach()
            rstd = (p - mean).square().mean(-1, keepdim=True).add(1e-5).rsqrt().detach()
            return change(p, weight, bias, mean, rstd)

        return call

    return build


def _last_row_unwritten(p, weight, bias, mean, rstd):
    y = _norm(p, weight, bias)
    return torch.cat([y[:-1], 0 * y[-1:]]), p


WRONG = {
    "c2 dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b, mean), p),
    "c1 dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b, None, rstd), p),
    "gradient of residual_out dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b), p.detach() + 0 * p),
    "weight twice": lambda p, w, b, mean, rstd: (_norm(p, w, b, extra=w), p),
    "dw dropped": lambda p, w, b, mean, rstd: (_norm(p, w.detach() + 0 * w, b), p),
    "db dropped": lambda p, w, b, mean, rstd: (_norm(p, w, b.detach() + 0 * b), p),
    "not a number": lambda p, w, b, mean, rstd: (_norm(p, w, b) * math.nan, p),
    "another dtype": lambda p, w, b, mean, rstd: (_norm(p, w, b).double(), p),
    "no residual_out": lambda p, w, b, mean, rstd: (_norm(p, w, b),),
    "last row unwritten": _last_row_unwritten,
}


@pytest.mark.parametrize("dtype", plan.DTYPES)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_implementations_are_refused(name, dtype):
    """At N = 4096 a cotangent without direction would make c1 and c2 as small as bfloat16's roundings."""
    shape = plan.Shape("add_layer_norm", dtype, 16, 4096)
    functions, _, refused = measure.admitted(shape, {"wrong": _wrong(WRONG[name])}, drawn(shape)[0])
    assert functions == {} and set(refused) == {"wrong"}


@pytest.mark.parametrize("dtype", plan.DTYPES)
@pytest.mark.parametrize("operator", plan.OPERATORS)
def test_right_implementations_are_admitted(operator, dtype):
    shape = plan.Shape(operator, dtype, 32, 256)
    functions, found, refused = measure.admitted(shape, BUILDERS, drawn(shape)[0])
    assert refused == {} and set(functions) == set(BUILDERS)
    assert {"y", "dx", "dw"} <= set(found["torch"])


def test_the_guard_sees_every_chunk(monkeypatch):
    monkeypatch.setattr(guard, "CHUNK", 8)
    right = torch.ones(5, 4)
    wrong = right.clone()
    wrong[4, 3] = 3
    assert guard.difference(wrong, right) == 1.0 and guard.difference(right, right) == 0.0


def test_a_wrong_implementation_is_recorded_and_not_timed(tmp_path):
    found = run(tmp_path / "r.json", builders=BUILDERS | {"wrong": _wrong(WRONG["c1 dropped"])})
    wrong = [one for one in found["records"] if one["implementation"] == "wrong"]
    assert [one["direction"] for one in wrong] == list(traffic.DIRECTIONS)
    assert all("differs from the reference: dx by" in one["refused"] and "seconds" not in one for one in wrong)
    assert "wrong           not timed: differs" in report.table(found)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    _, _, refused = measure.admitted(SMALL, {"liger": contenders.liger}, drawn(SMALL)[0])
    assert "liger-kernel" in refused["liger"] and "normgrad[bench]" in refused["liger"]


# What is timed


@pytest.mark.parametrize("operator", plan.OPERATORS)
@pytest.mark.parametrize("direction", traffic.DIRECTIONS)
def test_a_call_computes_its_direction(operator, direction):
    """The right values, again at every call, of the set that is asked for; nothing is accumulated."""
    shape = plan.Shape(operator, "float32", 8, 16)
    two, function = drawn(shape, 2), contenders.eager(operator)
    call = work.call(function, direction, two)
    for k in (0, 1, 1, 0):
        right = guard.outcome(function, two[k].arguments, two[k].cotangents)
        outputs = tuple(right[name] for name in ("y", "residual_out") if name in right)
        gradients = tuple(right[name] for name in ("dx", "dresidual", "dw", "db") if name in right)
        made = call(k)
        expected = {"forward": outputs, "backward": gradients, "both": outputs + gradients}[direction]
        flat = (*made[0], *made[1]) if direction == "both" else made
        assert all(torch.equal(a, b) for a, b in zip(flat, expected, strict=True))
        assert direction == "backward" or flat[0].requires_grad
    assert all(leaf.grad is None for one in two for leaf in one.leaves)


def test_sets_share_no_memory_but_the_parameters():
    sets = drawn(SMALL, 3)
    matrices = [t.data_ptr() for one in sets for t in (*one.arguments[:2], *one.cotangents)]
    assert len(set(matrices)) == len(matrices)


def test_results_of_a_run_share_no_memory():
    """Every set's results live until its turn comes again, and each set is called equally often."""
    called, alive = [], []
    one = measure.Timed(lambda k: (called.append(k), torch.empty(4))[1], count=3, calls=6)
    alive = one.work()
    assert called == [0, 1, 2, 0, 1, 2]
    assert len({t.data_ptr() for t in alive}) == 3


@pytest.mark.parametrize("size", [1024, 1025])
def test_the_copy_moves_the_bytes(size):
    generator = torch.Generator().manual_seed(1)
    copy = work.copies(size, 2, "cpu", generator)
    first, second = copy(0), copy(1)
    assert first.nbytes == second.nbytes == size // 2 and not torch.equal(first, second)
    assert first.float().std() > 0


def test_rounds_interleave_and_the_first_do_not_count(tmp_path):
    """A warm round takes 100 s a run, a counted one 1 s; in each round every implementation is run once."""
    warm_up = 2 * 3
    warm = warm_up + 3 * measure.WARM_ROUNDS
    device = StandIn(script=lambda number: 100.0 if number <= warm else 1.0)
    timed, failed = measure.direction(
        SMALL, "forward", {name: build(SMALL.operator) for name, build in BUILDERS.items()},
        drawn(SMALL, 9), device, torch.Generator().manual_seed(0), rounds=4,
    )  # fmt: skip
    assert failed == {} and list(timed) == ["copy", "normgrad", "torch"]
    assert all(one.seconds == [1.0 / one.calls] * 4 for one in timed.values())
    order = device.runs[1 + warm_up :]
    turns = [order[i : i + 3] for i in range(0, len(order), 3)]
    assert len(turns) == measure.WARM_ROUNDS + 4 and all(len(set(turn)) == 3 for turn in turns)
    assert turns[0][0] != turns[1][0]


def test_a_run_that_cannot_be_captured_is_timed_by_events(tmp_path):
    captured, not_captured = (
        run(tmp_path / f"{captures}.json", device=StandIn(captures=captures)) for captures in (True, False)
    )
    assert {one["method"] for one in captured["records"]} == {"graph"}
    assert {one["method"] for one in not_captured["records"]} == {"events (RuntimeError: operation not permitted)"}


def test_an_implementation_that_fails_later_is_recorded(tmp_path):
    """Admitted, then failing: the others are timed."""

    def build(operator):
        calls, right = [], contenders.eager(operator)

        def call(*arguments):
            calls.append(1)
            if len(calls) > 1:
                raise ValueError("no second call")
            return right(*arguments)

        return call

    found = run(tmp_path / "r.json", builders={"once": build} | BUILDERS)
    once = [one for one in found["records"] if one["implementation"] == "once"]
    assert {one["refused"] for one in once} == {"ValueError: no second call"}
    assert sum(one["refused"] is None for one in found["records"]) == 3 * 3


# Files


def test_records(tmp_path):
    """The copy runs in 2 s, the others in 4 s: half of its speed; the bytes are the floor's."""
    device = StandIn()
    device.script = lambda number: 2.0 if "copies" in device.last.call.__qualname__ else 4.0
    found = run(tmp_path / "r.json", device=device, rounds=3)
    assert found["kind"] == "measured" and found["device"]["name"] == "stand-in"
    assert {"torch", "triton", "normgrad", "python"} <= set(found["versions"])
    assert len(found["records"]) == 3 * 3
    for one in found["records"]:
        floor = traffic.moved("add_layer_norm", one["direction"], rows=24, columns=16, dtype="float32")
        assert one["bytes"] == floor.total and len(one["seconds"]) == 3
        assert one["bytes_per_second"] == floor.total / one["median"]
        assert one["fraction"] == (1.0 if one["implementation"] == "copy" else 0.5)
        assert one["floor_seconds"] * (1 if one["implementation"] == "copy" else 2) == one["median"]


def test_a_second_run_measures_only_what_is_missing(tmp_path):
    file, device = tmp_path / "r.json", StandIn()
    before = run(file, device=device)
    kept = [one for one in before["records"] if one["direction"] != "backward"]
    results.save(file, before | {"records": kept})
    after = run(file, device=StandIn(script=lambda number: 3.0))
    new = [one for one in after["records"] if one not in kept]
    assert {one["direction"] for one in new} == {"backward"} and len(new) == 3
    assert sorted(map(json.dumps, after["records"][: len(kept)])) == sorted(map(json.dumps, kept))
    nothing = StandIn()
    run(file, device=nothing, builders={})
    assert nothing.runs == []


@pytest.mark.parametrize("name", ["device", "versions", "settings"])
def test_results_of_another_run_are_not_mixed(name, tmp_path):
    file = tmp_path / "r.json"
    found = run(file)
    results.save(file, found | {name: {"other": 1}})
    with pytest.raises(ValueError, match=f"got {name}.*needs another file"):
        gpu.begin(file, StandIn(), 2)


def test_running_out_of_memory_leaves_the_rest(tmp_path, monkeypatch, capsys):
    draw = work.draw

    def scarce(shape, *arguments):
        if shape.rows == 24:
            raise torch.OutOfMemoryError("out of memory")
        return draw(shape, *arguments)

    monkeypatch.setattr(work, "draw", scarce)
    found = run(tmp_path / "r.json", (SMALL, plan.Shape("rms_norm", "float32", 8, 16)))
    assert {one["operator"] for one in found["records"]} == {"rms_norm"}
    assert "left out: add_layer_norm float32 (24, 16): out of memory" in capsys.readouterr().out


def test_measured_and_predicted_records_have_one_shape(tmp_path):
    file = tmp_path / "r.json"
    measured = run(file)
    json.loads(file.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    predicted = results.predicted(1e12, "some GPU", multiprocessors=8, columns=(1024,), elements=(1,))
    assert set(measured) == set(predicted) == set(results.NEEDED)
    names = [set(found["records"][0]) for found in (measured, predicted)]
    assert names[1] - names[0] == {"moved"} and names[0] <= names[1]
    assert "some GPU: predicted" in report.table(predicted)


def test_what_json_cannot_hold_is_written_as_text(tmp_path):
    file = tmp_path / "r.json"
    run(file, builders={"wrong": _wrong(WRONG["not a number"])})
    wrong = [one for one in results.load(file)["records"] if one["refused"]]
    assert wrong[0]["difference"]["y"] == "nan"


def test_results_are_found_by_name_and_by_path(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    results.save(tmp_path / "some_2026-01-01.json", small_prediction())
    (tmp_path / "compile.json").write_text('{"records": []}')
    assert results.available() == [] and results.available("predicted") == ["some_2026-01-01"]
    assert results.available(None) == ["compile", "some_2026-01-01"]
    by_name, by_path = results.load("some_2026-01-01"), results.load(tmp_path / "some_2026-01-01.json")
    assert by_name == by_path
    with pytest.raises(FileNotFoundError, match="got 'h300', needs .* the package holds compile, some_2026-01-01"):
        results.load("h300")


@pytest.mark.parametrize("text", ["[", "[]", "{}", '{"records": 1}'])
def test_other_files_are_refused(text, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ValueError, match="results: r.json"):
        results.load(tmp_path / "r.json")


def test_results_that_the_package_holds_can_be_drawn():
    for name in results.available():
        found = results.check(results.load(name))
        assert name.split("_")[0] in found["device"]["name"].lower().replace(" ", "")
        assert report.table(found)


# Figures


@pytest.fixture
def plot():
    pytest.importorskip("matplotlib")
    from normgrad.bench import plot

    return plot


def test_figures_of_measured_results(plot, tmp_path):
    found = run(tmp_path / "r.json", (SMALL, plan.Shape("add_layer_norm", "float32", 12, 32)))
    written = plot.write(found, tmp_path / "figures")
    assert [file.name for file in written] == ["roofline_float32.svg", "bandwidth_float32.svg"]
    assert all("stand-in" in file.read_text() and "predicted" not in file.read_text() for file in written)
    first = [file.read_bytes() for file in written]
    assert [file.read_bytes() for file in plot.write(found, tmp_path / "figures")] == first


@pytest.mark.parametrize("kind", ["measured", "predicted"])
def test_predicted_points_are_hollow(kind, plot):
    found = results.predicted(4.8e12, "H200", columns=(1024, 4096)) | {"kind": kind}
    for draw in (plot.roofline, plot.bandwidth):
        figure = draw(found)
        lines = [line for axis in figure.axes for line in axis.lines if line.get_marker() not in ("None", "")]
        assert lines
        assert {line.get_markerfacecolor() == "none" for line in lines} == {kind == "predicted"}
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("normgrad, predicted" in labels) == (kind == "predicted")
        assert ("predicted" in figure.get_suptitle()) == (kind == "predicted")


def test_points_stand_where_the_records_say(plot):
    found = results.predicted(4.8e12, "H200", operators=("rms_norm",), columns=(1024, 4096))
    axis = plot.bandwidth(found, directions=("backward",)).axes[0]
    torchs = next(line for line in axis.lines if line.get_color() == plot.COLOURS["torch"])
    speeds = {
        one["columns"]: one["bytes_per_second"] / 1e9
        for one in found["records"]
        if (one["implementation"], one["direction"]) == ("torch", "backward")
        and one["rows"] * one["columns"] == plot.SIZE
    }
    assert dict(zip(torchs.get_xdata(), torchs.get_ydata(), strict=True)) == speeds
    roof = plot.roofline(found, directions=("backward",)).axes[0]
    assert roof.lines[0].get_ydata()[0] == 4800.0
    assert roof.lines[1].get_xdata()[0] == 9 / found["records"][3]["bytes_per_element"]


def test_nothing_to_draw_is_said(plot):
    found = small_prediction()
    with pytest.raises(ValueError, match="no timed records of dtype 'float16'"):
        plot.roofline(found, "float16")
    with pytest.raises(ValueError, match=r"shape: got \(1, 1\), needs one of \(1024, 1024\)"):
        plot.roofline(found, shape=(1, 1))


# The command line


def call(monkeypatch, *arguments):
    # the command sets it; so it is put back
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
    command.main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpu"], "--json"),
        (["gpu", "--json", "r.json"], "gpu: got no CUDA device (torch"),
        (["gpu", "--json", "r.json", "--quick"], "needs an NVIDIA GPU, its driver"),
        (["gpu", "--json", "r.json", "--operators", "l2_norm"], "--operators: got 'l2_norm', needs one of layer_norm"),
        (["gpu", "--json", "r.json", "--dtypes", "int8"], "--dtypes: got 'int8', needs one of bfloat16"),
        (["gpu", "--json", "r.json", "--columns", "64", "0"], "--columns: got 0, needs at least 1"),
        (["gpu", "--json", "r.json", "--rounds", "0"], "--rounds: got 0, needs at least 1"),
        (["gpu", "--json", "r.json", "--elements", "-1"], "--elements: got -1, needs at least 1"),
        (["plot", "missing.json"], "plot: results: got 'missing.json', needs a file or a name"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        call(monkeypatch, *arguments)
    assert ended.value.code == 2 and message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_plot_draws_a_file(plot, monkeypatch, capsys, tmp_path):
    results.save(tmp_path / "r.json", small_prediction())
    call(monkeypatch, "plot", tmp_path / "r.json", "--out", tmp_path / "figures")
    assert [line.rsplit("/", 1)[1] for line in capsys.readouterr().out.split()] == [
        "roofline_bfloat16.svg", "bandwidth_bfloat16.svg",
    ]  # fmt: skip


def test_a_key_is_a_point():
    one = record.refused(SMALL, "forward", "x", "no")
    assert record.key(one) == SMALL.key("forward")
