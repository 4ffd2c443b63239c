"""What the files around the book and the package promise, and the house rules that a program can check."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import tomllib
import yaml
from processes import python

import normgrad
from normgrad.verify.verdict import PROVED, REFUTED, WRONG

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
VERIFY = "src/normgrad/verify"
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


# The README and its neighbours


def examples():
    text = read("README.md") + read(f"{VERIFY}/README.md")
    return re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize(("code", "output"), examples())
def test_readme_prints_what_it_shows(code, output):
    done = python("-W", "error", "-c", code)
    assert done.stdout == output, done.stderr


def test_the_readme_counts_verdicts_as_they_are():
    text = " ".join(read("README.md").split())
    variants, models = {}, Counter()
    for row in json.loads(read(f"{VERIFY}/field_kernels.json"))["rows"]:
        kernel = row["package"], row["file"], row["kernel"]
        variants.setdefault(kernel, []).append(row["verdict"])
    proved = sum(set(verdicts) == {PROVED} for verdicts in variants.values())
    for row in json.loads(read(f"{VERIFY}/model_programs.json"))["rows"]:
        is_norm = row["operator"] in ("LayerNorm", "RMSNorm", "L2")
        if row["what"] == "program" and is_norm:
            models[row["verdict"]] += 1
    wrong = models[WRONG] + models[REFUTED]
    packages = len({package for package, _, _ in variants})
    assert f"Of {len(variants)} kernels of {packages} published packages" in text
    assert f"it proves {proved} in all their variants; of {models.total()}" in text
    assert f"{models[PROVED]} are proved and {wrong} are wrong" in text


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


def test_rows_and_files_that_the_readme_of_verify_names_exist():
    text = read(f"{VERIFY}/README.md")
    tables = [path.read_text("utf8") for path in ROOT.glob("tests/verify_*.txt")]
    rows = re.findall(r"^\|.*\| `(.+)` \|$", text, re.M)
    assert rows
    assert [row for row in rows if row not in "\n".join(tables)] == []
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|txt))`", text))
    folders = (ROOT, ROOT / VERIFY, ROOT / "src/normgrad")
    missing = [
        name
        for name in named
        if not any((folder / name).exists() for folder in folders)
    ]
    assert missing == []


def test_versions_agree():
    top = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1]
    citation = str(yaml.safe_load(read("CITATION.cff"))["version"])
    assert {PROJECT["project"]["version"], citation, top} == {normgrad.__version__}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_no_file_holds(name):
    """Neither those of the repository nor those not yet committed; a source distribution is made of them."""
    folder = "tests" if "loss" in name else "."
    command = ["git", "grep", "--untracked", "-InP", FORBIDDEN[name], folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == ""
