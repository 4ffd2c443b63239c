"""The five steps of *Use this for your course*, run from a bare clone: real git, grader and scripts, no network.

Addresses on GitHub lead to bare repositories here. What takes minutes is only noted: `make` and `pip install`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from normgrad.homework import solutions

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "book/your_course.md"
STAND_IN = """#!/bin/sh
echo "${0##*/} $*" >> "$NOTED"
[ "${0##*/} $1" = "make book" ] || exit 0
mkdir -p .venv/bin _build/html/_sources/book
printf '#!/bin/sh\\nexec "$PYTHON" "$@"\\n' > .venv/bin/python
printf '#!/bin/sh\\nexec "$PYTHON" -m ghp_import "$@"\\n' > .venv/bin/ghp-import
chmod +x .venv/bin/python .venv/bin/ghp-import
echo "$GITHUB_REPOSITORY" > _build/html/index.html
echo {} > _build/html/_sources/book/one_row.ipynb
"""


def steps():
    """(heading, script) of each step: its blocks of shell, one after the other."""
    parts = re.split(r"^## (\d\. .+)$", PAGE.read_text(encoding="utf8"), flags=re.M)[1:]
    return [
        (heading, "\n".join(re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S)))
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    ]


@pytest.fixture
def github(tmp_path):
    """The environment of someone whose addresses on GitHub are bare repositories in this folder."""
    pytest.importorskip("ghp_import", reason="the book's packages are not installed")
    if not (ROOT / ".git").exists():
        pytest.skip("no repository to copy: this is a source distribution")
    bare = tmp_path / "OWNER/NAME.git"
    git(tmp_path, "clone", "--quiet", "--bare", ROOT, bare)
    git(bare, "update-ref", "refs/heads/main", "HEAD")
    git(bare, "symbolic-ref", "HEAD", "refs/heads/main")
    (tmp_path / "THEIR_OWNER").mkdir()
    (tmp_path / "THEIR_OWNER/THEIR_NAME.git").symlink_to(bare)
    bin = tmp_path / "bin"
    bin.mkdir()
    for name in ("make", "pip"):
        (bin / name).write_text(STAND_IN)
        (bin / name).chmod(0o755)
    config = f"""[user]
name = Someone
email = someone@example.org
[url "{tmp_path}/"]
insteadOf = https://github.com/
insteadOf = https://x-access-token:secret@github.com/
"""
    (tmp_path / "gitconfig").write_text(config)
    student = tmp_path / "submissions/ada"
    student.mkdir(parents=True)
    (student / "solution.py").write_text(solutions.solution("hw2"), encoding="utf8")
    return os.environ | {
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "NOTED": str(tmp_path / "noted.txt"),
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "src"),
    }


def run(script, folder, environ):
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def git(folder, *arguments):
    return subprocess.run(
        ["git", "-C", folder, *arguments], capture_output=True, text=True, check=True
    ).stdout.split()


def test_the_five_steps(github, tmp_path):
    (_, take), *scripts = all_steps = steps()
    assert [heading[0] for heading, _ in all_steps] == list("12345") and all(
        script for _, script in all_steps
    )
    run(take, tmp_path, github)
    clone, bare = tmp_path / "NAME", tmp_path / "OWNER/NAME.git"
    config = clone / "_config.yml"
    config.write_text(
        config.read_text(encoding="utf8").replace(
            "author: The normgrad authors", "author: A teacher"
        )
    )
    printed = [run(script, clone, github) for _, script in scripts]
    assert git(bare, "rev-parse", "autumn-term") == git(bare, "rev-parse", "main")
    changed = " ".join(git(bare, "show", "main:_config.yml"))
    assert "author: A teacher" in changed
    assert "_sources/book/one_row.ipynb" in git(
        bare, "ls-tree", "-r", "--name-only", "gh-pages"
    )
    assert git(bare, "show", "gh-pages:index.html") == ["OWNER/NAME"]
    assert "ada" in printed[2] and (tmp_path / "reports/ada.json").is_file()
    calls = (tmp_path / "noted.txt").read_text().splitlines()
    assert [line for line in calls if line.startswith("make")] == [
        "make book", "make page P=teachers", "make book", "make test", "make book"
    ]  # fmt: skip
