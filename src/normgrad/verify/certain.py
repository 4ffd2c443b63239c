"""What Python or Triton is sure to refuse of a program that is not followed, whatever its arguments hold.

A line of a function is sure to run where it stands in no branch, loop or `try`, and after no branch that returns. Of a
kernel that is sure to be launched, such a line is compiled, and one in a loop, too. What it names, and what no line of
the text binds and Triton has not, is refused before anything is computed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .decorators import CONFIG
from .importing import LIBRARIES, NAMES, VERSION
from .nodes import nodes_of
from .scopes import local_names
from .source import Source, is_constexpr, is_jit
from .syntax import defaults_of, names_in
from .values import NotRead, Wrong, uncompiled, unlaunched

TRITON, LANGUAGE = "triton", "triton.language"
LOOPS = ("range", "static_range")
# {a class that a class is made of: the methods that run}
METHODS = {
    "Function": ("forward", "backward"),
    "Module": ("__init__", "forward"),
}
# a block that passes no error over
PLAIN_BLOCKS = ("torch.cuda.device", "torch.no_grad", "torch.cuda._DeviceGuard")


def refusal(text: str, name: str) -> Wrong | None:
    """The first line that is sure to be refused where a function or a class of a text is called; None for none.

    For a program that is not followed elsewhere, as where an argument's name says nothing. A line in a branch, which
    may never run, accuses nobody.
    """
    source = Source(text)
    if source.hidden or "*" in source.imports:
        return None
    reader = _Certain(source)
    try:
        for function in reader.called(name or reader.last):
            reader.read(function)
    except Wrong as reason:
        reason.line = reader.line
        return reason
    except NotRead:
        return None
    return None


class _Certain:
    """Goes through what is sure to run; done: the functions that it has been through."""

    def __init__(self, source: Source):
        self.source, self.line, self.done = source, 0, []
        self.classes = {
            node.name: node
            for node in source.tree.body
            if isinstance(node, ast.ClassDef)
        }

    @property
    def last(self) -> str:
        """The name of the last function or class of the text that is no kernel."""
        definitions = ast.FunctionDef | ast.ClassDef
        names = [n.name for n in self.source.tree.body if isinstance(n, definitions)]
        own = [n for n in names if n in self.classes or not self._is_kernel(n)]
        return own[-1] if own else ""

    def _is_kernel(self, name):
        return any(map(is_jit, self.source.wrappers(name)))

    def called(self, name: str) -> list[ast.FunctionDef]:
        """The functions that run where a function is called, or a class is used with its gradients."""
        if name in self.classes:
            node = self.classes[name]
            bases = [ast.unparse(base) for base in node.bases]
            if node.decorator_list or len(bases) != 1 or bases[0] in self.classes:
                return []
            methods = METHODS.get(bases[0].rpartition(".")[2], ())
            functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            return [
                part
                for part in functions
                if part.name in methods
                and {*map(ast.unparse, part.decorator_list)} <= {"staticmethod"}
            ]
        function = self.source.function(name)
        return [function] if function and not function.decorator_list else []

    def read(self, function: ast.FunctionDef, is_kernel: bool = False) -> None:
        """Goes through a function of the host, or a kernel that is launched."""
        if function in self.done:
            return
        self.done.append(function)
        for node in _lines(function.body, is_kernel):
            self.line = node.lineno
            match node:
                case ast.Name():
                    self._check_name(node, uncompiled if is_kernel else Wrong)
                case ast.Attribute():
                    self._check_part(node, function, is_kernel)
                case ast.For(iter=iterable):
                    self._check_loop(iterable)
                case ast.Call() if not is_kernel:
                    self._check_call(node, function)
                case ast.Call(ast.Attribute(ast.Name(root), "arange"), arguments):
                    if self._library(root, function) == LANGUAGE:
                        self._check_length(arguments, function)

    def _check_call(self, node, function):
        """Goes through what a call is of: a kernel that it launches, or another function of the text."""
        line, inner = self.line, []
        match node.func:
            case ast.Subscript(ast.Name(name)) if not _binds(function, name):
                kernel = self.source.function(name)
                if kernel and self._is_kernel(name):
                    self._check_launch(node, kernel)
                    for decorator in kernel.decorator_list:
                        self.line = decorator.lineno
                        self._check_configurations(decorator)
                    self.read(kernel, is_kernel=True)
            case ast.Name(name) if not _binds(function, name):
                inner = self.called(name) if name in self.source.functions else []
            case ast.Attribute(ast.Name(name), "apply") if name in self.classes:
                inner = [part for part in self.called(name) if part.name == "forward"]
        for part in inner:
            self.read(part)
        self.line = line

    def _check_launch(self, node, kernel):
        """Refuses a launch without a value for an argument, where no decorator hands one in."""
        header = kernel.args
        names = [part.arg for part in header.args + header.kwonlyargs]
        names += [header.kwarg.arg] if header.kwarg else []
        given = {word.arg for word in node.keywords} | set(names[: len(node.args)])
        is_starred = any(isinstance(part, ast.Starred) for part in node.args)
        is_plain = not (is_starred or None in given or header.posonlyargs)
        if len(self.source.wrappers(kernel.name)) == 1 and is_plain:
            missing = [k for k in names if k not in {*given, *defaults_of(header)}]
            if missing:
                words = f"{kernel.name} needs a value for {missing[0]}"
                if header.kwarg and missing[0] == header.kwarg.arg:
                    words += f", as Triton takes **{missing[0]} for an argument"
                raise unlaunched(words)

    def _check_configurations(self, decorator):
        """Refuses a configuration of autotune's with an argument that it has not.

        For Config({"BLOCK": 64}). It stops Config(meta={"BLOCK": 64}) of Triton before version 2.
        """
        for node in nodes_of(decorator):
            match node:
                case ast.Call(
                    ast.Attribute(ast.Name("triton"), "Config"), keywords=words
                ):
                    unknown = {word.arg for word in words} - {*CONFIG, None}
                    if unknown and self._library("triton", None) == TRITON:
                        words = f"triton.Config has no argument {min(unknown)}"
                        raise Wrong(f"a TypeError: {words}")

    def _check_name(self, node, kind):
        """Refuses a name that no line of the text binds, and Python has not."""
        if isinstance(node.ctx, ast.Load) and node.id not in NAMES:
            if not self.source.may_bind(node.id):
                raise kind(f"a NameError: {node.id} has no value")

    def _library(self, root, function) -> str:
        """The library of Triton's that a name is, "" of another one."""
        own = self.source.constants.keys() | self.source.functions.keys()
        paths = {path for path, _ in self.source.imports.get(root, ())}
        library = paths.pop() if len(paths) == 1 else ""
        is_own = root in own or function is not None and _binds(function, root)
        return "" if is_own or library not in LIBRARIES else library

    def _check_part(self, node, function, is_kernel):
        """Refuses a part of Triton that it has not, asked by its own name."""
        if not isinstance(node.value, ast.Name):
            return
        library, part = self._library(node.value.id, function), node.attr
        if library not in (TRITON, LANGUAGE) or (library, part) == (TRITON, "language"):
            return
        if part not in LIBRARIES[library]:
            why = f"Triton {VERSION} has no {library}.{part}"
            raise uncompiled(why) if is_kernel else Wrong(f"an AttributeError: {why}")

    def _check_loop(self, iterable):
        """Refuses a loop over what is no range."""
        last = ""
        if isinstance(iterable, ast.Call):
            last = getattr(iterable.func, "attr", LOOPS[0])
        if last not in LOOPS:
            raise uncompiled(f"a loop over {ast.unparse(iterable)}, which is no range")

    def _check_length(self, arguments, function):
        """Refuses a tile whose length is an argument without tl.constexpr."""
        for node in function.args.args:
            names = [getattr(argument, "id", "") for argument in arguments]
            if node.arg in names and not is_constexpr(node):
                if not _binds(function, node.arg, with_arguments=False):
                    raise uncompiled(
                        f"arange: end is no tl.constexpr and no number: {node.arg}"
                    )


