"""How a function of a text is made: its decorators, defaults and annotations, and whether making it runs nothing."""

from __future__ import annotations

import ast
import builtins
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .arrays import NotRead, is_number, state
from .host import CUSTOM, LEFT_AS_THEY_ARE, is_guard, is_operator
from .launch import JitKernel
from .nodes import nodes_of
from .python_objects import KNOWN, ONCE, QUIET, STATIC, Function, Unread
from .scopes import MODULE, check_constant, note_imported
from .source import is_jit
from .syntax import check_annotation, defaults_of, runs

# libraries whose decorators and base classes change nothing but what they are put on
FRAMEWORKS = ("torch", "triton", "numba", "functools", "dataclasses", "abc")
# what a class that is not read may be made of
BASES = (
    "object",
    "abc.ABC",
    "Function",
    "torch.nn.Module",
    "torch.autograd.Function",
    "torch.autograd.function.Function",
)
# builtins that may stand in a decorator
PLAIN = set(
    "bool classmethod dict float int len list max min object property range staticmethod tuple".split()
)

# what annotations name most often, which the libraries have
ANNOTATED = set(
    "torch.Tensor torch.dtype torch.device torch.Size torch.Generator torch.nn.Module "
    "torch.nn.Parameter torch.nn torch.autograd nn.Module nn.Parameter np.ndarray "
    "numpy.ndarray np.dtype numpy.dtype".split()
)


