"""What stands at the level of a module: its statements, its imports, the files of its package, parts of libraries."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from .arrays import NotRead, Wrong, state
from .genuine import check_member
from .host import is_passive, may_change
from .importing import LIBRARIES, binds_alone, check_bound, only_imports
from .nodes import nodes_of
from .python_objects import KNOWN, Module, Named, Unread
from .scopes import FORWARD, MODULE, Globals, local_names, note_imported
from .source import Source, file_of, text_of
from .tables.layers import LAYERS, TEXT
from .tables.libraries import HOST, TABLES
from .text import imports_of, module_of

# names that a text may bind with two underscores, of which Python asks nothing
UNUSED = {"__all__", "__version__", "__author__", "__name__"}


class Modules:
    """Reads the text of a module, and of other files of its package. Args:  reader: who reads"""

    def __init__(self, reader):
        self.reader = reader
        # the names of the module, for a text that is read several times
        self.names: Globals | None = None
        self.source: Source | None = None
        # the file that is read, and the names of those of its package
        self.file: Path | None = None
        self.files: dict[Path, Globals | None] = {}
        self.layers: Globals | None = None

    def read(self, text: str, file: Path | None = None) -> Globals:
        """The names that a module's text defines; file: that it is from, whose package is read as well."""
        self.reader.phase, self.file = MODULE, file
        tree = module_of(text)
        state().words += [w for w in imports_of(tree) if w not in state().words]
        bound = local_names(tree.body)
        for name in sorted(bound - UNUSED):
            if name.startswith("__"):
                raise NotRead(f"{name}, which Python reads by itself")
        names = Globals(None, bound | {"__name__"}, self.reader)
        names.names["__name__"] = "program"
        if state().way:
            self.source = names.source = source_once(text, file)
            self._check_import(tree)
            self._execute_module(tree.body, names)
            self.names = names
        else:
            self.reader.execute(tree.body, names)
        for node in nodes_of(tree):
            if isinstance(node, ast.Global):
                for name in names.names.keys() & node.names:
                    why = f"{name}, which a function changes"
                    names.names[name] = Unread(why, node.lineno)
        check_bound(tree)
        self.reader.phase = FORWARD
        return names

    def _check_import(self, tree):
        """Says that a text is wrong whose import is sure to end in an error.

        For a layer without an import of torch.nn. It leaves alone what may run, or may bind a name unseen.
        """
        if may_change(self.source):
            return
        try:
            check_bound(tree, is_plain=True)
        except Wrong:
            raise
        except NotRead:
            return  # the statements are read first

    def _execute_module(self, body, names):
        """Read the statements of a module with kernels; what is not read leaves the names that it binds unread.

        For a file that has tests, benchmarks and other layers beside the function in question. It stops a statement
        that may change a function of the text or of a library, as `torch.rsqrt = torch.sqrt` does.
        """
        is_fixed = not may_change(self.source)
        for node in body:
            try:
                self.reader.execute([node], names)
            except NotRead as reason:
                if not (is_fixed and is_passive(node, self.source)):
                    raise
                for name in local_names([node]):
                    names.names[name] = Unread(str(reason), node.lineno)

    def read_Import(self, node, scope):
        """A library, or a module that is not read."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            path = alias.name if alias.asname else top
            module = Module(path) if top in TABLES else Named(path)
            self._note_path(alias.name)
            scope.names[alias.asname or top] = module

    def read_ImportFrom(self, node, scope):
        """Names of a library, or of a module that is not read."""
        path = node.module or ""
        names = self._of_file(path, node.level)
        for alias in node.names:
            if alias.name == "*":
                raise NotRead("an import of *")
            if names is not None and names.has(alias.name):
                value = names.names[alias.name]
            else:
                value = Named(f"{path}.{alias.name}")
                if path.partition(".")[0] in TABLES and not node.level:
                    with suppress(NotRead):  # what is not in the tables is a name alone
                        value = self.reader.attribute(Module(path), alias.name)
                self._note_path(path if path in LIBRARIES else f"{path}.{alias.name}")
            scope.names[alias.asname or alias.name] = value

    def _note_path(self, path):
        """Note that a part of a library is there which no table has."""
        try:
            self.of_path(path)
        except (NotRead, Wrong):
            if path not in LIBRARIES and path not in sys.stdlib_module_names:
                note_imported()

    def _of_file(self, path, level):
        """The names of a file of the same package, None where there is none."""
        if self.file is None or not state().way:
            return None
        file = file_of(self.file, path, level)
        if file is None:
            return None
        if file not in self.files:
            before = self.file, self.source, self.reader.phase
            self.files[file] = None
            try:
                self.files[file] = self.read(text_of(file), file)
            finally:
                self.file, self.source, self.reader.phase = before
        return self.files[file]

    def _of_torch(self):
        """The names of the text of torch's own layers."""
        if self.layers is None:
            before = self.file, self.source, self.names, self.reader.phase
            try:
                self.layers = self.read(TEXT)
            finally:
                self.file, self.source, self.names, self.reader.phase = before
        return self.layers

    def read_Try(self, node, scope):
        """Imports of a module, which are taken to succeed; of another `try` nothing is known."""
        is_module = self.reader.phase == MODULE and only_imports(node)
        if is_module and not state().way and binds_alone(node):
            note_imported()
            for name in local_names([node]):
                why = f"{name}, whose import may fail"
                scope.names[name] = Unread(why, node.lineno)
            return
        if not (is_module and state().way):
            raise NotRead("the statement try")
        self.reader.execute([*node.body, *node.orelse, *node.finalbody], scope)
        for handler in node.handlers:
            if handler.name in scope.names:
                raise NotRead(f"{handler.name}, which an except may take away")

    def of_path(self, path: str) -> Any:
        """What a path such as "torch.nn.Module" leads to."""
        if state().way and path in HOST:
            return HOST[path]
        if path in LAYERS and not self.reader.values.live:
            return self._of_torch().names[LAYERS[path]]
        if path in KNOWN:
            if self.reader.values.live:
                check_member(path)
            return KNOWN[path]
        if any(key.startswith(f"{path}.") for key in (*KNOWN, *HOST)):
            return Module(path)
        library, _, name = path.rpartition(".")
        if (
            state().way
            and self.reader.depth
            and name not in LIBRARIES.get(library, (name,))
        ):
            raise Wrong(f"an AttributeError: {library} has no {name}")
        raise NotRead(path)


def source_once(text: str, file: Path | None) -> Source:
    """A module's text with its kernels, one for all ways of a verdict."""
    shared = state().way.shared
    if (text, file) not in shared:
        shared[text, file] = Source(text, file)
    return shared[text, file]
