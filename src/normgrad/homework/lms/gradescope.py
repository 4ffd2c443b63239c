"""An autograder for Gradescope: the zip that is uploaded, and results.json, which it writes for each submission.

Both after Gradescope's page Autograder Specifications: setup.sh installs, run_autograder leaves results/results.json
with a score, a text and a test a stage. The zip holds the package itself, as it is installed here.
"""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ..variants import variant as variant_of

PACKAGE = Path(__file__).parents[2]
KINDS = (".py", ".ini", ".json", ".txt", ".md")
SETUP = """#!/usr/bin/env bash
set -e
cd "$(dirname "$0")"
python3 -m venv environment || {{
  apt-get update
  apt-get install -y python3 python3-venv
  python3 -m venv environment
}}
environment/bin/pip install --quiet {needs}
"""
RUN = """#!/usr/bin/env bash
# Gradescope starts it in /autograder, beside source, submission and results.
export PYTHONPATH="$PWD/source"
source/environment/bin/python -m normgrad.homework check submission \\
  --homework {homework} --results results/results.json {seed}{variant}
exit 0
"""
SEED = "seed.txt"
# A reading needs SymPy in every homework.
NEEDED = ("numpy", "sympy")


def autograder(homework: str, to, seed_file="", variant: int | None = None) -> Path:
    """Writes the zip. Args: homework: its name; seed_file: with the seed of the inputs, "" for the public one

    Args:    variant: the seed of another task of the same family
    Raises:  ValueError for an unknown homework, or one without variants
    """
    needs = " ".join(sorted({*NEEDED, *variant_of(homework, variant).libraries}))
    seed = f"--seed-file source/{SEED} " if seed_file else ""
    number = "" if variant is None else f"--variant {variant}"
    with ZipFile(to, "w", ZIP_DEFLATED) as archive:
        _script(archive, "setup.sh", SETUP.format(needs=needs))
        _script(
            archive,
            "run_autograder",
            RUN.format(homework=homework, seed=seed, variant=number),
        )
        if seed_file:
            archive.write(seed_file, SEED)
        for path in sorted(PACKAGE.rglob("*")):
            if path.suffix in KINDS and path.is_file():
                archive.write(path, str(Path("normgrad", path.relative_to(PACKAGE))))
    return Path(to)


def _script(archive, name, text):
    """A file that may be run."""
    member = ZipInfo(name)
    member.external_attr = 0o100755 << 16
    archive.writestr(member, text)


def results(reports, text: str) -> str:
    """results.json. Args: reports: of all tasks, [] where nothing could be graded; text: for the student"""
    tests = []
    for report in reports:
        for stage, words in report.lines():
            tests.append(
                {
                    "name": f"{report.task}: {stage.name}",
                    "score": stage.points,
                    "max_score": stage.max_points,
                    "output": words,
                }
            )
    score = sum(report.points for report in reports)
    whole = {"score": score, "output": text, "output_format": "text", "tests": tests}
    return json.dumps(whole, indent=2)
