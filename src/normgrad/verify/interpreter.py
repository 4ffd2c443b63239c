"""A NumPy or torch function as equations: its text is read statement by statement, on arrays with symbolic shapes.

Nothing of the program runs: what it means is worked out here, from its syntax tree. Only the statements and
expressions below are known, and only the functions of `tables`; everything else is refused with its line. A `try`, a
`while`, a `global`, what is kept between calls, a branch on a size or on a value are among it. A function that the
program calls is read in the same way; what a module holds besides functions and numbers is not.
"""

from __future__ import annotations

import ast
import builtins
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import getattr_static
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import sympy
from sympy import Expr, Rational

from ..symbolic.symbols import M, N, eps
from .array_values import Values, check_key
from .arrays import (
    ARITHMETIC,
    Array,
    DType,
    Misfit,
    NotRead,
    Scalar,
    Wrong,
    array,
    broadcast,
    chosen,
    copied,
    elementwise,
    floats,
    indexed,
    is_integer,
    is_number,
    kind_of,
    like,
    note_digits,
    number,
    of_one_rounding,
    plain,
    scalar,
    state,
    use_rounded,
)
from .binding import letter
from .genuine import (
    OPERATORS,
    check_builtin,
    check_member,
    check_tensor,
    is_from,
    is_genuine,
    member,
)
from .host import (
    CUSTOM,
    WRAPPERS,
    is_guard,
    is_only_read,
    is_operator,
    is_passive,
    is_super_init,
    may_change,
    only_speed,
)
from .importing import LIBRARIES, NAMES, check_bound
from .launch import Caller, JitKernel, Launched
from .over_rows import Listed, Once, Rows, Turn
from .python_source import definition
from .sizes import bits_of, doubled
from .source import Source, file_of, is_jit, source_of, text_of
from .source import plain as plain_kernel
from .syntax import (
    Returned,
    Walker,
    bound_arguments,
    check_annotation,
    defaults_of,
    positional,
    runs,
)
from .tables.libraries import HOST, MEMBERS, TABLES
from .tables.numpy import of_dtype
from .tables.python import BUILTINS, HOST_BUILTINS, LONGEST, iterated
from .tables.signatures import Device, Fields, Known, Largest, Quiet, Trained
from .text import module_of
from .values import LeftOut

DEEPEST = 40
# when a name is bound: while the module is read, in the call, in the backward of an autograd Function
MODULE, FORWARD, BACKWARD = range(3)
# what torch itself reads from a Function, or from its ctx
OF_TORCH = set(
    "apply backward boxed_grads_call clear_saved_tensors_on_access dirty_tensors forward "
    "generate_vmap_rule jvp mark_dirty mark_non_differentiable mark_shared_storage "
    "materialize_grads maybe_clear_saved_tensors metadata name needs_input_grad "
    "next_functions non_differentiable register_hook register_prehook requires_grad "
    "save_for_backward save_for_forward saved_for_forward saved_tensors saved_variables "
    "set_materialize_grads setup_context to_save vjp vmap".split()
)
# names with one underscore that torch.nn.Module has, as of torch 2.13
OF_MODULE = set(
    "_apply _backward_hooks _backward_pre_hooks _buffers _call_impl "
    "_compiled_call_impl _forward_hooks _forward_hooks_always_called "
    "_forward_hooks_with_kwargs _forward_pre_hooks _forward_pre_hooks_with_kwargs "
    "_get_backward_hooks _get_backward_pre_hooks _get_name _is_full_backward_hook "
    "_load_from_state_dict _load_state_dict_post_hooks _load_state_dict_pre_hooks "
    "_maybe_warn_non_full_backward_hook _modules _named_members "
    "_non_persistent_buffers_set _parameters _register_load_state_dict_pre_hook "
    "_register_state_dict_hook _replicate_for_data_parallel _save_to_state_dict "
    "_slow_forward _state_dict_hooks _state_dict_pre_hooks _version "
    "_wrapped_call_impl".split()
)
CALLED = ("save_for_backward", "mark_non_differentiable", "set_materialize_grads")
METHODS_READ = ("forward", "backward", "setup_context")
# what a running sum is made of; the last that is added to it
CELLS = ("", "int", "float", "array")
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
# what np.errstate has a word for
ERRORS = {"all", "divide", "over", "under", "invalid"}
# names that a text may bind with two underscores, of which Python asks nothing
UNUSED = {"__all__", "__version__", "__author__", "__name__"}
# builtins that may stand in a decorator
PLAIN = set(
    "bool classmethod dict float int len list max min object property range staticmethod tuple".split()
)
EPSILONS = ("eps", "EPS", "epsilon", "EPSILON")


@dataclass(eq=False)
class Named:
    """What is known by its name alone: torch.autograd.Function, torch.no_grad."""

    name: str


FUNCTION, LAYER, TENSOR, ONCE, STATIC, QUIET, INFERENCE, ERRSTATE, GUARD = map(
    Named,
    (
        *("Function", "Module", "Tensor", "once_differentiable", "staticmethod"),
        *("quiet", "inference", "errstate", "guard"),
    ),
)
KNOWN: dict[str, Any] = {
    **MEMBERS,
    "torch.autograd.Function": FUNCTION,
    "torch.autograd.function.Function": FUNCTION,
    "torch.autograd.function.once_differentiable": ONCE,
    "torch.no_grad": QUIET,
    "torch.enable_grad": QUIET,
    "numpy.errstate": ERRSTATE,
    "torch.inference_mode": INFERENCE,
    "torch.cuda.device": GUARD,
    "torch.cuda._DeviceGuard": GUARD,
    "torch.nn.Module": LAYER,
    "torch.nn.Parameter": HOST["torch.nn.Parameter"],
    "torch.Tensor": TENSOR,
}


@dataclass(eq=False)
class Unread:
    """A function or a class of the text that is not read; why: it is not; line: where it stands."""

    why: str
    line: int


@dataclass(frozen=True)
class Module:
    """A module; path: as "numpy.linalg"."""

    path: str


class Context:
    """The ctx of an autograd Function.

    Args:  flags: for every argument of forward whether its gradient is needed; None where that is not known
           phase: when its forward is read
    """

    def __init__(self, flags: tuple[bool, ...] | None, phase: int):
        self.attributes: dict[str, Any] = {}
        self.saved: tuple = ()
        self.flags, self.phase, self.marked = flags, phase, ()

    def save_for_backward(self, *tensors: Array | None) -> None:
        """Keep tensors, which nobody writes from now on."""
        for value in tensors:
            if value is not None:
                if not isinstance(value, Array):
                    raise NotRead(f"{type(value).__name__} saved for backward")
                value.memory.fixed = "what is saved for backward"
        self.saved = tensors

    def mark_non_differentiable(self, *tensors: Array) -> None:
        """Mark results; torch keeps those of the last call alone."""
        for value in tensors:
            floats(value, "mark_non_differentiable")
        self.marked = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say that a gradient that is not there is 0, which it is anyhow."""
        if value is not True:
            raise NotRead(
                "set_materialize_grads(False), by which a gradient may be None"
            )


@dataclass(eq=False)
class Function:
    """A function of the program.

    Args:  node: its syntax tree; scope: where its free names are found; defaults: {parameter: value}
           wrapper: what a decorator of the text has put in its place
    """

    node: ast.FunctionDef | ast.Lambda
    scope: Any
    defaults: dict[str, Any]
    wrapper: Function | None = None

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters."""
        return positional(self.node.args)


@dataclass(eq=False)
class FunctionClass:
    """A subclass of torch.autograd.Function: its name and its static methods."""

    name: str
    methods: dict[str, Function]


