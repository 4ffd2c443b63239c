"""Reports of what is wrong in published packages, ready to be filed, one file each, in a folder that git ignores.

python tools/report.py               writes them into bug_reports/ from the table of tools/field_kernels.py

A report says what is wrong, where, the smallest input and the fix, which stands beside the binding in
tools/field_kernels.json. Who files one runs it on the package's own hardware first, where there is any.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from normgrad.verify.verdict import REFUTED, WRONG

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src/normgrad/verify/field_kernels.json"
KERNELS = Path(__file__).with_name("field_kernels.json")
FOLDER = ROOT / "bug_reports"
MARKS = ("fails at ", "; at ", "leaves columns out, as ")
COMPILES_NOT = "does not compile"


def fixes() -> dict[tuple[str, str], str]:
    """{(file, kernel): how it is mended}."""
    kernels = json.loads(KERNELS.read_text(encoding="utf8"))
    return {(k["file"], k["name"]): k["fix"] for k in kernels if "fix" in k}


def smallest(words: str) -> str:
    """The smallest input that a verdict names."""
    for mark in MARKS:
        if mark in words:
            return words.partition(mark)[2].partition("\n")[0]
    if COMPILES_NOT in words:
        return "any, as it does not compile"
    raise ValueError(f"words: got {words!r}, which names no input that fails")


def report(row: dict, fix: str) -> str:
    """The text of one report. Args: row: of the table"""
    name = f"{row['package']} {row['version']}"
    what = "\n".join(f"    {line}" for line in row["words"].splitlines())
    return f"""# {row["kernel"]}: {row["verdict"]}

**Where.** `{row["file"]}`, `{row["kernel"]}`, in {name}.

**What.** The kernel's text was read and compared with the definition, `{row["against"]}`:

{what}

**Smallest input.** {smallest(row["words"])}

**Fix.** {fix}
"""


def main() -> None:
    """Write the reports."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    folder.mkdir(exist_ok=True)
    known = fixes()
    for row in json.loads(TABLE.read_text(encoding="utf8"))["rows"]:
        if row["verdict"] in (WRONG, REFUTED):
            text = report(row, known[row["file"], row["kernel"]])
            stem = f"{row['file']} {row['kernel']}".replace("/", ".")
            path = folder / f"{row['package']} {stem}.md"
            path.write_text(text, encoding="utf8")
            print(path)


if __name__ == "__main__":
    main()
