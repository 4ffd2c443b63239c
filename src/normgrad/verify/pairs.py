"""A backward that takes what its forward has kept: both as one function, which a text gets at its end.

For `y, cache = layernorm_forward(x, gamma, beta)` and `layernorm_backward(dy, cache)`, of functions or of static
methods of a class. The function calls the one with what it takes, and the other with what that returns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from .definitions import ALSO, GRADIENT
from .entries import definitions_of
from .syntax import defaults_of, positional
from .text import TextOfFile, module_of

# how the name of a backward leads to that of its forward
NAMES = (("backward", "forward"), ("backprop", "forward"), ("bwd", "fwd"))
STATIC = "staticmethod"
IN_ORDER = ("dx", "dw", "db")
GRADIENTS = {*GRADIENT.values()}


@dataclass(frozen=True)
class _Method:
    """A function, or a static method. Args:  name: as it is called, such as "LayerNorm.forward" """

    name: str
    node: ast.FunctionDef

    def takes(self) -> list[str]:
        """Its parameters."""
        return positional(self.node.args)

    def defaults(self) -> dict[str, str]:
        """{parameter: its default, as it is written}."""
        defaults = defaults_of(self.node.args)
        return {name: ast.unparse(value) for name, value in defaults.items()}

    def returns(self) -> list[ast.expr]:
        """What its last statement returns."""
        last = self.node.body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            return []
        return getattr(last.value, "elts", [last.value])

    def gradients(self) -> list[str]:
        """The gradients that it returns, by their names; one without a name is the one that the others are not.

        For `return dx, dw, db`. It stops `return dx, db, db`, of which one db would be proved and no dw.
        """
        parts = self.returns()
        if not all(isinstance(part, ast.Name | ast.BinOp) for part in parts):
            return []
        names = [getattr(part, "id", "") for part in parts]
        names = [ALSO.get(name, name) for name in names]
        missing = [name for name in IN_ORDER[: len(names)] if name not in names]
        if names.count("") == 1 == len(missing):
            names[names.index("")] = missing[0]
        is_clear = set(names) <= GRADIENTS and len(set(names)) == len(names)
        return names if is_clear else []


def _methods(text) -> dict[str, _Method]:
    """The functions of a text and the static methods of its classes, by how they are called."""
    methods = {}
    for node in definitions_of(module_of(text)):
        if isinstance(node, ast.FunctionDef):
            methods[node.name] = _Method(node.name, node)
            continue
        for part in () if node.bases else node.body:
            if STATIC in map(ast.unparse, getattr(part, "decorator_list", ())):
                name = f"{node.name}.{part.name}"
                methods[name] = _Method(name, part)
    return methods


def with_forward(
    program: str, name: str, is_named: Callable[[str], bool]
) -> tuple[str, str, list[str]]:
    """(the text with one function for a forward and its backward, its name, its results).

    The text and the name as they are, and no results, where there are no such two. The two have one eps where both have
    it with one default. It stops a backward that is called with another one.

    Args:  name: of the backward, or of the class of both, "" for the last of the text
           is_named: whether a parameter's name says what it is
    """
    if not name:
        last = [node.name for node in definitions_of(module_of(program))][-1:]
        paired = with_forward(program, last[0], is_named) if last else (program, "", [])
        return (program, "", []) if paired[0] == program else paired
    methods = _methods(program)
    backward = methods.get(name) or methods.get(f"{name}.backward")
    pairs = NAMES if backward else ()
    forwards = [methods.get(backward.name.replace(*pair)) for pair in pairs]
    forwards = [method for method in forwards if method not in (None, backward)]
    if not forwards:
        return *_with_static(program, name, methods), []
    forward, gradients = forwards[0], backward.gradients()
    results, arguments = forward.returns(), backward.takes()
    caches = [argument for argument in arguments if not is_named(argument)]
    both = f"{forward.name}_and_backward".replace(".", "_")
    is_pair = len(results) == 2 and len(caches) == 1 and gradients
    defaults = {**forward.defaults(), **backward.defaults()}
    is_pair = is_pair and defaults == {**backward.defaults(), **forward.defaults()}
    if not is_pair or both in program or not _is_cache(results[1], caches[0]):
        return *_with_static(program, name, methods), []
    own = [a for a in arguments if a not in (*forward.takes(), *caches)]
    text = f"""{program}

def {both}({", ".join([*own, ast.unparse(forward.node.args)])}):
    y, {caches[0]} = {forward.name}({", ".join(forward.takes())})
    {", ".join(gradients)} = {backward.name}({", ".join(arguments)})
    return y, {", ".join(gradients)}
"""
    return _of_file(text, program), both, ["y", *gradients]


def _is_cache(result, parameter):
    """Whether a forward's second result is what a backward calls by a name: a tuple or a dict, or of that name."""
    is_literal = isinstance(result, ast.Tuple | ast.Dict | ast.List)
    return is_literal or getattr(result, "id", "") == parameter


def _with_static(program, name, methods):
    """The text with a function for a static method alone."""
    method = methods.get(name) or methods.get(f"{name}.forward")
    if method is None or "." not in method.name:
        return program, name
    own = method.name.replace(".", "_")
    if own in program:
        return program, name
    text = f"""{program}

def {own}({ast.unparse(method.node.args)}):
    return {method.name}({", ".join(method.takes())})
"""
    return _of_file(text, program), own


def _of_file(text, program):
    """A text from the file of another one."""
    if not isinstance(program, TextOfFile):
        return text
    text = TextOfFile(text)
    text.file = program.file
    return text
