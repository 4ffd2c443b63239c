"""The syntax tree of a function object, checked against the code that runs."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from types import CodeType, FunctionType

from .values import NotRead


def definition(function: FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function object, with the line numbers of its file.

    Raises:  NotRead where its source is not at hand, or is another one by now
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise NotRead(f"{function.__name__}, whose source is not at hand") from None
    source = textwrap.dedent("".join(lines))
    try:
        body = ast.parse(source).body
        imports = list(_imports(function.__code__.co_filename))
        codes = [_compiled(source, function.__code__, lines) for lines in (imports, [])]
    except (StopIteration, SyntaxError):
        body, codes = [], []
    if [type(node) for node in body] != [ast.FunctionDef]:
        raise NotRead(f"{function.__name__}, whose lines are not those of a function")
    if _content(function.__code__) not in map(_content, codes):
        raise NotRead(f"{function.__name__}, whose source has changed")
    ast.increment_lineno(body[0], first - 1)
    return body[0]


def _compiled(source, code, imports):
    """The code of a definition's text, within a function that has its free names.

    A class stands between the two, so that its own name is not free in it. Python compiles the call of a function of
    a module otherwise where the module was imported in the same file; a notebook compiles each statement by itself.
    """
    imports = "".join(f"{line}\n" for line in imports)
    free = "".join(f"    {name} = None\n" for name in code.co_freevars)
    body = textwrap.indent(source, " " * 8)
    text = f"{imports}def outer():\n{free}    class inner:\n{body}"
    compiled = compile(text, "program", "exec", dont_inherit=True)
    for name in ("outer", "inner", code.co_name):
        compiled = next(
            constant
            for constant in compiled.co_consts
            if getattr(constant, "co_name", "") == name
        )
    return compiled


def _imports(path):
    """The import statements of a file, those of its functions left out."""
    try:
        waiting = ast.parse("".join(linecache.getlines(path))).body
    except SyntaxError:
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            if getattr(node, "module", "") != "__future__":
                yield ast.unparse(node)
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _content(constant):
    """A constant as what can be compared; a docstring without the indentation of its lines."""
    if isinstance(constant, str):
        return repr(inspect.cleandoc(constant))
    if not isinstance(constant, CodeType):
        return repr(constant)
    constants = list(map(_content, constant.co_consts))
    return constant.co_code, constant.co_names, constant.co_varnames, constants
