"""A NumPy or torch function as equations, for every M and N."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

from sympy import Expr, Indexed, S, Symbol, evaluate

from ..symbolic.patience import SECONDS, limited
from ..symbolic.proof import lettered
from ..symbolic.symbols import M, N, eps
from .arrays import (
    AXES,
    UNNAMED,
    Array,
    NotRead,
    PerHead,
    Scalar,
    Split,
    State,
    array,
    as_result,
    by_rows,
    like,
    state,
    tracing,
)
from .binding import letter
from .classes import gradients_of, results_of
from .definitions import ALSO, GRADIENT, LETTERS, is_target
from .genuine import member
from .host import is_super_init
from .interpreter import Raised, Reader
from .introspection import is_kernel
from .nodes import nodes_of
from .python_objects import Function, FunctionClass, Layer, Unread, flat
from .scopes import BACKWARD
from .sizes import Way
from .source import is_jit
from .tables.libraries import FLOATS
from .text import TextOfFile, module_of
from .values import Unsupported, unfollowed

# what a forward returns y in, besides its cache
BESIDE = "a tuple beside what a backward takes"
# how many layers one makes in another
DEEPEST = 3
# the gradients that a class may keep as attributes
RETURNED = set(GRADIENT.values())


@dataclass
class Trace:
    """What a program was read as.

    Args:  outputs: what it returns, one after the other, with None where it is a gradient of no tensor
           names: of the outputs, where the program has names for them, else None
           container: what they are returned in, as container_of says it
           gradients: of an autograd Function, {argument of its forward: its gradient}
           written: the arguments that it writes over; constants: {name in its module: its value} that are eps
           noted: the State of the trace
           passed: of an autograd Function, the parameters of its backward without ctx, None for another kind of them
           marked: for every result of its forward whether it is marked as not differentiable
           asked: whether it looks at needs_input_grad; defaults: {parameter: its default}, of those not given
           differs: the dtype that it is of, where it is another formula for another one; it is not proved then
           has_cache: whether it returns an array and a tuple, list or dict
           unjudged: the attributes that a backward writes, and whose names are of no gradient
    """

    outputs: list
    names: list[str] | None
    container: str
    gradients: dict[str, Any]
    written: list[str]
    constants: dict[str, Expr]
    noted: State
    passed: list[str] | None
    marked: list[bool]
    asked: bool
    defaults: dict[str, Any]
    differs: str = ""
    has_cache: bool = False
    unjudged: Sequence[str] = ()

    def without_cache(self) -> Trace:
        """Its first result alone, of a forward that returns what its backward takes besides.

        For `return out, cache`. It stops a claim about what no definition has; a cache is looked at where it is used.
        """
        if not self.has_cache:
            return self
        names = self.names and self.names[:1]
        outputs = self.outputs[:1]
        return replace(self, outputs=outputs, names=names, container=BESIDE)


@dataclass(frozen=True)
class Input:
    """What an argument is.

    Args:  head: its tensor or scalar, as x[i, j]; or an expression, as 1/rstd[i], whose conditions the trace notes
           shape: in 1, M and N; is_free: whether nothing else is said of it
    """

    head: Expr
    shape: tuple[Expr, ...] = ()
    is_free: bool = False

    @property
    def is_target(self) -> bool:
        """Whether it is the columns of targets, which are integers, and of which there is no gradient."""
        return is_target(self.head)

    def value(self) -> Array | Scalar:
        """The argument of a trace."""
        if not isinstance(self.head, Indexed):
            state().domain.append(self.head)
        if not self.shape:
            return Scalar(self.head, "float")
        axes = zip(self.shape, reversed(AXES[: len(self.shape)]), strict=True)
        letters = {LETTERS[size]: letter for size, letter in axes if size != 1}
        own = self.head.xreplace(letters)
        value = array(self.shape, own, state().library, state().dtype)
        if self.is_target:
            value.memory.kind = "int"
        way = state().way
        if way is None:
            return value
        value.memory.argument = True
        if way.apart and self.shape == (M, N):
            value.memory.row_stride = letter(f"{self.head.base}_row_stride")
        if way.leading and self.shape[:1] == (M,):
            return Split(value)
        return PerHead(value) if way.heads and self.shape == (N,) else value


def target_of(reader: Reader, program: Any, name: str = "") -> Function | FunctionClass:
    """The function, or the autograd Function, that a text or an object is.

    Args:  name: of the function in a text; without one its last
    """
    if isinstance(program, str):
        names = reader.modules.names
        names = names or reader.modules.read(program, getattr(program, "file", None))
        names = names.names
        kinds = Function | FunctionClass | Layer
        functions = [key for key, value in names.items() if isinstance(value, kinds)]
        unread = [key for key, value in names.items() if isinstance(value, Unread)]
        name = name or next(reversed(functions or unread), "")
        if isinstance(names.get(name), Unread):
            reason = NotRead(names[name].why)
            reason.line = names[name].line
            raise reason
        if not functions:
            raise ValueError("program: got a text without functions, needs one")
        if name not in functions:
            raise ValueError(
                f"name: got {name!r}, needs a function of the text: {functions}"
            )
        return names[name]
    base = member("torch.autograd.Function")
    kind = program if isinstance(program, type) else type(program)
    if kind is program and base and issubclass(kind, base):
        return reader.introspection.admit(program)
    if not isinstance(program, FunctionType):
        name = kind.__name__
        raise TypeError(
            f"program: got {name}, needs a function, a subclass of "
            "torch.autograd.Function, or the text of a module; a layer is read from "
            f"its text, as 'file.py::{name}'"
        )
    return reader.introspection.function_of(program)


def library_of(program: Any, others: str = "numpy", said: str | None = None) -> str:
    """The library of a program: the one that is said where it names both, else torch where it names that.

    For a forward beside a program. It stops x.var(1) of a text that imports both, or names neither, from being torch's
    beside a program of NumPy arrays.

    Args:  others: of a program that names neither library
    """
    named = _libraries(program)
    if said in named:
        return said
    if "torch" in named:
        return "torch"
    return "numpy" if named else others


def _libraries(program):
    """The names among numpy and torch that a program reads."""
    if launches(program) or not isinstance(program, str | FunctionType):
        return {"torch"}
    if isinstance(program, str):
        named = {"numpy", "torch"}.intersection(_imported(program))
        return named or {"torch"}.intersection(_spelled(program))
    functions, named = [program], set()
    for function in functions:
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType):
                named.add(value.__name__.partition(".")[0])
            if isinstance(value, FunctionType) and value not in functions:
                functions.append(value)
    return named & {"numpy", "torch"}


def _spelled(text):
    """The library whose keywords a text has that names none, as x.mean(-1, keepdim=True) does."""
    calls = [node for node in nodes_of(module_of(text)) if isinstance(node, ast.Call)]
    keywords = {keyword.arg for call in calls for keyword in call.keywords}
    return {"torch"} if keywords & {"dim", "keepdim"} else set()


@lru_cache(maxsize=64)
def _imported(text):
    """The words of a text's imports."""
    nodes = nodes_of(module_of(text))
    imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    return re.findall(r"\w+", " ".join(map(ast.unparse, imports)))


