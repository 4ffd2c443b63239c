"""What the files around the book and the package promise, and the house rules that a program can check."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
import yaml

import normgrad

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))

# With a letter in brackets, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a machine's paths": r"(?<![\w.~-])/(ro[o]t|ho[m]e|wo[r]k|tm[p]|op[t])/",
    "package registries": r"pypi[.]org|python[h]osted|download[.]pytorch|npm[j]s",
    "unfinished work": "TO[D]O|FIX[M]E",
    # The gradient of the sum of a normalized row is zero, so a test with that loss passes whatever is wrong.
    "a plain sum as loss": r"\.sum\(\)[.]backward",
}


def read(path):
    return (ROOT / path).read_text(encoding="utf8")


def tracked_texts():
    """Each text file of the repository, those not yet committed included; of a source distribution, its own list."""
    if (ROOT / "PKG-INFO").exists():
        listed = read("src/normgrad.egg-info/SOURCES.txt").split("\n")
    else:
        command = "git ls-files -z --cached --others --exclude-standard".split()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        listed = done.stdout.decode("utf8").split("\0")
    for name in filter(None, listed):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b"\0"
        if b"\0" not in content:
            yield name, content.decode("utf8")


# The README and its neighbours


def examples():
    return re.findall(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```", read("README.md"), re.M | re.S
    )


@pytest.mark.parametrize(("code", "output"), examples())
def test_readme_prints_what_it_shows(code, output):
    command = [sys.executable, "-W", "error", "-c", code]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == output
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_files_exist(name):
    text = read(name)
    linked = [
        target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target
    ]
    quoted = re.findall(r"`((?:src|tests|tools|book)/[\w/.*-]+)`", text)
    named = re.findall(
        r"`((?:(?:checks|symbolic|symbolic/derivations)/)?[\w*]+\.py|\w+/)`", text
    )
    modules = [f"src/normgrad/{module}" for module in named]
    missing = [
        path
        for path in [*linked, *quoted, *modules]
        if not list(ROOT.glob(path.rstrip("/")))
    ]
    assert missing == []


def test_versions_agree():
    top = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1]
    citation = str(yaml.safe_load(read("CITATION.cff"))["version"])
    assert {PROJECT["project"]["version"], citation, top} == {normgrad.__version__}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_no_file_holds(name):
    lines = [
        f"{file}:{number}: {line.strip()[:90]}"
        for file, text in tracked_texts()
        if file.startswith("tests/") or "loss" not in name
        for number, line in enumerate(text.split("\n"), 1)
        if re.search(FORBIDDEN[name], line)
    ]
    assert lines == []


# House rules of the code
