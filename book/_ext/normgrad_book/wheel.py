"""The package of this build as one file on the site, for the notebooks to install.

Its version names the commit, so that a notebook can tell whether the normgrad that it finds is the one of its page.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.errors import ExtensionError

from .repository import git

# What the wheel is made of, from the root of the checkout.
PARTS = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "LICENSE-text",
    "src",
    "book/figures",
)
LEFT_OUT = shutil.ignore_patterns("*.egg-info", "__pycache__")
# Where the version stands, each time on a line of its own.
VERSIONED = {
    "pyproject.toml": r'^version = "(.+)"$',
    "src/normgrad/__init__.py": r'^__version__ = "(.+)"$',
}


def copy_package(root, folder):
    """Building a wheel leaves files in the folder that it is built from, so it is built from a copy."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (root / part).is_dir():
            shutil.copytree(root / part, target, ignore=LEFT_OUT)
        else:
            shutil.copy2(root / part, target)


def digest(folder) -> str:
    """Eight digits of a hash of all files in a folder."""
    files = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            files.update(name.encode() + b"\0" + path.read_bytes())
    return files.hexdigest()[:8]


def local_version(root, folder, commit) -> str:
    """What follows the version: the commit, and a digest where the files are not those of the commit."""
    if not commit:
        return ""
    changed = git(root, "status", "--porcelain", "--", *PARTS)
    return f"+g{commit[:12]}" + (f".d{digest(folder)}" if changed else "")


def stamp(folder, local) -> str:
    """Writes the whole version wherever it stands in the copy, and returns it."""
    for name, pattern in VERSIONED.items():
        path = folder / name
        text = path.read_text(encoding="utf8")
        lines = list(re.finditer(pattern, text, re.M))
        if len(lines) != 1:
            raise ExtensionError(
                f"{name} must give the version on one line, found {len(lines)}"
            )
        end = lines[0].end(1)
        path.write_text(text[:end] + local + text[end:], encoding="utf8")
    return lines[0][1] + local


def build(root, commit, target) -> str:
    """Puts the wheel into a folder, in place of older ones, and returns the package's version."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        copy_package(root, folder)
        version = stamp(folder, local_version(root, folder, commit))
        command = [sys.executable, "-m", "pip", "wheel", "--wheel-dir", target, folder]
        options = "--quiet --no-deps --no-build-isolation --no-index".split()
        # A fixed date inside: the same files give the same wheel, byte for byte.
        environ = os.environ | {"SOURCE_DATE_EPOCH": "315532800"}
        target.mkdir(parents=True, exist_ok=True)
        for older in target.glob("normgrad-*.whl"):
            older.unlink()
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, env=environ
        )
        if done.returncode:
            raise ExtensionError(
                f"the wheel of normgrad cannot be built:\n{done.stdout}{done.stderr}"
            )
    return version


def file_name(version) -> str:
    return f"normgrad-{version}-py3-none-any.whl"
