"""The forward of one torch.nn.Module as a function of its tensors, and whether it is a norm for every N.

verify reads functions. Here the forward of an object becomes one: in the place of self stand its parameters, which are
arguments, its numbers as they are now, and its methods, which are functions beside it. A number that is N, or a root
of N, is written as that of the rows, and the verdict says so.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from types import FunctionType
from typing import Any

import torch

from .spec import NormSpec

PLAIN = (bool, int, float, str, type(None))
WEIGHT, BIAS, COLUMNS = ARGUMENTS = "self_weight", "self_bias", "self_columns"
POWERS = (0.5, -0.5, -1.0)
PROVED, REFUTED, UNDECIDED = "proved", "refuted", "undecided"
SECONDS = 10
# How many functions deep a forward is looked at, and what a norm calls there.
DEPTH = 3
FUNCTIONS = {"layer_norm", "rms_norm"}
LENGTHS = FUNCTIONS | {"normalize", "norm", "vector_norm", "std", "std_mean"}
SUMS = {"mean", "sum", "var", "var_mean"}
ROOTS = {"sqrt", "rsqrt"}
_serial = count()

# The operator of spec.py in torch's operations; what is absent is left out.
DENOMINATORS = {
    "inside": "torch.sqrt(squares + {eps!r})",
    "outside": "torch.sqrt(squares) + {eps!r}",
    "clamp": "torch.sqrt(squares).clamp(min={eps!r})",
}


class Unreadable(Exception):
    """What a forward asks of its module that is no number, no parameter and no method."""


@dataclass
class Forward:
    """A module's forward as functions of its tensors.

    Args:  roles: {name of a parameter: "weight" or "bias"}; columns: N; training: what self.training is
           sizes: what is said of the module's numbers, as "dim = N"; asks_training: whether self.training is read
           functions: {name: a method as a function of ARGUMENTS and its own}; files: where their text is
    """

    module: torch.nn.Module
    roles: Mapping[str, str]
    columns: int
    training: bool = False
    sizes: dict[str, None] = field(default_factory=dict)
    asks_training: bool = False
    functions: dict[str, FunctionType | None] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def method(self, name: str, classes: tuple[type, ...]) -> FunctionType:
        """The function of a method, which the first of some classes has.

        Raises:  Unreadable for what is no plain function, or asks for more of its module
        """
        from .verify.python_source import definition
        from .verify.values import NotRead

        owner = next((kind for kind in classes if name in vars(kind)), None)
        if owner is None or owner is torch.nn.Module:
            raise Unreadable(f"self.{name}")
        if not _has_plain_attributes(type(self.module)):
            raise Unreadable(
                f"{type(self.module).__name__}, which looks its attributes up"
            )
        # a class may have the name of the one above
        height = type(self.module).__mro__.index(owner)
        function_name = f"{owner.__name__}_{height}_{name}"
        if function_name in self.functions:
            if self.functions[function_name] is None:
                raise Unreadable(f"self.{name}, which calls itself")
            return self.functions[function_name]
        self.functions[function_name] = None
        method = vars(owner)[name]
        is_static = isinstance(method, staticmethod)
        function = method.__func__ if is_static else method
        if not isinstance(function, FunctionType):
            raise Unreadable(f"self.{name}, a {type(function).__name__}")
        try:
            tree = definition(function)
        except NotRead as reason:
            raise Unreadable(str(reason)) from None
        if len(tree.decorator_list) != is_static:
            raise Unreadable(f"self.{name}, which is decorated")
        tree.decorator_list.clear()
        names = dict(function.__globals__)
        cells = function.__closure__ or ()
        for free, cell in zip(function.__code__.co_freevars, cells, strict=True):
            if free != "__class__":
                names[free] = cell.cell_contents
        itself = "" if is_static else tree.args.args.pop(0).arg
        names |= _Methods(self, itself, owner).rewritten(tree)
        tree.args.args[:0] = [ast.arg(argument) for argument in ARGUMENTS]
        tree.name, tree.returns = function_name, None
        self.functions[function_name] = self.compiled(
            ast.unparse(tree), function_name, names
        )
        return self.functions[function_name]

    def compiled(self, text: str, name: str, names: dict[str, Any]) -> FunctionType:
        """The function of a text, which inspect finds until the files are dropped."""
        file = f"<forward {next(_serial)}>"
        self.files.append(file)
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        exec(compile(text, file, "exec", dont_inherit=True), names)
        return names[name]


def _unbound(name):
    """A name that nothing binds, at which verify stops: where a branch that is not taken asks for it, nothing does."""
    return ast.Name(f"attribute_{name}_of_self", ast.Load())


def _has_plain_attributes(kind):
    """Whether self.name is what torch.nn.Module makes of it."""
    names = ("__getattr__", "__getattribute__")
    return all(getattr(kind, n) is getattr(torch.nn.Module, n) for n in names)


class _Methods(ast.NodeTransformer):
    """A method without self.

    Args:  itself: what the method calls its module; owner: the class that it is of
    """

    def __init__(self, forward: Forward, itself: str, owner: type):
        self.forward, self.itself, self.owner = forward, itself, owner
        self.names: dict[str, Any] = {}

    def rewritten(self, tree: ast.FunctionDef) -> dict[str, Any]:
        """The names that the method needs besides its module's; the tree is changed in place."""
        for argument in (
            *tree.args.posonlyargs,
            *tree.args.args,
            *tree.args.kwonlyargs,
        ):
            argument.annotation = None
            if argument.arg in ARGUMENTS:
                raise Unreadable(f"an argument {argument.arg}")
        tree.body = [self.visit(line) for line in tree.body]
        return self.names

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An annotation says nothing."""
        if node.value is None:
            return ast.Pass()
        return self.visit(ast.Assign([node.target], node.value, lineno=node.lineno))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The module itself, elsewhere than before a dot, is not followed."""
        if node.id == self.itself or node.id in (*ARGUMENTS, "super"):
            raise Unreadable(f"{node.id} itself")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A method of the module, or of a class above."""
        classes = type(self.forward.module).__mro__
        match node.func:
            case ast.Attribute(ast.Name(self.itself), name) if not self._has(name):
                pass
            case ast.Attribute(ast.Call(ast.Name("super"), [] | [_, _]), name):
                classes = classes[classes.index(self.owner) + 1 :]
            case _:
                return self.generic_visit(node)
        function = self.forward.method(name, classes)
        self.names[function.__name__] = function
        arguments = [ast.Name(argument, ast.Load()) for argument in ARGUMENTS]
        positional = [self.visit(argument) for argument in node.args]
        keywords = [self.visit(keyword) for keyword in node.keywords]
        called = ast.Name(function.__name__, ast.Load())
        return ast.Call(called, [*arguments, *positional], keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A parameter, or a number as it is now."""
        match node:
            case ast.Attribute(ast.Name(self.itself), name, ast.Load()):
                return self._value(name)
            case ast.Attribute(ast.Name(self.itself), name):
                raise Unreadable(f"self.{name}, which is changed")
        return self.generic_visit(node)

    def _has(self, name):
        module = self.forward.module
        return name in {**vars(module), **module._parameters, **module._buffers}

    def _value(self, name):
        forward = self.forward
        module = forward.module
        if name == "training":
            forward.asks_training = True
            return ast.Constant(forward.training)
        if name in forward.roles:
            return ast.Name(f"self_{forward.roles[name]}", ast.Load())
        for tensors in (module._parameters, module._buffers):
            if name in tensors and tensors[name] is None:
                return ast.Constant(None)
        if name in vars(module):
            return self._constant(name, vars(module)[name])
        for kind in type(module).__mro__:
            if name in vars(kind):
                return self._constant(name, vars(kind)[name])
        return _unbound(name)

    def _constant(self, name, value):
        """A number, or those of a tuple, as text; of N where it is N, or a root of N."""
        if type(value) in (tuple, list, torch.Size):
            return ast.Tuple([self._constant(name, part) for part in value], ast.Load())
        if isinstance(value, torch.dtype):
            self.names[f"self_{name}"] = value
            return ast.Name(f"self_{name}", ast.Load())
        if type(value) not in PLAIN:
            return _unbound(name)
        columns = self.forward.columns
        size = ast.Name(COLUMNS, ast.Load())
        if type(value) is int and value == columns:
            self.forward.sizes[f"{name} = N"] = None
            return size
        for power in POWERS if columns else ():
            if type(value) is float and value == columns**power:
                self.forward.sizes[f"{name} = N**{power}"] = None
                return ast.BinOp(size, ast.Pow(), ast.Constant(power))
        return ast.Constant(value)