@dataclass(eq=False)
class Layer:
    """A subclass of torch.nn.Module: its name and its methods."""

    name: str
    methods: dict[str, Function]


@dataclass(eq=False)
class Instance:
    """A layer that is made.

    Args:  ready: whether the __init__ of torch.nn.Module was called; made: whether its own has ended
    """

    layer: Layer
    attributes: dict[str, Any] = field(default_factory=dict)
    ready: bool = False
    made: bool = False


# what is asked of a tensor besides its numbers
LAYOUT = {
    *("stride", "shape", "size", "numel", "dtype", "device", "ndim", "dim"),
    *("element_size", "is_contiguous"),
}


def doubled_name(node: ast.While) -> str | None:
    """The name that a loop doubles, and does nothing else; None of another loop."""
    match node:
        case ast.While(body=[ast.AugAssign(ast.Name(name), operator, step)], orelse=[]):
            pass
        case ast.While(
            body=[
                ast.Assign([ast.Name(name)], ast.BinOp(ast.Name(left), operator, step))
            ],
            orelse=[],
        ) if left == name:
            pass
        case _:
            return None
    is_doubled = isinstance(operator, ast.Mult) and getattr(step, "value", 0) == 2
    is_shifted = isinstance(operator, ast.LShift) and getattr(step, "value", 0) == 1
    return name if is_doubled or is_shifted else None


def local_names(body: Sequence[ast.AST], in_place: bool = True) -> set[str]:
    """The names that statements bind, those of functions and of classes within them left out.

    For every statement that binds a name. It stops `def f(a=(K := 2)): ...` beside K = 1, and all other places of :=.

    Args:  in_place: whether += counts
    """
    names, waiting = set(), list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(node.name)
                waiting += [*node.decorator_list, *parts_of_header(node)]
                continue
            case ast.ClassDef():
                names.add(node.name)
                waiting += [*node.decorator_list, *node.bases, *node.keywords]
                continue
            case ast.Lambda():
                waiting.append(node.args)
                continue
            case ast.comprehension():
                waiting += [node.iter, *node.ifs]
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                names.add(name)
            case ast.alias():
                names.add((node.asname or node.name).partition(".")[0])
            case ast.AugAssign() if not in_place:
                continue
        waiting += ast.iter_child_nodes(node)
    return names


