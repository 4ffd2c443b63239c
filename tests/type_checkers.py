"""What checkers of types say of tests/typed_client.py, in which some lines are wrong and marked.

`python tests/type_checkers.py mypy pyright` asks both; pyright comes from the npm registry, by npx.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "tests/typed_client.py"
COMMANDS = {
    "mypy": (sys.executable, "-m", "mypy", "--output", "json", str(CLIENT)),
    "pyright": (
        "npx",
        "--yes",
        "pyright@1.1.414",
        "--outputjson",
        "--pythonpath",
        sys.executable,
        str(CLIENT),
    ),
}


def wrong_lines() -> set[int]:
    """The lines of the client that are marked."""
    lines = CLIENT.read_text(encoding="utf8").split("\n")
    return {
        number
        for number, line in enumerate(lines, 1)
        if re.search(r"  # wrong: \w", line)
    }


def found(name: str) -> dict[int, str]:
    """{line: message} of the errors that a checker finds in the client."""
    # What npm says of its own new versions stands where errors do.
    environment = {**os.environ, "NPM_CONFIG_UPDATE_NOTIFIER": "false"}
    done = subprocess.run(
        COMMANDS[name], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode not in (0, 1) or done.stderr:
        raise RuntimeError(done.stdout + done.stderr)
    if name == "mypy":
        errors = [json.loads(line) for line in done.stdout.splitlines()]
        return {
            error["line"]: error["message"]
            for error in errors
            if error["severity"] == "error"
        }
    errors = json.loads(done.stdout)["generalDiagnostics"]
    return {
        error["range"]["start"]["line"] + 1: error["message"]
        for error in errors
        if error["severity"] == "error"
    }


def main(names: list[str]) -> int:
    """0 where each checker refuses the wrong lines and no other, else 1."""
    status, wrong = 0, wrong_lines()
    for name in names:
        errors = found(name)
        for line in sorted(wrong - set(errors)):
            print(f"{name} passes line {line}, which is wrong")
        for line in sorted(set(errors) - wrong):
            print(f"{name} refuses line {line}: {errors[line]}")
        print(f"{name}: {len(wrong & set(errors))} of {len(wrong)} wrong lines refused")
        status |= wrong != set(errors)
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
