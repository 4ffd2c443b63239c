"""The timing of a GPU without one: its file, its promises, and that nothing wrong is timed."""

import os
import subprocess
import sys
from pathlib import Path

import gpu_times  # noqa: E402

from normgrad.bench import results  # noqa: E402
from normgrad.teaching import bytes as traffic  # noqa: E402

ROOT = Path(__file__).parents[1]


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