def _lines(body: Sequence[ast.stmt], is_kernel=False) -> Iterator[ast.AST]:
    """The expressions that are sure to run, or to be compiled, in order; of a kernel its loops, too."""
    for node in body:
        match node:
            case ast.Return() | ast.Expr() | ast.Assign() | ast.AugAssign():
                yield from _parts(node)
                if isinstance(node, ast.Return):
                    return
            case ast.AnnAssign(value=ast.expr() as value):
                yield from _parts(value)
            case ast.For() | ast.While() if is_kernel:
                head = node.iter if isinstance(node, ast.For) else node.test
                if "static_range" in ast.unparse(head):
                    continue
                if isinstance(node, ast.For):
                    yield node
                yield from _parts(head)
                yield from _lines(node.body, is_kernel)
            case ast.With(items=items) if not is_kernel:
                texts = [ast.unparse(item.context_expr) for item in items]
                if not all(text.startswith(PLAIN_BLOCKS) for text in texts):
                    return
                yield from _lines(node.body)
                if _leaves(node):
                    return
            case ast.If(test=test):
                yield from _parts(test)
                if _leaves(node) and not (is_kernel and _is_at_run_time(test, body)):
                    return
            case ast.FunctionDef() | ast.ClassDef():
                continue
            case ast.Raise():
                return
            case _ if _leaves(node):
                return


def lengths(kernel: ast.FunctionDef) -> set[str]:
    """The arguments that are the length of a tile in a line of a kernel that is sure to be compiled."""
    found = set()
    for node in _lines(kernel.body, is_kernel=True):
        match node:
            case ast.Call(ast.Attribute(ast.Name("tl"), "arange"), [_, ast.Name(end)]):
                if not _binds(kernel, end, with_arguments=False):
                    found.add(end)
    return found


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions in a line that are sure to be worked out."""
    match node:
        case ast.IfExp(test=test):
            yield from _parts(test)
        case ast.BoolOp(values=[first, *_]):
            yield from _parts(first)
        case ast.Compare(left=left, comparators=[first, *_]):
            yield from _parts(left)
            yield from _parts(first)
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            return
        case ast.GeneratorExp():
            return
        case _:
            for part in ast.iter_child_nodes(node):
                yield from _parts(part)
            if isinstance(node, ast.Name | ast.Attribute | ast.Call):
                yield node


def _leaves(node: ast.stmt) -> bool:
    """Whether a statement may end the function without an error, or pass an error over."""
    leaving = ast.Return | ast.Try | ast.Continue | ast.Break | ast.Yield
    return any(isinstance(part, leaving) for part in nodes_of(node))


def _is_at_run_time(test, body) -> bool:
    """Whether a kernel's condition has to do with a program's number, so that what follows is compiled, too."""
    names = names_in(test)
    for node in body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(called)) if name in names:
                if ast.unparse(called).endswith(".program_id"):
                    return True
    return False


def _binds(function: ast.FunctionDef, name: str, with_arguments: bool = True) -> bool:
    """Whether a function binds a name of its own."""
    header = [part.arg for part in nodes_of(function.args) if isinstance(part, ast.arg)]
    return name in local_names(function.body) or with_arguments and name in header
