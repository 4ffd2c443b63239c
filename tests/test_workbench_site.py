"""What the build puts on the site for the workbench: all that proofs import, and a word where something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the book's packages are not installed")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book/_ext"))

from normgrad_book import workbench  # noqa: E402

# What a proof, a refutation, a trace and a typed equation import, each module's file on a line.
IMPORTED = """
import sys
sys.path.insert(0, "book/live/workbench")
import workbench
text = workbench.statement("proof-jacobian")
for changed in (text, text.replace("- z[j]", "+ z[j]"), text.replace("prove(", "trace(")):
    workbench.judge(changed)
workbench.judge("for proof in equation('res-invariant').prove():\\n    show(proof)")
print(*[module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)], sep="\\n")
"""


def test_all_that_proofs_import_is_on_the_site(tmp_path):
    """The lists of what is left out hold no file that a proof loads."""
    command = [sys.executable, "-c", IMPORTED]
    loaded = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    workbench.package_files(None, tmp_path)
    workbench.normgrad_files(None, tmp_path)
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")}
    missing = []
    for path in map(Path, loaded):
        package = next(
            (
                parent
                for parent in path.parents
                if parent.name in ("sympy", "mpmath", "normgrad")
            ),
            None,
        )
        inside = (
            package
            and path.relative_to(
                path.parents[len(path.relative_to(package).parts)]
            ).as_posix()
        )
        missing += (
            [inside] if package and path.suffix == ".py" and inside not in there else []
        )
    assert missing == []
    assert (tmp_path / "normgrad/symbolic/equations.json").exists()
    assert "workbench.py" in there and not any("/tests/" in name for name in there)
