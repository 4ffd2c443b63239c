"""What a program has besides numbers, arrays and tuples: functions, classes, layers and modules, as they are read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..symbolic.symbols import N, eps
from .arrays import Array, NotRead, Scalar, floats
from .nodes import nodes_of
from .syntax import positional
from .tables.libraries import HOST, MEMBERS
from .tables.torch import GUARDS


@dataclass(eq=False)
class Named:
    """What is known by its name alone: torch.autograd.Function, torch.no_grad."""

    name: str


FUNCTION, LAYER, TENSOR, ONCE, STATIC, QUIET, INFERENCE, ERRSTATE = map(
    Named,
    (
        *("Function", "Module", "Tensor", "once_differentiable", "staticmethod"),
        *("quiet", "inference", "errstate"),
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
    **{f"torch.cuda.{name}": value for name, value in GUARDS.items()},
    "torch.nn.Module": LAYER,
    **{path: HOST[path] for path in HOST if path.startswith("torch.nn.")},
    "torch.Tensor": TENSOR,
    "numbers.Integral": Named("int"),
}


# what a model's settings call the number of columns, and eps
SIZES_OF_MODELS = ("hidden_size", "hidden_dim", "d_model", "n_embd", "embed_dim", "dim")
EPSILONS_OF_MODELS = (
    "eps",
    "rms_norm_eps",
    "layer_norm_eps",
    "norm_eps",
    "norm_epsilon",
)
OF_CONFIG = {*SIZES_OF_MODELS, *EPSILONS_OF_MODELS}


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
           home: the layer in whose text it stands, by which super() is told
    """

    node: ast.FunctionDef | ast.Lambda
    scope: Any
    defaults: dict[str, Any]
    wrapper: Function | None = None
    home: Layer | None = None

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters."""
        return positional(self.node.args)

    def handed(self, call: ast.Call) -> dict[str, ast.expr]:
        """{parameter: what a call of the method hands it}, by the text; self is left out."""
        nodes = dict(zip(self.parameters[1:], call.args, strict=False))
        return nodes | {word.arg: word.value for word in call.keywords}


@dataclass(eq=False)
class FunctionClass:
    """A subclass of torch.autograd.Function: its name and its static methods."""

    name: str
    methods: dict[str, Function]


HANDED_ON = ("return self.forward(*args, **kwargs)", "return self.forward(*args)")


@dataclass(eq=False)
class Layer:
    """A subclass of torch.nn.Module, or a class of no base: its name and its methods.

    Args:  switches: arguments of __init__ that only say whether the parameter of their name is there
           plain: whether it has no base, so that it may keep what backward needs as attributes
           static: its static methods; base: the layer that it is made of, None for torch.nn.Module alone
    """

    name: str
    methods: dict[str, Function]
    switches: set[str]
    plain: bool = False
    static: dict[str, Function] = field(default_factory=dict)
    base: Layer | None = None

    @property
    def forward(self) -> Function | None:
        """What is called of it: `__call__` of a plain class, unless that hands all on to forward."""
        call = self.methods.get("__call__") if self.plain else None
        if call and not call.node.args.vararg:
            return call
        body = ast.unparse(call.node.body[-1]) if call else HANDED_ON[0]
        return self.methods.get("forward") if body in HANDED_ON else call

    def writers(self, name: str) -> set[str]:
        """The methods besides __init__ that write an attribute."""
        return {
            method
            for method, function in self.methods.items()
            for node in nodes_of(function.node)
            if method != "__init__"
            and isinstance(getattr(node, "ctx", None), ast.Store)
            and getattr(node, "attr", "") == name
        }

    def not_called(self) -> set[str]:
        """The methods that no other method calls, as a caller alone may."""
        called = {"__init__", "forward", "__call__", "backward"}
        for function in self.methods.values():
            for node in nodes_of(function.node):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    called.add(node.func.attr)
        return self.methods.keys() - called


class LastingList(list):
    """A list that the __init__ of a layer has made: it lasts from call to call, so nobody may change it."""


class LastingDict(dict):
    """A dict that the __init__ of a layer has made."""


def lasting(value: Any) -> Any:
    """A value that __init__ has made, whose lists and dicts nobody changes from now on."""
    if isinstance(value, list):
        return LastingList(map(lasting, value))
    if isinstance(value, tuple):
        return tuple(map(lasting, value))
    if isinstance(value, dict):
        return LastingDict({name: lasting(part) for name, part in value.items()})
    owner = getattr(getattr(value, "func", value), "__self__", None)
    if isinstance(owner, list | dict):
        raise NotRead("a method of a list or dict that __init__ made")
    return value


@dataclass(frozen=True)
class Config:
    """An object of a model's settings, of which one size is N and one epsilon is eps.

    Args:  names: {N or eps: what the program calls it}
    """

    names: dict[Scalar, str] = field(default_factory=dict, compare=False)

    def __repr__(self):
        return "a size N, and an eps"

    def attribute(self, name: str) -> Scalar:
        """Its size, or its eps.

        Raises:  NotRead for another name of one of them, as layer_norm_eps beside norm_eps
        """
        value = Scalar(N, "int")
        if name in EPSILONS_OF_MODELS:
            value = Scalar(eps, "float")
        first = self.names.setdefault(value, name)
        if first != name:
            raise NotRead(f"{name} and {first} of one object, which may be two numbers")
        return value


@dataclass(eq=False)
class Live:
    """A torch.nn.Module of this process.

    Args:  look: what it has under a name: a plain value, or a method's function; of the classes above one, where one is
           given; tensors: {name of a parameter or buffer: its Input}
           above: of super(), the class in which it stands; None for the module itself
    """

    look: Callable[[str, type | None], Any]
    tensors: Mapping[str, Any]
    above: type | None = None


@dataclass(eq=False)
class Method:
    """A method; owner: the layer that it is called of."""

    function: Function
    owner: Any


@dataclass(eq=False)
class Above:
    """What super() is in a method of a layer. Args:  layer: whose methods it has; owner: of which they are called"""

    layer: Layer
    owner: Instance


@dataclass(eq=False)
class Instance:
    """A layer that is made.

    Args:  ready: whether the __init__ of torch.nn.Module was called; made: whether its own has ended
           initial: the attributes that its __init__ gives another value than None
    """

    layer: Layer
    attributes: dict[str, Any] = field(default_factory=dict)
    initial: set[str] = field(default_factory=set)
    ready: bool = False
    made: bool = False


def flat(outputs: Any) -> Iterator[Any]:
    """The values that a program returns, one after the other."""
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, tuple | list):
        for value in outputs:
            yield from flat(value)
    else:
        yield outputs