@dataclass(frozen=True)
class Reading:
    """What was read of a forward.

    Args:  kind: PROVED, REFUTED, UNDECIDED or another; words: for which numbers, how they differ, or what is not read
    """

    kind: str
    words: str = ""


def compared(
    module: torch.nn.Module,
    roles: Mapping[str, str],
    columns: int,
    spec: NormSpec,
    verdicts: dict[Any, Any],
    gate: str = "",
) -> Reading:
    """Whether a module's forward is the norm of a spec for every M and N, in real numbers.

    Args:  roles: {name of a parameter or buffer: "weight" or "bias"}; columns: N, 0 for a norm of any N
           verdicts: those by what was read; is added to
           gate: "first" or "last" of a forward of two tensors, whose second is a gate by silu
    """
    if spec.eps is None:
        return Reading("not read", "eps is that of the dtype")
    try:
        from .verify import verify
    except ModuleNotFoundError as error:
        return Reading("not read", f"there is no {error.name}")
    sizes: dict[str, None] = {}
    asks_training = False
    for training in (False, True):
        if training and not asks_training:
            break
        forward = Forward(module, roles, columns, training)
        try:
            function = forward.method("forward", type(module).__mro__)
            text = reference_text(spec, set(roles.values()), columns, gate)
            reference = forward.compiled(text, "norm", {"torch": torch})
            texts = tuple("".join(linecache.getlines(file)) for file in forward.files)
            asks_training = forward.asks_training
            sizes |= forward.sizes
            key = type(module), texts
            if key not in verdicts:
                taken = function.__code__.co_varnames[len(ARGUMENTS) :]
                inputs = dict(zip(taken, ["x", "gate"][: 1 + bool(gate)], strict=False))
                inputs |= {WEIGHT: "weight", BIAS: "bias", COLUMNS: "N"}
                verdicts[key] = verify(
                    function, reference, run=False, seconds=SECONDS, **inputs
                )
            verdict = verdicts[key]
        except Unreadable as reason:
            return Reading("not read", str(reason))
        finally:
            for file in forward.files:
                linecache.cache.pop(file, None)
        if not verdict:
            return _unproved(verdict)
    return Reading(PROVED, ", ".join(sizes))