@contextmanager
def followed() -> Iterator[None]:
    """Whatever goes wrong in reading is a NotRead."""
    try:
        with limited(SECONDS):
            yield
    except NotRead:
        raise
    except Exception as reason:
        unread = NotRead(unfollowed(reason))
        unread.line = getattr(reason, "line", None)
        raise unread from reason


def trace(
    program: Any,
    inputs: dict[str, Any],
    cotangents: Sequence[Input | None] = (),
    library: str = "numpy",
    name: str = "",
    flags: Mapping[str, bool] | None = None,
    way: Way | None = None,
) -> Trace:
    """A program's outputs for every M and N.

    Args:     program: a function, a subclass of torch.autograd.Function, or a module's text; name: of its function
              inputs: {parameter: Input, or a plain value}
              cotangents: of an autograd Function's outputs, None of one that is marked as not differentiable
              flags: {tensor: whether its gradient is needed}; all of them for None
              way: through the branches on sizes of a program that launches kernels
    Raises:   NotRead, with the line, for what is not followed; Wrong, one of it, for what is wrong in itself
    """
    arguments = program, inputs, cotangents, name, flags
    with tracing(library, UNNAMED, way) as noted, evaluate(True):
        try:
            with followed():
                traced = _traced(*arguments)
        except NotRead:
            if noted.dtypes <= {UNNAMED}:
                raise
    # nothing has another dtype than the arguments, and the program does not ask which
    if noted.dtypes <= {UNNAMED}:
        return traced
    traces, dtypes = [], []
    for dtype in FLOATS[library]:
        asked = way and way.asked
        with tracing(library, dtype, way), evaluate(True):
            try:
                with followed():
                    traces.append(_traced(*arguments))
                dtypes.append(dtype)
            except (Unsupported, Raised) as reason:
                # an error for a dtype at every size leaves that out, any other one sizes
                if isinstance(reason, Raised) and way.asked != asked:
                    raise
                unsupported = reason
    if not traces:
        raise unsupported
    if len(dtypes) < len(FLOATS[library]):
        traces[0].noted.narrowed[f"tensors of {', '.join(dtypes)}"] = None
    texts = list(map(_as_text, traces))
    if any(text != texts[0] for text in texts):
        traces[0].differs = dtypes[0]
    # x.float() is x itself in float32
    written = [name for trace_ in traces for name in trace_.written]
    traces[0].written = list(dict.fromkeys(written))
    noted = traces[0].noted
    # an operation of float64 loses no digit that a tensor of fewer bits has
    for trace_ in traces[1:]:
        lines, narrow = trace_.noted.cancelling, trace_.noted.narrow
        noted.cancelling = [line for line in noted.cancelling if line in lines]
        noted.narrow = [note for note in noted.narrow if note in narrow]
    return traces[0]