def parts_of_header(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """What Python evaluates of a function where it is made, besides its decorators."""
    return [node.args, *[node.returns] * (node.returns is not None)]


def annotations_of(node: ast.FunctionDef) -> list[ast.expr]:
    """The annotations of a function, which Python evaluates where it is made."""
    parts = [part for part in ast.walk(node.args) if isinstance(part, ast.arg)]
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
    for part in ast.walk(annotation):
        if isinstance(part, ast.Name) and not scope.has(part.id):
            raise NotRead(f"{part.id}, an annotation that has no value")


class Bindings(dict):
    """Names with their values, the one that was bound last at the end, as the function that a text is read for."""

    def __setitem__(self, name, value):
        self.pop(name, None)
        super().__setitem__(name, value)


class Scope:
    """The names of a call.

    Args:  parent: where other names are found; local: the names that are its own, bound or not
           reader: who reads; what is bound before the call, or before backward, must not change in it
    """

    def __init__(self, parent, local, reader):
        self.parent, self.local, self.names = parent, set(local), Bindings()
        self.reader, self.phase = reader, reader.phase
        # the names that were given a value, whether they have one still
        self.bound = set()

    def __setitem__(self, name: str, value: Any) -> None:
        self.names[name] = value
        self.bound.add(name)

    def has(self, name: str) -> bool:
        """Whether a name has a value."""
        return name in self.names or name not in self.local and self.parent.has(name)

    def load(self, name: str) -> Any:
        """The value of a name."""
        if name not in self.local:
            return self.parent.load(name)
        if name not in self.names:
            in_function = isinstance(self.parent, Scope)
            if in_function and name not in self.bound and self.reader.depth:
                raise Wrong(f"a NameError: {name} has no value yet")
            raise NotRead(f"{name} has no value here, or one from another turn")
        value = self.names[name]
        if self.phase < self.reader.phase:
            check_constant(name, value, arrays=self.phase == FORWARD)
        return value


class Globals(Scope):
    """The names of a module's text, and below them Python's own; source: the text, where it has kernels."""

    source: Source | None = None

    def has(self, name: str) -> bool:
        """Whether a name has a value, or is a builtin, or annotations are not evaluated."""
        future = isinstance(self.names.get("annotations"), Named)
        return future or name in self.names or hasattr(builtins, name)

    def load(self, name: str) -> Any:
        """The value of a name of the module, or of a builtin."""
        value = self.names.get(name)
        if isinstance(value, Unread):
            raise NotRead(f"{name} of line {value.line}: {value.why}")
        if isinstance(value, dict) and self.source and is_only_read(name, self.source):
            return dict(value)
        if name in self.names or name in self.local:
            return self.reader.constant(name, super().load(name))
        return builtin(name)


def check_constant(name: str, value: Any, arrays: bool = False) -> None:
    """Refuse what may change from one call to the next; arrays: whether they may stay, to be read."""
    if isinstance(value, tuple):
        for part in value:
            check_constant(name, part, arrays)
    if isinstance(value, Array) and arrays:
        value.memory.fixed = "what forward keeps for backward"
    elif isinstance(value, list | dict | Array | Listed | Once | Context):
        raise NotRead(f"{name}, which is kept from one call to the next")


class Outside:
    """The names that a function object finds around it: closure, module, builtins."""

    def __init__(self, reader, function: FunctionType):
        self.reader, self.function = reader, function

    def has(self, name: str) -> bool:
        """Whether a name has a value: a function object was made, and its annotations with it."""
        return True

    def load(self, name: str) -> Any:
        """The value of a name, as it is now."""
        free, names = _free(self.function), self.function.__globals__
        if name in free:
            value = free[name]
        elif name in names:
            value = names[name]
        else:
            if name in BUILTINS:
                check_builtin(name)
            return builtin(name)
        return self.reader.constant(name, self.reader.admit(value))


def _is_of_module(name):
    """Whether torch.nn.Module has a name for its own use, or Python calls it by itself."""
    return name in OF_MODULE or name.startswith("__")


def is_apart(value: Any) -> bool:
    """Whether a method of a layer is a static one, which forward does without, or is not read."""
    decorators = value.node.decorator_list if isinstance(value, Function) else []
    return [getattr(decorator, "id", "") for decorator in decorators] == [
        "staticmethod"
    ]


def check_method(kind: str, name: str) -> None:
    """Refuse what a Function puts in the place of torch's own, such as apply, and what Python calls by itself."""
    if name in OF_TORCH.difference(METHODS_READ) or name.startswith("_"):
        raise NotRead(f"{kind}.{name}, which torch or Python calls by itself")


def _free(function):
    """{free name of a function object: its value}."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def builtin(name: str) -> Any:
    """A builtin by its name."""
    if name == "staticmethod":
        return STATIC
    if name in BUILTINS:
        return BUILTINS[name]
    if state().way:
        return _of_host(name)
    raise NotRead(f"the name {name}")


def _of_host(name):
    """A builtin that functions which launch kernels alone may ask for."""
    if name in HOST_BUILTINS:
        return HOST_BUILTINS[name]
    if name == "isinstance":
        return partial(is_instance)
    if name == "print":
        return Quiet()
    if name in PLAIN_TYPES:
        return Named(name)
    if name not in NAMES:
        raise Wrong(f"a NameError: {name} has no value")
    raise NotRead(f"the name {name}")


class Raised(NotRead):
    """An error that a launcher raises on one way through its branches on sizes."""


def source_once(text: str, file: Path | None) -> Source:
    """A module's text with its kernels, one for all ways of a verdict."""
    shared = state().way.shared
    if (text, file) not in shared:
        shared[text, file] = Source(text, file)
    return shared[text, file]


def is_kernel(value: Any) -> bool:
    """Whether an object is a kernel of Triton's, as its decorators leave it."""
    return type(value).__module__.startswith("triton.") and hasattr(value, "fn")


PLAIN_TYPES = {"int", "float", "str", "bool", "tuple", "list"}


def is_instance(value: Any, *kinds: Any) -> bool:
    """isinstance of a tensor."""
    if len(kinds) != 1:
        raise Wrong(f"a TypeError: isinstance of {1 + len(kinds)} arguments")
    (kind,) = kinds
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = [getattr(k, "name", "") for k in kinds]
    if not isinstance(value, Array | bool | int | str | Scalar | tuple | list | None):
        raise NotRead("isinstance of what is no tensor and no number")
    own = type(value).__name__
    if isinstance(value, Scalar):
        own = value.kind
        if own == "float" and value.e.free_symbols:
            state().narrowed[f"{value.e} a float"] = None
    if set(names) <= PLAIN_TYPES:
        return own in names or own == "bool" and "int" in names
    known = [
        k is TENSOR or name.endswith("DTensor")
        for k, name in zip(kinds, names, strict=True)
    ]
    if not all(known):
        raise NotRead("isinstance of another type than torch.Tensor")
    if isinstance(value, Array) and TENSOR in kinds:
        return True
    state().words.append("no argument is a DTensor")
    return False


class Reader(Walker):
    """Reads one program, once.

    Args:  symbols: whether a module's eps stands for the symbol eps, whatever its value
           compiled: of a program that a compiler reads, what an object of Python's is to it, else None
    """

    def __init__(
        self, symbols: bool = True, compiled: Callable[[Any], Any] | None = None
    ):
        super().__init__(Values())
        self.symbols, self.compiled = symbols, compiled
        # the names of the module, for a text that is read several times
        self.names: Globals | None = None
        self.restart()
        self.source: Source | None = None
        # whether torch.inference_mode stands in what is read
        self.infers = False
        # the file that is read, and the names of those of its package
        self.file: Path | None = None
        self.files: dict[Path, Globals | None] = {}
        # of a layer, {the name of its parameter: its value}
        self.parameters: dict[str, Array] = {}
        self.caller = Caller(self.call, self._set_by_decorator)

    def restart(self) -> None:
        """Begin a trace."""
        self.used: dict[str, Expr] = {}
        self.depth, self.phase, self.asked = 0, FORWARD, False
        # the call whose value nobody uses
        self.statement: ast.expr | None = None

    # what stands around the program

    def constant(self, name: str, value: Any) -> Any:
        """The value of a module's name; a positive number that is called eps is the symbol."""
        floating = isinstance(value, Scalar) and value.kind == "float"
        if self.symbols and floating and name in EPSILONS and value.e.is_positive:
            self.used[name] = value.e
            if len(set(self.used.values())) > 1:
                raise NotRead(f"two numbers that are called eps: {self.used}")
            return Scalar(eps, "float")
        return value

    def admit(self, value: Any) -> Any:
        """An object of Python's as what it is here."""
        if self.compiled is not None:
            value = self.compiled(value)
        if value is None or isinstance(value, Known) or type(value) in (bool, int, str):
            return value
        if value in (M, N):
            return Scalar(value, "int")
        if type(value) is float and math.isfinite(value):
            return Scalar(Rational(repr(value)), "float")
        if type(value) is tuple:
            return tuple(map(self.admit, value))
        if isinstance(value, ModuleType):
            path = value.__name__
            if path.partition(".")[0] in TABLES and value is sys.modules.get(path):
                return Module(path)
        for path in KNOWN:
            if member(path) is value:
                return self._of_module(path)
        for name, function in BUILTINS.items():
            if value is getattr(builtins, name):
                check_builtin(name)
                return function
        base = member("torch.autograd.Function")
        if base and isinstance(value, type) and issubclass(value, base):
            return self.class_of(value)
        if isinstance(value, FunctionType):
            return self.function_of(value)
        if state().way and is_kernel(value):
            source, name = source_of(value)
            return JitKernel(name, source, Outside(self, plain_kernel(value)))
        raise NotRead(f"{type(value).__name__} from outside the function")

    def function_of(self, function: FunctionType) -> Function:
        """A function object, from its source."""
        if hasattr(function, "__wrapped__"):
            # anyone may write __wrapped__: what is called is in the closure
            is_once = function.__code__.co_name == "wrapper" and "fn" in _free(function)
            if not is_once or not is_from("torch", function):
                raise NotRead(f"the decorator of {function.__name__}")
            function = _free(function)["fn"]
        if not self.values.live:
            self.values.live = True
            for name in OPERATORS if state().library == "torch" else ():
                check_tensor(name)
        if function.__builtins__ is not vars(builtins):
            raise NotRead(f"{function.__name__}, which has other builtins")
        node = definition(function)
        self._check_decorators(node, Outside(self, function))
        values = function.__defaults__ or ()
        pairs = zip(positional(node.args)[::-1], values[::-1], strict=False)
        defaults = dict(pairs) | (function.__kwdefaults__ or {})
        defaults = {name: self.admit(value) for name, value in defaults.items()}
        return Function(node, Outside(self, function), defaults)

    def class_of(self, kind: type) -> FunctionClass:
        """A subclass of torch.autograd.Function."""
        methods, base = {}, member("torch.autograd.Function")
        if type(kind) is not type(base):
            raise NotRead(f"the metaclass of {kind.__name__}")
        apply = getattr_static(base, "apply").__func__
        if not is_genuine("torch", "apply", apply):
            raise NotRead("torch.autograd.Function.apply, which is not torch's own")
        for name in sorted(OF_TORCH.intersection(dir(base))):
            method = getattr_static(kind, name)
            if method is getattr_static(base, name):
                continue
            check_method(kind.__name__, name)
            if not isinstance(method, staticmethod):
                raise NotRead(f"{kind.__name__}.{name}, which is no static method")
            methods[name] = self.function_of(method.__func__)
        return FunctionClass(kind.__name__, methods)

    def module(self, text: str, file: Path | None = None) -> Globals:
        """The names that a module's text defines; file: that it is from, whose package is read as well."""
        self.phase, self.file = MODULE, file
        tree = module_of(text)
        bound = local_names(tree.body)
        for name in sorted(bound - UNUSED):
            if name.startswith("__"):
                raise NotRead(f"{name}, which Python reads by itself")
        names = Globals(None, bound | {"__name__"}, self)
        names.names["__name__"] = "program"
        if state().way:
            self.source = names.source = source_once(text, file)
            self._check_import(tree)
            self._execute_module(tree.body, names)
            self.names = names
        else:
            self.execute(tree.body, names)
        check_bound(tree)
        self.phase = FORWARD
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
                self.execute([node], names)
            except NotRead as reason:
                if not (is_fixed and is_passive(node, self.source)):
                    raise
                for name in local_names([node]):
                    names.names[name] = Unread(str(reason), node.lineno)

    def _check_decorators(self, node, scope):
        if self.compiled is not None:
            return  # a compiler's object is what the decorators have left
        for decorator in node.decorator_list:
            match decorator:
                case ast.Lambda(ast.arguments(args=[part]), ast.Name(part_name)) if (
                    part.arg == part_name
                ):
                    continue
            if isinstance(decorator, ast.Call):
                value = QUIET if self._is_quiet(decorator, scope) else None
                if self._is_plain_wrapper(decorator.func, scope):
                    continue
                if self._is_operator(decorator, node, scope):
                    continue
            elif self._is_plain_wrapper(decorator, scope):
                continue
            else:
                value = self.evaluate(decorator, scope)
            if value not in (STATIC, ONCE, QUIET):
                raise NotRead(f"the decorator of {node.name}")
            state().cut |= value is QUIET

    def _is_plain_wrapper(self, node, scope):
        """Whether a decorator is one of torch's that leaves a launcher what it says, without an autocast."""
        return bool(state().way) and self._path(node, scope) in WRAPPERS

    def _is_operator(self, decorator, node, scope):
        """Whether a decorator makes an operator of torch's, through which it passes no gradient by itself."""
        is_made = bool(state().way) and self._path(decorator.func, scope) in CUSTOM
        state().cut |= is_made
        return is_made and is_operator(decorator, node)

    def _is_quiet(self, node, scope):
        """Whether a call makes a context in which numbers are the same, such as torch.no_grad() and np.errstate.

        For `with np.errstate(divide="ignore")`. It stops np.errstate(all=g(y)), where g changes y.
        """
        match node:
            case ast.Call(called, [], keywords):
                pairs = {
                    word.arg: getattr(word.value, "value", None) for word in keywords
                }
            case _:
                return False
        value = self.evaluate(called, scope)
        if value is INFERENCE and not pairs:
            self.infers = True
            return True
        if value is not ERRSTATE:
            return value is QUIET and not pairs
        return pairs.keys() <= ERRORS and {*pairs.values()} <= {"ignore", "warn"}

    # statements

    def _holds(self, test, scope):
        """Whether a condition holds, at every size."""
        return self.values.decided(self.evaluate(test, scope))

    def read_If(self, node, scope):
        """A branch that is the same at every size, or by which a launcher chooses numbers of warps."""
        if state().way and only_speed(node):
            for name in local_names([node]):
                scope.names[name] = Scalar(letter(name), "int")
            return
        chosen = self._holds(node.test, scope)
        self.execute(node.body if chosen else node.orelse, scope)

    def read_While(self, node, scope):
        """A launcher's loop that doubles a number while it is below sizes: the next power of 2.

        For `while block < n: block *= 2`. It stops a loop that does anything else.
        """
        tests = [node.test]
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And):
            tests = node.test.values
        name, bounds = doubled_name(node), []
        for test in tests:
            match test:
                case ast.Compare(ast.Name(left), [ast.Lt() | ast.LtE()], [bound]):
                    more = int(isinstance(test.ops[0], ast.LtE))
                case _:
                    left = ""
            names = [n.id for n in ast.walk(test) if isinstance(n, ast.Name)]
            if not state().way or left != name or names.count(name) > 1:
                raise NotRead("the statement while")
            bounds.append(plain(self._size(bound, scope)) + more)
        start = self._size(ast.Name(name, ast.Load()), scope)
        scope.names[name] = number(doubled(plain(start), bounds), "int")

    def _size(self, node, scope):
        """An integer of a launcher."""
        value = self.evaluate(node, scope)
        if not is_integer(value):
            raise NotRead("a while loop over what are no integers")
        return value

    def read_Assert(self, node, scope):
        """What holds at every size."""
        if self._holds(node.test, scope):
            return
        if state().way:
            raise Raised(ast.unparse(node.test))
        raise NotRead("an assertion that fails")

    def read_Raise(self, node, scope):
        """An error, on one way through a launcher."""
        if state().way is None:
            raise NotRead("the statement raise")
        raise Raised(ast.unparse(node))

    def read_Import(self, node, scope):
        """A library, or a module that is not read."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            path = alias.name if alias.asname else top
            module = Module(path) if top in TABLES else Named(path)
            scope.names[alias.asname or top] = module

    def read_ImportFrom(self, node, scope):
        """Names of a library, or of a module that is not read."""
        path = node.module or ""
        names = self._of_file(path, node.level)
        for alias in node.names:
            if alias.name == "*":
                raise NotRead("an import of *")
            if names is not None and names.has(alias.name):
                scope.names[alias.asname or alias.name] = names.names[alias.name]
                continue
            value = Named(f"{path}.{alias.name}")
            if path.partition(".")[0] in TABLES and not node.level:
                with suppress(NotRead):  # what is not in the tables is a name alone
                    value = self.attribute(Module(path), alias.name)
            scope.names[alias.asname or alias.name] = value

    def _of_file(self, path, level):
        """The names of a file of the same package, None where there is none."""
        if self.file is None or not state().way:
            return None
        file = file_of(self.file, path, level)
        if file is None:
            return None
        if file not in self.files:
            before = self.file, self.source, self.phase
            self.files[file] = None
            try:
                self.files[file] = self.module(text_of(file), file)
            finally:
                self.file, self.source, self.phase = before
        return self.files[file]

    def read_Try(self, node, scope):
        """Imports of a module, which are taken to succeed; of another `try` nothing is known."""
        imports = [isinstance(line, ast.Import | ast.ImportFrom) for line in node.body]
        if not (state().way and self.phase == MODULE and all(imports)):
            raise NotRead("the statement try")
        self.execute([*node.body, *node.orelse, *node.finalbody], scope)
        for handler in node.handlers:
            if handler.name in scope.names:
                raise NotRead(f"{handler.name}, which an except may take away")

    def read_FunctionDef(self, node, scope):
        """A function, or a kernel that it launches."""
        if state().way and is_guard(node):
            scope.names[node.name] = GUARD
            return
        if self.source and any(map(is_jit, node.decorator_list)):
            scope.names[node.name] = JitKernel(node.name, self.source, scope)
            return
        try:
            decorators = self._wrappers(node, scope)
            check_annotations(node, scope)
            function = self._function(node, scope)
            for decorator in reversed(decorators):
                wrapper = self.call(decorator, [function])
                if not isinstance(wrapper, Function):
                    raise NotRead(f"the decorator of {node.name}")
                function = replace(function, wrapper=wrapper)
            scope.names[node.name] = function
        except NotRead as reason:
            self._leave_out(node, reason, scope)

    def _wrappers(self, node, scope):
        """The decorators of a function that are functions of the text; all others change nothing."""
        names = [part.id for part in node.decorator_list if isinstance(part, ast.Name)]
        values = {name: scope.load(name) for name in names if scope.has(name)}
        wrappers = [name for name in names if isinstance(values.get(name), Function)]
        if not (state().way and wrappers):
            self._check_decorators(node, scope)
            return []
        others = [
            part
            for part in node.decorator_list
            if getattr(part, "id", "") not in wrappers
        ]
        self._check_decorators(ast.FunctionDef(node.name, decorator_list=others), scope)
        return [values[name] for name in wrappers]

    def _leave_out(self, node, reason, scope):
        """Keep a function or a class of the module that is not read, where making it runs nothing of the text.

        For a file that has a torch.nn.Module and a kernel beside the function in question. Without the condition
        `class A: np.sqrt = np.square`, or a decorator of the text's own that does so, is passed over.
        """
        inert = self.phase == MODULE and all(self._is_inert(node, scope))
        if not inert:
            raise reason
        scope.names[node.name] = Unread(str(reason), node.lineno)

    def _is_inert(self, node, scope):
        """For each expression that makes a function or a class: whether Python runs nothing of the text in it."""
        names = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        for decorator in node.decorator_list:
            yield self._is_of_framework(decorator, names, scope)
        if isinstance(node, ast.FunctionDef):
            defaults = defaults_of(node.args).values()
            yield not any(map(runs, [*defaults, *annotations_of(node)]))
            return
        yield not node.keywords
        for base in node.bases:
            yield self._path(base, scope) in BASES
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
    def _path(node, scope):
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
        for part in ast.walk(node):
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

    def _function(self, node, scope):
        defaults = {}
        for name, value in defaults_of(node.args).items():
            defaults[name] = self.evaluate(value, scope)
            check_constant(name, defaults[name])
        return Function(node, scope, defaults)

    def read_ClassDef(self, node, scope):
        """An autograd Function."""
        try:
            base = self._base_of(node, scope)
        except NotRead as reason:
            self._leave_out(node, reason, scope)
            return
        if base is not LAYER:
            return self._read_function_class(node, base, scope)
        try:
            self._read_layer(node, scope)
        except NotRead as reason:
            self._leave_out(node, reason, scope)

    def _base_of(self, node, scope):
        """The autograd Function, torch's or the text's, that a class is made of."""
        bases = [self.evaluate(base, scope) for base in node.bases]
        if len(bases) != 1 or node.keywords or node.decorator_list:
            raise NotRead(f"the class {node.name}")
        if (
            bases[0] is not FUNCTION
            and bases[0] is not LAYER
            and not isinstance(bases[0], FunctionClass)
        ):
            words = "which is no autograd Function and no torch.nn.Module"
            raise NotRead(f"the class {node.name}, {words}")
        return bases[0]

    def _read_layer(self, node, scope):
        inner = Scope(scope, local_names(node.body), self)
        self.execute(node.body, inner)
        for name, value in list(inner.names.items()):
            if name != "forward" and is_apart(value) and not _is_of_module(name):
                del inner.names[name]
                continue
            if not isinstance(value, Function) or value.node.decorator_list:
                raise NotRead(f"{node.name}.{name}, which is no plain method")
            if _is_of_module(name) and name not in ("__init__", "__repr__"):
                raise NotRead(
                    f"{node.name}.{name}, which torch or Python calls by itself"
                )
            value.scope = scope
        scope.names[node.name] = Layer(node.name, dict(inner.names))

    def layer(self, kind: Layer, values: dict[str, Any]) -> Any:
        """What forward of a layer returns.

        Args:  values: {parameter of __init__ or forward, or name of a parameter that is trained: its value}
        """
        instance, methods = Instance(kind), kind.methods
        made = methods.get("__init__")
        own = made.parameters[1:] if made else []
        self.parameters = values
        if made:
            given = {name: values[name] for name in own if name in values}
            self.call_by_names(made, {made.parameters[0]: instance, **given})
            if not instance.ready:
                raise Wrong(f"{kind.name}.__init__ does not call super().__init__()")
        instance.made = True
        first, *names = methods["forward"].parameters
        given = {name: values[name] for name in names if name in values}
        return self.call_by_names(methods["forward"], {first: instance, **given})

    def read_Expr(self, node, scope):
        """A call, or a docstring; the __init__ of torch.nn.Module lets a layer have parameters."""
        match node.value:
            case ast.Call(
                ast.Attribute(owner, "register_parameter"),
                [ast.Constant(str(name)), value],
                [],
            ) if isinstance(owner, ast.Name):
                self._register(scope.load(owner.id), name, self.evaluate(value, scope))
                return None
        if not is_super_init(node.value):
            self.statement = node.value
            return super().read_Expr(node, scope)
        layers = [
            value for value in scope.names.values() if isinstance(value, Instance)
        ]
        if len(layers) != 1 or layers[0].made:
            raise NotRead("super() outside of the __init__ of a layer")
        layers[0].ready = True

    def _read_function_class(self, node, base, scope):
        inherited = {} if base is FUNCTION else base.methods
        inner = Scope(scope, local_names(node.body), self)
        self.execute(node.body, inner)
        for name, value in inner.names.items():
            if not isinstance(value, Function):
                raise NotRead(f"the attribute {name} of a class")
            check_method(node.name, name)
            if "staticmethod" not in map(ast.unparse, value.node.decorator_list):
                raise NotRead(f"{node.name}.{name}, which is no static method")
            value.scope = scope
        scope.names[node.name] = FunctionClass(node.name, inherited | inner.names)

    def read_With(self, node, scope):
        """A block without gradients."""
        for part in node.items:
            quiet = part.optional_vars is None and self._is_quiet(
                part.context_expr, scope
            )
            if not quiet and not self._is_guard(part.context_expr, scope):
                raise NotRead("a with of another kind than torch.no_grad()")
            state().cut |= quiet
        self.execute(node.body, scope)

    def _is_guard(self, node, scope):
        """Whether a context only says on which GPU kernels run."""
        match node:
            case ast.Call(called, [device], []) if state().way:
                if not self._is_device(called, scope):
                    return False
                device = self.evaluate(device, scope)
                if (
                    isinstance(device, str)
                    and device.partition(":")[0] == "cuda"
                    or device == 0
                ):
                    state().words.append(f"tensors are on the GPU {device}")
                    return True
                return isinstance(device, Device)
        return False

    def _is_device(self, called, scope):
        """Whether a function is torch.cuda.device, or has its place in a package for other devices, too."""
        match called:
            case ast.Attribute(ast.Name("torch_device_fn" as name), "device") if set(
                self.source.imports
            ) - set(self.source.constants) >= {name}:
                state().words.append(f"{name} is torch.cuda")
                return True
        return self.evaluate(called, scope) is GUARD

    def read_Delete(self, node, scope):
        """A name that is gone."""
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise NotRead("del of a part")
            scope.load(target.id)
            del scope.names[target.id]

    def read_Assign(self, node, scope):
        """name = value, or several from a generator."""
        match node:
            case ast.Assign([ast.Tuple() | ast.List() as target], ast.GeneratorExp()):
                self.assign(target, self._comprehension(node.value, scope), scope)
            case _:
                super().read_Assign(node, scope)

    def _unpack(self, targets, value, scope):
        """Give each name its value, and one with a star a list of what is left for it."""
        stars = [k for k, name in enumerate(targets) if isinstance(name, ast.Starred)]
        if len(stars) == 1 and isinstance(value, tuple | list):
            first, last = stars[0], len(value) - len(targets) + stars[0] + 1
            if first <= last:
                targets = [getattr(name, "value", name) for name in targets]
                value = [*value[:first], list(value[first:last]), *value[last:]]
        super()._unpack(targets, value, scope)

    def assign_part(self, target, value, scope):
        """Write an entry of an array, of a list or of ctx."""
        match target:
            case ast.Subscript():
                self._write(target, value, scope)
            case ast.Attribute(attr=name):
                owner = self.evaluate(target.value, scope)
                if isinstance(owner, Instance) and not owner.made:
                    owner.attributes[name] = self._part_of_layer(owner, name, value)
                    return
                if not isinstance(owner, Context) or state().loops:
                    raise NotRead(f"a write to the attribute {name}")
                if (
                    self.phase != owner.phase
                ):  # a second backward finds what forward left
                    raise NotRead(f"ctx.{name}, written by backward")
                if name in OF_TORCH or name.startswith("_"):
                    raise NotRead(f"a write to ctx.{name}, which is torch's own")
                owner.attributes[name] = value

    def _register(self, owner, name, value):
        """self.register_parameter(name, value), which takes a parameter or None."""
        is_layer = isinstance(owner, Instance) and owner.ready and not owner.made
        if not is_layer or not isinstance(value, Trained | None):
            raise NotRead("register_parameter of other than a parameter or None")
        owner.attributes[name] = self._part_of_layer(owner, name, value)

    def _part_of_layer(self, owner, name, value):
        """An attribute that __init__ sets; a parameter is the tensor that the caller says."""
        if _is_of_module(name) or name in owner.layer.methods:
            raise NotRead(f"self.{name}, which is a method or torch's own")
        if isinstance(owner.attributes.get(name), Array):
            raise NotRead(f"self.{name}, a parameter that is set twice")
        if not isinstance(value, Trained):
            return value
        if not owner.ready:
            raise Wrong(f"self.{name} is a parameter before super().__init__()")
        if name not in self.parameters:
            raise NotRead(f"self.{name}: say which tensor it is, as {name}='weight'")
        tensor = self.parameters[name]
        if not isinstance(tensor, Array) or tensor.shape != value.shape:
            got = getattr(tensor, "shape", type(tensor).__name__)
            raise NotRead(
                f"self.{name}: is made as {value.shape}, and is said to be {got}"
            )
        return tensor

    def _write(self, target, value, scope):
        owner = self.evaluate(target.value, scope)
        key = self.evaluate(target.slice, scope)
        if isinstance(owner, list | dict):
            if state().loops:
                raise NotRead("a write to a list or dict in a loop over rows")
            if isinstance(owner, list) or not isinstance(key, str):
                check_key(owner, key)
            owner[key] = value
            return
        if not isinstance(owner, Array):
            raise NotRead(f"a write to {type(owner).__name__}")
        state().line = target.lineno
        view = indexed(owner, key if isinstance(key, tuple) else (key,), write=True)
        value = _operand(view, value)
        if broadcast(view.shape, _as_written(value, view)) != view.shape:
            raise Misfit("a value that does not fit where it is written")
        view.write(value.e)
        of_one_rounding(view, value)

    def read_AugAssign(self, node, scope):
        """name op= value, which changes an array in place."""
        operation = type(node.op).__name__
        match node.target:
            case ast.Name(id=name):
                old, value = scope.load(name), self.evaluate(node.value, scope)
                state().line = node.lineno
                scope.names[name] = self._changed(operation, old, value)
            case ast.Subscript(value=owner, slice=key):
                owner, key = self.evaluate(owner, scope), self.evaluate(key, scope)
                value = self.evaluate(node.value, scope)
                state().line = node.lineno
                if not isinstance(owner, Array):
                    words = f"an entry of {type(owner).__name__} changed in place"
                    raise NotRead(words)
                key = key if isinstance(key, tuple) else (key,)
                _in_place(indexed(owner, key, write=True), operation, value)
            case _:
                raise NotRead("an attribute that is changed in place")

    def _changed(self, operation, old, value):
        """What a name holds after name op= value."""
        match old:
            case Array() if old.mutable:
                return _in_place(old, operation, value)
            case Array() if not old.memory.scalar:
                raise NotRead("a change of an array without axes")
            case list():
                raise NotRead("a list that grows by +=")
        return self.values.operate(operation, old, value)

    def read_For(self, node, scope):
        """A loop over values, or over all rows or columns."""
        if node.orelse:
            raise NotRead("for with else")
        items = self.evaluate(node.iter, scope)
        if not (isinstance(items, Rows) and items.shared):
            items = iterated(items)
        if isinstance(items, Rows):
            self._all_turns(node, items, scope)
            return
        for count, item in enumerate(items):
            if count > LONGEST:
                raise NotRead("a loop that goes on and on")
            self.assign(node.target, item, scope)
            self.execute(node.body, scope)

    def _all_turns(self, node, rows, scope):
        """A loop over all rows, or columns: its body once."""
        own, sums = local_names([node.target, *node.body], in_place=False), []
        for name in local_names(node.body) - own:
            value = scope.names.get(name)
            if is_number(value) or isinstance(value, Array) and not value.mutable:
                scope.names[name] = _running(value)
                sums.append(name)
            elif not isinstance(value, Array):
                scope.names.pop(name, None)
        turn = Turn(rows.size, rows.shared)
        state().loops.append(turn)
        for name in own:
            scope.names.pop(name, None)
        self.assign(node.target, rows.item(turn), scope)
        try:
            self.execute(node.body, scope)
        except Returned:
            raise NotRead("a return from a loop over rows") from None
        state().loops.pop()
        for name in own:
            scope.names.pop(name, None)
        for name in sums:
            scope.names[name] = _added_up(scope.names[name])

    # expressions

    def value_BinOp(self, node, names):
        """An operation of two values, whose digits may cancel in its line."""
        left = self.evaluate(node.left, names)
        right = self.evaluate(node.right, names)
        state().line = node.lineno
        return self.values.operate(type(node.op).__name__, left, right)

    def value_Name(self, node, scope):
        """What a name stands for; of a running sum its value, since a number has no other."""
        value = scope.load(node.id)
        if isinstance(value, Array) and value.memory.cell:
            return scalar(copied(value))
        return value

    def value_Dict(self, node, scope):
        """A dict whose keys are texts."""
        pairs = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.evaluate(key, scope) if key is not None else None
            if not isinstance(name, str | DType):
                raise NotRead("a dict whose keys are no texts and no dtypes")
            pairs[name] = self.evaluate(value, scope)
        return pairs

    def value_JoinedStr(self, node, scope):
        """A text that is put together, of which a launcher's log or error is made."""
        if state().way is None:
            raise NotRead("a text that is put together")
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.evaluate(part.value, scope)
        return Named("a text that is put together")

    def value_Lambda(self, node, scope):
        """A function without a name."""
        return self._function(node, scope)

    def either(self, test, node, scope):
        """A choice by the values of one entry: of the larger, or by a step function."""
        writes = state().writes
        a, b = self.evaluate(node.body, scope), self.evaluate(node.orelse, scope)
        if state().writes != writes:
            raise NotRead("a choice by values of what is written")
        larger = ast.Compare(node.body, [ast.Gt()], [node.orelse])
        if ast.dump(node.test) == ast.dump(larger):
            return elementwise(sympy.Max, a, b)
        return chosen(test, a, b)

    def value_BoolOp(self, node, scope):
        """`and` and `or`."""
        stop = isinstance(node.op, ast.Or)
        for part in node.values[:-1]:
            value = self.evaluate(part, scope)
            if self.values.decided(value) == stop:
                return value
        return self.evaluate(node.values[-1], scope)

    def value_UnaryOp(self, node, scope):
        """`not`, a sign, or `~` of truth values."""
        match node.op:
            case ast.UAdd() | ast.Invert():
                value = self.evaluate(node.operand, scope)
                return self.values.unary(type(node.op).__name__, value)
        return super().value_UnaryOp(node, scope)

    def value_Attribute(self, node, scope):
        """An attribute."""
        return self.attribute(self.evaluate(node.value, scope), node.attr)

    def attribute(self, owner: Any, name: str) -> Any:
        """owner.name."""
        match owner:
            case Module(path=path):
                return self._of_module(f"{path}.{name}")
            case DType(library="numpy") if name == "type":
                return owner
            case Context():
                return self._of_context(owner, name)
            case Instance(attributes=attributes) if name in attributes:
                return attributes[name]
            case Instance(layer=layer) if name in layer.methods:
                return partial(self._of_layer, layer.methods[name], owner)
            case Instance(layer=layer) if self._is_unset(name):
                raise Wrong(f"an AttributeError: {layer.name} has no {name}")
            case Fields(values=values) if name in values:
                return values[name]
            case Largest() if name == "values":
                return owner[0]
            case int() | Scalar(kind="int") if name == "bit_length" and state().way:
                return partial(number, bits_of(owner), "int")
            case FunctionClass() if name == "apply":
                return partial(self.apply, owner)
            case FunctionClass(methods=methods) if name in methods:
                return methods[name]
            case dict() if name in ("items", "keys", "values", "get"):
                return partial(of_dict, owner, name)
            case list() if name == "append" and not state().loops:
                return partial(owner.append)
        return self.values.attribute(owner, name)

    def _is_unset(self, name):
        """Whether neither torch.nn.Module nor a line of the text gives a layer an attribute.

        For a layer that sets it elsewhere. It stops `self.BLOCK` that no line sets.
        """
        is_own = _is_of_module(name) or name == "training" or name.startswith("_")
        if not self.source or self.source.hidden or is_own:
            return False
        for node in ast.walk(self.source.tree):
            is_stored = isinstance(getattr(node, "ctx", ast.Store()), ast.Store)
            names = [getattr(node, part, "") for part in ("attr", "id", "name")]
            if is_stored and name in names:
                return False
            if isinstance(node, ast.Constant) and node.value == name:
                return False
        return True

    def _of_layer(self, method, instance, *args):
        return self.call(method, [instance, *args])

    def _of_module(self, path):
        if state().way and path in HOST:
            return HOST[path]
        if path in KNOWN:
            if self.values.live:
                check_member(path)
            return KNOWN[path]
        if any(key.startswith(f"{path}.") for key in (*KNOWN, *HOST)):
            return Module(path)
        library, _, name = path.rpartition(".")
        if state().way and self.depth and name not in LIBRARIES.get(library, (name,)):
            raise Wrong(f"an AttributeError: {library} has no {name}")
        raise NotRead(path)

    def _of_context(self, owner, name):
        if name in CALLED:
            if self.phase != owner.phase:
                raise NotRead(f"ctx.{name} in backward, where it changes nothing")
            return partial(getattr(owner, name))
        if name == "saved_tensors":
            if self.phase == owner.phase:
                raise NotRead("ctx.saved_tensors before backward, where it is empty")
            return owner.saved
        if name == "needs_input_grad":
            if owner.flags is None:
                raise NotRead("needs_input_grad of a Function that a program calls")
            self.asked = True
            return owner.flags
        if name in owner.attributes:
            value = owner.attributes[name]
            if self.phase == BACKWARD:
                check_constant(f"ctx.{name}", value, arrays=True)
            return value
        raise NotRead(f"ctx.{name}")

    def _comprehension(self, node, scope):
        generator, *more = node.generators
        if more or generator.is_async:
            raise NotRead("a comprehension over two things")
        items = iterated(self.evaluate(generator.iter, scope))
        inner = Scope(scope, local_names([generator.target]), self)
        if isinstance(items, Rows):
            if generator.ifs:
                raise NotRead("a comprehension over some rows")
            turn = Turn(items.size)
            state().loops.append(turn)
            self.assign(generator.target, items.item(turn), inner)
            entry = self.evaluate(node.elt, inner)
            if not is_number(entry):
                if turn not in floats(entry, "a list").memory.born:
                    entry.memory.fixed = "what a list has views of"
                entry = copied(entry)
            state().loops.pop()
            return Listed(turn, entry)
        values = []
        for item in items:
            self.assign(generator.target, item, inner)
            if all([self._holds(test, inner) for test in generator.ifs]):
                values.append(self.evaluate(node.elt, inner))
        return values

    value_ListComp = _comprehension

    def value_DictComp(self, node, scope):
        """A dict of what a loop gives."""
        pairs = ast.Tuple([node.key, node.value], ast.Load())
        items = self._comprehension(ast.ListComp(pairs, node.generators), scope)
        if not isinstance(items, list) or not all(type(key) is str for key, _ in items):
            raise NotRead("a dict whose keys are no texts")
        return dict(items)

    # calls

    def value_Call(self, node, scope):
        """The value of a call."""
        target = self.evaluate(node.func, scope)
        if isinstance(target, Launched) and node is not self.statement:
            # the compiled kernel on a GPU, None in the interpreter
            raise NotRead("what a launch returns is used")
        match node:
            case ast.Call(args=[ast.GeneratorExp() as values], keywords=[]) if (
                isinstance(target, Known)
            ):
                return target(self._comprehension(values, scope))
        arguments = self.arguments(node, scope)
        state().line = node.lineno
        return self.call(target, *arguments)

    def call(self, target: Any, args: list, options: dict | None = None) -> Any:
        """The value of a call."""
        options = options or {}
        match target:
            case Known():
                return target(*args, **options)
            case Function():
                return self._call_function(target, args, options)
            case Launched():
                return self.caller.launch(target, args, options)
            case Quiet():
                return None
            case partial() if not options:
                return target(*args)
            case DType() if len(args) == 1 and not options:
                return of_dtype(target, args[0])
        name = getattr(target, "name", type(target).__name__)
        raise NotRead(f"a call of {name}")

    def _call_function(self, function, args, options):
        if function.wrapper:
            return self._call_function(function.wrapper, args, options)
        if self.depth > DEEPEST:
            raise NotRead("calls that go on and on")
        node = function.node
        body = [ast.Return(node.body, lineno=node.lineno)]
        if isinstance(node, ast.FunctionDef):
            body = node.body
        scope = Scope(function.scope, local_names(body), self)
        for part in ast.walk(node):
            if isinstance(part, ast.Yield | ast.YieldFrom):
                raise NotRead("a generator")
            if isinstance(part, ast.Global | ast.Nonlocal):
                raise NotRead("a name of another function that is changed")
        values = bound_arguments(node.args, args, options, function.defaults)
        scope.local |= set(values)
        scope.names |= values
        self.depth += 1
        try:
            result = self.returned(body, scope)
        except LeftOut as reason:
            _check_alone(reason, node, scope)
            raise
        finally:
            self.depth -= 1
        if any("_op" in ast.unparse(d) for d in getattr(node, "decorator_list", ())):
            _check_fresh(result, values.values())
        return result

    def _set_by_decorator(self, kernel, setting, values):
        """What a function of triton.heuristics gives."""
        scope = Scope(kernel.scope, {setting.others}, self)
        scope.names[setting.others] = values
        return self.evaluate(setting.value, scope)

    def call_by_names(self, function: Function, values: dict[str, Any]) -> Any:
        """The value of a call with a value for each name; the first parameters may have none for a call."""
        options = dict(values)
        args = []
        for parameter in function.node.args.posonlyargs:
            name = parameter.arg
            args.append(options.pop(name, function.defaults.get(name)))
        return self.call(function, args, options)

    def forward(
        self, kind: FunctionClass, args: list, flags: tuple[bool, ...] | None = None
    ) -> tuple[Any, Context]:
        """What forward of an autograd Function returns, and its ctx; flags: as of Context."""
        context = Context(flags, self.phase)
        if "setup_context" in kind.methods:
            result = self.call(kind.methods["forward"], args)
            self.call(kind.methods["setup_context"], [context, tuple(args), result])
        else:
            result = self.call(kind.methods["forward"], [context, *args])
        if self.infers and (context.saved or context.attributes):
            # torch refuses to save what is made in it
            reason = NotRead("torch.inference_mode() beside an autograd Function")
            reason.line = kind.methods["forward"].node.lineno
            raise reason
        return result, context

    def apply(self, kind: FunctionClass, *args: Any) -> Any:
        """What Function.apply returns; torch passes what backward says through it, not the derivative."""
        state().cut = True
        result = self.forward(kind, list(args))[0]
        results_of(result)
        return result


