"""The mutants: wrong forwards and backwards that the tests must reject, in torch's operations and in any other module.

A mutant is an edit of a backend's own source, so it differs from the real thing in one place only; in Triton the
kernels for short and for long rows are two places. An edit whose text is not found, or twice in one module, raises:
when the source changes, the catalogue must be looked at again.
"""

from __future__ import annotations

import atexit
import importlib.util
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from ..checks.backends import TorchBackend
from .catalogue import MUTANTS, Mutant
from .edits import edited, in_any_layout

PACKAGE = Path(__file__).parent.parent
SOURCE = "torch_ops/rows.py"


def names() -> list[str]:
    """The names of the catalogue, in its order."""
    return [mutant.name for mutant in MUTANTS]


def find(name: str) -> Mutant:
    """The mutant of a name; ValueError for a name that is not in the catalogue."""
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    raise ValueError(
        f"name: got {name!r}, needs one of {', '.join(map(repr, names()))}"
    )


@cache
def folder() -> Path:
    """Where the texts of edited modules stand until the process ends."""
    texts = tempfile.TemporaryDirectory(prefix="normgrad-mutants-")
    atexit.register(texts.cleanup)
    return Path(texts.name)


def module(source: str, text: str, name: str) -> ModuleType:
    """A module of the package with another text, imported under a name of its own.

    Args:  source: the module's path below the package; text: what to import in its place; name: any short name
    """
    path = Path(source)
    file = folder() / f"_mutant_{path.stem}_{_slug(name)}.py"
    # Triton reads the source of its kernels from a file.
    file.write_text(text)
    return imported(".".join(["normgrad", *path.parts[:-1], file.stem]), file)


def _slug(name):
    return re.sub(r"\W", "_", name)


def imported(qualified, file, places=None) -> ModuleType:
    """The module of a file under a name; places: where its submodules are looked for."""
    spec = importlib.util.spec_from_file_location(
        qualified, file, submodule_search_locations=places
    )
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[qualified] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def package(source: str, texts: dict[str, str], name: str) -> ModuleType:
    """A folder of modules with some of their texts changed, imported as a package under a name of its own.

    Args:  source: the folder's path below the package; texts: {module: what to import in its place}; name: as module
    """
    copy = folder() / f"_mutant_{source}_{_slug(name)}"
    copy.mkdir(exist_ok=True)
    for file in (PACKAGE / source).glob("*.py"):
        (copy / file.name).write_text(texts.get(file.name, file.read_text()))
    return imported(f"normgrad.{copy.name}", copy / "__init__.py", [str(copy)])


def edited_package(source: str, edits, where: str) -> dict[str, str]:
    """{module: text} of a folder after each edit; ValueError for a text that no module has, or one has twice."""
    texts = {file.name: file.read_text() for file in (PACKAGE / source).glob("*.py")}
    for old, new in edits:
        pattern = re.compile(in_any_layout(old))
        names = [name for name, text in texts.items() if pattern.search(text)]
        if not names:
            raise ValueError(
                f"{where}: the text to edit occurs in no module of {source}: {old!r}"
            )
        for name in names:
            texts[name] = edited(texts[name], [(old, new)], f"{where}, {name}")
    return texts


def mutated(mutant: Mutant) -> TorchBackend:
    """The backend of torch's operations with the mutant in it, ready for the contract's checks. Args: from MUTANTS"""
    text = edited((PACKAGE / SOURCE).read_text(), mutant.edits, mutant.name)
    return TorchBackend("torch", module(SOURCE, text, mutant.name))