def _reader(program, symbols):
    """The reader of one trace; of a launcher's text one for all traces, which keeps the module's names."""
    shared = {} if state().way is None else state().way.shared
    if not isinstance(program, str) or not shared:
        return Reader(symbols)
    if symbols not in shared:
        shared[symbols] = Reader(symbols)
    reader = shared[symbols]
    reader.restart()
    return reader


def _as_text(traced):
    """What a program returns, as what can be compared."""
    values = [*traced.outputs, *traced.gradients.values()]
    for position, value in enumerate(values):
        if isinstance(value, Array):
            values[position] = value.shape, lettered(value.unnoted())
    return values, traced.marked, traced.asked


def _traced(program, inputs, cotangents, name, flags):
    reader = _reader(program, not any(_is_eps(value) for value in inputs.values()))
    target = target_of(reader, program, name)
    values, admit = {}, reader.introspection.admit
    for key, value in inputs.items():
        try:
            is_input = isinstance(value, Input)
            values[key] = value.value() if is_input else admit(value)
        except NotRead as reason:
            words = "a tensor's name, a number, a flag or None"
            raise NotRead(f"{key}: {reason}; needs {words}") from None
    if isinstance(target, FunctionClass):
        return _of_class(reader, target, values, cotangents, flags)
    defaults = _defaults(target, values)
    if isinstance(target, Layer):
        outputs, layer = reader.classes.layer(target, values)
        if "backward" in target.methods and target.plain:
            return _with_backward(reader, layer, outputs, values, defaults)
        if outputs is None and target.plain:
            raise NotRead(f"{target.name}, which returns nothing")
        target = target.forward
    else:
        outputs = reader.call_by_names(target, values)
    written, container = _written(values), container_of(outputs)
    results = list(map(as_result, flat(outputs)))
    if isinstance(outputs, dict):
        names = list(outputs)
    elif outputs is None and written and state().way:
        names, container = _handed(inputs, written), "its arguments"
        results = [as_result(values[key]) for key in names]
    else:
        names = names_returned(target, len(results))
    has_cache = False
    match outputs:
        case (Array(), tuple() | dict() | list()):
            has_cache = True
    return Trace(
        results, names, container, {}, written, reader.used, state(), None, [], False,
        defaults, has_cache=has_cache,
    )  # fmt: skip


