"""The implementations that the GPU benchmark compares, each as a function of (x, residual, weight, bias).

Each returns a tuple of outputs: (y,), or (y, residual_out) where there is a residual. Liger is called as its modules
call it, except that it may not overwrite the cotangent, which is not its own and is read again.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch.nn.functional as F

import normgrad

# One eps for everyone; given, since the defaults of rms_norm differ.
EPS = {"layer_norm": 1e-5, "rms_norm": 1e-6}


class Unavailable(Exception):
    """An implementation that is not installed, or does not offer the operator; the message is recorded."""


def ours(operator: str, backend: str):
    """This package, through its public functions."""
    if backend == "numba" and find_spec("numba") is None:
        raise Unavailable("needs numba, which the extra normgrad[cpu] installs")
    function, eps = getattr(normgrad, operator), EPS[operator.removeprefix("add_")]

    def call(x, residual, weight, bias):
        inputs = (x,) if residual is None else (x, residual)
        affine = (weight,) if operator.endswith("rms_norm") else (weight, bias)
        out = function(*inputs, x.shape[-1], *affine, eps, backend=backend)
        return (out,) if residual is None else out

    return call


def eager(operator: str):
    """torch's own kernels: the sum, then the norm."""
    eps = EPS[operator.removeprefix("add_")]
    if operator.endswith("rms_norm"):

        def norm(p, weight, bias):
            return F.rms_norm(p, p.shape[-1:], weight, eps)
    else:

        def norm(p, weight, bias):
            return F.layer_norm(p, p.shape[-1:], weight, bias, eps)

    return summed(norm)


def compiled(operator: str):
    """torch.compile of the same two lines, for static shapes; what was compiled for earlier shapes is forgotten.

    A limit on recompilations, once reached, would fall back to eager without a word.
    """
    import torch._dynamo
    import torch._functorch.config

    # a backward that is timed many times keeps its graph, which donated buffers forbid
    torch._functorch.config.donated_buffer = False
    torch._dynamo.reset()
    return torch.compile(eager(operator), fullgraph=True, dynamic=False)


def liger(operator: str):
    """Liger's Triton kernels; LayerNorm with a residual, which it does not fuse, is the sum and then its LayerNorm."""
    try:
        from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    except ImportError as error:
        raise Unavailable(f"needs liger-kernel, which the extra normgrad[bench] installs ({error})") from error
    eps = EPS[operator.removeprefix("add_")]
    offset, casting, in_place = 0.0, "llama", False
    if operator == "add_rms_norm":
        added = LigerFusedAddRMSNormFunction.apply
        return lambda x, residual, weight, bias: added(x, residual, weight, eps, offset, casting, in_place)
    if operator == "rms_norm":
        return summed(lambda p, weight, bias: LigerRMSNormFunction.apply(p, weight, eps, offset, casting, in_place))
    return summed(lambda p, weight, bias: LigerLayerNormFunction.apply(p, weight, bias, eps))


def summed(norm):
    """The sum, and then a norm of (p, weight, bias); without a residual the norm alone."""

    def call(x, residual, weight, bias):
        if residual is None:
            return (norm(x, weight, bias),)
        p = x + residual
        return norm(p, weight, bias), p

    return call


def contenders(backend: str = "triton"):
    """{name: function of an operator that returns the implementation, or raises Unavailable}, in the table's order.

    Args:  backend: of this package
    """
    return {
        "normgrad": lambda operator: ours(operator, backend),
        "torch": eager,
        "torch.compile": compiled,
        "liger": liger,
    }


def installed(builders: dict, operator: str) -> dict:
    """{name: implementation of an operator} of the builders whose library is here; the others are named in print.

    Args:  builders: as contenders returns them; operator: of plan.OPERATORS
    """
    found = {}
    for name, build in builders.items():
        try:
            found[name] = build(operator)
        except Unavailable as error:
            print(f"{name} is left out: {error}", flush=True)
    return found


def reference(operator: str):
    """What every contender, this package's kernels included, is compared with: this package in torch operations."""
    return ours(operator, "torch")
