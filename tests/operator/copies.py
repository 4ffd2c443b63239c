"""Copies of the package with an edit in them, imported beside it: whole, so that wrappers and launchers are in it.

A copy is a package of another name whose modules are read from its own folder first and from the package's after that.
All imports in the package are relative, so each of its modules finds the copy's.
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import count

from normgrad.checks.backends import NumpyBackend, TorchBackend
from normgrad.mistakes.mutants import PACKAGE, edited, folder, imported, plain_python

_number = count()
# Operators are registered by name, and a name can be registered only once in a process.
OPERATORS = ("torch_ops/torch_compile.py",)


def copied(edits: dict[str, tuple[tuple[str, str], ...]], where: str) -> str:
    """The name under which a copy of the package can be imported.

    Args:    edits: {path below the package: ((old, new), ...)}, each old text once in its file; where: for errors
    Raises:  ValueError for a text that is not there exactly once
    """
    name = f"normgrad_copy_{next(_number)}"
    place = folder() / name
    place.mkdir()
    texts = {path: edited((PACKAGE / path).read_text(), changes, f"{where}, {path}") for path, changes in edits.items()}
    for path in OPERATORS:
        text = texts.get(path, (PACKAGE / path).read_text())
        texts[path] = text.replace('"normgrad::', f'"{name}::')
    for path, text in texts.items():
        file = place / path
        if file.parent != place and not file.parent.exists():
            # A folder hides the package's folder of that name: it has to be whole.
            file.parent.mkdir()
            for other in (PACKAGE / path).parent.glob("*.py"):
                (file.parent / other.name).write_text(other.read_text())
        file.write_text(text)
    start = PACKAGE / "__init__.py"
    imported(name, place / "__init__.py" if (place / "__init__.py").exists() else start, [str(place), str(PACKAGE)])
    return name


def backend_of(name: str, package: str):
    """The backend of a name on a copy's code."""
    if name == "numpy":
        return NumpyBackend(import_module(f"{package}.numpy_ref"))
    if name == "numba":
        with plain_python():
            import_module(f"{package}.numba_kernels")
    return TorchBackend(name, package=package)


def forget(package: str) -> None:
    """Drop a copy's modules from sys.modules."""
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]
