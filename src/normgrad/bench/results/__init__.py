"""Results files: measured times, and what the kernels were compiled to.

A file of measured times is named `<device>_<date>.json` and is what a command of `tools/` wrote, copied here unchanged.
It has `kind` ("cpu" of tools/cpu_times.py, "host" of tools/host_times.py, "gpu" of tools/gpu_times.py), `device`,
`versions`, `date`, `settings` and `records`, one implementation at one point each; times are in seconds. `compile.json`
is of another kind: what `python -m normgrad.bench compile --json FILE` wrote.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

FOLDER = Path(__file__).parent


def load(name_or_path: str | os.PathLike) -> dict:
    """A results file: one that the package holds, by its name, or any other by its path.

    Raises:  FileNotFoundError where there is none
    """
    inside = FOLDER / f"{name_or_path}.json"
    path = inside if inside.is_file() else Path(name_or_path)
    if not path.is_file():
        held = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json")))
        raise FileNotFoundError(
            f"results: got {str(name_or_path)!r}, needs a file or a name; the package holds {held}"
        )
    return json.loads(path.read_text(encoding="utf8"))


def processor() -> str:
    """The name of this machine's processor."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    names = [
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor()
