"""A module's text: its functions, constants and imports, and what a name in it is."""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
from pathlib import Path
from types import FunctionType

from .importing import check_bound, only_imports
from .nodes import nodes_of
from .python_source import definition
from .text import module_of, shortened
from .values import NotRead

PACKAGE = Path(__file__).parents[1]
# decorators that leave a kernel what it says
WRAPPERS = ("jit", "heuristics", "autotune", "libentry")
# what may bind a name that is written nowhere
HIDDEN = {
    *("exec", "eval", "globals", "locals", "vars"),
    *("modules", "__import__", "__builtins__", "__dict__"),
    *("f_globals", "f_locals", "f_builtins", "mock", "patch"),
}
# attributes with two underscores that lead to no name of a module
OPEN = {
    *("__init__", "__name__", "__version__", "__class__", "__doc__", "__module__"),
    *("__file__", "__qualname__", "__post_init__"),
}
SETTERS = ("setattr", "delattr", "__setattr__", "__delattr__")
OWN = ("self", "ctx")
# what makes another function of a function, under whatever name it is held
PARTS = ("fn", "src", "_src", "__code__", "__globals__", "__defaults__")
# packages whose functions and jit are other than Triton's
OTHERS = ("numpy", "torch", "math", "scipy", "cupy", "jax", "numba", "sympy")
LIBRARIES = ("triton", "triton.language", "math")
DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def root_of(node: ast.expr) -> str:
    """The first name of an expression such as tl.extra.sqrt, "" where it starts with none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return getattr(node, "id", "")


def _only_asked(tree):
    """The id of each expression of which no more than an attribute is asked."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute):
            yield id(node.value)
        elif getattr(getattr(node, "func", None), "id", "") in ("hasattr", "getattr"):
            yield from map(id, node.args)


def last_name(node: ast.AST) -> str:
    """What follows the last point of a name, or of what a call is of, as setattr and x.setattr(...); "" of all else."""
    called = getattr(node, "func", node)
    return getattr(called, "id", getattr(called, "attr", ""))


def _own_setters(tree):
    """The id of each function that is called to set an attribute of the object itself."""
    for node in nodes_of(tree):
        match node:
            case ast.Call(func=called, args=[target, *_]):
                if last_name(node) in SETTERS and root_of(target) in OWN:
                    yield id(called)


def is_constexpr(node: ast.arg | ast.AnnAssign) -> bool:
    """Whether a parameter or a name is annotated as a number that is compiled in."""
    return node.annotation is not None and "constexpr" in ast.unparse(node.annotation)


def is_jit(decorator: ast.expr) -> bool:
    """Whether a decorator is jit alone."""
    return last_name(decorator) == "jit"