def _with_backward(reader, layer, y, values, defaults):
    """The trace of a plain class: what forward returns, backward, and the gradients that it keeps as attributes."""
    backward = layer.layer.methods["backward"]
    arguments = {name: values[name] for name in backward.parameters if name in values}
    returned, attributes = reader.classes.backward(layer, arguments)
    gradients = list(returned) if isinstance(returned, tuple) else [returned]
    names = names_returned(backward, len(gradients)) or ["dx"]
    if not isinstance(y, Array) or len(names) != len(gradients):
        raise NotRead(f"{layer.layer.name}, whose results are not told by their names")
    if returned is None:
        names = gradients = []
    unjudged = [
        name
        for name, value in attributes.items()
        if ALSO.get(name) not in RETURNED or not isinstance(value, Array)
    ]
    attributes = {k: v for k, v in attributes.items() if k not in unjudged}
    results = [as_result(value) for value in (y, *gradients, *attributes.values())]
    return Trace(
        results, ["y", *names, *attributes], "", {}, _written(values),
        reader.used, state(), None, [], False, defaults, unjudged=unjudged,
    )  # fmt: skip


def _of_class(reader, target, values, cotangents, flags):
    forward, backward = target.methods["forward"], target.methods.get("backward")
    first = int("setup_context" not in target.methods)
    defaults = _defaults(forward, values)
    names = forward.parameters[first:]
    while names and names[-1] in defaults:
        names.pop()
    arguments = [(defaults | values)[key] for key in names]
    chosen = flags or {}
    flags = tuple(
        isinstance(argument, Array)
        and argument.kind == "float"
        and chosen.get(key, True)
        for key, argument in zip(names, arguments, strict=True)
    )
    returned, context = reader.classes.forward(target, arguments, flags)
    outputs, container = _placed(forward, results_of, returned), container_of(returned)
    marked = [any(value is a for a in context.marked) for value in outputs]
    if sum(marked) < len(set(map(id, context.marked))):
        raise NotRead("what is marked as not differentiable is no result of forward")
    reader.phase, gradients, passed = BACKWARD, [], None
    if backward and not backward.node.args.vararg and not backward.defaults:
        passed = backward.parameters[1:]
    written = dict(values)
    if cotangents:
        given = []
        for value, cotangent in zip(outputs, cotangents, strict=True):
            gradient = like(value, value.shape, S.Zero)
            if cotangent is not None:
                # torch hands over a gradient of as many axes as the result has
                gradient = by_rows(cotangent.value())
                gradient = Split(gradient) if isinstance(value, Split) else gradient
            given.append(gradient)
        written |= {f"the gradient {k}": a for k, a in zip(passed, given, strict=True)}
        returned = reader.call(backward, [context, *given])
        needed = len(set(names) - forward.defaults.keys())
        values = returned, arguments, flags, needed
        gradients = _placed(backward, gradients_of, *values)
    gradients = dict(zip(names, gradients, strict=False))
    outputs = list(map(as_result, outputs))
    gradients = {name: as_result(value) for name, value in gradients.items()}
    return Trace(
        outputs, _field_names(forward), container, gradients,
        _written(written), reader.used, state(), passed, marked,
        reader.classes.asked, defaults,
    )  # fmt: skip


def container_of(outputs: Any) -> str:
    """What results are returned in, such as "a list"; "" for an array, and for a tuple of several."""
    if not isinstance(outputs, tuple | list | dict):
        return ""
    parts = outputs.values() if isinstance(outputs, dict) else outputs
    kind = type(outputs).__name__
    if any(isinstance(part, tuple | list | dict) for part in parts):
        return f"a {kind} of others"
    return "" if kind == "tuple" and len(outputs) > 1 else f"a {kind}"


def _field_names(forward):
    """The names that a forward returns, where they are those of a norm's results."""
    names = names_returned(forward) or [""]
    fields = {"y", "residual_out", "mean", "rstd"}.difference(forward.parameters)
    return names if set(names) <= fields else None


def _placed(function, check, *values):
    """What a check of a function's result gives; a refusal has the function's line."""
    try:
        return check(*values)
    except NotRead as reason:
        reason.line = reason.line or function.node.lineno
        raise


def _handed(inputs, written):
    """The arguments that are the memory of the results of a launcher that returns nothing.

    For `rms_norm(x, weight, out)`. It stops a launcher that writes over x, and not into out.
    """
    free = [key for key, value in inputs.items() if getattr(value, "is_free", False)]
    names = [key for key in written if key in free] if free else written
    if not names:
        raise NotRead(f"nothing is returned, and nothing written into {free[0]}")
    return names


