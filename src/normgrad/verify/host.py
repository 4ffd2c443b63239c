"""What stands in the text of a launcher besides launches: what changes no number, seen by its syntax."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from .nodes import nodes_of, parts_of
from .source import Source, root_of

# torch's decorators that leave a launcher what it says
LEFT_AS_THEY_ARE = {
    "torch.compile",
    "torch.compiler.disable",
    "torch.jit.script",
    "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.custom_bwd",
}
AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
CUSTOM = ("torch.library.custom_op", "torch.library.triton_op")
# the types that torch takes in the header of an operator
OPERANDS = {
    *("torch.Tensor", "float", "int", "bool", "Optional[torch.Tensor]"),
    *("torch.Tensor | None", "typing.Optional[torch.Tensor]"),
}
RESULTS = re.compile(r"((typing\.)?Tuple|tuple)\[torch\.Tensor(, torch\.Tensor)*\]")
# what says on which device kernels run
GUARDS = ("device", "_DeviceGuard", "nullcontext", "getattr", "hasattr")
SPEED = re.compile(r"(num_?)?(warps?|stages?|ctas)", re.IGNORECASE)
READ_ONLY = ("get", "items", "keys", "values")


def is_operator(decorator: ast.expr, node: ast.FunctionDef) -> bool:
    """Whether custom_op makes an operator of a function that writes over no argument.

    For torch.library.custom_op("norms::rms", mutates_args=()). It stops an operator that says what it writes over, and
    a header of which torch makes no operator.
    """
    match decorator:
        case ast.Call(args=[ast.Constant(str(name))], keywords=keywords):
            options = {word.arg: ast.unparse(word.value) for word in keywords}
        case _:
            return False
    parts = [*node.args.args, *node.args.kwonlyargs]
    types = {ast.unparse(p.annotation) for p in parts if p.annotation is not None}
    returns = ast.unparse(node.returns or ast.Constant(None))
    is_known = returns == "torch.Tensor" or bool(RESULTS.fullmatch(returns))
    is_typed = all(p.annotation is not None for p in parts) and types <= OPERANDS
    is_device = options.pop("device_types", "'cuda'") == "'cuda'"
    is_named = re.fullmatch(r"\w+::\w+", name) is not None
    is_pure = options in ({"mutates_args": "()"}, {"mutates_args": "[]"})
    return is_known and is_typed and is_device and is_named and is_pure


def only_speed(node: ast.If) -> bool:
    """Whether a branch gives values to numbers of warps, stages or blocks' groups alone, which change no result."""
    for line in [*node.body, *node.orelse]:
        match line:
            case ast.Assign([ast.Name(id=name)], value) if SPEED.fullmatch(name):
                numbers = [
                    n.value for n in nodes_of(value) if isinstance(n, ast.Constant)
                ]
                if any(type(n) is not int or n < 1 or n & (n - 1) for n in numbers):
                    return False
                continue
            case ast.If():
                if only_speed(line):
                    continue
        return False
    return True


def is_guard(node: ast.FunctionDef) -> bool:
    """Whether a function makes a context that says on which device kernels run, and does nothing else."""
    if [ast.unparse(part).rpartition(".")[2] for part in node.decorator_list] != [
        "contextmanager"
    ]:
        return False
    for part in parts_of(node.body):
        match part:
            case ast.Call(called):
                if ast.unparse(called).rpartition(".")[2] not in GUARDS:
                    return False
            case ast.Assign([ast.Name()]) | ast.If() | ast.With() | ast.Expr():
                pass
            case ast.stmt():
                return False
    return True


