"""One call of a student's code on given arrays, in this process or in the student's own.

Nothing of normgrad is imported here; torch is imported where it is used.
"""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np

from .by_hand import grad

OPERATIONS, KEPT_NAME = {}, 60
MORE = ("calls_symbols", "calls_tests", "calls_operators", "calls_watched", "calls_formats")


def add_all() -> None:
    """Imports the modules beside this one, which add their operations."""
    for name in MORE:
        import_module(f".{name}", __package__)


def operation(function):
    """Registers a way to call the student's code under the function's name."""
    OPERATIONS[function.__name__] = function
    return function


def _laid_out(array, layout, more):
    """(view, memory) of an array; more: 1 for the first argument with a layout, 2 for the second, and so on.

    The memory between strided columns holds NaN, so that code that does not look at strides is seen.
    """
    if layout == "contiguous":
        return array, array
    array = array.T if layout == "transposed" else array
    step = 1 + more if layout == "strided" else 1
    memory = np.full((len(array), array.shape[1] * step + (more if step == 1 else 0)), np.nan, array.dtype)
    view = memory[:, : array.shape[1] * step : step]
    view[...] = array
    return (view.T if layout == "transposed" else view), memory


def build(spec: dict, arrays):
    """(argument, memory) that a spec describes: the argument is a view of the memory where its dtype allows one.

    Args:  arrays: an iterator of the request's arrays
    """
    if spec["kind"] == "scalar":
        return spec["value"], np.zeros(0)
    array, memory = _laid_out(next(arrays), spec["layout"], spec["more"])
    if spec["kind"] == "numpy":
        return array, memory
    import torch

    dtype = getattr(torch, spec["dtype"])
    # Triton's interpreter refuses an empty tensor whose memory is not torch's own.
    tensor = torch.from_numpy(array).to(dtype) if array.size else torch.zeros(array.shape, dtype=dtype)
    return (tensor.requires_grad_() if spec["grad"] else tensor), memory


