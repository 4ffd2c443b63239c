"""What a text offers to be checked: its functions, classes and kernels by name, found in its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .nodes import nodes_of
from .source import DEFINITION, OTHERS, last_name, root_of
from .syntax import names_in
from .text import module_of

AUTOGRAD, LAUNCHER = "autograd Function", "function that launches kernels"
TRITON, NUMBA = "Triton kernel", "kernel in loops"
MODULE, CLASS, FUNCTION = "module", "class", "function"
KINDS = (AUTOGRAD, LAUNCHER, TRITON, NUMBA, MODULE, CLASS, FUNCTION)
BASES = {"Function": AUTOGRAD, "Module": MODULE}
# of functions that look at others, by their names and decorators
LOOKS_ON = re.compile(r"^(test|bench|main)|benchmark|perf_report|pytest")


@dataclass(frozen=True)
class Entry:
    """What may be checked.

    Args:  kind: of KINDS; line: of its definition
           helper: whether another entry of the text uses it, as a launcher does its kernels, so that it is read there
    """

    name: str
    line: int
    kind: str
    helper: bool = False


def definitions_of(node) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a module, also those in its branches."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            yield part
        elif not isinstance(part, DEFINITION):
            yield from definitions_of(part)


def entries(text: str) -> tuple[Entry, ...]:
    """What a text offers to be checked, helpers last, autograd Functions and launchers first; nothing of it is run.

    Raises:  SyntaxError, with its line, for what is not Python
    """
    return entries_of(module_of(text))


def entries_of(tree: ast.Module) -> tuple[Entry, ...]:
    """What the syntax tree of a text offers to be checked."""
    packages = _packages(tree)
    nodes = {node.name: node for node in definitions_of(tree) if not _looks_on(node)}
    kinds: dict[str, str] = {}
    for name, node in nodes.items():
        kinds[name] = _kind(node, kinds, packages)
    kernels = {name for name, kind in kinds.items() if kind == TRITON}
    kernels |= {name for name, package in packages.items() if package not in OTHERS}
    used = set()
    for name, node in nodes.items():
        if kinds[name] in ("", CLASS, FUNCTION) and _launches(node, kernels):
            kinds[name] = LAUNCHER
        if kinds[name]:
            used |= names_in(node) - {name}
    found = [
        Entry(name, nodes[name].lineno, kind, name in used and kind != AUTOGRAD)
        for name, kind in kinds.items()
        if kind
    ]
    found.sort(key=lambda e: (e.helper, KINDS.index(e.kind), e.line))
    return tuple(found)


def _packages(tree):
    """{imported name: the package that it is from}."""
    packages = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for part in node.names:
                path = getattr(node, "module", part.name) or ""
                packages[part.asname or part.name] = path.partition(".")[0]
    return packages


def _looks_on(node):
    """Whether it tests or times others: what a test uses is no helper."""
    texts = [node.name.lstrip("_"), *map(ast.unparse, node.decorator_list)]
    return any(LOOKS_ON.search(text.lower()) for text in texts)


def _kind(node, kinds, packages):
    """The kind of a definition by its head and its results, "" for what cannot be checked.

    Args:  kinds: of the definitions before it
    """
    if isinstance(node, ast.ClassDef):
        for base in map(ast.unparse, node.bases):
            kind = kinds.get(base) or BASES.get(base.rpartition(".")[2])
            if kind in BASES.values():
                return kind
        names = {getattr(part, "name", "") for part in node.body}
        is_plain = not node.bases and names & {"forward", "__call__"}
        return CLASS if is_plain else ""
    for decorator in node.decorator_list:
        called = getattr(decorator, "func", decorator)
        word, root = last_name(called), root_of(called)
        package = packages.get(root, root)
        if word == "njit" or word == "jit" and package == "numba":
            return NUMBA
        if word == "jit" and package not in OTHERS:
            return TRITON
    arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    if arguments and any(
        isinstance(part, ast.Return) and part.value for part in nodes_of(node)
    ):
        return FUNCTION
    return ""


def _launches(node, kernels):
    """Whether it has a call such as kernel[grid](...), of a kernel of the text or an imported one."""
    calls = [part.func for part in nodes_of(node) if isinstance(part, ast.Call)]
    subscripts = [called for called in calls if isinstance(called, ast.Subscript)]
    return any(root_of(called) in kernels for called in subscripts)
