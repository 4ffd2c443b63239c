"""Wrong programs: copies of the package with an edit in them, imported beside it, so wrappers and launchers are in it.

A copy is a package of another name whose modules are read from its own folder first and from the package's after that.
All imports in the package are relative, so each of its modules finds the copy's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from shutil import copytree, ignore_patterns
from unittest import mock

import numba

from normgrad.checks.backends import Backend, NumpyBackend, SympyBackend, TorchBackend
from normgrad.mistakes.mutants import (
    PACKAGE,
    edited,
    edited_package,
    folder,
    imported,
    module,
)

_number = count()
# Operators are registered by name, and a name can be registered only once in a process.
OPERATORS = ("torch_ops/torch_compile.py",)


def plain_python():
    """What Numba would compile is left as it is while the context lasts: a mutant runs once, compiling takes longer."""
    return mock.patch.object(numba.config, "DISABLE_JIT", True)


@dataclass(frozen=True)
class Edit:
    """A wrong program: the package with one mistake in one file, or in each file of a folder that has the text.

    Args:  name: what is wrong; backend: whose points must meet it; path: the file or folder below the package
           edits: ((old, new), ...), each old text exactly once in a file; dtype: of the points, None for any
    """

    name: str
    backend: str
    path: str
    edits: tuple[tuple[str, str], ...]
    dtype: str | None = None

    def __str__(self):
        return f"{self.path.removesuffix('.py')}: {self.name}"


LIST = Path(__file__).parents[1] / "wrong_programs.txt"


def listed() -> list[tuple[str, Edit]]:
    """(what it fails, the wrong program) of each block of the list."""
    programs = []
    for block in LIST.read_text(encoding="utf8").split("\n\n["):
        if block.startswith("#"):
            continue
        block = block.partition("\n\n")[0].rstrip("\n")
        head, *lines = f"[{block}".splitlines()
        fails, path, name = re.fullmatch(r"\[(.+?)\] (\S+): (.+)", head).groups()
        hunks = re.findall(r"((?:-.*\n)+)((?:\+.*\n)+)", "\n".join([*lines, ""]))
        edits = tuple((text(old), text(new)) for old, new in hunks)
        backend, _, dtype = fails.partition(" ")
        programs.append((fails, Edit(name, backend, path, edits, dtype or None)))
    return programs


def text(lines: str) -> str:
    """Lines without what stands before each of them."""
    return "\n".join(line[1:] for line in lines.splitlines())


@contextmanager
def opened(edit: Edit) -> Iterator[Backend]:
    """The backend on the wrong program while the context lasts."""
    if edit.path.startswith("symbolic/"):
        text = edited((PACKAGE / edit.path).read_text(), edit.edits, str(edit))
        name = module(edit.path, text, edit.name).__name__.rpartition(".")[2]
        backend = "symbolic/backend.py"
        line = "from .derivations import family\n"
        other = f"from .derivations import {name} as family\n"
        text = edited((PACKAGE / backend).read_text(), [(line, other)], backend)
        yield SympyBackend(module(backend, text, name))
        return
    name = copied({edit.path: edit.edits}, str(edit))
    try:
        yield backend_of(edit.backend, name)
    finally:
        forget(name)


def copied(edits: dict[str, tuple[tuple[str, str], ...]], where: str) -> str:
    """The name under which a copy of the package can be imported.

    Args:    edits: {file or folder below the package: ((old, new), ...)}, each old text once in a file that has it
             where: for errors
    Raises:  ValueError for a text that is not there exactly once
    """
    name = f"normgrad_copy_{next(_number)}"
    place = folder() / name
    place.mkdir()
    texts = {}
    for path, changes in edits.items():
        if path.endswith(".py"):
            texts[path] = edited(
                (PACKAGE / path).read_text(), changes, f"{where}, {path}"
            )
        else:
            changed = edited_package(path, changes, where)
            texts |= {f"{path}/{file}": text for file, text in changed.items()}
    for path in OPERATORS:
        text = texts.get(path, (PACKAGE / path).read_text())
        texts[path] = text.replace('"normgrad::', f'"{name}::')
    for path, text in texts.items():
        file = place / path
        if file.parent != place and not file.parent.exists():
            # A folder hides the package's folder of that name: it has to be whole.
            sources = (PACKAGE / path).parent
            copytree(sources, file.parent, ignore=ignore_patterns("__pycache__"))
        file.write_text(text)
    start = PACKAGE / "__init__.py"
    imported(
        name,
        place / "__init__.py" if (place / "__init__.py").exists() else start,
        [str(place), str(PACKAGE)],
    )
    return name


def backend_of(name: str, package: str):
    """The backend of a name on a copy's code."""
    if name == "numpy":
        return NumpyBackend(import_module(f"{package}.numpy_ref"))
    if name == "sympy":
        return SympyBackend(import_module(f"{package}.symbolic.backend"))
    if name == "numba":
        with plain_python():
            import_module(f"{package}.numba_kernels")
    return TorchBackend(name, package=package)


def forget(package: str) -> None:
    """Drop a copy's modules from sys.modules."""
    for name in [
        name
        for name in sys.modules
        if name == package or name.startswith(f"{package}.")
    ]:
        del sys.modules[name]