def returned(value) -> list:
    """What a call returned, as a list: a tuple or list of results, or one result."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def summary(value) -> tuple[dict, np.ndarray]:
    """(facts, numbers) of one result: its type, dtype and shape, and its numbers as float64 where it has any."""
    facts = {"type": type(value).__name__[:KEPT_NAME]}
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        facts |= {"kind": "tensor", "dtype": str(value.dtype).removeprefix("torch.")}
        facts |= {"graph": bool(value.requires_grad)}
        floating = value.dtype.is_floating_point
        value = value.detach().double().cpu().numpy() if floating else np.zeros(value.shape)
    elif isinstance(value, np.ndarray):
        value = np.ndarray.view(value, np.ndarray)  # a class made from it may say anything about itself
        facts |= {"kind": "ndarray", "dtype": str(value.dtype)}
        value = value.astype(np.float64) if value.dtype.kind in "fiu" else np.zeros(value.shape)
    else:
        return facts | {"kind": "other", "shape": []}, np.zeros(0)
    return facts | {"shape": list(value.shape)}, value


@operation
def call(target, arguments, options):
    """The results of a plain function."""
    return target(*arguments.values()), {}


@operation
def warned(target, arguments, options):
    """The results of a plain function, and the first warning that NumPy gave on the way."""
    with warnings.catch_warnings(record=True) as found, np.errstate(divide="warn", invalid="warn", over="warn"):
        warnings.simplefilter("always")
        result = target(*arguments.values())
    said = [str(each.message)[:KEPT_NAME] for each in found if issubclass(each.category, RuntimeWarning)]
    return result, {"warning": said[0] if said else ""}


def _apply(target, arguments, options, facts):
    """The outputs of an autograd Function."""
    import torch

    if not (isinstance(target, type) and issubclass(target, torch.autograd.Function)):
        kind = "class of another kind" if isinstance(target, type) else type(target).__name__
        raise TypeError(f"{options['entry']} is a {kind}, needs a class made from torch.autograd.Function")
    return returned(_padded(target, facts).apply(*(arguments[name] for name in options["inputs"])))


def _padded(target, facts):
    """The same Function, whose backward may leave out the last None; facts: where it is said that it did."""

    class Padded(target):
        @staticmethod
        def backward(ctx, *cotangents):
            found = target.backward(ctx, *cotangents)
            grads = found if isinstance(found, tuple) else (found,)
            left = ctx.needs_input_grad[len(grads) :]
            if not left or any(left):
                return found
            facts["left out"] = len(left)
            return *grads, *(None for _ in left)

    return Padded


@operation
def apply(target, arguments, options):
    """The output of an autograd Function."""
    return _apply(target, arguments, options, {}), {}


@operation
def gradients(target, arguments, options):
    """The output of an autograd Function, then the gradients of its differentiable inputs, then second ones.

    With the cotangents dy of y and ddx, ddw, ddb of the gradients: y, dx, dw, db, and what these send to dy, x, weight.
    """
    facts = {}
    y, *_ = _apply(target, arguments, options, facts)
    wanted = [arguments[name] for name in options["differentiable"]]
    twice = options.get("second")
    grads = grad(y, wanted, arguments["dy"], create_graph=bool(twice), allow_unused=True)
    if not twice:
        return [y, *grads], facts
    pairs = [(g, arguments[name]) for g, name in zip(grads, twice["cotangents"], strict=True)]
    pairs = [(g, cotangent) for g, cotangent in pairs if g is not None and g.requires_grad]
    facts["graph"] = len(pairs)
    if not pairs:
        return [], facts
    ends, cotangents = zip(*pairs, strict=True)
    return list(grad(ends, [arguments[name] for name in twice["inputs"]], cotangents, allow_unused=True)), facts


@operation
def two_layers(target, arguments, options):
    """The gradients of a first layer, after a second one with another weight went forward and backward."""
    y, *_ = _apply(target, arguments, options, {})
    swapped = arguments | {options["weight"]: arguments["other"]}
    other = _apply(target, swapped, options, {})
    grad(other[0], swapped["x"], arguments["dy"], allow_unused=True)
    wanted = [arguments[name] for name in options["differentiable"]]
    return [y, *grad(y, wanted, arguments["dy"], allow_unused=True)], {}


@operation
def saved(target, arguments, options):
    """No results, but the tensors that the Function keeps for its backward: name, shape, dtype, bytes."""
    import torch

    kept, names = [], {}

    def note(tensor, how):
        name = names.get((tensor.data_ptr(), tuple(tensor.shape)), "")
        kept.append({"name": name, "how": how, "shape": list(tensor.shape), "storage": tensor.data_ptr(),
                     "dtype": str(tensor.dtype).removeprefix("torch."), "bytes": tensor.nbytes})  # fmt: skip
        return tensor

    names |= {(t.data_ptr(), tuple(t.shape)): n for n, t in arguments.items() if isinstance(t, torch.Tensor)}
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: note(tensor, "save_for_backward"), lambda t: t):
        results = _apply(target, arguments, options, {})
    for name, value in vars(results[0].grad_fn).items() if results[0].grad_fn is not None else ():
        if isinstance(value, torch.Tensor):
            note(value, f"ctx.{name}")
    for each in kept:
        if not each["name"] and (results[0].data_ptr(), list(results[0].shape)) == (each["storage"], each["shape"]):
            each["name"] = "y"
    return [], {"saved": kept}


def warm_up() -> None:
    """Uses an autograd Function once: torch imports the rest of itself then."""
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * ctx.saved_tensors[0] * dy

    x = torch.ones(2, requires_grad=True)
    (dx,) = grad(Square.apply(x), x, torch.ones(2), create_graph=True)
    grad(dx, x, torch.ones(2))


def perform(target, request: dict, arrays) -> tuple[list, dict, list[str]]:
    """(results as (facts, numbers), facts of the call, names of the inputs that changed) of one request.

    Args:  request: "op", a name in OPERATIONS; "arguments", specs for build; "options", what the operation needs
           arrays: those of the arguments, in their order
    """
    left = iter(arrays)
    built = {spec["name"]: build(spec, left) for spec in request["arguments"]}
    before = {name: memory.tobytes() for name, (_, memory) in built.items()}
    arguments = {name: argument for name, (argument, _) in built.items()}
    result, facts = OPERATIONS[request["op"]](target, arguments, request["options"])
    changed = [name for name, (_, memory) in built.items() if memory.tobytes() != before[name]]
    return [summary(each) for each in returned(result)], facts, changed