def _check_alone(reason, function, scope):
    """Accuses no launch of what another statement may write.

    For `kernel[(M // 2,)](x, y, 0)` before a launch for the other rows, and for a launch in a loop. A launch whose y
    no other statement of the launcher hands on, or writes into, stays wrong.
    """
    names = set()
    for name, value in scope.names.items():
        if isinstance(value, Array) and any(value.memory is t for t in reason.tensors):
            names.add(name)
    uses = 0
    for node in _beside(function, reason.line):
        match node:
            case ast.For() | ast.While():
                uses += reason.line in {getattr(n, "lineno", 0) for n in ast.walk(node)}
            case ast.Call(func=ast.Attribute(attr=name)) if name in CALLED:
                continue
            case ast.Call(args=args, keywords=options):
                handed = [*args, *(option.value for option in options)]
                uses += any(names & _tensors_in(argument) for argument in handed)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                uses += name in names
    if uses > 1:
        unread = NotRead(f"{reason}, unless another statement writes them")
        unread.line = reason.line
        raise unread from None


def _beside(node, line) -> Iterator[ast.AST]:
    """All nodes of a function, but those of branches that do not run where a line runs."""
    yield node
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If):
        for way in (node.body, node.orelse):
            if way and way[0].lineno <= line <= way[-1].end_lineno:
                parts = [node.test, *way]
    for part in parts:
        yield from _beside(part, line)


