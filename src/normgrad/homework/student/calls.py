"""One call of a student's code on given arrays, in this process or in the student's own.

The arguments lie in one buffer that the grader owns, so that it sees for itself whether an input was changed. The
student's process loads this file by its path, so it imports nothing of normgrad; torch is imported where it is used.
"""

from __future__ import annotations

import numpy as np

OPERATIONS, KEPT_NAME = {}, 60
# Modules beside this one with an OPERATIONS of their own; whoever loads this file adds them.
MORE = ("calls_symbols", "calls_tests", "calls_operators", "calls_watched", "calls_formats")


def operation(function):
    """Registers a way to call the student's code under the function's name."""
    OPERATIONS[function.__name__] = function
    return function


def build(spec: dict, buffer):
    """The argument that a spec describes, as a view of the buffer where its dtype allows one."""
    if spec["kind"] == "scalar":
        return spec["value"]
    shape, layout, more = tuple(spec["shape"]), spec["layout"], spec["more"]
    memory = shape
    if layout != "contiguous":
        rows, columns = shape[::-1] if layout == "transposed" else shape
        step = 1 + more if layout == "strided" else 1
        memory = rows, columns * step + (more if step == 1 else 0)
    array = np.frombuffer(buffer, spec["stored"], int(np.prod(memory)), spec["offset"]).reshape(memory)
    if layout != "contiguous":
        array = array[:, : columns * step : step]
    array = array.T if layout == "transposed" else array
    if spec["kind"] == "numpy":
        return array
    import torch

    dtype = getattr(torch, spec["dtype"])
    # Triton's interpreter refuses an empty tensor whose memory is not torch's own.
    tensor = torch.from_numpy(array).to(dtype) if array.size else torch.zeros(shape, dtype=dtype)
    return tensor.requires_grad_() if spec["grad"] else tensor


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
        # A copy: an input that is returned lies in the buffer, which the next call overwrites.
        value = value.detach().double().cpu().numpy().copy() if floating else np.zeros(value.shape)
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


def _apply(target, arguments, options):
    """The outputs of an autograd Function."""
    import torch

    if not (isinstance(target, type) and issubclass(target, torch.autograd.Function)):
        kind = "class of another kind" if isinstance(target, type) else type(target).__name__
        raise TypeError(f"{options['entry']} is a {kind}, needs a class made from torch.autograd.Function")
    return returned(target.apply(*(arguments[name] for name in options["inputs"])))


@operation
def apply(target, arguments, options):
    """The output of an autograd Function."""
    return _apply(target, arguments, options), {}


def _grad(*args, **options):
    import torch

    return _AUTOGRAD.get("grad", torch.autograd.grad)(*args, **options)


# Where a student's process hides torch.autograd.grad from the student's code, the real one is kept here.
_AUTOGRAD = {}


@operation
def gradients(target, arguments, options):
    """The output of an autograd Function, then the gradients of its differentiable inputs, then second ones.

    With the cotangents dy of y and ddx, ddw, ddb of the gradients: y, dx, dw, db, and what these send to dy, x, weight.
    """
    y, *_ = _apply(target, arguments, options)
    wanted = [arguments[name] for name in options["differentiable"]]
    twice = options.get("second")
    grads = _grad(y, wanted, arguments["dy"], create_graph=bool(twice), allow_unused=True)
    if not twice:
        return [y, *grads], {}
    pairs = [(g, arguments[name]) for g, name in zip(grads, twice["cotangents"], strict=True)]
    pairs = [(g, cotangent) for g, cotangent in pairs if g is not None and g.requires_grad]
    facts = {"graph": len(pairs)}
    if not pairs:
        return [], facts
    ends, cotangents = zip(*pairs, strict=True)
    return list(_grad(ends, [arguments[name] for name in twice["inputs"]], cotangents, allow_unused=True)), facts


@operation
def two_layers(target, arguments, options):
    """The gradients of a first layer, after a second one with another weight went forward and backward."""
    y, *_ = _apply(target, arguments, options)
    swapped = arguments | {options["weight"]: arguments["other"]}
    other = _apply(target, swapped, options)
    _grad(other[0], swapped["x"], arguments["dy"], allow_unused=True)
    wanted = [arguments[name] for name in options["differentiable"]]
    return [y, *_grad(y, wanted, arguments["dy"], allow_unused=True)], {}


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
        results = _apply(target, arguments, options)
    for name, value in vars(results[0].grad_fn).items() if results[0].grad_fn is not None else ():
        if isinstance(value, torch.Tensor):
            note(value, f"ctx.{name}")
    for each in kept:
        if not each["name"] and (results[0].data_ptr(), list(results[0].shape)) == (each["storage"], each["shape"]):
            each["name"] = "y"
    return [], {"saved": kept}


def perform(target, request: dict, buffer) -> tuple[list, dict]:
    """(results as (facts, numbers), facts of the call) of one request.

    Args:  request: "op", a name in OPERATIONS; "arguments", specs for build; "options", what the operation needs
    """
    arguments = {spec["name"]: build(spec, buffer) for spec in request["arguments"]}
    result, facts = OPERATIONS[request["op"]](target, arguments, {**request["options"], "grad": _grad})
    return [summary(each) for each in returned(result)], facts
