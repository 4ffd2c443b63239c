"""The mutants: wrong forwards and backwards that the tests must reject, on every backend and at every N.

A mutant is an edit of a backend's own source, so it differs from the real thing in one place only. An edit whose text
is not found exactly once raises: when the source changes, the catalogue must be looked at again.
"""

from __future__ import annotations

import atexit
import importlib.util
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from .backends import NumpyBackend, SympyBackend, TorchBackend
from .mutant_catalogue import MUTANTS, Mutant

SOURCES = {
    "numpy": "numpy_ref.py",
    "sympy": "symbolic/family.py",
    "torch": "torch_rows.py",
    "triton": "triton_kernels.py",
}


def names() -> list[str]:
    """The names of the catalogue, in its order."""
    return [mutant.name for mutant in MUTANTS]


def find(name: str) -> Mutant:
    """The mutant of a name; ValueError for a name that is not in the catalogue."""
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    raise ValueError(f"name: got {name!r}, needs one of {', '.join(map(repr, names()))}")


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="normgrad-mutants-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def edited(source: str, edits, where: str) -> str:
    """The source after each edit; ValueError for a text that is not there exactly once."""
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{where}: the text to edit occurs {source.count(old)} times, needs 1: {old!r}")
        source = source.replace(old, new)
    return source


def _module(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load(mutant: Mutant, backend: str) -> ModuleType:
    """The backend's source module with the mutant's edits, imported from a file of its own (Triton reads files)."""
    return _load(SOURCES[backend], mutant.edits[backend], mutant.name, backend)


def _load(source: str, edits, name: str, backend: str) -> ModuleType:
    path = Path(__file__).parent.parent / source
    package = ".".join(["normgrad", *Path(source).parts[:-1]])
    stem = f"_mutant_{path.stem}_" + "".join(c if c.isalnum() else "_" for c in name)
    file = _folder() / f"{stem}.py"
    file.write_text(edited(path.read_text(), edits, f"{name}, {backend}"))
    return _module(f"{package}.{stem}", file)


def mutated(mutant: Mutant, backend: str):
    """The backend with the mutant in it, ready for the contract's checks.

    Args:  mutant: from MUTANTS; backend: "numpy", "sympy", "torch" or "triton"
    """
    module = load(mutant, backend)
    if backend == "numpy":
        return NumpyBackend(module)
    if backend == "sympy":
        family = f"from . import {module.__name__.rpartition('.')[2]} as family\n"
        edits = (("from . import family\n", family),)
        return SympyBackend(_load("symbolic/backend.py", edits, mutant.name, backend))
    return TorchBackend(backend, module)