def _tensors_in(node):
    """The names in an argument, but those of which only a shape or a stride is asked."""
    asked = {
        id(part.value)
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and part.attr in LAYOUT
    }
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and id(part) not in asked
    }


def _check_fresh(result, arguments):
    """Refuses an operator of torch's that returns an argument, or a view of one, or one tensor twice."""
    taken = [id(value.memory) for value in arguments if isinstance(value, Array)]
    made = [id(value.memory) for value in flat(result) if isinstance(value, Array)]
    if len(set(made)) < len(made) or set(made) & set(taken):
        raise NotRead("an operator that returns an argument, or one tensor twice")


def of_dict(values: dict, name: str, *args: Any) -> Any:
    """What dict.items, keys, values and get return."""
    if name == "get":
        return values.get(*args)
    return list(getattr(values, name)())


def results_of(outputs: Any) -> list[Array]:
    """The results of an autograd Function's forward as torch takes them.

    torch takes a tuple alone apart: a list or a dict of tensors leaves it without a graph. One tensor that is returned
    twice is one node of the graph, to which torch gives the cotangents of both places in one place.
    """
    if isinstance(outputs, list | dict | Listed):
        raise Wrong(
            f"forward returns a {type(outputs).__name__.lower()}, through which torch passes "
            "no gradient; return a tuple"
        )
    results = list(outputs) if isinstance(outputs, tuple) else [outputs]
    for value in results:
        if not isinstance(value, Array) or value.kind != "float":
            raise NotRead(f"a result of forward that is {type(value).__name__}")
    if len(set(map(id, results))) < len(results):
        raise NotRead(
            "forward returns one tensor twice, whose gradients torch mixes up"
        )
    return results


