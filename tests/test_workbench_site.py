"""What the build puts on the site for the workbench: all that proofs import, and a word where something is missing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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
text = workbench.statement("l2-jacobian")
for changed in (text, text.replace("- r[j]", "+ r[j]"), text.replace("prove(", "trace(")):
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


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A function that finishes a site on a machine with some programs, and returns what the page says is missing."""
    app = SimpleNamespace(
        builder=SimpleNamespace(name="html"),
        env=SimpleNamespace(found_docs={"one"}, metadata={"one": {"workbench": True}}),
        outdir=tmp_path / "html",
        srcdir=tmp_path,
    )

    def build(programs, run=None):
        monkeypatch.setattr(
            shutil, "which", lambda name: name if name in programs else None
        )
        monkeypatch.setattr(workbench.subprocess, "run", run)
        workbench.write(app, None)
        told = (app.outdir / "_static/workbench/here.js").read_text(encoding="utf8")
        return json.loads(told[told.index("{") : told.rindex("}") + 1])["missing"]

    build.app = app
    return build


def npm(content=None):
    """npm that fetches an archive of this content, or nothing."""

    def run(command, **options):
        if content is not None:
            folder = Path(command[command.index("--pack-destination") + 1])
            (folder / f"pyodide-{workbench.PYODIDE}.tgz").write_bytes(content)
        return SimpleNamespace(returncode=int(content is None), stderr="")

    return run


def test_the_build_goes_on_without_node_and_the_page_says_so(built):
    assert "no Node here" in built(())
    assert (built.app.outdir / "_static/workbench/workbench.js").is_file()


def test_another_package_than_the_known_one_is_not_taken(built):
    assert "another content than is known" in built(("node", "npm"), npm(b"another"))
