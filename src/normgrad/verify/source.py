"""A module's text: its functions, constants and imports, and what a name in it is."""

from __future__ import annotations

import ast
import inspect
import linecache
from pathlib import Path
from types import FunctionType

from .values import NotRead

PACKAGE = Path(__file__).parents[1]
WRAPPERS = ("jit", "heuristics", "autotune", "libentry")


class Source:
    """A module's text, read but not run.

    Args:    text: the module's source; path: its file, where imports from files beside it are looked up
    Raises:  SyntaxError for text that is not Python
    """

    def __init__(self, text: str, path: Path | None = None):
        self.path = path
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.constants: dict[str, list[ast.expr]] = {}
        self.imports: dict[str, list[tuple[str, int]]] = {}
        self._read(ast.parse(text).body)
        self._files: dict[Path, Source] = {}

    def _read(self, body):
        for node in body:
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = getattr(node, "targets", None) or [node.target]
                for target in targets:
                    self._assigned(target, node.value)
            elif isinstance(node, ast.Import):
                for name in node.names:
                    first = name.name if name.asname else name.name.partition(".")[0]
                    self._imported(name.asname or first, first, 0)
            elif isinstance(node, ast.ImportFrom):
                for name in node.names:
                    path = f"{node.module or ''}.{name.name}"
                    self._imported(name.asname or name.name, path, node.level)
            elif not isinstance(node, ast.ClassDef):
                for field in ("body", "orelse", "finalbody"):
                    self._read(getattr(node, field, []))
                for handler in getattr(node, "handlers", []):
                    self._read(handler.body)

    def _assigned(self, target, value):
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._assigned(part, None)
        elif isinstance(target, ast.Name):
            self.constants.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            self._assigned(target.value, None)  # tl.sum = something

    def _imported(self, name, path, level):
        self.imports.setdefault(name, []).append((path, level))

    def function(self, name: str) -> ast.FunctionDef | None:
        """The one function of a name, also where a decorator is applied to it later; NotRead where there are two."""
        found = self.functions.get(name, [])
        if len(found) > 1 or found and name in self.imports:
            raise NotRead(f"{name} is defined more than once")
        for value in self.constants.get(name, []) if found else []:
            names = [
                n.id for n in ast.walk(value or ast.Pass()) if isinstance(n, ast.Name)
            ]
            decorated = isinstance(value, ast.Call) and name in names
            if not decorated or not any(
                word in ast.unparse(value) for word in WRAPPERS
            ):
                raise NotRead(f"{name} is assigned again")
        return found[0] if found else None

    def constant(self, name: str) -> ast.expr | None:
        """The value that a name is assigned, where that is once."""
        found = self.constants.get(name, [])
        if len(found) > 1 or found and name in self.imports:
            raise NotRead(f"{name} is assigned more than once")
        return found[0] if found else None

    def imported(self, name: str) -> tuple[str, Source | None]:
        """(the path of an imported name, the file that it is from, where that is found)."""
        found = self.imports[name]
        if len({path.rpartition(".")[2] for path, _ in found}) > 1:
            raise NotRead(f"{name} is imported as different things")
        path, level = found[0]
        return path, self._file(path.rpartition(".")[0], level)

    def _file(self, module, level):
        folder = PACKAGE.parent if module.startswith(f"{PACKAGE.name}.") else None
        if self.path is not None and level and module:
            folder = self.path.parents[level - 1]
        if folder is None:
            return None
        file = folder.joinpath(*module.split("."))
        file = file.with_suffix(".py")
        if file not in self._files and file.exists():
            self._files[file] = Source(file.read_text(encoding="utf8"), file)
        return self._files.get(file)


def plain(program) -> FunctionType | None:
    """The function that decorators have wrapped, None for what is no function."""
    while program is not None and not inspect.isfunction(program):
        program = getattr(program, "fn", None)
    return program


def cell_of(function: FunctionType) -> Source:
    """The notebook's cell that defines a function, with the modules that other cells imported.

    What else other cells define is not read, so that it is not taken for Python's own.
    """
    file = function.__code__.co_filename
    text = "".join(linecache.getlines(file))
    cell, elsewhere = Source(text), []
    for name, value in function.__globals__.items():
        inner = plain(value) if hasattr(value, "fn") else value
        if inspect.ismodule(value):
            elsewhere.append(f"import {value.__name__} as {name}")
        elif inspect.isfunction(inner):
            if inner.__code__.co_filename != file:
                elsewhere.append(f"{name}: object")
        elif name not in cell.constants and name not in cell.imports:
            elsewhere.append(f"{name}: object")
    return Source("\n".join([text, *elsewhere]))


def source_of(program, kernel: str | None = None) -> tuple[Source, str]:
    """(the module's text, the kernel's name) of a kernel, a path or a text.

    Raises:  ValueError where the kernel's name is missing, or no function of that name is there
    """
    if isinstance(program, str | Path):
        path = None if isinstance(program, str) and "\n" in program else Path(program)
        text = program if path is None else path.read_text(encoding="utf8")
        source = Source(text, path)
        if kernel is None:
            names = [name for name in source.functions]
            if len(names) != 1:
                raise ValueError(f"kernel: got none, needs one of {', '.join(names)}")
            kernel = names[0]
    else:
        function = plain(program)
        if function is None:
            got = type(program).__name__
            raise ValueError(f"program: got {got}, needs a kernel, a path or text")
        path = Path(function.__code__.co_filename)
        if path.is_file():
            source = Source(path.read_text(encoding="utf8"), path)
        else:
            source = cell_of(function)
        kernel = kernel or function.__name__
    if kernel not in source.functions:
        raise ValueError(
            f"kernel: got {kernel!r}, needs one of {', '.join(source.functions)}"
        )
    return source, kernel