def gradients_of(
    returned: Any, arguments: Sequence[Any], flags: Sequence[bool], needed: int
) -> list[Array | None]:
    """The gradients of a Function's arguments as torch takes them from what its backward returns.

    torch takes a tuple alone apart, and counts a list as one gradient. It drops what is None past the arguments, and
    the gradient of what needs none. None counts as 0.

    Args:  flags: for every argument whether its gradient is needed; needed: how many have no default
    """
    gradients = list(returned) if isinstance(returned, tuple) else [returned]
    for value in gradients:
        if not isinstance(value, Array | None):
            kind = value.kind if isinstance(value, Scalar) else type(value).__name__
            words = f"backward returns {kind} in place of a gradient"
            raise Wrong(f"{words}; torch takes a tuple of tensors and None")
    count = len(arguments)
    more = [value for value in gradients[count:] if value is not None]
    if len(gradients) < count or more:
        words = f"backward returns {len(gradients)} gradients of {count} arguments"
        if needed <= len(gradients) < count:
            raise NotRead(f"{words}, of which some have defaults: call it without them")
        raise Wrong(words)
    result = []
    for value, argument, flag in zip(gradients, arguments, flags, strict=False):
        if value is not None and not isinstance(argument, Array):
            raise NotRead("a gradient of an argument that is taken for a number")
        if value is None and flag:
            state().words.append("None in place of a gradient counts as 0")
            value = like(argument, argument.shape, sympy.S.Zero)
        if flag:
            _check_gradient(floats(value, "a gradient"), argument)
        result.append(value if flag else None)
    return result


