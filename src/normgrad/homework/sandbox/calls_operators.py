"""Calls of an operator that the student describes: its inputs, its forward, its backward.

Nothing of normgrad is imported here; torch is imported where it is used.
"""

from __future__ import annotations

import numpy as np

from .by_hand import grad
from .calls import operation


def _method(target, name):
    found = getattr(target, name, None)
    if not callable(found):
        raise TypeError(f"the operator has no function {name}")
    return found


@operation
def operator_inputs(target, arguments, options):
    """All arrays that the operator's own `inputs` or `degenerate` draws, one set after the other, and their names."""
    drawn = _method(target, options["method"])(np.random.default_rng(options["seed"]))
    sets = drawn if isinstance(drawn, (tuple, list)) else [drawn]
    if not all(isinstance(each, dict) for each in sets):
        raise TypeError(f"{options['method']} must return dictionaries, {{name: array}}")
    arrays = [array for each in sets for array in each.values()]
    return arrays, {"names": [[str(name) for name in each] for each in sets]}


@operation
def operator_forward(target, arguments, options):
    """The output of the operator."""
    return _method(target, "forward")(*arguments.values()), {}


@operation
def operator_backward(target, arguments, options):
    """The gradients of the operator; dy is the first argument."""
    return _method(target, "backward")(*arguments.values()), {}


@operation
def operator_second(target, arguments, options):
    """What the gradients pass on when torch differentiates the student's backward: to dy, then to each input."""
    import torch

    class Wrapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return _method(target, "forward")(*tensors)

        @staticmethod
        def backward(ctx, dy):
            return tuple(_method(target, "backward")(dy, *ctx.saved_tensors))

    cotangents = [arguments[f"u_{name}"] for name in options["names"]]
    tensors = [arguments[name] for name in options["names"]]
    grads = grad(Wrapped.apply(*tensors), tensors, arguments["dy"], create_graph=True)
    pairs = [(g, u) for g, u in zip(grads, cotangents, strict=True) if g.requires_grad]
    if not pairs:
        return [], {"graph": 0}
    ends, cotangents = zip(*pairs, strict=True)
    ways = [arguments["dy"], *tensors]
    found = grad(ends, ways, cotangents, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, ways, strict=True)], {"graph": len(pairs)}