def _unproved(verdict):
    """What a verdict says that is no proof; "undecided" where the program was read to its end."""
    from .verify.verdict import ALIKE
    from .verify.verdict import UNDECIDED as NEITHER

    kind, words = verdict.kind, verdict.why
    if kind == REFUTED:
        words = "; ".join(map(str, filter(None, [*verdict.difference, words])))
    elif words.startswith((ALIKE, NEITHER)):
        kind = UNDECIDED
    return Reading(kind, words)


def reference_text(
    spec: NormSpec, present: set[str], columns: int, gate: str = ""
) -> str:
    """The operator of a spec as a function of torch, an absent weight or bias left out."""
    arguments = "x, gate" if gate else "x"
    lines = [f"def norm({arguments}, weight, bias, self_columns):"]
    if gate == "first":
        lines.append("x = x * torch.nn.functional.silu(gate)")
    if spec.center:
        lines.append("x = x - x.mean(-1, keepdim=True)")
    lines.append(f"squares = (x * x).{spec.reduce}(-1, keepdim=True)")
    lines.append(f"y = x / ({DENOMINATORS[spec.placement].format(eps=spec.eps)})")
    scale = repr(spec.scale)
    for power in POWERS:
        if columns and spec.scale == columns**power:
            scale = f"self_columns ** {power}"
    if spec.scale != 1:
        lines.append(f"y = y * {scale}")
    if "weight" in present:
        offset = f"{spec.weight_offset!r} + " if spec.weight_offset else ""
        lines.append(f"y = y * ({offset}weight)")
    if "bias" in present:
        lines.append("y = y + bias")
    if gate == "last":
        lines.append("y = y * torch.nn.functional.silu(gate)")
    lines.append("return y")
    return "\n    ".join(lines) + "\n"


@cache
def _names_called(kind: type) -> frozenset[str]:
    """The attributes and functions that a class's forward asks for, by its code; those of the module itself left out.

    Its methods and the functions of Python's that it calls are followed, three deep; torch's own are not.
    """
    names: set[str] = set()
    waiting = [(getattr(kind, "forward", None), DEPTH)]
    visited = set()
    while waiting:
        function, depth = waiting.pop()
        if not isinstance(function, FunctionType) or function in visited:
            continue
        visited.add(function)
        last = None
        for step in dis.get_instructions(function):
            name = step.argval
            if isinstance(name, tuple):
                name = name[-1]
            if step.opname.startswith("LOAD_FAST"):
                last = name
                continue
            if step.opname.startswith("LOAD") and isinstance(name, str):
                value = function.__globals__.get(name)
                is_of_torch = getattr(value, "__module__", "").startswith("torch")
                if last == "self":
                    value, is_of_torch = getattr(kind, name, None), False
                elif step.opname != "LOAD_CONST":
                    names.add(name)
                if name == "super":
                    above = [vars(base).get("forward") for base in kind.__mro__[1:]]
                    waiting += [(forward, depth) for forward in above]
                if depth and not is_of_torch:
                    waiting.append((value, depth - 1))
            elif step.opname == "LOAD_CONST" and name in (0.5, -0.5):
                names.add("sqrt")
            last = None
    return frozenset(names)


def reduces(kind: type) -> bool:
    """Whether a class's forward has a sum, or a length, of torch's."""
    is_of_torch = kind.__module__.startswith("torch.")
    return not is_of_torch and bool(_names_called(kind) & (SUMS | LENGTHS))


def has_root(kind: type) -> bool:
    """Whether a class's forward has a root of a sum, or a length."""
    names = _names_called(kind)
    return reduces(kind) and bool(names & LENGTHS or names & ROOTS)


def calls_norm(kind: type) -> str:
    """The norm that a class's forward calls as a function of torch's; "" for none."""
    if kind.__module__.startswith("torch."):
        return ""
    return min(_names_called(kind) & FUNCTIONS, default="")