def is_only_read(name: str, source: Source) -> bool:
    """Whether a text does no more with a dict than look into it.

    For a table of casting modes. It stops a dict that a function of the text changes from call to call.
    """
    looked_at = set()
    for node in nodes_of(source.tree):
        match node:
            case ast.Subscript(value=owner, ctx=ast.Load()):
                looked_at.add(id(owner))
            case ast.Attribute(value=owner, attr=attribute) if attribute in READ_ONLY:
                looked_at.add(id(owner))
            case ast.Compare(comparators=owners):
                looked_at.update(map(id, owners))
    uses = [
        n for n in nodes_of(source.tree) if isinstance(n, ast.Name) and n.id == name
    ]
    loads = [node for node in uses if isinstance(node.ctx, ast.Load)]
    is_bound_once = len(uses) - len(loads) <= 1
    return is_bound_once and all(id(node) in looked_at for node in loads)


# attributes that tests of a layer write
TESTED = ("grad", "requires_grad")
PASSIVE = (
    *(ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign),
    *(ast.AnnAssign, ast.Expr, ast.For, ast.With, ast.Try, ast.If),
)


# libraries whose functions leave all others as they are; what sets a state of theirs
CALM = set(
    "abc argparse collections contextlib copy dataclasses datetime einops enum flax functools itertools jax json "
    "logging math matplotlib numba numpy os packaging pandas pathlib platform pytest random re scipy statistics "
    "string textwrap time torch tqdm transformers triton typing typing_extensions warnings".split()
)
STATE = re.compile(
    r"_(?!_(init|name|version|class|doc|module|file)__$)|set_(?!float32_matmul)"
    r"|use_|enable|disable|Library|impl$|lib$|setattr"
)


def is_super(node: ast.expr) -> bool:
    """Whether an expression is super(), or super of two names."""
    match node:
        case ast.Call(ast.Name("super"), given, []):
            return all(isinstance(part, ast.Name) for part in given)
    return False


def is_super_init(node: ast.expr) -> bool:
    """Whether an expression is a call of super().__init__."""
    match node:
        case ast.Call(ast.Attribute(parent, "__init__")):
            return is_super(parent)
    return False


@lru_cache(maxsize=64)
def may_change(source: Source) -> bool:
    """Whether a text may give another value to a name of a function, or to an attribute of a library."""
    if source.hidden or "*" in source.imports:
        return True
    for part in nodes_of(source.tree):
        if isinstance(part, ast.Global | ast.Nonlocal):
            return True
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
            if root_of(part) not in ("self", "ctx") and part.attr not in TESTED:
                return True
    return False


def is_passive(node: ast.stmt, source: Source) -> bool:
    """Whether a statement of such a module changes no function but those that it names.

    For a table of sizes, or a test, beside a launcher. It stops a call of what may change a function of a library, as
    `torch.set_grad_enabled(False)` does, and numbers alone, of which it is not known that they have a value, as 1 / 0.
    """
    if not isinstance(node, PASSIVE):
        return False
    definitions = {getattr(part, "name", ""): part for part in nodes_of(source.tree)}
    calls = not isinstance(node, ast.Assign) or "(" in ast.unparse(node.value)
    has_names, waiting, entered = False, [node], {""}
    while waiting:
        part = waiting.pop()
        match part:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                has_names = True
                waiting += [*part.decorator_list, part.args]
                continue
            case ast.ClassDef() | ast.Import() | ast.ImportFrom():
                has_names = True
            case ast.Attribute(attr=name) if calls and STATE.match(name):
                return False
            case ast.Name(id=name, ctx=ast.Load()):
                has_names = True
                if not all(map(_is_calm, source.imports.get(name, ()))):
                    return False
                if name in definitions and name not in entered:
                    entered.add(name)
                    waiting += _run_by(definitions[name])
        waiting += ast.iter_child_nodes(part)
    return has_names or isinstance(getattr(node, "value", None), ast.Constant)


def _run_by(node):
    """What a call of a function, or of a class, may run."""
    for part in nodes_of(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from part.body


def _is_calm(imported):
    """Whether a name is of a file of the package, or of a library that changes no other one where it is called."""
    path, level = imported
    return level > 0 or path.lstrip(".").partition(".")[0] in CALM