def _defaults(target, values):
    """The defaults of parameters that are not given; of a layer, those of its __init__ and of its forward."""
    functions = [target]
    if isinstance(target, Layer):
        functions = _called(target).values()
    defaults = {}
    for function in functions:
        defaults |= function.defaults
    return {key: value for key, value in defaults.items() if key not in values}


def _written(values):
    """The names of arguments that are written over."""
    arrays = {key: v for key, v in values.items() if isinstance(v, Array)}
    return [key for key, value in arrays.items() if value.memory.changed]


def _is_eps(value):
    return isinstance(value, Input) and value.head == eps


def launches(program: Any) -> bool:
    """Whether a program has kernels of Triton's beside it, or in files of its package, which it may launch."""
    if isinstance(program, TextOfFile):
        words = _imported(program)
        # what it imports of its package may launch; a file of NumPy's does not
        return "numpy" not in words or not {"torch", "triton"}.isdisjoint(words)
    if isinstance(program, str):
        return _has_kernels(program)
    function = getattr(program, "forward", program)
    names = getattr(function, "__globals__", {})
    return any(map(is_kernel, names.values()))


@lru_cache(maxsize=64)
def _has_kernels(text):
    """Whether a text defines a kernel of Triton's."""
    nodes = nodes_of(module_of(text))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    wrappers = [wrapper for node in functions for wrapper in node.decorator_list]
    jits = list(map(ast.unparse, filter(is_jit, wrappers)))
    return bool(jits) and "triton" in " ".join([*_imported(text), *jits])


@dataclass
class Parameters:
    """What a program takes.

    Args:  names: of its parameters; of a layer those of __init__, what it trains, and those of forward
           needed: those without a default; defaults: {name: its default}
           is_class: whether it is an autograd Function
           columns: of a layer, the arguments of __init__ that are N, as its weight has N entries
           switches: of a layer, the arguments of __init__ that say whether the parameter of their name is there
           sizes, trained: of a layer, the arguments of its __init__, and what it trains
           plain: whether it is a class of no base
    """

    names: list[str]
    needed: list[str]
    defaults: dict[str, Any] = field(default_factory=dict)
    is_class: bool = False
    columns: list[str] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)
    sizes: list[str] = field(default_factory=list)
    trained: list[str] = field(default_factory=list)
    plain: bool = False


def parameters_of(program: Any, name: str = "") -> Parameters:
    """What a program takes; name: of the function in a text."""
    way = Way(apart=False) if launches(program) else None
    with tracing(library_of(program), "float64", way):
        try:
            target = target_of(Reader(), program, name)
        except (NotRead, TypeError, ValueError):
            raise
        except Exception as reason:
            raise NotRead(unfollowed(reason)) from reason
        if isinstance(target, Layer) and target.forward:
            return _parameters_of_layer(target)
    is_class = isinstance(target, FunctionClass)
    function, first = target, 0
    if "forward" not in getattr(target, "methods", ("forward",)):
        raise NotRead(f"{target.name}, which has no forward")
    if is_class:
        function = target.methods["forward"]
        first = int("setup_context" not in target.methods)
    arguments = function.node.args
    if arguments.vararg or arguments.kwarg:
        raise NotRead("a function with * in its parameters: name each of them")
    names = function.parameters[first:]
    if not is_class:
        names += [argument.arg for argument in arguments.kwonlyargs]
    needed = [key for key in names if key not in function.defaults]
    return Parameters(names, needed, function.defaults, is_class)


def _parameters_of_layer(layer):
    """What a layer takes, and what it trains.

    The number of entries of a weight is N, because it is bound as (N,): it fits no other number.
    """
    taken = Parameters([], [], _defaults(layer, ()), switches=layer.switches)
    for method, function in _called(layer).items():
        if function.node.args.vararg or function.node.args.kwarg:
            raise NotRead(f"{layer.name}.{method} with * in its parameters")
        own = function.parameters[1:]
        taken.names += own
        taken.needed += [name for name in own if name not in function.defaults]
        if method != "__init__":
            continue
        taken.sizes += own
        taken.plain = layer.plain
        for name, size in _trained(layer):
            if name not in layer.switches:
                taken.names.append(name)
                taken.needed.append(name)
                taken.trained.append(name)
            if size in own:
                taken.columns.append(size)
    repeated = {name for name in taken.names if taken.names.count(name) > 1}
    if repeated:
        raise NotRead(f"{layer.name}: {min(repeated)} is the name of two things")
    return taken


