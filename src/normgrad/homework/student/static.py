"""What a solution's code says before it runs: which forbidden names it uses, and which globals a Function reads."""

from __future__ import annotations

import ast
import dis
import types

import numpy as np

MUTABLE = ("Tensor", "Parameter")
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Names of functions that assert begin like this: NumPy's assert_allclose, unittest's assertTrue, pytest's fail.
ASSERTING = ("assert", "fail")


def called(tree) -> set[str]:
    """Names and attributes that code mentions; words in strings and comments are not code."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return names | {alias.name.rpartition(".")[2] for node in imported for alias in node.names}


def forbidden_in_source(source: str, entry: str, forbidden) -> list[str]:
    """Forbidden names in the definition of an entry and in what a module binds to the names that it reaches."""
    tree, _ = _definitions(source)
    nodes = [] if tree is None else _reached(_bound(tree.body), entry)
    return sorted(set(forbidden) & set().union(*map(called, nodes)))


def raises_in_source(source: str, entry: str) -> bool:
    """Whether the definition of an entry, or what it reaches, raises or asserts; True for a text that is no code."""
    tree, _ = _definitions(source)
    if tree is None:
        return True
    nodes = _reached(_bound(tree.body), entry)
    if any(isinstance(each, (ast.Raise, ast.Assert)) for node in nodes for each in ast.walk(node)):
        return True
    return any(name.startswith(ASSERTING) for node in nodes for name in called(node))


def _definitions(source):
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # MemoryError is what too deep an expression gives
        return None, {}
    return tree, {node.name: [node] for node in tree.body if isinstance(node, DEFINED)}


def _bound(body) -> dict:
    """{name: what a module's statements bind to it}: definitions, assignments and imports, also inside of blocks."""
    found, left = {}, list(body)
    while left:
        node = left.pop()
        if isinstance(node, DEFINED):
            found.setdefault(node.name, []).append(node)
            continue
        names = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for name in names:
            found.setdefault(name, []).append(node)
        left += [each for block in BLOCKS for each in getattr(node, block, [])]
    return found


def _reached(known, entry):
    """What stands behind the names that an entry reads, directly or not, itself first."""
    reached, left = {}, [entry]
    while left:
        name = left.pop()
        if name in known and name not in reached:
            reached[name] = known[name]
            left += sorted(set().union(*map(_free, known[name])))
    return [node for nodes in reached.values() for node in nodes]


def _free(node) -> set[str]:
    """Names that a statement reads and, where it is a definition, does not bind itself."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    read = {each.id for each in names if isinstance(each.ctx, ast.Load)}
    if not isinstance(node, DEFINED):
        return read
    own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    declared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
    stored = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return read - own - (stored - declared) | declared


def _literal(node) -> bool:
    """Whether an expression is a number, a text or a tuple of such: nothing that a call can change."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return isinstance(value, (int, float, complex, str, tuple)) and not isinstance(value, (list, dict, set))


def _assigned(tree):
    """{name: whether it is assigned once, a literal} of a module's own variables."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found |= dict.fromkeys(node.names, False)
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)):
            for name in (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)):
                constant = isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
                found[name] = name not in found and constant and _literal(node.value)
    return found


def globals_in_source(source: str, entry: str) -> list[str]:
    """Module variables that an entry reads, constants such as EPS = 1e-5 left out."""
    tree, known = _definitions(source)
    if tree is None:
        return []
    assigned = _assigned(tree)
    variables = {name for name, constant in assigned.items() if not constant and name not in known}
    used = set().union(*(variables & _free(node) for node in _reached(known, entry)))
    return sorted(used)


def codes(code):
    """A code object and those of the functions inside of it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def _functions(target):
    """The Python functions of an object: itself, or the methods of a class and of its bases outside torch."""
    members = [target]
    if isinstance(target, type):
        classes = [base for base in target.__mro__[:-1] if base.__module__.partition(".")[0] != "torch"]
        members = [member for base in classes for member in vars(base).values()]
    found = [getattr(member, "__func__", member) for member in members]
    return [function for function in found if isinstance(function, types.FunctionType)]


def _live(target, depth=3):
    """The functions of an object and those of the same module that they read, down to some depth."""
    found, level = {}, _functions(target)
    for _ in range(depth):
        found |= {id(function): function for function in level}
        level = [value for function in level for value in _read(function).values()
                 if isinstance(value, types.FunctionType) and id(value) not in found
                 and value.__globals__ is function.__globals__]  # fmt: skip
    return found.values()


def _read(function) -> dict:
    """{name: value} of the globals that a function reads; the value is None where the name is not defined."""
    names = {i.argval for i in dis.get_instructions(function) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    known = vars(__import__("builtins"))
    return {name: function.__globals__.get(name) for name in names if name not in known}


def globals_in_object(target) -> list[str]:
    """Globals that a live function or class reads and that hold arrays, containers or nothing."""
    found = set()
    for function in _live(target):
        for name, value in _read(function).items():
            array = isinstance(value, (np.ndarray, list, dict, set)) or type(value).__name__ in MUTABLE
            if value is None or array:
                found.add(name)
    return sorted(found)


def forbidden_in_object(target, forbidden) -> list[str]:
    """Forbidden names that the code of a live function or class mentions."""
    nested = [code for function in _live(target) for code in codes(function.__code__)]
    return sorted(set(forbidden).intersection(name for code in nested for name in (*code.co_names, *code.co_freevars)))


def raises_in_object(target) -> bool:
    """Whether the code of a live function, or of what it reads in its module, raises or asserts."""
    found, left = set(), _functions(target)
    while left:
        function = left.pop()
        if id(function) in found:
            continue
        found.add(id(function))
        if _raises(function.__code__):
            return True
        read = _read(function).values()
        left += [each for value in read if getattr(value, "__module__", None) == function.__module__
                 for each in _functions(value)]  # fmt: skip
    return False


def _raises(code) -> bool:
    """Whether code, that inside of it included, has an assert, a raise or the name of a function that asserts."""
    return any(
        any(each.opname == "RAISE_VARARGS" for each in dis.get_instructions(part))
        or any(name.startswith(ASSERTING) for name in part.co_names)
        for part in codes(code)
    )