def _check_gradient(value, argument):
    if value.shape != argument.shape:
        words = f"a gradient of the shape {value.shape}, needs {argument.shape}"
        if broadcast(value.shape, argument.shape) == value.shape:
            raise NotRead(f"{words}; torch adds it up to that")
        raise Wrong(words)


def flat(outputs: Any) -> Iterator[Any]:
    """The values that a program returns, one after the other."""
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, tuple | list):
        for value in outputs:
            yield from flat(value)
    else:
        yield outputs


def _as_written(value, view):
    """The shape of a value without the axes of one entry before those of the view that it is assigned to.

    For `y[i] = r[None]`, which NumPy, Numba and torch take. It stops `y[i] = r[:, None]`, and an axis in an entry.
    """
    shape = value.shape
    while len(shape) > len(view.shape) > 0 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _operand(target, value):
    """A value that is written into an array, as an array."""
    if is_number(value):
        return array((), plain(value), target.library, target.dtype)
    value = floats(value, "a write")
    if value.library != target.library:
        raise NotRead("a torch tensor written into a NumPy array, or the reverse")
    moved_on = (value.axes, value.turns) != (target.axes, target.turns)
    if value.memory is target.memory and moved_on:
        raise NotRead("an array that is written from another view of itself")
    return value


def _in_place(target, operation, value):
    """What target op= value leaves: the target, or a running sum that has got a shape."""
    cell = floats(target, "a change in place").memory.cell
    if cell:
        kind = "array" if isinstance(value, Array) else kind_of(value)
        cell = max(cell, kind, key=CELLS.index)
    value = _operand(target, value)
    if operation not in ARITHMETIC:
        raise NotRead(f"{operation} in place")
    shape = broadcast(target.shape, value.shape)
    if shape != target.shape:
        if not target.memory.cell:
            raise Misfit("a change in place by what has another shape")
        target = _grown(target, shape)
    target.memory.cell = cell
    if target.memory.written:
        note_digits(operation, target.unnoted(), value.e, target.dtype)
    use_rounded(target, value)
    if operation in ("Add", "Sub"):
        target.write(value.e if operation == "Add" else -value.e, add=True)
    else:
        e = value.e
        target.write(ARITHMETIC[operation](target.unnoted(), e))
    return target


def _running(value):
    """A number as a cell of its own, to which a loop adds."""
    if isinstance(value, Array):
        if not value.memory.scalar:
            raise NotRead("a change of an array without axes")
        return array((), value.e, value.library, value.dtype, cell="array")
    return array((), plain(value), state().library, "mixed", cell=kind_of(value))


def _added_up(cell):
    """A running sum after its loop: a number, or the array that the first turn has made."""
    kind, cell.memory.cell = cell.memory.cell, ""
    if kind != "array":
        return number(cell.e, kind)
    return scalar(cell)


def _grown(cell, shape):
    """A running sum of arrays, which was a number."""
    new = array(shape, cell.memory.e, cell.library, cell.dtype, cell="array")
    for name in ("born", "read_in", "written_in"):
        setattr(new.memory, name, getattr(cell.memory, name))
    return new
