"""The script for ten minutes on a GPU, to its end on a stand-in for the GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from normgrad.bench import results, traffic  # noqa: E402

ROOT = Path(__file__).parents[1]


def slot(folder, minutes, **commands):
    """What the script says, a line a step; it may not fail."""
    stand_in = f"{sys.executable} {ROOT / 'tests/gpu_stand_in.py'}"
    host = f"{sys.executable} {ROOT / 'tools/host_times.py'} --operators rms_norm"
    own = {"PYTHON": sys.executable, "BENCH": stand_in, "HOST": host, "PYTEST": "true", "PATIENCE": "10"}
    environment = {**os.environ, **own, **commands}
    command = ["bash", str(ROOT / "tools/slot.sh"), str(folder), str(minutes)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0 and done.stdout == (folder / "summary.txt").read_text(), done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_every_step_ends_and_leaves_its_results(tmp_path):
    said = slot(tmp_path, 60, PYTEST="false")
    # The stand-in's clock gives every implementation one speed; the promises on shapes that it does not have stay open.
    judged = "ended with status 1; see judge.txt"
    assert said["judge"] == judged and said["judge-quick"] == judged.replace("judge", "judge-quick")
    assert said["tests"] == "ended with status 1; see tests.txt"
    done = [name for name, what in said.items() if what.startswith("done in")]
    assert done == ["quick", "host", "all", "plot"]
    found = results.load(tmp_path / "gpu.json")["records"]
    points = {(one["operator"], one["direction"], one["dtype"], one["columns"]) for one in found}
    assert len(points) == 2 * 2 * 2 * len(traffic.DIRECTIONS)  # operators, dtypes and lengths of a row
    assert results.load(tmp_path / "host.json")["kind"] == "host"
    assert list(tmp_path.glob("*.svg")) and "forward at least 90%" in (tmp_path / "judge.txt").read_text()
    assert "host.json" in said["measured"] and said["not measured"]


def test_a_slot_that_is_over_begins_nothing(tmp_path):
    said = slot(tmp_path, 0)
    assert {what for name, what in said.items() if "measured" not in name} == {"not begun, the time is over"}
    assert not list(tmp_path.glob("*.json"))
