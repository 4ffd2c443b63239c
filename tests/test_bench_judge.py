"""What is promised of the speed: each promise kept, broken and open, by synthetic records."""

import sys

import pytest

pytest.importorskip("torch")

from normgrad.bench import __main__ as command  # noqa: E402
from normgrad.bench import judge, plan, results, traffic  # noqa: E402

# Of the copy's speed: as much as is promised, with others that leave 0.95 of the best of them.
SPEEDS = {"normgrad": 0.95, "torch": 0.5, "torch.compile": 1.0, "liger": 0.9}


def record(shape, direction, name, speed, **changes):
    operator, dtype, rows, columns = shape
    return {"kind": "measured", "operator": operator, "direction": direction, "dtype": dtype, "rows": rows,
            "columns": columns, "implementation": name, "refused": None, "method": "graph", "median": 1 / speed,
            "fraction": speed} | changes  # fmt: skip


def measured(change=lambda one: one, shapes=plan.ALWAYS):
    """A file with all points of the promises; change makes another record of each, or None of it."""
    records = [
        change(record((operator, "bfloat16", *shape), direction, name, speed))
        for shape in shapes
        for operator in plan.OPERATORS
        for direction in traffic.DIRECTIONS
        for name, speed in {"copy": 1.0, **SPEEDS}.items()
    ]
    head = {"kind": "measured", "device": {"name": "some"}, "versions": {}, "date": "2026-01-01", "settings": {}}
    return head | {"records": [one for one in records if one is not None]}


def at(one, name="normgrad", direction="forward", shape=plan.ALWAYS[1]):
    return (one["implementation"], one["direction"], (one["rows"], one["columns"])) == (name, direction, shape)


def slower(direction, speed, name="normgrad"):
    """One operator at one of the two shapes."""

    def change(one):
        hit = at(one, name, direction) and one["operator"] == "rms_norm"
        return one | {"median": 1 / speed, "fraction": speed} if hit else one

    return change


def states(found):
    return [one.state for one in judge.judge(found)]


def test_kept_promises():
    """Exactly what is promised is enough."""
    assert states(measured()) == ["pass", "pass", "pass"]
    assert states(measured(slower("forward", 0.9)))[0] == states(measured(slower("backward", 0.85)))[1] == "pass"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (slower("forward", 0.89), ["FAIL", "pass", "FAIL"]),
        (slower("backward", 0.84), ["pass", "FAIL", "FAIL"]),
        (slower("backward", 0.949), ["pass", "pass", "FAIL"]),
        (slower("both", 0.5), ["pass", "pass", "FAIL"]),
        # each of the others counts
        (slower("both", 1.01, "torch"), ["pass", "pass", "FAIL"]),
        (slower("both", 1.01, "torch.compile"), ["pass", "pass", "FAIL"]),
        (slower("both", 1.01, "liger"), ["pass", "pass", "FAIL"]),
        # the copy is none of them
        (slower("both", 2.0, "copy"), ["pass", "pass", "pass"]),
        # refused: no speed at all
        (lambda one: one | {"refused": "wrong"} if at(one) else one, ["FAIL", "pass", "FAIL"]),
        (lambda one: one | {"refused": "wrong"} if at(one, "liger") else one, ["pass", "pass", "pass"]),
        (lambda one: one | {"fraction": float("nan")} if at(one) else one, ["FAIL", "pass", "pass"]),
        # not there: nothing is known
        (lambda one: None if at(one) else one, ["open", "pass", "pass"]),
        (lambda one: None if one["direction"] == "backward" else one, ["pass", "open", "pass"]),
        (lambda one: None if one["implementation"] == "liger" else one, ["pass", "pass", "open"]),
        (lambda one: one | {"dtype": "float32"}, ["open", "open", "pass"]),
        # launches that a graph spares are in the times by events
        (lambda one: one | {"method": "events (no)"} if one["implementation"] == "liger" else one,
         ["pass", "pass", "open"]),
    ],
)  # fmt: skip
def test_verdicts(change, expected):
    assert states(measured(change)) == expected


def test_the_lowest_figure_is_named():
    forward, _, others = judge.judge(measured(slower("forward", 0.85)))
    assert str(forward) == (
        "FAIL  forward at least 90% of a copy's speed: 8 of 8 points measured, 85.0% at rms_norm forward bfloat16 "
        "(8192, 8192), the lowest"
    )
    assert "24 points measured, 85.0% at rms_norm forward bfloat16 (8192, 8192), the lowest" in str(others)
    refused = judge.text(measured(lambda one: one | {"refused": "wrong"} if at(one) else one))
    assert "refused at layer_norm forward bfloat16 (8192, 8192)" in refused
    assert "liger was timed nowhere" in judge.text(measured(slower("both", 1.0, "x"), shapes=()))


def test_a_prediction_keeps_no_promise():
    predicted = results.predicted(4.8e12, "H200", columns=(4096, 8192), elements=(64,))
    mixed = measured()
    mixed["records"].append(predicted["records"][0])
    for found in (predicted, predicted | {"kind": "measured"}, mixed):
        with pytest.raises(ValueError, match="results: got kind 'predicted', needs measured"):
            judge.judge(found)


def host(microseconds, backends=("triton", "torch", "numba")):
    """A file of tools/host_times.py, in which each time is as far above its lowest as a busy machine makes it."""
    records = [
        {"kind": "host", "operator": "rms_norm", "implementation": f"normgrad {name}", "direction": direction,
         "microseconds": [time, 2 * time, 3 * time, 4 * time]}
        for name in backends
        for direction, time in zip(("forward", "backward"), microseconds[name], strict=True)
    ]  # fmt: skip
    return measured(shapes=()) | {"kind": "host", "records": records}


def test_the_hosts_time_is_promised():
    assert states(host(judge.OF_THE_HOST)) == ["pass"] * 3
    for name, limits in judge.OF_THE_HOST.items():
        for late in ((limits[0] + 1, limits[1]), (limits[0], limits[1] + 1)):
            assert "FAIL" in states(host({**judge.OF_THE_HOST, name: late}))
    found = judge.judge(host(judge.OF_THE_HOST, ("torch",)))
    assert [one.state for one in found] == ["open", "pass", "open"]
    assert str(found[1]) == "pass  torch: at most 40 and 60 microseconds of the host: 40 and 60"


def call(monkeypatch, found, file):
    results.save(file, found)
    monkeypatch.setattr(sys, "argv", ["bench", "judge", str(file)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return ended.value.code


def test_the_command(monkeypatch, capsys, tmp_path):
    file = tmp_path / "r.json"
    assert call(monkeypatch, measured(), file) == 0
    assert capsys.readouterr().out.startswith("pass  forward at least 90%")
    assert call(monkeypatch, measured(slower("forward", 0.5)), file) == 1
    assert call(monkeypatch, measured(shapes=()), file) == 1
    predicted = results.predicted(4.8e12, "H200", columns=(4096,), elements=(64,))
    assert call(monkeypatch, predicted, file) == 2
    assert "judge: results: got kind 'predicted'" in capsys.readouterr().err