class Source:
    """A module's text, read but not run.

    Args:    text: the module's source; path: its file, where imports from files beside it are looked up
    Raises:  ValueError for text that is not Python
    """

    def __init__(self, text: str, path: Path | None = None):
        self.path = path
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        # {name: the values that it is assigned, None for one that is not read}
        self.constants: dict[str, list[ast.expr | None]] = {}
        self.imports: dict[str, list[tuple[str, int]]] = {}
        self.hidden = ""
        tree = module_of(text)
        self._read(tree)
        self._asked = set(_only_asked(tree))
        self._setters = set(_own_setters(tree))
        for node in nodes_of(tree):
            self._look_for_hidden(node)
        self._files: dict[Path, Source] = {}
        self.tree, self.is_imported = tree, False

    def check_importable(self) -> None:
        """Refuse a text, or a file that it imports, whose import ends in an error; a kernel object is imported."""
        if self.is_imported:
            return
        check_bound(self.tree)
        for source in self._files.values():
            source.check_importable()

    def _read(self, node):
        """Keeps every name that is bound, whatever binds it."""
        match node:
            case ast.FunctionDef(name=name):
                self.functions.setdefault(name, []).append(node)
            case ast.Import():
                for part in node.names:
                    first = part.name if part.asname else part.name.partition(".")[0]
                    self._imported(part.asname or first, first, 0)
                return
            case ast.ImportFrom():
                for part in node.names:
                    path = f"{node.module or ''}.{part.name}"
                    self._imported(part.asname or part.name, path, node.level)
                return
            case (
                ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                self._bind(name, node.value)
                return
            case ast.Try() if only_imports(node, "triton"):
                # without Triton no kernel runs, whatever the handlers bind
                for part in (*node.body, *node.orelse, *node.finalbody):
                    self._read(part)
                return
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self._bind(name)
            case ast.AST(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self._bind(name)
        if not isinstance(node, DEFINITION | ast.comprehension):
            for part in ast.iter_child_nodes(node):
                self._read(part)

    def _bind(self, name, value=None):
        self.constants.setdefault(name, []).append(value)

    def _look_for_hidden(self, node):
        """Keeps what may bind a name, or change a function, without saying so."""
        match node:
            case ast.Attribute(attr=word) if word.startswith("__") and word not in OPEN:
                if id(node) not in self._setters:
                    self.hidden = word
            case ast.alias(name=path) if HIDDEN & {*path.split(".")}:
                self.hidden = path
            case ast.Global(names=names):
                for name in names:
                    self._bind(name)
            case ast.NamedExpr(target=ast.Name(id=name)):
                self._bind(name)
            case ast.Name(id=word, ctx=ast.Load()) | ast.Attribute(attr=word) if (
                word in HIDDEN
            ):
                self.hidden = word
            case ast.Attribute(attr=part, ctx=ast.Store() | ast.Del()):
                root = root_of(node)
                of_text = root in {**self.functions, **self.imports, **self.constants}
                if of_text or part in PARTS and root not in OWN:
                    self.hidden = f"an attribute of {root}"
            case ast.Call(func=called) if id(called) not in self._setters:
                if last_name(node) in SETTERS:
                    self.hidden = last_name(node)
            case ast.Name(id=name, ctx=ast.Load()) if id(node) not in self._asked:
                for path, _ in self.imports.get(name, ()):
                    if path in LIBRARIES or path.endswith((".tl", ".triton")):
                        self.hidden = f"what {name} is handed to"

    def _imported(self, name, path, level):
        self.imports.setdefault(name, []).append((path, level))

    def may_bind(self, name: str) -> bool:
        """Whether a line of the text binds a name, wherever that is, or may bind any name.

        For a name that one branch of a kernel gives a value to. It stops a kernel that names what no line binds.
        """
        if self.hidden or "*" in self.imports or name in self.imports:
            return True
        for node in nodes_of(self.tree):
            match node:
                case (
                    ast.Name(id=bound, ctx=ast.Store() | ast.Del()) | ast.arg(arg=bound)
                ):
                    pass
                case ast.alias(name=path, asname=bound):
                    # an import in the body of a function, too
                    bound = bound or path.partition(".")[0]
                case ast.AST(name=bound) | ast.MatchMapping(rest=bound):
                    pass
                case _:
                    continue
            if bound == name:
                return True
        return False

    def _check_names(self, name):
        """Refuses a name that the text may bind where it does not say so."""
        if self.hidden:
            raise NotRead(f"what {name} is may be changed by {self.hidden}")
        if "*" in self.imports:
            raise NotRead(f"what {name} is may be changed by an import of *")

    def function(self, name: str) -> ast.FunctionDef | None:
        """The one function of a name, also where a decorator is applied to it later; NotRead where there are two."""
        definitions = self.functions.get(name, [])
        if not definitions:
            return None
        self._check_names(name)
        if len(definitions) > 1 or name in self.imports:
            raise NotRead(f"{name} is defined more than once")
        for value in self.constants.get(name, []):
            arguments = value.args if isinstance(value, ast.Call) else []
            if list(map(ast.unparse, arguments)) != [name]:
                raise NotRead(f"{name} is assigned again")
        for wrapper in self.wrappers(name):
            self._check_wrapper(wrapper, name)
        return definitions[0]

    @property
    def kernels(self) -> list[str]:
        """The names of functions with the decorator jit; of all functions where none has it."""
        jitted = [
            name
            for name, definitions in self.functions.items()
            if "jit" in " ".join(map(ast.unparse, definitions[0].decorator_list))
        ]
        return jitted or list(self.functions)

    def wrappers(self, name: str) -> list[ast.expr]:
        """The decorators of a function, and what is called with it later."""
        later = [value.func for value in self.constants.get(name, []) if value]
        return [*self.functions[name][0].decorator_list, *later]

    def _check_wrapper(self, node, name):
        """Refuses a decorator that may leave another function."""
        called = getattr(node, "func", node)
        root = root_of(called)
        own = root in self.functions or root in self.constants
        other = {path.partition(".")[0] for path, _ in self.imports.get(root, ())}
        is_known = last_name(node) in WRAPPERS and other.isdisjoint(OTHERS)
        if own or not other or not is_known:
            raise NotRead(f"the decorator {ast.unparse(called)} of {name}")

    def constant(self, name: str) -> ast.expr | None:
        """The value that a name is assigned, where that is once."""
        self._check_names(name)
        values = self.constants.get(name, [])
        if len(values) > 1 or values and name in self.imports:
            raise NotRead(f"{name} is assigned more than once")
        return values[0] if values else None

    def imported(self, name: str) -> tuple[str, Source | None]:
        """(the path of an imported name, the file that it is from, where that is found)."""
        paths = self.imports[name]
        if len({path.rpartition(".")[2] for path, _ in paths}) > 1:
            raise NotRead(f"{name} is imported as different things")
        # of several, such as those of a try, one that is no part of Triton, if there is one
        path, level = min(paths, key=lambda pair: pair[0].startswith("triton."))
        return path, self._file(path.rpartition(".")[0], level)

    def submodule(self, name: str) -> Source | None:
        """A file beside the __init__ that this is, unless that may bind the name to something else."""
        bound = self.functions | self.constants | self.imports
        if name in bound or "*" in bound or self.hidden or not self.path:
            return None
        return self._file(name, 1) if self.path.name == "__init__.py" else None

    def _file(self, module, level):
        file = file_of(self.path, module, level)
        if file is not None and file not in self._files:
            self._files[file] = Source(text_of(file), file)
        return self._files.get(file)


def file_of(path: Path | None, module: str, level: int) -> Path | None:
    """The file of a module of this package, or of the one that a file is in; None where there is none.

    Args:  path: of the file that imports it; level: how many dots its name starts with
    """
    if not module:
        return None
    top = module.partition(".")[0]
    folders = [PACKAGE.parent] if top == PACKAGE.name else []
    if path is not None and level:
        folders = [path.parents[level - 1]]
    elif path is not None and not level:
        folders += [folder.parent for folder in path.parents if folder.name == top]
    for folder in folders:
        file = folder.joinpath(*module.split("."))
        for candidate in (file.with_suffix(".py"), file / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


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


def check_object(program, source: Source, name: str) -> None:
    """Refuse a kernel object that is by now another one than its text says."""
    wrapped = 0
    while not inspect.isfunction(program):
        program, wrapped = program.fn, wrapped + 1
    if wrapped != len(source.wrappers(name)):
        raise NotRead(f"{name} has other decorators by now than its text")
    waiting, reached = [(name, program)], set()
    while waiting:
        name, function = waiting.pop()
        reached.add(name)
        own = source.function(name)
        if ast.dump(definition(function)) != ast.dump(own):
            raise NotRead(f"{name} is another function by now than in its text")
        local = function.__code__.co_varnames
        for node in nodes_of(own):
            held = function.__globals__.get(getattr(node, "id", None))
            if held is None or node.id in reached or node.id in local:
                continue
            if node.id in source.functions:
                waiting.append((node.id, plain(held)))
            elif not _is_as_written(held, node.id, source):
                raise NotRead(f"{node.id} is another by now than in its text")


def _is_as_written(held, name, source):
    """Whether a constant, or a module, has the value that its text gives it."""
    if inspect.ismodule(held) and name in source.imports:
        path = source.imported(name)[0].removeprefix(".")
        last = path.rpartition(".")[2]
        library = "triton.language" if last in ("tl", "language") else last
        return held.__name__ in (path, library)
    if name not in source.constants:
        return True
    value = source.constant(name)
    value = value.args[0] if getattr(value, "args", None) else value
    try:
        return ast.literal_eval(value) == getattr(held, "value", held)
    except ValueError:
        return False


def is_file(path: Path) -> bool:
    """Whether there is a file of that name; there is none of a name that is too long for one."""
    try:
        return path.is_file()
    except OSError:
        return False


def text_of(path: Path) -> str:
    """A file's text, decoded as Python does: by its first two lines; ValueError where it is none."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except SyntaxError as reason:
        raise ValueError(f"program: {reason}") from None


def source_of(program, kernel: str | None = None) -> tuple[Source, str]:
    """(the module's text, the kernel's name) of a kernel, a path or a text.

    Raises:  ValueError where the kernel's name is missing, or no function of that name is there
    """
    if isinstance(program, str | Path):
        path = None if isinstance(program, str) and "\n" in program else Path(program)
        if path is not None and not is_file(path):
            got = f"program: got {shortened(str(program))!r}"
            raise ValueError(f"{got}, which is no file and no text")
        text = program if path is None else text_of(path)
        source = Source(text, path)
        if kernel is None and len(source.kernels) == 1:
            kernel = source.kernels[0]
    else:
        function = plain(program)
        if function is None:
            got = type(program).__name__
            raise ValueError(f"program: got {got}, needs a kernel, a path or text")
        path = Path(function.__code__.co_filename)
        if path.is_file():
            source = Source(text_of(path), path)
        else:
            source = cell_of(function)
        source.is_imported = True
        kernel = kernel or function.__name__
        if kernel == function.__name__ and kernel in source.functions:
            check_object(program, source, kernel)
    if kernel not in source.functions:
        names = ", ".join(source.kernels) or "a file with a function"
        raise ValueError(f"kernel: got {kernel!r}, needs one of {names}")
    return source, kernel