def _called(layer):
    """The methods of a layer that are called: the backward of a plain class, too."""
    methods = {"__init__": layer.methods.get("__init__"), "forward": layer.forward}
    if layer.plain:
        methods["backward"] = layer.methods.get("backward")
    return {name: method for name, method in methods.items() if method}


def _trained(layer, depth=0) -> Iterator[tuple[str, str]]:
    """(the name of a parameter that the __init__ of a layer makes, the name of its size where it has one).

    Those of the layers that it makes, too; of a plain class np.ones(size) is a parameter.
    """
    function = layer.methods.get("__init__")
    pattern = "Parameter$"
    if layer.plain:
        pattern = r"(np|numpy|torch)\.(ones|zeros)$"
    for node in nodes_of(function.node) if function else ():
        match node:
            case ast.Assign(
                [ast.Attribute(value=ast.Name(), attr=name)], call
            ) | ast.Call(
                ast.Attribute(attr="register_parameter"), [ast.Constant(name), call]
            ):
                call = getattr(call, "body", call)
            case ast.Call() if is_super_init(node) and function.home.base:
                yield from _trained_below(function.home.base, node, depth)
                continue
            case _:
                continue
        if not isinstance(call, ast.Call):
            continue
        called, entries = call.func, call.args
        if not re.search(pattern, ast.unparse(called)):
            kind = None
            with suppress(NotRead):
                kind = function.scope.reader.evaluate(called, function.scope)
            yield from _trained_below(kind, call, depth)
            continue
        if not layer.plain and _is_handed_over(name, entries, function):
            continue
        sizes = entries
        if not layer.plain:
            sizes = [size for entry in entries for size in getattr(entry, "args", ())]
        if len(sizes) == 1:
            sizes = getattr(sizes[0], "elts", sizes)
        yield name, getattr(sizes[0], "id", "") if len(sizes) == 1 else ""


def _trained_below(kind, call, depth):
    """As _trained, of a layer that a call in an __init__ makes, or makes ready."""
    is_layer = isinstance(kind, Layer) and "__init__" in kind.methods
    if not is_layer or depth >= DEEPEST:
        return
    arguments = kind.methods["__init__"].handed(call)
    # what is given as False: elementwise_affine, and bias
    values = {key: getattr(node, "value", True) for key, node in arguments.items()}
    for name, size in _trained(kind, depth + 1):
        if values.get(name, True) and values.get("elementwise_affine", True):
            yield name, getattr(arguments.get(size), "id", "")


def _is_handed_over(name, entries, function):
    """Whether a parameter is an argument of __init__ under its own name, which is used for nothing else.

    For self.weight = Parameter(weight). It stops two tensors of one name, of which training changes one.
    """
    nodes = [n for n in nodes_of(function.node) if isinstance(n, ast.Name)]
    uses = [n for n in nodes if n.id == name]
    return name in function.parameters and uses == list(entries)


def names_returned(target: Function, count: int | None = None) -> list[str] | None:
    """The names in the last return statement of a function, where it returns names.

    Args:  count: of the results, by which one of `return (dx, dw) if flag else (dx, dw, y)` is told
    """
    last = target.node.body
    if isinstance(last, list):
        last = last[-1]
    if isinstance(last, ast.Return):
        last = last.value
    choices = []
    for value in _alternatives(last):
        parts = getattr(value, "elts", [value])
        if not all(isinstance(part, ast.Name) for part in parts):
            return None
        choices.append([part.id for part in parts])
    if len(choices) > 1:
        choices = [names for names in choices if len(names) == count]
    return choices[0] if len(choices) == 1 else None


def _alternatives(node):
    """What a conditional expression may be."""
    if isinstance(node, ast.IfExp):
        return [*_alternatives(node.body), *_alternatives(node.orelse)]
    return [node]


def entry(a: Array, letters: Sequence[Symbol]) -> Expr:
    """The entry of a result at indices, one for each axis of more than one entry."""
    kept = [axis for axis, size in enumerate(a.shape) if size != 1]
    return a.unnoted().xreplace(dict(zip(map(a.letter, kept), letters, strict=True)))
