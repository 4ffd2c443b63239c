"""Classes of a program: autograd Functions with their ctx, and layers, whose forward and gradients are asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import partial
from inspect import getattr_static
from typing import Any

import sympy

from .arrays import LASTS, Array, NotRead, Scalar, Wrong, broadcast, floats, like, state
from .genuine import is_genuine, member
from .host import is_super_init
from .nodes import nodes_of
from .over_rows import Listed
from .python_objects import (
    FUNCTION,
    LAYER,
    Above,
    Context,
    Function,
    FunctionClass,
    Instance,
    Layer,
    Method,
    flat,
    lasting,
)
from .scopes import BACKWARD, SETUP, Scope, check_constant, local_names
from .tables.signatures import TrainedParameter

# what torch itself reads from a Function, or from its ctx
OF_TORCH = set(
    "apply backward boxed_grads_call clear_saved_tensors_on_access dirty_tensors forward "
    "generate_vmap_rule jvp mark_dirty mark_non_differentiable mark_shared_storage "
    "materialize_grads maybe_clear_saved_tensors metadata name needs_input_grad "
    "next_functions non_differentiable register_hook register_prehook requires_grad "
    "save_for_backward save_for_forward saved_for_forward saved_tensors saved_variables "
    "set_materialize_grads setup_context to_save vjp vmap".split()
)
# what torch.nn.Module has and a layer may not replace, as of torch 2.13: it calls them by itself, as _apply and
# register_parameter, or whoever uses the layer does, as eval, or it writes them, as training
OF_MODULE = set(
    "add_module apply bfloat16 buffers call_super_init children compile cpu cuda double "
    "dump_patches eval float get_buffer get_extra_state get_parameter get_submodule half "
    "ipu load_state_dict modules mtia named_buffers named_children named_modules "
    "named_parameters parameters register_backward_hook register_buffer "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_load_state_dict_post_hook "
    "register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ "
    "set_extra_state set_submodule share_memory state_dict to to_empty train training "
    "type xpu zero_grad "
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
# the methods with two underscores that a plain class may have
PLAIN = ("__init__", "__call__", "__repr__")
CALLED = ("save_for_backward", "mark_non_differentiable", "set_materialize_grads")
METHODS_READ = ("forward", "backward", "setup_context")
BUFFER = "register_buffer"
# what a method of a layer takes, besides None
REGISTERED = {"register_parameter": TrainedParameter, BUFFER: Array}


# torch.nn.Module, of which no method is called by name
NO_LAYER = Layer("torch.nn.Module", {}, set())


class Classes:
    """Reads classes, makes layers, and calls what torch calls of them. Args:  reader: who reads"""

    def __init__(self, reader):
        self.reader = reader
        # of a layer, {the name of its parameter: its value}
        self.parameters: dict[str, Array] = {}
        # the names among them that a layer has
        self.trained: set[str] = set()
        # whether needs_input_grad was looked at
        self.asked = False

    # how a class is made

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
            methods[name] = self.reader.introspection.function_of(method.__func__)
        return FunctionClass(kind.__name__, methods)

    def read_ClassDef(self, node, scope):
        """An autograd Function, or a layer."""
        try:
            _check_private(node)
            base = self._base_of(node, scope)
            if base is None:
                self._read_plain(node, scope)
                return
            if base is LAYER or isinstance(base, Layer):
                self._read_layer(node, base, scope)
                return
        except NotRead as reason:
            self.reader.declarations.leave_out(node, reason, scope)
        else:
            self._read_function_class(node, base, scope)

    def _base_of(self, node, scope):
        """The autograd Function, torch's or the text's, that a class is made of; None for none."""
        for decorator in node.decorator_list:
            words = f"the decorator {ast.unparse(decorator)}"
            raise NotRead(f"{words} of the class {node.name}")
        names = [ast.unparse(base) for base in node.bases]
        is_object = names == ["object"] and "object" not in scope.local
        if not node.keywords and (not names or is_object):
            return None
        bases = [self.reader.evaluate(base, scope) for base in node.bases]
        if len(bases) != 1 or node.keywords:
            raise NotRead(f"the class {node.name}, which has not one base alone")
        (base,) = bases
        is_known = base is FUNCTION or base is LAYER
        is_known |= isinstance(base, FunctionClass | Layer)
        if not is_known or getattr(base, "plain", False):
            words = f"whose base {names[0]} is not read"
            raise NotRead(f"the class {node.name}, {words}")
        return base

    def _read_function_class(self, node, base, scope):
        inherited = {} if base is FUNCTION else base.methods
        inner = Scope(scope, local_names(node.body), self.reader)
        self.reader.execute(node.body, inner)
        for name, value in inner.names.items():
            if not isinstance(value, Function):
                raise NotRead(f"the attribute {name} of a class")
            check_method(node.name, name)
            if "staticmethod" not in map(ast.unparse, _decorators(value)):
                raise NotRead(f"{node.name}.{name}, which is no static method")
            value.scope = scope
        scope.names[node.name] = FunctionClass(node.name, inherited | inner.names)

    def _read_layer(self, node, base, scope):
        inherited = {} if base is LAYER else base.methods
        static = {} if base is LAYER else dict(base.static)
        inner = Scope(scope, local_names(node.body), self.reader)
        self.reader.execute(node.body, inner)
        names = inner.names
        for name, value in list(names.items()):
            if name in static or is_apart(value) and name in inherited:
                raise NotRead(
                    f"{node.name}.{name}, which is static in one of two classes"
                )
            if name != "forward" and is_apart(value) and not _is_of_module(name):
                value.scope = scope
                static[name] = names.pop(name)
                continue
            if not isinstance(value, Function) or _decorators(value):
                raise NotRead(f"{node.name}.{name}, which is no plain method")
            if _is_of_module(name) and name not in ("__init__", "__repr__"):
                raise NotRead(f"{node.name}.{name}, which is torch's own or Python's")
            value.scope = scope
        methods, above = inherited | names, None if base is LAYER else base
        switches = _switches_of(methods.get("__init__"), above)
        layer = Layer(node.name, methods, switches, static=static, base=above)
        for value in names.values():
            if value.node in node.body:
                value.home = layer
        scope.names[node.name] = layer

    def _read_plain(self, node, scope):
        """A class of no base, whose methods may write its attributes.

        For one that keeps in forward what its backward needs. It stops a method that Python calls by itself, and a
        property, which another line reads as an attribute.
        """
        inner = Scope(scope, local_names(node.body), self.reader)
        self.reader.execute(node.body, inner)
        methods, static = {}, {}
        for name, value in inner.names.items():
            if not isinstance(value, Function):
                raise NotRead(f"the attribute {name} of a class")
            is_static = is_apart(value)
            if _decorators(value) and not is_static:
                raise NotRead(f"{node.name}.{name}, which is no plain method")
            if name.startswith("__") and name not in PLAIN:
                raise NotRead(f"{node.name}.{name}, which Python calls by itself")
            (static if is_static else methods)[name] = value
            value.scope = scope
        if "backward" in static and "forward" in methods:
            raise NotRead(f"{node.name}.backward, without the self of forward")
        scope.names[node.name] = Layer(
            node.name, methods, set(), plain=True, static=static
        )

    # layers

    def backward(
        self, owner: Instance, arguments: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """(what backward of a plain class returns, the attributes that it writes).

        Args:  arguments: the gradients of what forward returned, by the parameters of backward
        """
        method, before = owner.layer.methods["backward"], dict(owner.attributes)
        arguments = {method.parameters[0]: owner, **arguments}
        returned = self.reader.call_by_names(method, arguments)
        attributes = {
            name: value
            for name, value in owner.attributes.items()
            if value is not before.get(name)
        }
        return returned, attributes

    def layer(self, kind: Layer, values: dict[str, Any]) -> tuple[Any, Instance]:
        """(what forward of a layer returns, the layer).

        Args:  values: {parameter of __init__ or forward, or name of a parameter that is trained: its value}
        """
        instance, methods = Instance(kind), kind.methods
        made = methods.get("__init__")
        own = made.parameters[1:] if made else []
        self.parameters, self.trained = values, set()
        if made:
            given = {name: values[name] for name in own if name in values}
            for name, value in given.items():
                if isinstance(value, Array) and name in kind.switches:
                    given[name] = True
            self._initialize(made, {made.parameters[0]: instance, **given})
            if not (instance.ready or kind.plain):
                raise Wrong(f"{kind.name}.__init__ does not call super().__init__()")
            self._freeze(instance)
        instance.made = True
        first, *names = kind.forward.parameters
        given = {name: values[name] for name in names if name in values}
        given[first] = instance
        return self.reader.call_by_names(kind.forward, given), instance

    def _initialize(self, made, values):
        """Call __init__ of a layer, after which nobody changes what it has made.

        For all that one call leaves for the next. It stops a list in which forward keeps rstd, and a tensor to which
        it adds 1: both are right once.
        """
        phase, before = self.reader.phase, state().made
        self.reader.phase, state().made = SETUP, []
        result = self.reader.call_by_names(made, values)
        if result is not None:
            raise Wrong("a TypeError: __init__ returns a value")
        for memory in state().made:
            memory.fixed = LASTS
        self.reader.phase, state().made = phase, before

    def _freeze(self, instance):
        """Ends what may be done with what an __init__ has made."""
        for name, value in instance.attributes.items():
            instance.attributes[name] = lasting(value)
            if value is not None:
                instance.initial.add(name)

    def made_of(self, kind: Layer, args: list, options: dict[str, Any]) -> Instance:
        """A layer that the __init__ of another one makes; its parameters have the names of their own."""
        instance, method = Instance(kind), kind.methods.get("__init__")
        if method is None or kind.plain:
            raise NotRead(f"{kind.name}, made by an __init__")
        if self.reader.call(method, [instance, *args], options) is not None:
            raise Wrong("a TypeError: __init__ returns a value")
        if not instance.ready:
            raise Wrong(f"{kind.name}.__init__ does not call super().__init__()")
        self._freeze(instance)
        instance.made = True
        return instance

    def set_up(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a statement is a call by which torch.nn.Module makes a layer ready, or gives it a parameter."""
        match node:
            case ast.Call(
                ast.Attribute(ast.Name(id=name), method),
                [ast.Constant(str(part)), value],
                [] | [ast.keyword("persistent", ast.Constant(bool()))] as options,
            ) if method in REGISTERED and not (options and method != BUFFER):
                owner, value = scope.load(name), self.reader.evaluate(value, scope)
                self._register(method, owner, part, value)
                return True
        is_of_torch = is_super_init(node) and not (node.args or node.keywords)
        above = self.above(node.func.value, scope) if is_of_torch else None
        if above is None or "__init__" in above.layer.methods:
            return False
        if above.owner.made or above.owner.ready:
            raise NotRead("super().__init__() of a layer that is ready")
        above.owner.ready = True
        return True

    def above(self, node: ast.Call, scope: Scope) -> Above | None:
        """What super() is: the layer above the one in whose text a method stands; None where it is in no such text.

        For super().forward(x.float()) of a child of torch.nn.LayerNorm. It stops a super() that begins above another
        class than that of its line, and one of another object than self.
        """
        function = scope.function
        home = function and function.home
        if home is None:
            return None
        first, *_ = [*function.parameters, None]
        owner, given = scope.names.get(first), [part.id for part in node.args]
        is_own = not given
        if given == [home.name, first]:
            is_own = self.reader.evaluate(node.args[0], scope) is home
        is_own &= not scope.binds("super")
        if not is_own or not isinstance(owner, Instance):
            raise NotRead(f"super({', '.join(given)})")
        return Above(home.base or NO_LAYER, owner)

    def _register(self, method, owner, name, value):
        """self.register_parameter(name, value), or register_buffer: a parameter, or a tensor that no training changes.

        For a buffer whose entries __init__ gives. It stops a claim that hides what a checkpoint may give instead.
        """
        is_layer = isinstance(owner, Instance) and owner.ready and not owner.made
        if not is_layer or not isinstance(value, REGISTERED[method] | None):
            raise NotRead(f"{method} of what it does not take")
        if name in owner.attributes:
            raise NotRead(f"{method} of self.{name}, which is there")
        owner.attributes[name] = self._part_of_layer(owner, name, value)
        if isinstance(value, Array):
            value.memory.is_on_cpu = False
            if value.dtype == "float32":
                value.memory.dtype = state().dtype  # layer.half() makes it that, too
            state().words.append(f"self.{name} keeps what __init__ gives it")

    def _part_of_layer(self, owner, name, value):
        """An attribute that __init__ sets; a parameter is the tensor that the caller says."""
        if owner.layer.plain:
            return self._part_of_plain(owner, name, value)
        if _is_of_module(name) or name in (*owner.layer.methods, *owner.layer.static):
            raise NotRead(f"self.{name}, which is a method or torch's own")
        if isinstance(value, Instance) and not owner.ready:
            raise Wrong(f"self.{name} is a layer before super().__init__()")
        if isinstance(owner.attributes.get(name), Array | TrainedParameter):
            raise NotRead(f"self.{name}, a parameter that is set twice")
        # of a parameter that has its tensor, it is another name
        if not isinstance(value, TrainedParameter) or value.tensor is not None:
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
        if name in self.trained:
            raise NotRead(f"self.{name}: {name} is the name of two parameters")
        self.trained.add(name)
        value.tensor = tensor
        return value

    def _part_of_plain(self, owner, name, value):
        """An attribute of a plain class; an array that __init__ makes is what the caller says, as training changes it.

        For self.gamma = np.ones(size). It stops a class whose state one call leaves for the next, as running means,
        and an accusation by gamma in a dict of its own, taken for 1.
        """
        if name in (*owner.layer.methods, *owner.layer.static) or name.startswith("__"):
            raise NotRead(f"self.{name}, which is a method")
        if not owner.made:
            tensor = self.parameters.get(name)
            if not any(isinstance(part, Array) for part in flat(value)):
                return value
            if not isinstance(tensor, Array):
                words = "which __init__ makes, and training may change"
                raise NotRead(f"the arrays of self.{name}, {words}")
            is_like = getattr(value, "shape", None) == tensor.shape
            if not is_like or name in owner.attributes:
                raise NotRead(f"self.{name}, which is made as another array")
            return tensor
        if state().loops:
            raise NotRead(f"self.{name}, written in a loop over rows")
        if name in owner.initial:
            raise NotRead(f"self.{name}, which __init__ sets and a method writes")
        return value

    def write(self, owner: Any, name: str, value: Any) -> None:
        """Give a layer that is made, or ctx, an attribute."""
        if isinstance(owner, Instance) and (owner.layer.plain or not owner.made):
            owner.attributes[name] = self._part_of_layer(owner, name, value)
            return
        if not isinstance(owner, Context) or state().loops:
            raise NotRead(f"a write to the attribute {name}")
        if self.reader.phase != owner.phase:
            # a second backward finds what forward left
            raise NotRead(f"ctx.{name}, written by backward")
        if name in OF_TORCH or name.startswith("_"):
            raise NotRead(f"a write to ctx.{name}, which is torch's own")
        owner.attributes[name] = value

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of ctx, of a layer or of an autograd Function."""
        match owner:
            case Context():
                return self._of_context(owner, name)
            case Instance(attributes=attributes, made=made) if name in attributes:
                value = attributes[name]
                _check_not_set(owner, name)
                if owner.layer.plain:
                    _check_state(owner, name, value)
                # what __init__ makes of a parameter stays what it was
                is_tensor = made and isinstance(value, TrainedParameter)
                return value.tensor if is_tensor else value
            case Instance(layer=layer) if name in layer.methods:
                return Method(layer.methods[name], owner)
            case Instance(layer=layer) if name in layer.static:
                return layer.static[name]
            case Instance(layer=layer) if self._is_unset(name):
                raise Wrong(f"an AttributeError: {layer.name} has no {name}")
            case Layer(static=static) if name in static:
                return static[name]
            case Above(layer=layer, owner=instance) if name in layer.methods:
                return Method(layer.methods[name], instance)
            case FunctionClass() if name == "apply":
                return partial(self.apply, owner)
            case FunctionClass(methods=methods) if name in methods:
                return methods[name]
        return self.reader.values.attribute(owner, name)

    def _is_unset(self, name):
        """Whether neither torch.nn.Module nor a line of the text gives a layer an attribute.

        For a layer that sets it elsewhere. It stops `self.BLOCK` that no line sets.
        """
        is_own = _is_of_module(name) or name.startswith("_")
        source = self.reader.modules.source
        if not source or source.hidden or is_own:
            return False
        for node in nodes_of(source.tree):
            is_stored = isinstance(getattr(node, "ctx", ast.Store()), ast.Store)
            names = [getattr(node, part, "") for part in ("attr", "id", "name")]
            if is_stored and name in names:
                return False
            if isinstance(node, ast.Constant) and node.value == name:
                return False
        return True

    # autograd Functions

    def _of_context(self, owner, name):
        if name in CALLED:
            if self.reader.phase != owner.phase:
                raise NotRead(f"ctx.{name} in backward, where it changes nothing")
            return partial(getattr(owner, name))
        if name == "saved_tensors":
            if self.reader.phase == owner.phase:
                raise NotRead("ctx.saved_tensors before backward, where it is empty")
            return owner.saved
        if name == "needs_input_grad":
            if owner.flags is None:
                raise NotRead("needs_input_grad of a Function that a program calls")
            self.asked = True
            return owner.flags
        if name in owner.attributes:
            value = owner.attributes[name]
            if self.reader.phase == BACKWARD:
                check_constant(f"ctx.{name}", value, arrays=True)
            return value
        raise NotRead(f"ctx.{name}")

    def forward(
        self, kind: FunctionClass, args: list, flags: tuple[bool, ...] | None = None
    ) -> tuple[Any, Context]:
        """What forward of an autograd Function returns, and its ctx; flags: as of Context."""
        context = Context(flags, self.reader.phase)
        if "setup_context" in kind.methods:
            result = self.reader.call(kind.methods["forward"], args)
            self.reader.call(
                kind.methods["setup_context"], [context, tuple(args), result]
            )
        else:
            result = self.reader.call(kind.methods["forward"], [context, *args])
        if self.reader.infers and (context.saved or context.attributes):
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


def _check_state(owner, name, value):
    """Refuses to read an attribute of a plain class whose value is another one in another call.

    For self.x of a backward, which forward has written. It stops `if self.mean is None: self.mean = x.mean()`, which is
    right once, and what __init__ makes of a parameter before it is trained.
    """
    if not owner.made and isinstance(value, Array):
        raise NotRead(f"self.{name} in __init__, before it is trained")
    if owner.made and value is None and owner.layer.writers(name):
        raise NotRead(f"self.{name}, which a call leaves for the next")


def _check_not_set(owner, name):
    """Refuses to read an attribute that a method sets which callers alone call.

    For self.training of a class of no base, and its eval(). It stops a claim about one of two layers.
    """
    methods = owner.layer.writers(name) if owner.made else set()
    if methods:
        methods &= owner.layer.not_called()
    if methods:
        raise NotRead(f"self.{name}, which {min(methods)} sets")


def _check_private(node):
    """Refuses a class with a name that Python changes in its body.

    For all classes. It stops `__w = self.weight; _L__w = 2 * __w` in a class L, where both names are one.
    """
    for part in nodes_of(node):
        name = getattr(part, "id", getattr(part, "arg", None)) or ""
        if name.startswith("__") and not name.endswith("__"):
            raise NotRead(f"{name} in the class {node.name}, which Python renames")


def _switches_of(made, base):
    """The arguments of __init__ that say nothing but that the parameter of their name is there.

    For `self.bias = nn.Parameter(torch.zeros(size)) if bias else None`, and for a bias that is handed on to such a
    base. It stops an argument whose value counts, and `None if bias else nn.Parameter(...)`.
    """
    if made is None:
        return set()
    if base and base.methods.get("__init__") is made:
        return base.switches
    tests, names = [], []
    for node in nodes_of(made.node):
        match node:
            case ast.Name():
                names.append(node)
            case ast.Call() if base and is_super_init(node) and base.switches:
                handed = base.methods["__init__"].handed(node)
                tests += [
                    value
                    for name, value in handed.items()
                    if name in base.switches and getattr(value, "id", "") == name
                ]
            case ast.If(test, [ast.Assign(value=value), *_]) | ast.IfExp(test, value):
                if re.match(r"[\w.]*Parameter\(", ast.unparse(value)):
                    tests.append(test)
    others = {name.id for name in names if name not in tests}
    return {name.id for name in names if name.id in made.parameters} - others


def _is_of_module(name):
    """Whether a name is torch.nn.Module's own, or Python calls it by itself.

    For a layer that defines a method or sets an attribute. It stops a train() or a register_buffer that changes what
    forward reads, and a self.training that eval() writes over.
    """
    return name in OF_MODULE or name.startswith("__")


def is_apart(value: Any) -> bool:
    """Whether a method of a layer is a static one, which forward does without, or is not read."""
    return [getattr(part, "id", "") for part in _decorators(value)] == ["staticmethod"]


def _decorators(value):
    """What stands above a method; a lambda has nothing above it."""
    return getattr(getattr(value, "node", None), "decorator_list", [])


def check_method(kind: str, name: str) -> None:
    """Refuse what a Function puts in the place of torch's own, such as apply, and what Python calls by itself."""
    if name in OF_TORCH.difference(METHODS_READ) or name.startswith("_"):
        raise NotRead(f"{kind}.{name}, which torch or Python calls by itself")


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