class Declarations:
    """Reads what Python evaluates where a function is made. Args:  reader: who reads"""

    def __init__(self, reader):
        self.reader = reader

    def read_FunctionDef(self, node, scope):
        """A function, or a kernel that it launches."""
        if state().way and is_guard(node):
            scope.names[node.name] = KNOWN["torch.cuda.device"]
            return
        source = self.reader.modules.source
        if source and any(map(is_jit, node.decorator_list)):
            scope.names[node.name] = JitKernel(node.name, source, scope)
            return
        try:
            decorators = self._wrappers(node, scope)
            check_annotations(node, scope)
            function = self.function(node, scope)
            for decorator in reversed(decorators):
                wrapper = self.reader.call(decorator, [function])
                if not isinstance(wrapper, Function):
                    raise NotRead(f"the decorator of {node.name}")
                function = replace(function, wrapper=wrapper)
            scope.names[node.name] = function
        except NotRead as reason:
            self.leave_out(node, reason, scope)

    def function(self, node: ast.FunctionDef | ast.Lambda, scope: Any) -> Function:
        """A function with its defaults, which must not change from one call to the next."""
        defaults = {}
        for name, value in defaults_of(node.args).items():
            defaults[name] = self.reader.evaluate(value, scope)
            check_constant(name, defaults[name])
        return Function(node, scope, defaults)

    def _wrappers(self, node, scope):
        """The decorators of a function that are functions of a launcher's text; all others change nothing.

        Raises:  NotRead for one by which a function may be another one
        """
        wrappers = []
        for decorator in node.decorator_list:
            if self._is_passed_over(decorator, node, scope):
                continue
            if isinstance(decorator, ast.Call):
                value = QUIET if self.reader.is_quiet(decorator, scope) else None
            else:
                value = self.reader.evaluate(decorator, scope)
            if isinstance(value, Function) and state().way:
                wrappers.append(value)
            elif value not in (STATIC, ONCE, QUIET):
                raise NotRead(f"the decorator of {node.name}")
            state().cut |= value is QUIET
        return wrappers

    def _is_passed_over(self, decorator, node, scope):
        """Whether a decorator leaves a function what it says, by its text alone.

        For `@torch.compile(mode="max-autotune")`. It stops a backend of the text's own, and another function given.
        """
        path = self.path_of(getattr(decorator, "func", decorator), scope)
        match decorator:
            case ast.Lambda(ast.arguments(args=[part]), ast.Name(name)):
                return part.arg == name
            case ast.Call(args=args, keywords=options):
                if path == "torch.compile":
                    values = [option.value for option in options]
                    return not args and all(isinstance(v, ast.Constant) for v in values)
                if path in CUSTOM and state().way:
                    state().cut = True  # torch passes no gradient through it by itself
                    return is_operator(decorator, node)
                return path == "functools.wraps"
        return path in LEFT_AS_THEY_ARE

    def leave_out(
        self, node: ast.FunctionDef | ast.ClassDef, reason: NotRead, scope: Any
    ) -> None:
        """Keep a function or a class of the module that is not read, where making it runs nothing of the text.

        For a file that has a torch.nn.Module and a kernel beside the function in question. Without the condition
        `class A: np.sqrt = np.square`, or a decorator of the text's own that does so, is passed over.
        """
        inert = self.reader.phase == MODULE and all(self._is_inert(node, scope))
        if not inert:
            raise reason
        note_imported()
        scope.names[node.name] = Unread(str(reason), node.lineno)

    def _is_inert(self, node, scope):
        """For each expression that makes a function or a class: whether Python runs nothing of the text in it."""
        names = {part.arg for part in nodes_of(node) if isinstance(part, ast.arg)}
        for decorator in node.decorator_list:
            yield self._is_of_framework(decorator, names, scope)
        if isinstance(node, ast.FunctionDef):
            defaults = defaults_of(node.args).values()
            yield not any(map(runs, [*defaults, *annotations_of(node)]))
            return
        yield not node.keywords
        for base in node.bases:
            yield self.path_of(base, scope) in BASES
        for line in node.body:
            match line:
                case ast.FunctionDef(name=name):
                    # A[...] in an annotation calls it
                    yield name != "__class_getitem__"
                    yield from self._is_inert(line, scope)
                case ast.Pass() | ast.Expr(ast.Constant()):
                    pass
                case ast.Assign([ast.Name()], value) | ast.AnnAssign(
                    ast.Name(), value=value
                ):
                    yield isinstance(value, ast.Constant | None) and not runs(line)
                case _:
                    yield False

    @staticmethod
    def path_of(node: ast.expr, scope: Any) -> str:
        """What a name with its attributes stands for, as "torch.nn.Module"; "" for what no library or Python has."""
        root, *attributes = ast.unparse(node).split(".")
        value, path = None, root if hasattr(builtins, root) else ""
        if scope.has(root):
            with suppress(NotRead):  # what is not read has no path
                value = scope.load(root)
        path = getattr(value, "path", getattr(value, "name", path))
        return ".".join([str(path), *attributes])

    def _is_of_framework(self, node, names, scope):
        """Whether an expression calls what a framework has, and nothing else.

        Args:  names: of parameters, such as those of a lambda in it
        """
        for part in nodes_of(node):
            private = isinstance(part, ast.Attribute) and part.attr.startswith("_")
            if private or isinstance(part, ast.NamedExpr):
                return False
            if not isinstance(part, ast.Name) or part.id in names:
                continue
            value = scope.names.get(part.id) if part.id in scope.local else None
            path = getattr(value, "path", getattr(value, "name", "")) or ""
            of_framework = str(path).partition(".")[0] in FRAMEWORKS
            is_plain = part.id not in scope.local and part.id in PLAIN
            if not (of_framework or is_plain or is_number(value) or type(value) is str):
                return False
        return True


def annotations_of(node: ast.FunctionDef) -> list[ast.expr]:
    """The annotations of a function, which Python evaluates where it is made."""
    parts = [part for part in nodes_of(node.args) if isinstance(part, ast.arg)]
    written = [part.annotation for part in parts] + [node.returns]
    return [annotation for annotation in written if annotation is not None]


def check_annotations(node: ast.FunctionDef, scope: Any) -> None:
    """Refuse annotations of a function that call, or name what has no value."""
    for annotation in annotations_of(node):
        check_annotation(annotation)
        check_names(annotation, scope)


def check_names(annotation: ast.expr, scope: Any) -> None:
    """Refuse an annotation with a name that has no value where Python evaluates it.

    For `def f(x: np.ndarray)`. It stops `def f(x: Tensor)` in a text that has no Tensor, which ends in a NameError.
    """
    for part in nodes_of(annotation):
        if isinstance(part, ast.Name) and not scope.has(part.id):
            raise NotRead(f"{part.id}, an annotation that has no value")
        if isinstance(part, ast.Attribute) and ast.unparse(part) not in ANNOTATED:
            note_imported()
